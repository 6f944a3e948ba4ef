"""What other data of the same kind would have given: refits on resampled trajectories.

Trajectories are drawn with replacement, agent by agent; those never drawn, about 37%, are the held-out ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.core.encoders import Encoder, encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.states.accuracy import accuracy_by_step
from craftrl.states.visits import count_visits, pair_labels

__all__ = ["Fitted", "Stability", "held_out_gain", "refits"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


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
    gain       float (R, H-1): by how many nats per pair the refit's states (s_h, s_{h+1}) tell held-out
               trajectories' agents apart better than their frequencies alone
    """

    n_states: NDArray[np.int64]
    agreement: Floats
    gain: Floats

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
    counts = np.zeros((n_resamples, tau.H), dtype=np.int64)
    agreement, gain = np.zeros((n_resamples, tau.H)), np.zeros((n_resamples, tau.H - 1))
    for r, rng in enumerate(np.random.default_rng(seed).spawn(n_resamples)):
        weight = np.concatenate([rng.multinomial(n, np.full(n, 1 / n)) for n in tau.counts])
        fitted = refit(tau.select(np.repeat(np.arange(tau.n), weight)))
        again = encode_dataset(fitted.encoders_, tau)
        counts[r] = list(fitted.n_states_)
        agreement[r] = np.where((counts[r] > 0) & (n_states > 0), accuracy_by_step(again, codes), 0.0)
        gain[r] = [held_out_gain(again[:, h - 1], again[:, h], tau, weight) for h in range(1, tau.H)]
    return Stability(counts, agreement, gain)


def held_out_gain(s_h: Ints, s_next: Ints, tau: TrajectoryDataset, weight: Ints) -> float:
    """How much better (s_h, s_{h+1}) predicts held-out agents than their frequencies do, in nats per pair.

    `weight` says how often each trajectory was drawn: those never drawn are held out. Each cell's prediction is
    its agents' frequencies with half a count added to each (Jeffreys).
    """
    pair = pair_labels(s_h, s_next)
    counts, held_out = (count_visits(pair, tau.agent, times=times) for times in (weight, weight == 0))
    gain = _log_likelihood(held_out, counts) - _log_likelihood(held_out.sum(axis=0), counts.sum(axis=0))
    return gain / max(float(held_out.sum()), 1.0)


def _log_likelihood(held_out: Floats, counts: Floats) -> float:
    smoothed = counts + 0.5
    return float(xlogy(held_out, smoothed / smoothed.sum(axis=-1, keepdims=True)).sum())
