"""Other worlds, so that nothing rests on bits and two agents: three states, three agents, agents that noise guides."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle, FiniteOracle
from craftrl.envs import BitsExBMDP, Collection, LockExBMDP, collect, turn_taking_policies
from craftrl.envs.violations import collect_leaky
from craftrl.reproduce.runner import seed_of
from craftrl.states.accuracy import encoder_accuracy
from craftrl.theory import population_assumptions
from studies.efficiency.spec import LEARNERS, Run

__all__ = ["run_other"]

HELD_OUT = 2000  # fresh trajectories per agent, without a leak, on which all encoders are scored
LEAK = 0.05  # share of the moves that noise decides


def run_other(run: Run) -> dict[str, Any]:
    """Accuracy of every learner on fresh data, averaged over h = 1..H. The bounds given are those without a leak."""
    lock = run.world == "lock"
    world = LockExBMDP(run.horizon, run.n_features, seed=run.seed) if lock else _bits(run)
    agents = _agents(run, world)
    known = population_assumptions(world, agents)
    bounds: dict[str, Any] = {"alpha": known.alpha.value, "eta": known.eta.value, "nu": known.nu.value}
    data, fresh = _data(run, world, agents), collect(world, agents, HELD_OUT, seed=_seed(run, "held out"))
    found: dict[str, dict[str, float]] = {"accuracy": {}, "right_counts": {}, "assigned": {}}
    for name, options in LEARNERS.items():
        oracle = FiniteOracle(world.encoders, world.n_values) if isinstance(world, LockExBMDP) else CoordinateOracle()
        model = CRAFT(oracle, **bounds, **options).fit(data.tau)
        found["accuracy"][name] = float(encoder_accuracy(model, fresh.tau.at, fresh.truth.states).mean())
        right = [step.n_states == world.n_states(h) for h, step in enumerate(model.trace_.steps, start=2)]
        found["right_counts"][name] = float(np.mean(right))
        found["assigned"][name] = model.trace_.steps[-1].assigned
    return found


def _bits(run: Run) -> BitsExBMDP:
    return BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=False)


def _agents(run: Run, world: Any) -> Any:
    if run.world == "lock":
        return world.policies()
    return turn_taking_policies(world, 3) if run.world == "three agents" else world.paper_policies()


def _data(run: Run, world: Any, agents: Any) -> Collection:
    if run.world == "guided by noise":
        return collect_leaky(world, agents, run.size, LEAK, _seed(run, run.size))
    return collect(world, agents, run.size, seed=_seed(run, run.size))


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("efficiency", run.world, run.horizon, run.n_features, run.seed, part)
