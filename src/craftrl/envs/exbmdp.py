"""The Ex-BMDP: a deterministic latent state that actions control, and noise that they do not.

Paper: Section 2.2
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_whole, quoted
from craftrl.arrays import Ints
from craftrl.errors import InvalidParameterError

MAX_STEPS = 10**6


class ExBMDP(ABC):
    """M = <H, A, X, S*, E, Q, T, T^e, s*_1, P^e_1>, every part vectorised over n trajectories.

    Latent states at h are the integers 0..n_states(h)-1; s*_1 = 0 is the only one at h = 1. A subclass gives six
    methods: the latent dynamics as tables, the exogenous chain as a sampler, the emission and its two inverses. It
    keeps no episode: `collect` and the Gymnasium environment do. `craftrl.testing.check_world` tests a world.

    Paper: Section 2.2
    """

    H: int
    n_actions: int
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype[Any]
    obs_high: float = 1.0  # observations lie in [0, obs_high]

    @abstractmethod
    def T(self, h: int) -> Ints:
        """T_{h+1} as a table of shape (n_states(h), n_actions) with values in S*_{h+1}, for h in 1..H-1."""

    @abstractmethod
    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """n draws of e_1 from P^e_1, shape (n, ...)."""

    @abstractmethod
    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        """e_{h+1} given e_h, shape (n, ...)."""

    @abstractmethod
    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        """x_h ~ Q_h(s*_h, e_h), shape (n, *obs_shape)."""

    @abstractmethod
    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        """phi*_h(x_h) = s*_h: the inverse of the emission, shape (n,)."""

    @abstractmethod
    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[Any]:
        """phi^e_h(x_h) = e_h: the other inverse, shape (n, ...)."""

    def n_states(self, h: int) -> int:
        """|S*_h|: as many as T_{h+1} has rows, and at H as many as T_H leads to."""
        return len(self.T(h)) if h < self.H else int(self.T(h - 1).max()) + 1

    def step(self, s_h: Ints, a_h: Ints, h: int) -> Ints:
        """s*_{h+1} = T_{h+1}(s*_h, a_h)."""
        return self.T(h)[s_h, a_h]

    def reachable_pairs(self) -> list[NDArray[np.int64]]:
        """For each h in 1..H-1 (entry h-1), how many actions lead from each s*_h to each s*_{h+1}: (|S_h|, |S_{h+1}|).

        States that no action sequence reaches from s*_1 = 0 count as leading nowhere, so that the entries above 0
        are the pairs that can occur.
        """
        tables, reached = [], np.arange(self.n_states(1)) == 0
        for h in range(1, self.H):
            table = np.zeros((self.n_states(h), self.n_states(h + 1)), dtype=np.int64)
            s = np.flatnonzero(reached)
            np.add.at(table, (s[:, None], self.T(h)[s]), 1)
            tables.append(table)
            reached = table.any(axis=0)
        return tables

    def render(self, x_h: NDArray[Any]) -> NDArray[np.uint8]:
        """One observation as an RGB image (rows, columns, 3): as it is, or its values in grey."""
        grey = np.atleast_2d(x_h * (255 / self.obs_high)).astype(np.uint8)
        return grey if grey.ndim == 3 and grey.shape[-1] == 3 else np.repeat(grey[..., None], 3, axis=-1)


def reachable_states(world: ExBMDP) -> list[NDArray[np.bool_]]:
    """For each h (entry h-1), which latent states some action sequence reaches from s*_1 = 0."""
    return [np.arange(world.n_states(1)) == 0, *(table.any(axis=0) for table in world.reachable_pairs())]


def check_tables(world: Any) -> None:
    """Raise where a world is needed whose dynamics are tables, and something else was given."""
    check_kind("world", world, ExBMDP, "a world whose dynamics are tables, such as BitsExBMDP()")


def check_seed(seed: Any) -> None:
    """What NumPy's generators begin with: a whole number, a generator, or None for another result every time."""
    if seed is not None and not isinstance(seed, (np.random.Generator, np.random.SeedSequence)):
        try:
            check_whole("seed", seed)
        except InvalidParameterError as error:
            raise InvalidParameterError(
                f"seed must be an integer of at least 0, a numpy Generator or None; {quoted(seed)} was given."
            ) from error
