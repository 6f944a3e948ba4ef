"""The diabolical combination lock with time-correlated noise, cut to a fixed start.

Misra et al. 2020 (HOMER) set the lock; Efroni et al. 2022 (PPE) added noise bits that are Markov chains.

Paper: Section 2.2 (an Ex-BMDP with three states a step)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.envs.agents import MarkovPolicy, contrasting_policies
from craftrl.envs.exbmdp import ExBMDP

BAD = 2
FLIP = np.float32(0.1)  # probability that a noise bit flips at a step


@dataclass(frozen=True)
class TwoBits:
    """An encoder with values 0..2 from two bits: 2 where bit `trap` is set, else bit `arm`."""

    trap: int
    arm: int

    def __call__(self, x: NDArray[Any]) -> Ints:
        return np.where(x[:, self.trap] != 0, BAD, x[:, self.arm]).astype(np.int64)


class LockExBMDP(ExBMDP):
    """Two good states, 0 and 1, and a bad one, 2, at each step after the first.

    In a good state one secret action of four leads on to a good state, each good state to another one, and every other
    action to the bad state, which is absorbing. With deterministic moves from a single start that would keep only one
    good state alive, so the start has two secret actions, one for each good state.

    The observation is two bits of latent state (trapped or not, which arm) among noise bits that start at random and
    flip now and then, all in an order of its own at each h. The hypothesis class `encoders(h)` reads any two bits in
    any order: every encoder but two is made of noise at least in part, and those that take one right bit and one of
    noise are the tempting ones.
    """

    obs_dtype: np.dtype[Any] = np.dtype(np.uint8)
    n_values, n_actions = 3, 4

    def __init__(self, horizon: int = 10, n_features: int = 16, seed: int = 0) -> None:
        self.H, self.M, self.obs_shape = horizon, n_features, (n_features,)
        rng = np.random.default_rng(seed)
        self.permutation = np.stack([rng.permutation(self.M) for _ in range(self.H)])
        self._T = [_lock_step(self.n_actions, h, rng) for h in range(1, self.H)]

    def n_states(self, h: int) -> int:
        return 1 if h == 1 else 3

    def T(self, h: int) -> Ints:
        return self._T[h - 1]

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        return rng.integers(0, 2, (n, self.M - 2), dtype=np.uint8)

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        return np.bitwise_xor(e_h, (rng.random(e_h.shape, dtype=np.float32) < FLIP).view(np.uint8))

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        code = np.stack([s_h == BAD, s_h == 1], axis=1).astype(np.uint8)
        return np.take(np.concatenate([code, e_h], axis=1), self.permutation[h - 1], axis=1)

    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        return TwoBits(*self.controllable_features(h))(x_h)

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[np.uint8]:
        return x_h[:, np.argsort(self.permutation[h - 1])[2:]]

    def controllable_features(self, h: int) -> tuple[int, int]:
        """Where the two latent bits lie within x_h: (trapped, arm)."""
        place = np.argsort(self.permutation[h - 1])
        return int(place[0]), int(place[1])

    def encoders(self, h: int) -> list[TwoBits]:
        """Phi_h for a FiniteOracle: all ordered pairs of bits.

        `TwoBits(trap, arm)` is phi*_h; `TwoBits(arm, trap)` is the same encoder with other labels.
        """
        return [TwoBits(i, j) for i in range(self.M) for j in range(self.M) if i != j]

    def policies(self, alpha: float = 1.0) -> tuple[MarkovPolicy, MarkovPolicy]:
        """Two agents that follow the lock often enough to keep every pair of states alive, alpha apart."""
        return contrasting_policies(self, alpha)


def _lock_step(n_actions: int, h: int, rng: np.random.Generator) -> Ints:
    """T_{h+1}: all actions fall into the trap, but for the secret ones."""
    T = np.full((1 if h == 1 else 3, n_actions), BAD)
    if h == 1:
        T[0, rng.choice(n_actions, 2, replace=False)] = 0, 1
    else:
        T[[0, 1], rng.integers(n_actions, size=2)] = rng.permutation(2)
    return T
