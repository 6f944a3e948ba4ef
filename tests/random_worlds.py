"""Small random Ex-BMDPs with random hypothesis classes, for comparing the library with the literal algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import TrajectoryDataset


@dataclass(frozen=True)
class RandomProblem:
    """Trajectories of integer observations, and classes of encoders given as tables from observation to value.

    tables[h-1] has shape (|Phi_h|, n_obs); its first row encodes the true state at h.
    """

    episodes: list[list[NDArray[np.int64]]]
    tables: list[NDArray[np.int64]]
    N_s: int

    @property
    def tau(self) -> TrajectoryDataset:
        return TrajectoryDataset.from_episodes(self.episodes)

    def functions(self, h: int) -> list[Any]:
        """The class of step h, as vectorised functions."""
        return [lambda x, table=table: table[x] for table in self.tables[h - 1]]


def random_problem(
    rng: np.random.Generator,
    n_per_agent: int,
    n_agents: int = 2,
    H: int | None = None,
    N_s: int | None = None,
    unequal: bool = False,
) -> RandomProblem:
    """A world with up to N_s states a step and 3 noise values; x encodes both by a random bijection of each step."""
    H = H or int(rng.integers(2, 6))
    N_s = N_s or int(rng.integers(2, 5))
    n_actions, n_noise = int(rng.integers(2, 4)), 3
    sizes = [1, *rng.integers(2, N_s + 1, size=H - 1)]
    T = [rng.integers(sizes[h + 1], size=(sizes[h], n_actions)) for h in range(H - 1)]
    chain = rng.dirichlet(np.ones(n_noise), size=n_noise)
    code = [rng.permutation(N_s * n_noise) for _ in range(H)]
    policies = [[rng.dirichlet(np.full(n_actions, 0.7), size=size) for size in sizes] for _ in range(n_agents)]
    episodes = [[_episode(rng, policy, T, chain, code, H, unequal) for _ in range(n_per_agent)] for policy in policies]
    tables = []
    for h in range(H):
        table = rng.integers(N_s, size=(int(rng.integers(2, 6)), N_s * n_noise))
        table[0, code[h]] = np.repeat(np.arange(N_s), n_noise)
        tables.append(table)
    return RandomProblem(episodes, tables, N_s)


def _episode(rng, policy, T, chain, code, H, unequal) -> NDArray[np.int64]:
    n_noise = len(chain)
    s, e = 0, int(rng.integers(n_noise))
    x = []
    for h in range(H):
        x.append(code[h][s * n_noise + e])
        if h < H - 1:
            s = int(T[h][s, rng.choice(T[h].shape[1], p=policy[h][s])])
            e = int(rng.choice(n_noise, p=chain[e]))
    length = int(rng.integers(1, H + 1)) if unequal and rng.random() < 0.3 else H
    return np.array(x[:length])
