"""Small datasets, worlds, models and files, for calls that need one; each is made when it is first needed."""

from __future__ import annotations

import warnings
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle, NeuralOracle, Training, TrajectoryDataset
from craftrl.envs import BitsExBMDP, Collection, GymWorld, MarkovPolicy, PixelsExBMDP, collect, record
from craftrl.planning import Episode, Grounding, Plan, Planner, StateGraph

__all__ = ["Bench", "bits", "fitted", "frames", "make_bits", "stacked", "unfitted"]


def bits(n: int = 60) -> Collection:
    """A little data of the paper's world, with its ground truth."""
    world = BitsExBMDP(4, 6)
    return collect(world, world.paper_policies(), n, seed=0)


def frames() -> TrajectoryDataset:
    world = PixelsExBMDP(3, 2, 0)
    return collect(world, world.policies(), 30, seed=0).tau


def stacked(tau: TrajectoryDataset) -> np.ndarray[Any, Any]:
    """All observations, (n, H, *obs)."""
    return tau.rows(np.arange(tau.n))


def unfitted(kind: str) -> CRAFT:
    """A small model of this kind that takes a moment."""
    if kind == "network":
        oracle = NeuralOracle(networks=1, dim=16, training=Training(epochs=1, progress=False))
        return CRAFT(oracle, alpha=1, eta=0.1, nu=0.1)
    if kind == "classifier":
        from sklearn.tree import DecisionTreeClassifier

        return CRAFT(DecisionTreeClassifier(max_depth=3, random_state=0), alpha=1, eta=0.1, nu=0.1)
    return CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1)


def fitted(kind: str) -> tuple[CRAFT, TrajectoryDataset]:
    """A small model, and the data that it was fitted to."""
    tau = frames() if kind == "network" else bits().tau
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unfitted(kind).fit(tau), tau


def make_bits() -> Any:
    """A Gymnasium environment."""
    from craftrl.envs.gym import ExBMDPEnv

    return ExBMDPEnv(BitsExBMDP(4, 6))


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        self.world = BitsExBMDP(4, 6)
        self.policies = self.world.paper_policies()

    def new(self, suffix: str = "") -> Path:
        """A path at which nothing lies."""
        return self.folder / f"new{next(self._numbers)}{suffix}"

    @cached_property
    def collected(self) -> Collection:
        return bits()

    @property
    def tau(self) -> TrajectoryDataset:
        return self.collected.tau

    @property
    def states(self) -> np.ndarray[Any, Any]:
        return self.collected.truth.states

    @cached_property
    def x(self) -> np.ndarray[Any, Any]:
        return stacked(self.tau)

    @cached_property
    def model(self) -> CRAFT:
        return fitted("bits")[0]

    @cached_property
    def network(self) -> tuple[CRAFT, TrajectoryDataset]:
        return fitted("network")

    @cached_property
    def saved(self) -> Path:
        self.model.save(path := self.new(".safetensors"))
        return path

    @cached_property
    def saved_network(self) -> Path:
        self.network[0].save(path := self.new(".safetensors"))
        return path

    @cached_property
    def stored(self) -> Path:
        """A dataset with actions and true states."""
        record(self.world, self.policies, 60, path := self.new(), seed=0)
        return path

    @cached_property
    def stored_frames(self) -> Path:
        self.network[1].save(path := self.new())
        return path

    @cached_property
    def recordings(self) -> list[Path]:
        paths = [self.new(".npz") for _ in range(2)]
        for k, path in enumerate(paths):
            np.savez(path, observations=self.x[60 * k : 60 * k + 60], actions=np.zeros((60, 3), dtype=int))
        return paths

    @cached_property
    def graph(self) -> StateGraph:
        return StateGraph.from_states(self.model.transform(self.tau), self.tau.agent)

    @property
    def grounding(self) -> Grounding:
        """What is known of actions; every call has one of its own, since it learns."""
        found = Grounding(self.graph, 2)
        found.add_labels(self.model, self.x, self.collected.truth.actions)
        return found

    @cached_property
    def played(self) -> tuple[Planner, Episode]:
        """A planner on images, and an episode in which a move was planned and made."""
        model, tau = self.network
        graph = StateGraph.from_model(model, tau, min_share=0.0)
        s, t = (int(nodes[0]) for nodes in sum(graph.counts).nonzero())
        plan, seen = Plan(frozenset({t}), (s, t), (0,), 1.0), (tau.at(1)[0], tau.at(2)[0])
        return Planner(model, Grounding(graph, 1)), Episode((s, t), (s, t), (0,), (plan,), (), "reached", "", seen)

    @property
    def gym_world(self) -> GymWorld:
        agents = (MarkovPolicy([np.full((2, 2), 0.5)] * 3),) * 2
        return GymWorld(make_bits, lambda env: env.unwrapped.state, 2, [0, 1], 4, agents)
