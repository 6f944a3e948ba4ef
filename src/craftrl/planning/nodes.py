"""The states of a model as one row of numbers, whether one encoder serves all steps or each has its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import (
    check_flag,
    check_kind,
    check_method,
    check_room_in_memory,
    check_whole,
    is_whole,
    shown,
)
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["Nodes"]

Ints = NDArray[np.integer]
BYTES = 128  # that a graph needs for a state, before any move


@dataclass(frozen=True)
class Nodes:
    """The states of a model as numbers 0..n-1, in which graphs are kept.

    Where one encoder serves all steps (stationary=True) a node is a state. Else each step h has states of its own, and
    a node is a pair (h, state), counted step by step.

    sizes   how many states there are at each step; one entry where one encoder serves all steps
    shared  whether one encoder serves all steps
    """

    sizes: tuple[int, ...]
    shared: bool

    def __post_init__(self) -> None:
        check_flag("shared", self.shared)
        check_kind("sizes", self.sizes, tuple, "a tuple with the number of states of each step")
        counted = all(is_whole(n) and n >= 0 for n in self.sizes)
        if not self.sizes or (self.shared and len(self.sizes) != 1) or not counted:
            raise InvalidParameterError(
                "sizes must hold the number of states of each step, and a single one where steps share their states; "
                f"{shown(self.sizes)} was given with shared={self.shared}."
            )
        check_room_in_memory(f"A graph of {self.n} states", BYTES * self.n, "number the states from 0, without gaps")

    @classmethod
    def from_model(cls, model: Any, H: int | None = None) -> Nodes:
        """Of a fitted model; of its first H steps, where each has its own states."""
        check_method("model", model, "encode", "a fitted model")
        if getattr(model, "n_states_total_", None) is not None:
            return cls((int(model.n_states_total_),), True)
        if getattr(model, "n_states_", None) is None:
            raise InvalidDataError(
                "The model must say how many states it has (n_states_ or n_states_total_); "
                f"{type(model).__name__} does not; count them in data with Moves.from_model(model, tau).nodes."
            )
        sizes = tuple(int(n) for n in model.n_states_)
        if H is not None:
            check_whole("H", H, 1, len(sizes), "a model has states for the steps that it was fitted to")
        return cls(sizes[:H], False)

    @classmethod
    def from_states(cls, states: ArrayLike, shared: bool) -> Nodes:
        """As many as occur in states (n, H) that a model assigned, -1 for none."""
        check_flag("shared", shared)
        given = as_labels("states", states, 2)
        if shared:
            return cls((max(1, int(given.max(initial=-1)) + 1),), True)
        return cls(tuple(np.maximum(given.max(axis=0, initial=-1) + 1, 1).tolist()), False)

    @property
    def n(self) -> int:
        return sum(self.sizes)

    @property
    def H(self) -> int | None:
        """The number of steps; None where steps share their states, and episodes may be of any length."""
        return None if self.shared else len(self.sizes)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """The first node of each step, and the number of all."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def number(self, state: int, h: int | None = None) -> int:
        """The node of a state at step h, counted from 1; -1 for state -1 and for one that no data showed."""
        if not is_whole(state):
            raise InvalidParameterError(f"state must be a whole number; {shown(state)} was given.")
        if self.shared:
            return int(state) if 0 <= state < self.sizes[0] else -1
        check_whole("h", h, 1, len(self.sizes), "each step has its own states")
        assert h is not None
        return int(self._first[h - 1] + state) if 0 <= state < self.sizes[h - 1] else -1

    def numbers(self, states: ArrayLike) -> NDArray[np.int64]:
        """The nodes (n, H) of trajectories of states, as `model.transform` gives them; -1 stays -1."""
        given = as_labels("states", states, 2)
        if self.shared:
            return np.where((given >= 0) & (given < self.sizes[0]), given, -1)
        if given.shape[1] > len(self.sizes):
            raise InvalidDataError(
                f"Trajectories must have at most {len(self.sizes)} steps, each of which has its own states; "
                f"{given.shape[1]} were given; cut them, or fit with stationary=True."
            )
        sizes = np.array(self.sizes[: given.shape[1]])
        return np.where((given >= 0) & (given < sizes), given + self._first[: given.shape[1]], -1)

    def steps_of(self, node: int) -> int | None:
        """The step h of a node; None where steps share their states."""
        check_whole("node", node, 0, self.n - 1)
        return None if self.shared else int(np.searchsorted(self._first, node, side="right"))

    def name(self, node: int) -> tuple[int | None, int]:
        """The pair (h, state) of a node; h is None where steps share their states."""
        h = self.steps_of(node)
        return (None, int(node)) if h is None else (h, int(node - self._first[h - 1]))

    def text(self, node: int) -> str:
        """The name of a node in a sentence."""
        h, state = self.name(node)
        return f"state {state}" if h is None else f"state {state} at h = {h}"
