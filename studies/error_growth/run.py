"""One run: sample, corrupt, fit, and count the wrong labels at each step."""

from __future__ import annotations

from typing import Any

from craftrl import CRAFT, CoordinateOracle
from craftrl.envs import BitsExBMDP, Collection, MarkovPolicy, collect
from craftrl.evaluation import accuracy_by_step
from craftrl.paper import RecursiveDRAFT, population_assumptions
from craftrl.paper.sweep import seed_of
from studies.error_growth.spec import FIRST_SHARE, GROWTH, SCENARIOS, Run
from studies.error_growth.world import CreepingExBMDP, collect_corrupted

__all__ = ["run_one"]


def run_one(run: Run) -> dict[str, Any]:
    """Shares of trajectories at h = 1..H: labelled wrongly or not at all, and not at all."""
    world, policies, collection = _sample(run)
    model: CRAFT | RecursiveDRAFT
    if run.learner == "craft":
        known = population_assumptions(world, policies)
        alpha, eta, nu = known.alpha.value, known.eta.value, known.nu.value
        model = CRAFT.paper(CoordinateOracle(), alpha=alpha, eta=eta, nu=nu).fit(collection.tau)
    else:
        model = RecursiveDRAFT(CoordinateOracle()).fit(collection.tau)
    wrong = 1 - accuracy_by_step(model.labels_, collection.truth.states)
    return {"wrong": wrong.tolist(), "unassigned": (model.labels_ < 0).mean(axis=0).tolist()}


def _sample(run: Run) -> tuple[BitsExBMDP, tuple[MarkovPolicy, MarkovPolicy], Collection]:
    """World, agents and data; the world depends on scenario and seed, the data on all but the learner."""
    scenario = SCENARIOS[run.scenario]
    seed = seed_of("error growth", run.scenario, run.size, run.horizon, run.n_features, run.seed)
    if not scenario.creeping:
        toy = BitsExBMDP(run.horizon, run.n_features, run.seed)
        return toy, toy.paper_policies(), collect(toy, toy.paper_policies(), run.size, seed)
    world = CreepingExBMDP(run.horizon, run.n_features, run.seed, FIRST_SHARE, GROWTH)
    policies = world.opposed_policies()
    return world, policies, collect_corrupted(world, policies, run.size, scenario.bad_share, seed)
