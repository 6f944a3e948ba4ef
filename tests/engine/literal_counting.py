"""Counting over one-hot values, every entry of every table held at once. The engine must agree exactly."""

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

    def values(self, h):
        """(|Phi_h|, n): the value of every encoder on every trajectory, -1 where it is over."""
        read = np.array(self.classes[h - 1])[:, self.tau.at(h)[:, 0]]
        return np.where(self.tau.present(h), read, -1)


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


def one_hot(labels: np.ndarray, n: int) -> np.ndarray:
    return (labels[..., None] == np.arange(n)).astype(np.int64)


def count_pairs(problem: Problem, h: int) -> np.ndarray:
    """(I, J, N_s, N_s, K)."""
    here, after = (one_hot(problem.values(step), problem.N_s) for step in (h, h + 1))
    return np.einsum("inu,jnv,nk->ijuvk", here, after, one_hot(problem.tau.agent, problem.tau.K))


def count_groups(problem: Problem, h: int, group: np.ndarray, n_groups: int) -> np.ndarray:
    """(n_groups, |Phi_h|, N_s)."""
    return np.einsum("inv,ng->giv", one_hot(problem.values(h), problem.N_s), one_hot(group, n_groups))


def least_losses(counts: np.ndarray, grid: Grid) -> np.ndarray:
    """The least fixed-point losses over the whole grid of cells (..., 2), in Python's own integers."""
    table = [round(float(np.logaddexp(0, c)) * FIXED_POINT) for c in grid.values]
    losses = [counts[..., 0].astype(object) * a + counts[..., 1].astype(object) * b for a, b in zip(table[::-1], table)]
    return np.minimum.reduce(losses)
