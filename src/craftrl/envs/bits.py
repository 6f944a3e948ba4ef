"""The paper's toy world: one controllable bit among M, the others XORed with Markov noise.

Paper: Section 4, Appendix D (experiment details)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_number, check_room_in_memory, check_whole
from craftrl.arrays import Ints
from craftrl.envs.agents import MarkovPolicy
from craftrl.envs.exbmdp import MAX_STEPS, ExBMDP, check_seed


class BitsExBMDP(ExBMDP):
    """Observations of M bits: s*_h itself and (s*_h XOR e^i_h) for i in [M-1], permuted anew at each h.

    The action sets the next latent state. Each e^i is a two-state chain with random parameters, except e^1,
    which starts at 0 or 1 with equal chance and never moves: the pair (s_h XOR e^1, s_{h+1} XOR e^1) tells
    the agents apart as well as (s_h, s_{h+1}) does, and is worthless as a state.

    With all features XORed with the state, the one that agrees most with all others is the state: agents need not
    be looked at. With `entangled=False` only e^1 is XORed and the other factors are bare noise, so that a
    method which profits from that shortcut can be told from one which does not.

    The text lets i run over [H-1]; there are M-1 chains, so we read [M-1].

    Paper: Section 4
    """

    n_actions = 2
    obs_dtype: np.dtype[Any] = np.dtype(np.uint8)

    def __init__(self, horizon: int = 30, n_features: int = 128, seed: int = 0, *, entangled: bool = True) -> None:
        check_whole("horizon", horizon, 2, MAX_STEPS)
        check_whole("n_features", n_features, 2, 2**31 - 1)
        check_seed(seed)
        check_flag("entangled", entangled)
        check_room_in_memory("The permutations of all steps", 8 * horizon * n_features, "lower n_features")
        self.H = int(horizon)
        self.M = int(n_features)
        self.obs_shape = (self.M,)
        self.entangled = bool(entangled)
        self.n_xored = self.M if self.entangled else 2  # factors XORed with the state: itself, e^1, ...
        rng = np.random.default_rng(seed)
        chains = rng.random((3, self.M - 1))
        chains[:, 0] = 0.5, 0.0, 0.0
        self.p_start, self.p_up, self.p_down = chains  # Pr(e_1 = 1), Pr(0 -> 1), Pr(1 -> 0)
        self.permutation = np.stack([rng.permutation(self.M) for _ in range(self.H)])

    def n_states(self, h: int) -> int:
        return 1 if h == 1 else 2

    def T(self, h: int) -> Ints:
        return np.tile([0, 1], (self.n_states(h), 1))

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        return (rng.random((n, self.M - 1), dtype=np.float32) < self.p_start.astype(np.float32)).view(np.uint8)

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        u = rng.random(e_h.shape, dtype=np.float32)
        up = (u < self.p_up.astype(np.float32)).view(np.uint8)
        down = (u < self.p_down.astype(np.float32)).view(np.uint8)
        flip = up ^ (e_h & (up ^ down))  # `down` where e_h = 1, else `up`, without a branch per bit
        return e_h ^ flip

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        factors = np.zeros((len(e_h), self.M), dtype=np.uint8)
        factors[:, 1:] = e_h
        factors[:, : self.n_xored] ^= s_h.astype(np.uint8)[:, None]
        return np.take(factors, self.permutation[h - 1], axis=1)

    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        return x_h[:, self.controllable_feature(h)].astype(np.int64)

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[np.uint8]:
        factors = x_h[:, np.argsort(self.permutation[h - 1])]
        factors[:, 1 : self.n_xored] ^= factors[:, :1]
        return factors[:, 1:]

    def noise_marginal(self, h: int) -> NDArray[np.floating]:
        """Pr(e^i_h = 1) for i in [M-1]."""
        p = self.p_start
        for _ in range(h - 1):
            p = p * (1 - self.p_down) + (1 - p) * self.p_up
        return p

    def controllable_feature(self, h: int) -> int:
        """The index of s*_h within x_h."""
        return int(np.flatnonzero(self.permutation[h - 1] == 0)[0])

    def feature_accuracy(self, h: int) -> NDArray[np.floating]:
        """Population accuracy of each of the M features as an encoder of s*_h, up to relabelling, where the states are
        equally likely.

        Paper: Appendix D
        """
        return self.feature_state_accuracy(h).mean(axis=0)

    def feature_state_accuracy(self, h: int) -> NDArray[np.floating]:
        """The same for each state by itself: Pr(right | s*_h = s), shape (n_states(h), M).

        The relabelling is the best for all states together. A feature s XOR e^i is right with probability
        max(Pr(e^i_h = 1), Pr(e^i_h = 0)), in one state as in the other. Bare noise e^i says mostly one value, which
        then stands for state 0: there it is right with that probability, and in state 1 with what is left.

        Paper: Theorem 3.1 (which bounds the error in every state)
        """
        p = self.noise_marginal(h)
        right = np.concatenate([[1.0], np.maximum(p, 1 - p)])
        by_state = np.tile(right, (self.n_states(h), 1))
        by_state[1:, self.n_xored :] = 1 - right[self.n_xored :]
        return by_state[:, self.permutation[h - 1]]

    def paper_policies(self) -> tuple[MarkovPolicy, MarkovPolicy]:
        """Agent A acts uniformly at random; agent B repeats the state with probability 3/4.

        Paper: Section 4
        """
        return self.persistence_policy(0.5), self.persistence_policy(0.75)

    def persistence_policy(self, stay: float) -> MarkovPolicy:
        """Pr(a_h = s*_h) = stay, in every state and at every step."""
        check_number("stay", stay, "a number from 0 to 1", lambda share: 0 <= share <= 1)
        stay = float(stay)
        table = np.array([[stay, 1 - stay], [1 - stay, stay]])
        return MarkovPolicy([table[: self.n_states(h)] for h in range(1, self.H)])
