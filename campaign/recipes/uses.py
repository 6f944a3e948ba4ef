"""What is done with an instance once it is there: many classes only store what they are given, and check it in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from campaign.bench import Bench
from campaign.recipes.small import environment, few_epochs
from craftrl import CRAFT, NeuralOracle
from craftrl.envs import collect

__all__ = ["USES"]

USES: dict[str, Callable[[Bench, Any], Any]] = {
    "craftrl.CRAFT": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.CRAFT.paper": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.ClassifierOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.CoordinateOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.FiniteOracle": lambda b, oracle: _fit(b, oracle),
    "craftrl.NeuralOracle": lambda b, oracle: _fit(b, _quick(oracle)),
    "craftrl.Training": lambda b, training: _fit(b, NeuralOracle(dim=8, networks=1, training=training)),
    "craftrl.paper.DRAFT": lambda b, model: model.fit(b.x[:, :2], b.tau.agent),
    "craftrl.paper.RecursiveDRAFT": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.paper.SingleObservation": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.paper.PairedObservation": lambda b, model: model.fit(b.x, b.tau.agent),
    "craftrl.envs.BitsExBMDP": lambda b, world: collect(world, world.paper_policies(), 5, seed=0),
    "craftrl.LockExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.MultiMazeExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.envs.PixelsExBMDP": lambda b, world: collect(world, world.policies(), 5, seed=0),
    "craftrl.envs.MarkovPolicy": lambda b, policy: collect(b.world, [policy, policy], 5, seed=0),
    "craftrl.envs.GymWorld": lambda b, world: collect(world, world.policies(), 2, seed=0),
    "craftrl.envs.gym.ExBMDPEnv": lambda b, env: (env.reset(seed=0), env.step(0), env.render()),
    "craftrl.deploy.StateObservation": lambda b, env: env.reset(seed=0),
    "craftrl.planning.Planner": lambda b, planner: planner.run(environment(), {0}, seed=0),
}


def _quick(trained: Any) -> Any:
    return trained if trained.training is not None else trained.set_params(training=few_epochs())


def _fit(b: Bench, oracle: Any, **given: Any) -> Any:
    return CRAFT(oracle, alpha=1, eta=0.2, nu=0.1, **given).fit(b.x, b.tau.agent)
