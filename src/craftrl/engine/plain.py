"""Counting in plain NumPy: the readable version, and the yardstick of the compiled one.

Pair counts are matrix products of indicator matrices, one per agent and pair of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError
from craftrl.grid import Grid
from craftrl.losses import best_bins

__all__ = ["PlainStep", "evaluate", "group_counts", "pair_counts", "pair_losses"]


@dataclass(frozen=True)
class PlainStep:
    """The values (|Phi_h|, n) of all encoders on all trajectories of one step; -1 where a trajectory is over."""

    values: NDArray[np.int16]
    N_s: int
    agent: NDArray[np.int64]


def evaluate(
    tau: TrajectoryDataset, h: int, functions: Sequence[Callable[[NDArray[Any]], Any]], N_s: int
) -> PlainStep:
    """Apply every encoder once to the observations of step h."""
    values = np.empty((len(functions), tau.n), dtype=np.int16)
    for rows, x in tau.blocks(h):
        for i, phi in enumerate(functions):
            values[i, rows] = checked_values(phi(x), len(x), N_s, i)
    values[:, ~tau.present(h)] = -1
    return PlainStep(values, N_s, tau.agent)


def checked_values(given: Any, n: int, N_s: int, index: int) -> NDArray[np.int16]:
    """An encoder's values as small integers, if that is what they are."""
    values = np.asarray(given)
    if values.shape != (n,):
        raise InvalidDataError(
            f"An encoder must return one value per observation; encoder {index} returned shape {values.shape} "
            f"for {n} observations."
        )
    if values.dtype.kind not in "biu" and not np.array_equal(values, np.rint(values)):
        raise InvalidDataError(
            f"An encoder's values must be integers; encoder {index} returned {values.dtype} values that are not."
        )
    if n and (values.min() < 0 or values.max() >= N_s):
        raise InvalidDataError(
            f"An encoder's values must lie in 0..{N_s - 1} (N_s = {N_s}); encoder {index} returned "
            f"{values.min()}..{values.max()}; raise N_s or mend the encoder."
        )
    return values.astype(np.int16)


def pair_counts(step_h: PlainStep, step_next: PlainStep) -> NDArray[np.int64]:
    """How often each agent shows each pair of values of each pair of encoders: (I, J, N_s, N_s, K)."""
    K = int(step_h.agent.max()) + 1
    counts = np.zeros(
        (len(step_h.values), len(step_next.values), step_h.N_s, step_next.N_s, K), dtype=np.int64
    )
    for k in range(K):
        mine = step_h.agent == k
        u = [(step_h.values[:, mine] == a).astype(np.float32) for a in range(step_h.N_s)]
        v = [(step_next.values[:, mine] == b).astype(np.float32) for b in range(step_next.N_s)]
        for a, left in enumerate(u):
            for b, right in enumerate(v):
                counts[:, :, a, b, k] = np.rint(left @ right.T)
    return counts


def pair_losses(step_h: PlainStep, step_next: PlainStep, grid: Grid) -> NDArray[np.int64]:
    """The fixed-point loss of the best f over each pair of encoders: (I, J)."""
    return best_bins(pair_counts(step_h, step_next), grid)[1].sum(axis=(2, 3))


def group_counts(step: PlainStep, group: NDArray[np.integer], n_groups: int) -> NDArray[np.int64]:
    """Every encoder's value counts on each group of trajectories (-1: in none): (n_groups, |Phi|, N_s)."""
    counts = np.zeros((n_groups, len(step.values), step.N_s), dtype=np.int64)
    for g in range(n_groups):
        mine = step.values[:, group == g]
        for value in range(step.N_s):
            counts[g, :, value] = (mine == value).sum(axis=1)
    return counts
