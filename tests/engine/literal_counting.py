"""Counting as one would on paper: one trajectory, one pair of encoders at a time. The engine must agree exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from craftrl import TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT


@dataclass
class Problem:
    """Random trajectories over a small alphabet, and random tables as encoders: class h has sizes[h-1] of them."""

    tau: TrajectoryDataset
    classes: list[list[np.ndarray]]
    N_s: int

    def functions(self, h):
        return [lambda x, table=table: table[x[:, 0]] for table in self.classes[h - 1]]

    def value(self, h, i, t):
        return int(self.classes[h - 1][i][self.tau.episode(int(t))[h - 1, 0]])


def random_problem(seed: int, K: int = 2, N_s: int = 2, H: int = 3, unequal: bool = False, scale: int = 60) -> Problem:
    rng = np.random.default_rng(seed)
    alphabet = 12
    agents = []
    for _ in range(K):
        skew = rng.dirichlet(np.full(alphabet, 0.7))
        lengths = rng.integers(1, H + 1, size=rng.integers(1, scale)) if unequal else np.full(rng.integers(1, scale), H)
        lengths[0] = H
        agents.append([rng.choice(alphabet, size=(length, 1), p=skew).astype(np.uint8) for length in lengths])
    classes = [[rng.integers(0, N_s, alphabet) for _ in range(rng.integers(1, 9))] for _ in range(H)]
    return Problem(TrajectoryDataset.from_episodes(agents), classes, N_s)


def count_pairs(problem: Problem, h: int) -> np.ndarray:
    """(I, J, N_s, N_s, K), by counting on one's fingers."""
    tau, N_s = problem.tau, problem.N_s
    I, J = len(problem.classes[h - 1]), len(problem.classes[h])
    counts = np.zeros((I, J, N_s, N_s, tau.K), dtype=np.int64)
    for t in np.flatnonzero(tau.present(h + 1)):
        for i in range(I):
            for j in range(J):
                counts[i, j, problem.value(h, i, t), problem.value(h + 1, j, t), tau.agent[t]] += 1
    return counts


def count_groups(problem: Problem, h: int, group: np.ndarray, n_groups: int) -> np.ndarray:
    """(n_groups, |Phi_h|, N_s)."""
    counts = np.zeros((n_groups, len(problem.classes[h - 1]), problem.N_s), dtype=np.int64)
    for t in np.flatnonzero(problem.tau.present(h) & (group >= 0)):
        for i in range(counts.shape[1]):
            counts[group[t], i, problem.value(h, i, t)] += 1
    return counts


def least_loss(a: int, b: int, grid: Grid) -> int:
    """The least fixed-point loss of a cell over the whole grid, in Python's own integers."""
    table = [round(float(np.logaddexp(0, c)) * FIXED_POINT) for c in grid.values]
    return min(a * table[len(table) - 1 - j] + b * table[j] for j in range(len(table)))


def losses_of_pairs(counts: np.ndarray, grid: Grid) -> np.ndarray:
    """(I, J) for two agents: the sum of the cells' least losses."""
    out = np.zeros(counts.shape[:2], dtype=np.int64)
    for i, j, u, v in np.ndindex(counts.shape[:4]):
        out[i, j] += least_loss(int(counts[i, j, u, v, 0]), int(counts[i, j, u, v, 1]), grid)
    return out
