"""What other data of the same kind would have given: refits on resampled trajectories.

Trajectories are drawn with replacement, agent by agent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints
from craftrl.core.encoders import Encoder, encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.evaluation import accuracy_by_step

# phi'_h and |S_h| for h = 1..H of the model fitted to other data.
Refit = Callable[[TrajectoryDataset], tuple[Collection[Encoder], Sequence[int]]]


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
    refit: Refit,
    n_resamples: int,
    seed: int,
) -> Stability:
    """Refit on `n_resamples` resamples of tau, and compare with the codes (n, H) of the model."""
    counts, agreement = np.zeros((n_resamples, tau.H), dtype=np.int64), np.zeros((n_resamples, tau.H))
    for r, rng in enumerate(np.random.default_rng(seed).spawn(n_resamples)):
        weight = np.concatenate([rng.multinomial(n, np.full(n, 1 / n)) for n in tau.counts])
        encoders, counts[r] = refit(tau.select(np.repeat(np.arange(tau.n), weight)))
        agree = accuracy_by_step(encode_dataset(encoders, tau), codes)
        agreement[r] = np.where((counts[r] > 0) & (n_states > 0), agree, 0.0)
    return Stability(counts, agreement)
