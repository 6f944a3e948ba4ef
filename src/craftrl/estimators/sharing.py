"""One encoder for all steps, where the world is stationary.

Step by step, CRAFT uses a state's observations at one h alone, and its labels are only as clean as those of the step
before. Where the world is stationary, the states of all steps are matched (`matching`), and one encoder is trained
on all of them: what one step got wrong is outvoted by the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.craft import Result
from craftrl.core.encoders import Encoder
from craftrl.core.seam import PreparedOracle
from craftrl.data.dataset import TrajectoryDataset
from craftrl.estimators.matching import Matching, match_states
from craftrl.states.visits import count_visits

__all__ = ["Shared", "share_over_time"]

Ints = NDArray[np.integer]
ROUNDS = 2  # how often the encoder is trained at most, each time on the labels that the last one reads
SETTLED = 0.995  # share of the labels that an encoder reads as it was told, from which on it is not trained again


@dataclass(frozen=True)
class Shared:
    """One encoder, the states (n, H) that it reads off the dataset, how many there are, and how they were matched."""

    encoder: Encoder
    labels: NDArray[np.int64]
    n_states: int
    matching: Matching

    def n_states_at(self, h: int, min_share: float) -> int:
        """How many states at least `min_share` of the trajectories are in at step h."""
        visits = count_visits(self.labels[:, h - 1], sizes=(self.n_states,))
        return int((visits >= min_share * len(self.labels)).sum())


def share_over_time(prepared: PreparedOracle, result: Result, tau: TrajectoryDataset, min_share: float) -> Shared:
    """Match the states of all steps, train one encoder on them, read the labels off it, and repeat.

    A state that fewer than `min_share` of the trajectories are in at every step is dropped before each training.
    """
    matching = match_states(result.encoders, result.labels, tau, prepared.read, prepared.seed)
    labels: NDArray[np.int64] = matching.labels
    for turn in range(1, ROUNDS + 1):
        labels, n_states = _supported(labels, min_share)
        encoder = prepared.share(labels, n_states, f"shared-{turn}-of-{ROUNDS}").encoder
        read = np.stack([prepared.read(encoder, tau, h) for h in range(1, tau.H + 1)], axis=1)
        settled = (read == labels).mean() >= SETTLED
        labels = read
        if settled:
            break
    return Shared(encoder, labels, n_states, matching)


def _supported(labels: NDArray[np.int64], min_share: float) -> tuple[NDArray[np.int64], int]:
    """Labels without the states that are rare at every step, renumbered; one state where none is left."""
    n, H = labels.shape
    n_states = int(labels.max(initial=-1)) + 1
    visits = np.stack([count_visits(labels[:, h], sizes=(n_states,)) for h in range(H)])
    kept = visits.max(axis=0, initial=0) >= max(min_share * n, 1)
    if not kept.any():
        return np.zeros_like(labels), 1
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return number[labels], int(kept.sum())
