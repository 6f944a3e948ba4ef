"""One run: a random world, a fit, what it said, a diagnosis, and the truth."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.relabelling import best_matching
from craftrl.envs import Collection
from craftrl.errors import AssumptionWarning
from craftrl.evaluation import confusion
from craftrl.paper import population_assumptions
from studies.loud.cases import CLEAN, Case, draw_case
from studies.loud.spec import Run

__all__ = ["run_one", "told", "worst_state"]

FRESH = 1500  # trajectories per agent on which states are compared with the truth
LEAST_VISITS = 0.01  # of them, the share that must visit a state for it to count


def run_one(run: Run) -> dict[str, Any]:
    """What kind of world it was, how right the model is, what `fit` warned of, and what `diagnose` says.

    worst_state  of all states that are visited, the least share that the encoders read right
    worst_named  the same if only codes count that stand for a state that was found
    known_state, known_named  the same with the bounds of the unbroken world on the same data, for comparison; None
                 for lists of functions, and where bounds were known anyway or something is broken
    warned       whether `fit` warned; told: what of
    """
    case = draw_case(run.seed, run.size)
    tau, fresh = case.data().tau, case.fresh(FRESH)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = _fitted(case, run, tau, {} if run.bounds == "chosen" else _bounds(case))
    found = model.diagnose(tau, n_resamples=run.n_resamples, seed=run.seed)
    return {
        "kind": case.kind,
        "agents": tau.K,
        "states": int(max(case.world.n_states(h) for h in range(1, tau.H + 1))),
        "sizes": list(case.sizes),
        "alpha": case.alpha,
        "violation": case.violation,
        "extent": case.size,
        "worst_state": worst_state(model, fresh, named=False),
        "worst_named": worst_state(model, fresh, named=True),
        **_beside_known(run, case, tau, fresh),
        "warned": bool(caught),
        "told": told(model),
        "verdict": found.verdict,
        "score": found.score,
        "n_warnings": len(found.warnings),
    }


def told(model: CRAFT) -> list[str]:
    """What `fit` has to warn of, by kind."""
    return [finding.kind for finding in model.trace_.findings if finding.severity == "warning"]


def _fitted(case: Case, run: Run, tau: TrajectoryDataset, bounds: dict[str, Any]) -> CRAFT:
    return CRAFT(case.oracle(run.encoders), **bounds).fit(tau)


def _beside_known(run: Run, case: Case, tau: TrajectoryDataset, fresh: Collection) -> dict[str, float | None]:
    if run.bounds == "known" or run.encoders != "coordinates" or case.violation != CLEAN:
        return {"known_state": None, "known_named": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        model = _fitted(case, run, tau, _bounds(case))
    return {"known_state": worst_state(model, fresh, named=False), "known_named": worst_state(model, fresh, named=True)}


def _bounds(case: Case) -> dict[str, float]:
    """Those of the unbroken world, with eta for as many trajectories as each agent has."""
    known = population_assumptions(case.world, case.agents)
    odds = known.eta.value / (1 - known.eta.value) * min(case.sizes) / max(case.sizes)
    return {"alpha": known.alpha.value, "eta": odds / (1 + odds), "nu": known.nu.value}


def worst_state(model: CRAFT, fresh: Collection, named: bool) -> float:
    """The least share of a state's observations that are read right, over all steps and all states that are visited."""
    shares = [_read_right(model, fresh, h, named) for h in range(2, fresh.tau.H + 1)]
    return float(min(share.min() for share in shares))


def _read_right(model: CRAFT, fresh: Collection, h: int, named: bool) -> NDArray[np.float64]:
    code, state = model.encode(fresh.tau.at(h), h), fresh.truth.states[:, h - 1]
    if named:
        code = np.where(code < model.n_states_[h], code, -1)
    table, visits = confusion(code, state), np.bincount(state)
    right = np.zeros(len(visits))
    for label, s in best_matching(table).items():
        right[s] = table[label, s]
    counted = visits >= LEAST_VISITS * len(state)
    return right[counted] / visits[counted]
