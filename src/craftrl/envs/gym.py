"""Any Ex-BMDP as a Gymnasium environment.

`gymnasium.make("craftrl.envs:craftrl/Bits-v0")` makes a world and wraps it; `ExBMDPEnv(world)` wraps one of yours.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_choice, check_whole
from craftrl.arrays import Ints
from craftrl.envs.exbmdp import ExBMDP, check_tables
from craftrl.errors import require

gymnasium = require("gymnasium", "envs")


class ExBMDPEnv(gymnasium.Env):  # type: ignore[name-defined]
    """One episode at a time of an Ex-BMDP: H observations, H-1 actions, reward 0, terminated at H.

    `info`, and never the observation, holds the ground truth: `state` (s*_h), `noise` (e_h) and `h`, which counts from
    1. The noise comes from Gymnasium's own generator alone, so that one seed gives the same noise whatever the actions.

    Paper: Section 2.2
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(self, world: ExBMDP, render_mode: str | None = None) -> None:
        check_tables(world)
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"], "or None for no pictures")
        self.world = world
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, world.obs_high, world.obs_shape, world.obs_dtype.type)
        self.action_space = gymnasium.spaces.Discrete(world.n_actions)
        self.h = 0  # no episode yet

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        if seed is not None:
            check_whole("seed", seed, advice="or None, for another episode every time")
        super().reset(seed=None if seed is None else int(seed))  # Gymnasium refuses integers of NumPy's
        self.h = 1
        self._s: Ints = np.zeros(1, dtype=np.int64)
        self._e = self.world.sample_noise(1, self.np_random)
        return self._observe()

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        if not 1 <= self.h < self.world.H:
            raise gymnasium.error.ResetNeeded(f"An episode has {self.world.H} steps; call reset to start one.")
        action = action.item() if isinstance(action, np.ndarray) and action.ndim == 0 else action  # as some agents do
        check_whole("action", action, 0, self.world.n_actions - 1)
        self._s = self.world.step(self._s, np.array([int(action)]), self.h)
        self._e = self.world.step_noise(self._e, self.h, self.np_random)
        self.h += 1
        x_h, info = self._observe()
        return x_h, 0.0, self.h == self.world.H, False, info

    @property
    def state(self) -> int:
        """The true state s*_h of this moment, as `info` has it: ground truth, for scores and rewards."""
        if self.h == 0:
            raise gymnasium.error.ResetNeeded("There is no state before the first episode; call reset to start one.")
        return int(self._s[0])

    def render(self) -> NDArray[np.uint8] | None:
        return self.world.render(self._x) if self.render_mode == "rgb_array" else None

    def _observe(self) -> tuple[NDArray[Any], dict[str, Any]]:
        self._x = self.world.emit(self._s, self._e, self.h, self.np_random)[0]
        return self._x.copy(), {"state": int(self._s[0]), "noise": self._e[0].copy(), "h": self.h}


def make(world: type[ExBMDP], render_mode: str | None = None, **parameters: Any) -> ExBMDPEnv:
    """What the registered ids make; `parameters` go to the world."""
    return ExBMDPEnv(world(**parameters), render_mode)
