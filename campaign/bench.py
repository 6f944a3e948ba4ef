"""Small datasets, worlds, models and files, for calls that need one."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from campaign.formats import fitted, recorded_bits, stacked
from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
from craftrl.planning import StateGraph

__all__ = ["Bench"]


class Bench:
    """Small things of every kind, made when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()

    def new(self, suffix: str = "") -> Path:
        """A path at which nothing lies."""
        return self.folder / f"new{next(self._numbers)}{suffix}"

    @cached_property
    def collected(self) -> Any:
        return recorded_bits()

    @property
    def tau(self) -> TrajectoryDataset:
        return self.collected.tau

    @cached_property
    def x(self) -> np.ndarray[Any, Any]:
        return stacked(self.tau)

    @property
    def states(self) -> np.ndarray[Any, Any]:
        return self.collected.truth.states

    @cached_property
    def world(self) -> Any:
        from craftrl.envs import BitsExBMDP

        return BitsExBMDP(horizon=4, n_features=6, seed=0)

    @cached_property
    def model(self) -> CRAFT:
        return CRAFT(CoordinateOracle(), alpha=1, eta=0.2, nu=0.1).fit(self.tau)

    @cached_property
    def network(self) -> tuple[CRAFT, TrajectoryDataset]:
        return fitted("network")

    @cached_property
    def labels(self) -> np.ndarray[Any, Any]:
        return self.model.transform(self.tau)

    @cached_property
    def graph(self) -> StateGraph:
        return StateGraph.from_states(self.labels, self.tau.agent)

    @cached_property
    def stored(self) -> Path:
        path = self.new()
        self.tau.save(path)
        return path

    @cached_property
    def shards(self) -> Path:
        path = self.new()
        self.tau.save(path)
        return path

    @cached_property
    def saved(self) -> Path:
        path = self.new()
        self.model.save(path)
        return path

    @cached_property
    def single(self) -> Any:
        from craftrl.paper import SingleObservation

        return SingleObservation(CoordinateOracle()).fit(self.x, self.tau.agent)

    @cached_property
    def saved_network(self) -> Path:
        path = self.new()
        self.network[0].save(path)
        return path

    @cached_property
    def stored_frames(self) -> Path:
        path = self.new()
        self.network[1].save(path)
        return path

    @cached_property
    def moves(self) -> Any:
        from craftrl.planning import StateGraph

        return StateGraph.from_model(self.model, self.tau)

    def grounding(self) -> Any:
        """What is known of actions after a little exploring; every call has one of its own, since it learns."""
        from craftrl.envs.gym import ExBMDPEnv
        from craftrl.planning import Grounding, explore

        grounding = Grounding(self.moves, self.world.n_actions)
        explore(ExBMDPEnv(self.world), self.model, grounding, steps=30)
        return grounding

    @cached_property
    def played(self) -> tuple[Any, Any]:
        """The moves in images, and an episode in which one of them was planned and made."""
        from craftrl.planning import Episode, Plan, StateGraph

        model, tau = self.network
        moves = StateGraph.from_model(model, tau, min_share=0.0)
        s, t = (int(node) for node in moves.edges[0])
        plan = Plan(frozenset({t}), (s, t), (0,), 1.0)
        return moves, Episode((s, t), (s, t), (0,), (plan,), (), "reached", "", (tau.at(1)[0], tau.at(2)[0]))

    @cached_property
    def recordings(self) -> list[Path]:
        paths = [self.new(".npz") for _ in range(2)]
        for k, path in enumerate(paths):
            np.savez(path, observations=self.x[60 * k : 60 * k + 60], actions=np.zeros((60, 4), dtype=int))
        return paths

    @cached_property
    def imported(self) -> Path:
        from craftrl.importing import import_data

        path = self.new()
        import_data(self.recordings, path)
        return path

    @cached_property
    def truth(self) -> Path:
        from craftrl.data import DatasetWriter

        path, tau, truth = self.new(), self.collected.tau, self.collected.truth
        with DatasetWriter(path) as writer:
            for i, k in enumerate(tau.agent):
                writer.append(int(k), tau.episode(i), states=truth.states[i], actions=truth.actions[i])
        return path
