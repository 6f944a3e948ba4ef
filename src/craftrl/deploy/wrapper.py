"""A Gymnasium environment whose observation is the learned state."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_kind
from craftrl.errors import InvalidDataError, require
from craftrl.estimators.base import Learner
from craftrl.planning.graph import check_same_observations

gymnasium = require("gymnasium", "envs")


class StateObservation(gymnasium.Wrapper):  # type: ignore[name-defined]
    """Observations of `env` as states of a fitted model, a number in Discrete(n_states).

    A model with an encoder for each step reads the first observation of an episode with that of h = 1, and so on; an
    episode may then be no longer than those fitted. With `keep=True` the observation is a dictionary: `state`, and
    `observation` as it came.
    """

    def __init__(self, env: Any, model: Learner, keep: bool = False) -> None:
        check_kind("env", env, gymnasium.Env, "a Gymnasium environment")
        check_kind("model", model, Learner, "a fitted model")
        check_flag("keep", keep)
        super().__init__(env)
        model.check_fitted()
        space = env.observation_space
        check_same_observations("The environment", model, space.shape, space.dtype)
        self.model = model
        self.keep = keep
        self.h = 0
        total = getattr(model, "n_states_total_", None)
        most = int(total) if total is not None else max(1, *(int(n) for n in getattr(model, "n_states_", [1])))
        states = gymnasium.spaces.Discrete(most)
        both = {"state": states, "observation": space}
        self.observation_space = gymnasium.spaces.Dict(both) if keep else states

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        x, info = self.env.reset(seed=seed, options=options)
        self.h = 1
        return self._seen(x), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        x, reward, terminated, truncated, info = self.env.step(action)
        self.h += 1
        return self._seen(x), reward, terminated, truncated, info

    def _seen(self, x: NDArray[Any]) -> Any:
        if self.h > len(self.model.encoders_) and not hasattr(self.model, "encoder_"):
            raise InvalidDataError(
                f"An episode must have at most {len(self.model.encoders_)} steps, as those fitted; step {self.h} was "
                "reached; end it sooner (gymnasium.wrappers.TimeLimit), or fit with stationary=True."
            )
        state = int(self.model.encode(np.asarray(x)[None], self.h)[0])
        return {"state": state, "observation": x} if self.keep else state
