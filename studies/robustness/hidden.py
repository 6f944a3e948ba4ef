"""A toy world that cannot be decoded everywhere: at some steps the controllable bit is not shown.

The class of coordinates then holds no right encoder, and what comes closest may be a distractor. The other
violations are in `studies.worlds.violations`.

Paper: Section 2.2 (the block assumption), Section 2.5 (realizability)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs import BitsExBMDP
from craftrl.envs.exbmdp import Ints

__all__ = ["HiddenBitsExBMDP"]


class HiddenBitsExBMDP(BitsExBMDP):
    """The toy world, but at a random share `hidden` of the steps h >= 2 a fair coin stands where s*_h should."""

    def __init__(self, horizon: int, n_features: int, seed: int, hidden: float) -> None:
        super().__init__(horizon, n_features, seed)
        self.hidden = np.random.default_rng([seed, 1]).random(self.H) < hidden
        self.hidden[0] = False

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        x = super().emit(s_h, e_h, h, rng)
        if self.hidden[h - 1]:
            x[:, self.controllable_feature(h)] = rng.integers(0, 2, len(x))
        return x

    def feature_accuracy(self, h: int) -> NDArray[np.floating]:
        accuracy = super().feature_accuracy(h)
        if self.hidden[h - 1]:
            accuracy[self.controllable_feature(h)] = 0.5
        return accuracy

    def feature_state_accuracy(self, h: int) -> NDArray[np.floating]:
        by_state = super().feature_state_accuracy(h)
        if self.hidden[h - 1]:
            by_state[:, self.controllable_feature(h)] = 0.5
        return by_state
