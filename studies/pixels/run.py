"""One run of the pixel study: render, fit, and score on held-out trajectories."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from craftrl import CRAFT
from craftrl.core.craft import Bounds
from craftrl.data import TrajectoryDataset
from craftrl.envs.collection import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.oracles.base import Oracle, PreparedOracle
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.pixels.spec import Run
from studies.rivals import FEWEST_PAIRS, Data, Fitted, fit_craft, fit_rival, scores
from studies.techniques import RIVALS

__all__ = ["craft_of", "data_of", "fitted", "run_one"]

HELD_OUT = 1000  # trajectories per agent that no technique is trained on


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique.

    The world and the trajectories depend on size, walkers, n and seed alone: all techniques see the same data.
    """
    return scores(fitted(run), data_of(run))


# -- data --------------------------------------------------------------------------------------------------------


def data_of(run: Run) -> Data:
    """The dataset of a run; the last one is kept."""
    return _data(replace(run, technique="", bounds="", rates=(), device=""))


@lru_cache(maxsize=1)
def _data(run: Run) -> Data:
    world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=run.layout, seed=run.seed)  # type: ignore[arg-type]
    policies = world.policies(2, run.alpha, run.seed, run.style)  # type: ignore[arg-type]
    identity = ("pixels", run.size, run.horizon, run.layout, run.walkers, run.n, run.seed)
    train_seed, test_seed = seed_of(*identity).spawn(2)
    population = population_assumptions(world, policies)
    return Data(
        collect(world, policies, run.n, np.random.default_rng(train_seed)),
        collect(world, policies, min(run.n, HELD_OUT), np.random.default_rng(test_seed)),
        Bounds(run.alpha, population.eta.value, max(population.nu.value, FEWEST_PAIRS / (2 * run.n))),
    )


# -- fitting -----------------------------------------------------------------------------------------------------


class _Reused(Oracle):
    """An oracle that is prepared already, so that variants of CRAFT share one network of log-odds."""

    def __init__(self, prepared: PreparedOracle) -> None:
        self.prepared = prepared

    def prepare(self, tau: TrajectoryDataset) -> PreparedOracle:
        return self.prepared


@lru_cache(maxsize=1)
def _prepared(run: Run, folds: int, agent_weight: float) -> PreparedOracle:
    oracle = NeuralOracle(folds=folds, training=_training(run), agent_weight=agent_weight)
    return oracle.prepare(data_of(run).train.tau)


@lru_cache(maxsize=1)
def fitted(run: Run) -> Fitted:
    """The technique, fitted. The last one is kept."""
    data = data_of(run)
    if run.technique in RIVALS:
        return fit_rival(run.technique, data, _training(run), run.rates)
    return fit_craft(craft_of(run, data), data)


def craft_of(run: Run, data: Data) -> CRAFT:
    """The estimator of a technique, with the world's population bounds or those that it chooses itself."""
    folds = 2 if run.technique == "craft-crossfit" else 1
    weight = 0.5 if run.technique == "craft-agents" else 0.0
    return CRAFT(
        _Reused(_prepared(replace(run, technique="craft", bounds=""), folds, weight)),
        **(vars(data.bounds) if run.bounds == "true" else {}),
        relabel=run.technique != "craft-no-relabel",
        clusterer="scan" if run.technique == "craft-scan" else "valleys",
        stationary=run.technique not in ("craft-steps", "craft-no-relabel", "craft-scan"),
    )


def _training(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)
