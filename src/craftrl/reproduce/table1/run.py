"""One run of Table 1: sample, fit, and score against the chains' analytic marginals.

Paper: Section 4, Appendix D
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, CoordinateOracle
from craftrl.baselines import PairedObservation, SingleObservation
from craftrl.core.encoders import Encoder
from craftrl.core.trace import Trace
from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from craftrl.reproduce.runner import seed_of
from craftrl.reproduce.table1.spec import Run
from craftrl.states.accuracy import population_accuracy, population_state_accuracies, state_summary

__all__ = ["ALPHA", "ETA", "NU", "run_one"]

# The toy world's population values (Appendix D); craftrl.theory computes them from the world.
ALPHA, ETA, NU = math.log(3), 1 / 5, 5 / 32


Encoders = Callable[[int], Sequence[Encoder]]


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy averaged over h = 1..H and over h = 2..H, that of single states, and what CRAFT met on the way.

    accuracy_no_state_half  of CRAFT: the same as `accuracy`, with 1/2 for each step at which CRAFT found no state. Line
                            46 then returns the first encoder of the class, which in this world is better than that.

    The world depends on the seed alone, the trajectories on seed and size: all techniques see the same data.
    """
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    tau = collect(world, world.paper_policies(), run.size, seed=_rng(run)).tau
    encoders, trace = {"craft": _craft, "single": _single, "paired": _paired}[run.technique](tau)
    accuracy = population_accuracy(encoders, world)
    return {
        "accuracy": float(accuracy.mean()),
        "accuracy_from_2": float(accuracy[1:].mean()),
        **state_summary(population_state_accuracies(encoders, world)),
        **({} if trace is None else _met(trace, accuracy)),
    }


def _met(trace: Trace, accuracy: NDArray[np.float64]) -> dict[str, Any]:
    """What CRAFT met, and its accuracy if a step without a state counts as one half."""
    outcomes = trace.outcomes()
    halved = accuracy.copy()
    halved[[h - 1 for h in outcomes.get("no state", ())]] = 0.5
    count = {f"steps_with_{kind.replace(' ', '_')}": len(steps) for kind, steps in sorted(outcomes.items())}
    return {"accuracy_no_state_half": float(halved.mean()), **count, "assigned_at_end": trace.steps[-1].assigned}


def _rng(run: Run) -> np.random.Generator:
    return np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))


def _craft(tau: TrajectoryDataset) -> tuple[Encoders, Trace]:
    model = CRAFT.paper(CoordinateOracle(), alpha=ALPHA, eta=ETA, nu=NU).fit(tau)
    return lambda h: [model.encoders_[h]], model.trace_


def _single(tau: TrajectoryDataset) -> tuple[Encoders, None]:
    model = SingleObservation(CoordinateOracle()).fit(tau)
    return lambda h: [model.encoders_[h]], None


def _paired(tau: TrajectoryDataset) -> tuple[Encoders, None]:
    model = PairedObservation(CoordinateOracle()).fit(tau)
    return lambda h: model.candidates_[h], None
