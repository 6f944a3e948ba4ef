"""One run of the pixel study: render, fit, and score on held-out trajectories; and the tables of all runs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from craftrl.envs import PixelsExBMDP, collect
from craftrl.paper.sweep import Row, seed_of
from studies.pixels.spec import Run
from studies.rivals import Data, cut, scored
from studies.tables import video_report

HELD_OUT = 1000  # trajectories per agent that no technique is trained on


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique.

    The world and the trajectories depend on size, walkers, n and seed alone: all techniques see the same data.
    """
    return scored(run.technique, data_of(run), run.rates, run.seed, run.device)


def data_of(run: Run) -> Data:
    """The dataset of a run; the last one is kept."""
    return _data(replace(run, technique="", rates=(), device=""))


@lru_cache(maxsize=1)
def _data(run: Run) -> Data:
    world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=run.layout, seed=run.seed)  # type: ignore[arg-type]
    policies = world.policies(seed=run.seed)
    identity = ("pixels", run.size, run.horizon, run.layout, run.walkers, run.n, run.seed)
    train_seed, test_seed = seed_of(*identity).spawn(2)
    whole = collect(world, policies, run.n, np.random.default_rng(train_seed))
    test = collect(world, policies, min(run.n, HELD_OUT), np.random.default_rng(test_seed))
    return Data(cut(whole, run.cut, run.seed), test, whole)


def report(rows: list[Row]) -> str:
    return video_report(rows, "size walkers cut n")
