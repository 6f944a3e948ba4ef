"""One run of the pixel study: render, fit, and score on held-out trajectories."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from craftrl import CRAFT
from craftrl.envs.collection import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.paper.sweep import seed_of
from studies.pixels.spec import Run
from studies.rivals import Data, Fitted, cut, fit_craft, fit_rival, scores
from studies.techniques import RIVALS

__all__ = ["data_of", "fitted", "run_one"]

HELD_OUT = 1000  # trajectories per agent that no technique is trained on


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique.

    The world and the trajectories depend on size, walkers, n and seed alone: all techniques see the same data.
    """
    return scores(fitted(run), data_of(run))


# -- data --------------------------------------------------------------------------------------------------------


def data_of(run: Run) -> Data:
    """The dataset of a run; the last one is kept."""
    return _data(replace(run, technique="", rates=(), device=""))


@lru_cache(maxsize=1)
def _data(run: Run) -> Data:
    world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=run.layout, seed=run.seed)  # type: ignore[arg-type]
    policies = world.policies(2, run.alpha, run.seed, run.style)  # type: ignore[arg-type]
    identity = ("pixels", run.size, run.horizon, run.layout, run.walkers, run.n, run.seed)
    train_seed, test_seed = seed_of(*identity).spawn(2)
    whole = collect(world, policies, run.n, np.random.default_rng(train_seed))
    test = collect(world, policies, min(run.n, HELD_OUT), np.random.default_rng(test_seed))
    return Data(cut(whole, run.cut, run.seed), test, whole)


# -- fitting -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def fitted(run: Run) -> Fitted:
    """The technique, fitted. The last one is kept."""
    data = data_of(run)
    if run.technique in RIVALS:
        return fit_rival(run.technique, data, _training(run), run.rates)
    return fit_craft(CRAFT(NeuralOracle(training=_training(run))), data)


def _training(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)
