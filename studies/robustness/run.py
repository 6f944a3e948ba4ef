"""One run: collect with a violation, fit, diagnose, and compare with the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, CoordinateOracle, FiniteOracle
from craftrl.diagnostics import Diagnosis
from craftrl.envs import BitsExBMDP, Collection, LockExBMDP, MultiMazeExBMDP, collect
from craftrl.envs.violations import VIOLATIONS
from craftrl.oracles.counting import CountingOracle
from craftrl.reproduce.runner import seed_of
from craftrl.states.accuracy import accuracy_by_step, encoder_accuracy, population_accuracy
from craftrl.theory import population_assumptions
from studies.robustness.hidden import HiddenBitsExBMDP
from studies.robustness.spec import CLEAN, LEARNERS, Run

__all__ = ["run_one"]

World = BitsExBMDP | LockExBMDP | MultiMazeExBMDP
HELD_OUT = 2000  # fresh trajectories per agent of the unbroken world, for the encoders' accuracy


def run_one(run: Run) -> dict[str, Any]:
    """True accuracy of encoders and labels, and what each diagnostic says of them.

    The world depends on the seed alone and the data on all but the learner. The bounds given to CRAFT are the
    population values of the unbroken world: the user believes in it.
    """
    world = _world(run)
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    known = population_assumptions(world, policies)
    data = _data(run, world, policies)
    learner = LEARNERS[run.learner]
    model = CRAFT(
        _oracle(world),
        alpha="auto" if learner.auto_alpha else known.alpha.value,
        eta=known.eta.value,
        nu=known.nu.value,
        coupling=learner.coupling,
        relabel=learner.relabel,
    ).fit(data.tau)
    accuracy = _accuracy(run, model, world, policies)
    result = {
        "accuracy": float(accuracy[1:].mean()),
        "label_accuracy": float(accuracy_by_step(model.labels_, data.truth.states)[1:].mean()),
    }
    if not run.n_resamples:
        return result
    diagnosis = model.diagnose(data.tau, n_resamples=run.n_resamples, seed=run.seed)
    by_step = {"accuracy_by_step": accuracy, "trust_by_step": diagnosis.trust}
    return {**result, **_findings(diagnosis), **{name: values.round(4).tolist() for name, values in by_step.items()}}


def _findings(found: Diagnosis) -> dict[str, Any]:
    """One number for each diagnostic: means over h = 2..H, and the worst step where that says more."""
    assert found.resamples is not None
    assert found.residual is not None
    return {
        "verdict": found.verdict,
        "score": found.score,
        "stability": float(found.stability[1:].mean()),
        "same_count": float(found.same_count[1:].mean()),
        "explained": float(found.explained[1:].mean()),
        "explained_so_far": float(np.minimum.accumulate(found.explained)[1:].mean()),
        "least_p_value": float(found.residual.p_value.min()),
        "least_share_p_value": float(found.shares.p_value.min()),
        "assigned": float(found.assigned[-1]),
        "gap": float(np.nan_to_num(found.gap[1:], nan=0.0).mean()),
        "gain": float(found.resamples.gain.mean()),
        "best_gain": float(found.resamples.best_gain.mean()),
    }


def _world(run: Run) -> World:
    if run.violation == "hidden":
        return HiddenBitsExBMDP(run.horizon, run.n_features, run.seed, run.size)
    if run.world == "toy":
        return BitsExBMDP(run.horizon, run.n_features, run.seed)
    if run.world == "lock":
        return LockExBMDP(run.horizon, run.n_features, seed=run.seed)
    return MultiMazeExBMDP(run.horizon, seed=run.seed)


def _oracle(world: World) -> CountingOracle:
    return CoordinateOracle() if isinstance(world, BitsExBMDP) else FiniteOracle(world.encoders, world.n_values)


def _data(run: Run, world: World, policies: Any) -> Collection:
    if run.violation in (CLEAN, "hidden"):
        return collect(world, policies, run.n, _seed(run, run.n))
    return VIOLATIONS[run.violation](world, policies, run.n, run.size, _seed(run, run.n))


def _accuracy(run: Run, model: CRAFT, world: World, policies: Any) -> NDArray[np.float64]:
    if isinstance(world, BitsExBMDP):
        return population_accuracy(lambda h: [model.encoders_[h]], world)
    fresh = collect(world, policies, HELD_OUT, _seed(run, "held out"))
    return encoder_accuracy(model, fresh.tau.at, fresh.truth.states)


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("robustness", run.world, run.horizon, run.n_features, run.seed, part)
