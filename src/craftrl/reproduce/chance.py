"""What chance scores in the toy worlds that rows are about, for the line beside their accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from craftrl.envs import BitsExBMDP
from craftrl.reproduce.folder import Row
from craftrl.theory import chance_accuracy

__all__ = ["CHANCE", "toy_chance"]

CHANCE = "chance: a random feature"


def toy_chance(rows: Sequence[Row]) -> float:
    """Accuracy of a feature drawn at random, averaged over h = 1..H and over the worlds of these rows.

    No run is needed for it: a world follows from `horizon`, `n_features` and `seed` of a row.
    """
    worlds = sorted({(row["horizon"], row["n_features"], row["seed"]) for row in rows})
    return float(np.mean([_of_world(*world) for world in worlds]))


@lru_cache(maxsize=1024)
def _of_world(horizon: int, n_features: int, seed: int) -> float:
    world = BitsExBMDP(horizon, n_features, seed)
    return float(chance_accuracy(world, world.paper_policies()).mean())
