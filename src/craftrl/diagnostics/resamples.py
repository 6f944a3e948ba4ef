"""What other data of the same kind would have given: refits on resampled trajectories.

Trajectories are drawn with replacement, agent by agent; those never drawn, about 37%, are the held-out ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.arguments import check_whole
from craftrl.core.encoders import encode_dataset
from craftrl.core.grid import Grid
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.subject import Subject, check_subject
from craftrl.oracles.counting import CountingOracle, PreparedCounting, check_counting
from craftrl.states.accuracy import accuracy_by_step
from craftrl.states.visits import count_visits, pair_labels

__all__ = ["MOST_RESAMPLES", "Resamples", "resample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
MOST_RESAMPLES = 10_000


@dataclass(frozen=True)
class Resamples:
    """Refits on R resamples of the data.

    n_states   int (R, H): states found at each step
    agreement  float (R, H): share of all trajectories on which the refit's encoder agrees with the model's, up to
               relabelling; 0 where one of them found no state, for then its encoder is a guess
    gain       float (R, H-1): by how many nats per pair the refit's states (s_h, s_{h+1}) tell held-out
               trajectories' agents apart better than their frequencies alone
    best_gain  the same for the best pair of probes, chosen for each h by itself (Line 10); NaN without probes
    """

    n_states: NDArray[np.int64]
    agreement: Floats
    gain: Floats
    best_gain: Floats


def resample(
    model: Subject, tau: TrajectoryDataset, n_resamples: int, seed: int, probe: CountingOracle | None = None
) -> Resamples:
    """Refit the model on `n_resamples` resamples of tau, at the bounds that it used."""
    check_subject(model, tau)
    check_whole("n_resamples", n_resamples, 0, MOST_RESAMPLES)
    check_whole("seed", seed)
    if probe is not None:
        check_counting(probe, "resample")
    codes = encode_dataset(model.encoders, tau)
    n_states = np.zeros((n_resamples, tau.H), dtype=np.int64)
    agreement = np.zeros((n_resamples, tau.H))
    gain, best_gain = (np.full((n_resamples, tau.H - 1), np.nan) for _ in range(2))
    probes = None if probe is None else probe.prepare(tau)
    for r, rng in enumerate(np.random.default_rng(seed).spawn(n_resamples)):
        weight = _draw(tau, rng)
        sample = tau.select(np.repeat(np.arange(tau.n), weight))
        refit = model.refit(sample)
        again = encode_dataset(refit.encoders_, tau)
        n_states[r] = list(refit.n_states_)
        found = (n_states[r] > 0) & (model.n_states > 0)
        agreement[r] = np.where(found, accuracy_by_step(again, codes), 0.0)
        gain[r] = [held_out_gain(again[:, h - 1], again[:, h], tau, weight) for h in range(1, tau.H)]
        if probes is not None:
            best_gain[r] = _best_gain(probes, sample, refit.trace_.grid, weight)
    return Resamples(n_states, agreement, gain, best_gain)


def _draw(tau: TrajectoryDataset, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each trajectory is drawn when every agent's are drawn with replacement, as many as it has."""
    return np.concatenate([rng.multinomial(n, np.full(n, 1 / n)) for n in tau.counts])


def _best_gain(probes: PreparedCounting, sample: TrajectoryDataset, grid: Grid, weight: Ints) -> list[float]:
    """Held-out gain of the best pair of probes at each h, chosen on the resample by the paper's ERM (Line 10)."""
    chosen = probes.oracle.prepare(sample).log_odds(grid, "independent").models
    return [
        held_out_gain(probes.values(h, f_h.i), probes.values(h + 1, f_h.j), probes.tau, weight)
        for h, f_h in enumerate(chosen, start=1)
    ]


def held_out_gain(s_h: Ints, s_next: Ints, tau: TrajectoryDataset, weight: Ints) -> float:
    """How much better (s_h, s_{h+1}) predicts held-out agents than their frequencies do, in nats per pair.

    `weight` says how often each trajectory was drawn: those never drawn are held out. Each cell's prediction is
    its agents' frequencies with half a count added to each (Jeffreys).
    """
    pair = pair_labels(s_h, s_next)
    counts, held_out = (count_visits(pair, tau.agent, times=times) for times in (weight, weight == 0))
    gain = _log_likelihood(held_out, counts) - _log_likelihood(held_out.sum(axis=0), counts.sum(axis=0))
    return gain / max(float(held_out.sum()), 1.0)


def _log_likelihood(held_out: Any, counts: Any) -> float:
    smoothed = counts + 0.5
    return float(xlogy(held_out, smoothed / smoothed.sum(axis=-1, keepdims=True)).sum())
