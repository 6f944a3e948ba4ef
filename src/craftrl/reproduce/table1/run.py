"""One run of Table 1: sample, fit, and score against the chains' analytic marginals.

Paper: Section 4, Appendix D
"""

from __future__ import annotations

import math
from typing import Any

from craftrl import CRAFT, CoordinateOracle
from craftrl.baselines import PairedObservation, SingleObservation
from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from craftrl.reproduce.runner import seed_of
from craftrl.reproduce.table1.spec import Run
from craftrl.states.accuracy import population_accuracy

__all__ = ["ALPHA", "ETA", "NU", "run_one"]

# The toy world's population values (Appendix D); craftrl.theory computes them from the world.
ALPHA, ETA, NU = math.log(3), 1 / 5, 5 / 32


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy averaged over h = 1..H and over h = 2..H, and what CRAFT met on the way.

    The world depends on the seed alone, the trajectories on seed and size: all techniques see the same data.
    """
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    tau = collect(world, world.paper_policies(), run.size, seed=_rng(run)).tau
    encoders, outcome = {"craft": _craft, "single": _single, "paired": _paired}[run.technique](tau)
    accuracy = population_accuracy(encoders, world)
    return {"accuracy": float(accuracy.mean()), "accuracy_from_2": float(accuracy[1:].mean()), **outcome}


def _rng(run: Run) -> Any:
    import numpy as np

    return np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))


def _craft(tau: TrajectoryDataset) -> tuple[Any, dict[str, Any]]:
    model = CRAFT.paper(CoordinateOracle(), alpha=ALPHA, eta=ETA, nu=NU).fit(tau)
    outcomes = model.trace_.outcomes()
    count = {f"steps_with_{kind.replace(' ', '_')}": len(steps) for kind, steps in sorted(outcomes.items())}
    return lambda h: [model.encoders_[h]], {**count, "assigned_at_end": model.trace_.steps[-1].assigned}


def _single(tau: TrajectoryDataset) -> tuple[Any, dict[str, Any]]:
    model = SingleObservation(CoordinateOracle()).fit(tau)
    return lambda h: [model.encoders_[h]], {}


def _paired(tau: TrajectoryDataset) -> tuple[Any, dict[str, Any]]:
    model = PairedObservation(CoordinateOracle()).fit(tau)
    return lambda h: model.candidates_[h], {}
