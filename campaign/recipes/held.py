"""Objects whose methods are called as well."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from campaign.bench import Bench
from campaign.recipes.small import (
    begun,
    latent,
    planner,
    state_module,
    states_shown,
)
from craftrl.core.grid import Grid
from craftrl.envs.gym import ExBMDPEnv

__all__ = ["HELD"]

# Each call has one of its own.
HELD: dict[str, Callable[[Bench], Any]] = {
    "craftrl.CRAFT": lambda b: copy.deepcopy(b.model),
    "craftrl.TrajectoryDataset": lambda b: b.tau,
    "craftrl.paper.SingleObservation": lambda b: copy.deepcopy(b.single),
    "craftrl.core.grid.Grid": lambda b: Grid.from_bounds(1, 0.2),
    "craftrl.envs.MarkovPolicy": lambda b: b.world.paper_policies()[0],
    "craftrl.envs.gym.ExBMDPEnv": lambda b: begun(ExBMDPEnv(b.world, "rgb_array")),
    "craftrl.deploy.StateObservation": lambda b: begun(states_shown(b)),
    "craftrl.deploy.StateModule": lambda b: state_module(b),
    "craftrl.planning.StateGraph": lambda b: b.moves,
    "craftrl.planning.Grounding": lambda b: b.grounding(),
    "craftrl.planning.Planner": lambda b: planner(b),
    "craftrl.planning.LatentActions": lambda b: latent(),
}
