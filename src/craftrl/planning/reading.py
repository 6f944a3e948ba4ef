"""An environment as a model reads it: steps in, numbers of states out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_method, check_whole, is_whole, shown
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.grounding import Grounding
from craftrl.planning.tracking import Tracker

__all__ = ["Reader"]


class Reader:
    """Steps an environment and names every state by the model.

    node      the state last read, as a number of `grounding.graph`; -1 where the model names none
    believed  the likeliest state, given all that was read and done in this episode; -1 where there is none
    h         its step, counted from 1
    over      whether the episode is over, or the model has no encoder for a further step
    steps     actions taken, in all episodes
    """

    def __init__(self, env: Any, model: Any, grounding: Grounding) -> None:
        for method in ("reset", "step"):
            check_method("env", env, method, "a Gymnasium environment")
        space = getattr(env, "action_space", None)
        n: Any = getattr(space, "n", None)
        if not is_whole(n) or getattr(space, "shape", ()) != ():
            raise InvalidParameterError(
                f"env must have discrete actions; its are {shown(space)}; wrap it in "
                "gymnasium.wrappers.TransformAction with a list of actions."
            )
        if n < grounding.n_actions or getattr(space, "start", 0) != 0:
            raise InvalidParameterError(
                f"env must have the {grounding.n_actions} actions that moves are grounded in, numbered from 0; its are "
                f"{shown(space)}; make Grounding with its number of actions."
            )
        self.env, self.model, self.grounding, self.graph = env, model, grounding, grounding.graph
        self.node, self.h, self.over, self.steps = -1, 0, True, 0
        self._tracker = Tracker(grounding)

    @property
    def believed(self) -> int:
        return self._tracker.node

    def likely(self) -> list[int]:
        """The states that it may be, likeliest first."""
        return self._tracker.likely()

    def reset(self, seed: int | None = None) -> NDArray[Any]:
        """Start an episode."""
        if seed is not None:
            check_whole("seed", seed)
        x, _ = self.env.reset(seed=seed)
        array = self._read(x, 1, False)
        self._tracker.start(self.node)
        return array

    def step(self, action: int, learn: bool) -> NDArray[Any]:
        """Take an action; to learn is to add what was seen to the grounding, unless the state before was misread."""
        before, certain = self.node, self.node == self.believed
        x, _, terminated, truncated, _ = self.env.step(int(action))
        self.steps += 1
        array = self._read(x, self.h + 1, bool(terminated or truncated))
        self._tracker.update(action, self.node)
        if learn and certain and before >= 0 and self.node >= 0:
            self.grounding.add(before, action, self.node)
        return array

    def _read(self, x: Any, h: int, over: bool) -> NDArray[Any]:
        array = np.asarray(x)
        expected = getattr(self.model, "obs_shape_", None)
        if expected is not None and array.shape != tuple(expected):
            raise InvalidDataError(
                f"The environment must show what the model was fitted to, observations of shape {tuple(expected)}; its "
                f"have shape {array.shape}; wrap it as the data was recorded."
            )
        self.h = h
        self.node = self.graph.node(int(self.model.encode(array[None], h)[0]), h)
        self.over = over or (self.graph.H is not None and h >= self.graph.H)
        return array
