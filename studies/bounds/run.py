"""One run: every choice of bounds on one dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.core.craft import Bounds, Result, craft
from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import population_summary
from craftrl.oracles.base import Coupling
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.bounds.spec import AGENTS, COUPLINGS, GRID, Run, grid_name

__all__ = ["Trial", "run_one"]

MEASURES = ("accuracy", "state_mean", "state_worst")


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, overall and of single states, and the `chosen` bounds, by coupling and choice of bounds.

    `accuracy` is averaged over h = 1..H; `state_mean` and `state_worst` are of single states at h = 2..H.

    An eta or nu that doubling would push beyond what it can be (1/2 and 1) is cut off there.
    """
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    agents = [world.persistence_policy(stay) for stay in AGENTS[run.agents]]
    known = population_assumptions(world, agents)
    true = Bounds(known.alpha.value, known.eta.value, known.nu.value)
    tau = collect(world, agents, run.size, seed=np.random.default_rng(_seed(run))).tau
    scores: dict[str, dict[str, dict[str, float]]] = {measure: {} for measure in MEASURES}
    chosen: dict[str, dict[str, Any]] = {}
    for coupling in COUPLINGS:
        trial = Trial(world, tau, coupling)
        grid = {grid_name(factors): _scaled(true, factors) for factors in GRID}
        auto = CRAFT(CoordinateOracle(), coupling=coupling, relabel=False).fit(tau)
        found = {"auto": auto.bounds_}
        scored = {name: trial.scores(bounds) for name, bounds in (grid | found).items()}
        for measure in MEASURES:
            scores[measure][coupling] = {name: score[measure] for name, score in scored.items()}
        chosen[coupling] = {name: vars(bounds) for name, bounds in {"true": true, **found}.items()}
    return {**scores, "chosen": chosen}


class Trial:
    """CRAFT with many bounds on one dataset, which is packed once; bounds that mean the same are run once."""

    def __init__(self, world: BitsExBMDP, tau: TrajectoryDataset, coupling: Coupling) -> None:
        self.world = world
        self.coupling = coupling
        self.oracle = CoordinateOracle().prepare(tau)
        self.found: dict[Bounds, Result] = {}

    def result(self, bounds: Bounds) -> Result:
        same = Bounds(min(bounds.alpha, 1.0), bounds.eta, bounds.nu)  # Line 1
        if same not in self.found:
            self.found[same] = craft(self.oracle, same, coupling=self.coupling)
        return self.found[same]

    def scores(self, bounds: Bounds) -> dict[str, float]:
        """Each of `MEASURES`."""
        encoders = self.result(bounds).encoders
        return population_summary(lambda h: [encoders[h - 1]], self.world)


def _seed(run: Run) -> Any:
    """Of the data: with the paper's agents that of Table 1."""
    study = "table1" if run.agents == "paper" else f"bounds, {run.agents}"
    return seed_of(study, run.horizon, run.n_features, run.size, run.seed)


def _scaled(true: Bounds, factors: tuple[float, float, float]) -> Bounds:
    alpha, eta, nu = (bound * factor for bound, factor in zip((true.alpha, true.eta, true.nu), factors))
    return Bounds(alpha, min(eta, 0.5), min(nu, 1.0))
