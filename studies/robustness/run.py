"""One run: collect with a violation, fit, diagnose, and compare with the truth."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.encoders import Encoder
from craftrl.diagnostics import Diagnosis
from craftrl.envs import BitsExBMDP, Collection, collect
from craftrl.errors import AssumptionWarning
from craftrl.evaluation import (
    accuracy_by_step,
    encoder_accuracy,
    population_accuracy,
    population_state_accuracies,
    state_accuracies,
    state_summary,
)
from craftrl.oracles.finite import CountingOracle
from craftrl.paper import chance_accuracy, population_assumptions
from craftrl.paper.sweep import seed_of
from studies.loud.run import told
from studies.robustness.hidden import HiddenBitsExBMDP
from studies.robustness.spec import CLEAN, LEARNERS, Run
from studies.worlds.lock import LockExBMDP
from studies.worlds.violations import VIOLATIONS, Violation, collect_alike

__all__ = ["BROKEN", "run_one"]

World = BitsExBMDP | LockExBMDP
HELD_OUT = 2000  # fresh trajectories per agent of the unbroken world, for the encoders' accuracy
FEWEST = 10  # of them, observations of a state for it to count by itself

# In the toy worlds agent 0 acts at random, which forgets the state, and agent 1 tends to repeat it.
BROKEN: dict[str, Violation] = {**VIOLATIONS, "alike, sticky": partial(collect_alike, like=1)}


def run_one(run: Run) -> dict[str, Any]:
    """True accuracy of encoders and labels, what `fit` warned of, and what each diagnostic says.

    The world depends on the seed alone and the data on all but the learner. Bounds that are not chosen from the data
    are the population values of the unbroken world: the user believes in it.
    """
    world = _world(run)
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    data = _data(run, world, policies)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = _fitted(run, world, policies, data.tau)
    accuracy, summary = _accuracy(run, model, world, policies)
    found = np.array([model.n_states_[h] == world.n_states(h) for h in range(2, world.H + 1)])
    result = {
        "accuracy": float(accuracy[1:].mean()),
        **summary,
        "chance": float(chance_accuracy(world, policies)[1:].mean()),
        "code_accuracy": _code_accuracy(model, world),
        "label_accuracy": float(accuracy_by_step(model.labels_, data.truth.states)[1:].mean()),
        "right_counts": float(found.mean()),
        "warned": bool(caught),
        "told": told(model),
    }
    if not run.n_resamples:
        return result
    diagnosis = model.diagnose(data.tau, n_resamples=run.n_resamples, seed=run.seed)
    by_step = {"accuracy_by_step": accuracy, "trust_by_step": diagnosis.trust}
    return {**result, **_findings(diagnosis), **{name: values.round(4).tolist() for name, values in by_step.items()}}


def _fitted(run: Run, world: World, policies: Any, tau: TrajectoryDataset) -> CRAFT:
    learner = LEARNERS[run.learner]
    known = population_assumptions(world, policies)
    bounds = {} if learner.chosen else {name: getattr(known, name).value for name in ("alpha", "eta", "nu")}
    return CRAFT(_oracle(world), coupling=learner.coupling, relabel=learner.relabel, **bounds).fit(tau)


def _findings(found: Diagnosis) -> dict[str, Any]:
    """One number for each diagnostic: means over h = 2..H, and the worst step where that says more."""
    assert found.stability is not None
    assert found.tests is not None
    return {
        "verdict": found.verdict,
        "score": found.score,
        "stability": float(found.stable[1:].mean()),
        "same_count": float(found.same_count[1:].mean()),
        "explained": float(found.explained[1:].mean()),
        "explained_so_far": float(np.minimum.accumulate(found.explained)[1:].mean()),
        "least_p_value": float(found.tests.p_residual.min()),
        "least_closure_p_value": float(found.tests.p_closure.min()),
        "assigned": float(found.assigned[-1]),
    }


def _world(run: Run) -> World:
    if run.violation == "hidden":
        return HiddenBitsExBMDP(run.horizon, run.n_features, run.seed, run.size)
    if run.world == "lock":
        return LockExBMDP(run.horizon, run.n_features, seed=run.seed)
    return BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=run.world == "toy")


def _oracle(world: World) -> CountingOracle:
    return CoordinateOracle() if isinstance(world, BitsExBMDP) else FiniteOracle(world.encoders, world.n_values)


def _data(run: Run, world: World, policies: Any) -> Collection:
    if run.violation in (CLEAN, "hidden"):
        return collect(world, policies, run.n, _seed(run, run.n))
    return BROKEN[run.violation](world, policies, run.n, run.size, _seed(run, run.n))


def _accuracy(run: Run, model: CRAFT, world: World, policies: Any) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Of the encoders on the unbroken world: at each step, and of single states over all steps."""
    if isinstance(world, BitsExBMDP):
        encoders = partial(_encoders, model)
        return population_accuracy(encoders, world), state_summary(population_state_accuracies(encoders, world))
    fresh = collect(world, policies, HELD_OUT, _seed(run, "held out"))
    states = fresh.truth.states
    by_state = [
        state_accuracies(model.encode(fresh.tau.at(h), h), states[:, h - 1], FEWEST) for h in range(1, world.H + 1)
    ]
    return encoder_accuracy(model, fresh.tau.at, states), state_summary(by_state)


def _code_accuracy(model: CRAFT, world: World) -> float | None:
    """Of the second encoder in each f_h, from which states are read off: in worlds where encoders are coordinates."""
    if not isinstance(world, BitsExBMDP):
        return None
    codes = [f.j for f in model.trace_.models]  # entry h-1 reads x_{h+1}
    return float(np.mean([world.feature_accuracy(h)[j] for h, j in enumerate(codes, start=2)]))


def _encoders(model: CRAFT, h: int) -> list[Encoder]:
    return [model.encoders_[h]]


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("robustness", run.world, run.horizon, run.n_features, run.seed, part)
