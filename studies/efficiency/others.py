"""Other worlds, so that nothing rests on bits and two agents: three states, three agents, agents that noise guides."""

from __future__ import annotations

from typing import Any

from craftrl import CRAFT, CoordinateOracle, FiniteOracle
from craftrl.core.encoders import encode_dataset
from craftrl.envs import Collection, collect
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.efficiency.scores import by_measure, of_fit, of_samples
from studies.efficiency.spec import LEARNERS, Run
from studies.efficiency.worlds import make_agents, make_world
from studies.worlds.lock import LockExBMDP
from studies.worlds.violations import collect_leaky

__all__ = ["run_other"]

HELD_OUT = 2000  # fresh trajectories per agent, without a leak, on which all encoders are scored
LEAK = 0.05  # share of the moves that noise decides


def run_other(run: Run) -> dict[str, Any]:
    """What every learner scored on fresh data. The bounds given are those without a leak."""
    world = make_world(run)
    agents = make_agents(run, world)
    known = population_assumptions(world, agents)
    bounds: dict[str, Any] = {"alpha": known.alpha.value, "eta": known.eta.value, "nu": known.nu.value}
    data, fresh = _data(run, world, agents), collect(world, agents, HELD_OUT, seed=_seed(run, "held out"))
    scores = {}
    for name, options in LEARNERS.items():
        oracle = FiniteOracle(world.encoders, world.n_values) if isinstance(world, LockExBMDP) else CoordinateOracle()
        model = CRAFT(oracle, **bounds, **options).fit(data.tau)
        read = encode_dataset(model.encoders_, fresh.tau)
        scores[name] = {**of_samples(read, fresh.truth.states), **of_fit(model, world)}
    return by_measure(scores)


def _data(run: Run, world: Any, agents: Any) -> Collection:
    if run.world == "guided by noise":
        return collect_leaky(world, agents, run.size, LEAK, _seed(run, run.size))
    return collect(world, agents, run.size, seed=_seed(run, run.size))


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("efficiency", run.world, run.horizon, run.n_features, run.seed, part)
