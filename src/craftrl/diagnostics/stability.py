"""What other data of the same kind would have given: refits on resampled trajectories.

Trajectories are drawn with replacement, agent by agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints
from craftrl.core.encoders import Encoder, encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.evaluation import accuracy_by_step

__all__ = ["Fitted", "Stability", "refits"]


class Fitted(Protocol):
    """What a refit must have: phi'_h and |S_h| for h = 1..H."""

    encoders_: list[Encoder]
    n_states_: list[int]


@dataclass(frozen=True)
class Stability:
    """Refits on R resamples of the data.

    n_states   int (R, H): states found at each step
    agreement  float (R, H): of the trajectories that are there, the share on which the refit's encoder agrees with the
               model's, up to relabelling; 0 where one of them found no state, for then its encoder is a guess
    """

    n_states: NDArray[np.int64]
    agreement: Floats

    def same_count(self, n_states: Ints) -> Floats:
        """(H,): share of the refits that found as many states as the model."""
        return np.asarray((self.n_states == n_states).mean(axis=0))


def refits(
    codes: Ints,
    n_states: Ints,
    tau: TrajectoryDataset,
    refit: Callable[[TrajectoryDataset], Fitted],
    n_resamples: int,
    seed: int,
) -> Stability:
    """Refit on `n_resamples` resamples of tau, and compare with the codes (n, H) of the model."""
    counts, agreement = np.zeros((n_resamples, tau.H), dtype=np.int64), np.zeros((n_resamples, tau.H))
    for r, rng in enumerate(np.random.default_rng(seed).spawn(n_resamples)):
        weight = np.concatenate([rng.multinomial(n, np.full(n, 1 / n)) for n in tau.counts])
        fitted = refit(tau.select(np.repeat(np.arange(tau.n), weight)))
        counts[r] = list(fitted.n_states_)
        agree = accuracy_by_step(encode_dataset(fitted.encoders_, tau), codes)
        agreement[r] = np.where((counts[r] > 0) & (n_states > 0), agree, 0.0)
    return Stability(counts, agreement)
