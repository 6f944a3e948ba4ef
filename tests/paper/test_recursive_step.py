"""Lemma C.6: one turn of the loop on counts, with the library's own clustering and merging, against adversaries.

The lemma asks for some 10^11 visits per pair. They are affordable as counts: a sample is a latent pair with two noise
bits, so that all samples of an agent are one multinomial draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from lemmas import recursive_step_holds, recursive_step_sample_size

from craftrl.core.clusters import heaviness_threshold, merge_clusters, scan
from craftrl.core.grid import Grid

DELTA = 0.1
H, STEP = 3, 2
NOISE = np.array([0.35, 0.15, 0.2, 0.3])  # Pr(e_h, e_{h+1}), correlated in time
PAIRS = np.array([[0.3, 0.2], [0.2, 0.3]])  # shares of the trajectories
SHARE_A = 1 / (1 + np.exp([[-0.7, 0.5], [0.3, -1.0]]))  # of each pair; alpha = 1.2 and 1.3
NU, ALPHA, ETA = 0.2, 1.2, 0.26
GRID = Grid.from_bounds(ALPHA, ETA)
S, S_NEXT, E, E_NEXT = np.indices((2, 2, 2, 2))


def visits(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts of each agent's samples by (s_h, s_{h+1}, e_h, e_{h+1})."""
    total = np.round(n * PAIRS).astype(np.int64)
    a = np.round(total * SHARE_A).astype(np.int64)
    return tuple(rng.multinomial(c, NOISE).reshape(2, 2, 2, 2) for c in (a, total - a))


def erm_bins(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Line 10 with two features at each step: the bin of f_h on every kind of sample."""
    best, bins = math.inf, np.zeros(A.shape, dtype=int)
    for x in (S, S ^ E):
        for x_next in (S_NEXT, S_NEXT ^ E_NEXT):
            cell = 2 * x + x_next
            a, b = (np.bincount(cell.ravel(), c.ravel(), minlength=4)[:, None] for c in (A, B))
            loss = a * np.logaddexp(0, -GRID.values) + b * np.logaddexp(0, GRID.values)
            if loss.min(axis=1).sum() < best:
                best, bins = loss.min(axis=1).sum(), loss.argmin(axis=1)[cell]
    return bins


def adversaries(counts: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """labelled (3, 2, 2, 2, 2): counts by label at h, 2 for none. Each one spends its budget on one pair of states."""
    honest = np.zeros((3, *counts.shape), dtype=np.int64)
    for s in (0, 1):
        honest[s, s] = counts[s]
    for s in (0, 1):
        for s_next in (0, 1):
            for wrong in (1 - s, 2):
                labelled, left = honest.copy(), budget
                for e in np.ndindex(2, 2):
                    taken = min(left, int(counts[s, s_next][e]))
                    labelled[(s, s, s_next, *e)] -= taken
                    labelled[(wrong, s, s_next, *e)] += taken
                    left -= taken
                yield labelled


@dataclass
class CountSeparation:
    """Line 25 on counts, with the features s and s XOR e, each way round."""

    clusters: list[np.ndarray]

    def loss(self, new: int, state: Sequence[int]) -> float:
        D_new, D_s = self.clusters[new], sum(self.clusters[c] for c in state)
        overlaps = []
        for x in (S_NEXT, S_NEXT ^ E_NEXT):
            p_new, p_s = (np.bincount(x.ravel(), D.ravel(), minlength=2) / D.sum() for D in (D_new, D_s))
            overlaps.append(float(np.minimum(p_new, p_s).sum()))
        return min(overlaps)


def errors_after_one_step(labelled: np.ndarray, bins: np.ndarray) -> float:
    """The share of trajectories that are not in their state at h+1; 1 if the states are not two."""
    n = labelled.sum()
    clusters: list[np.ndarray] = []
    predecessors: list[int] = []
    for s_pred in (0, 1):
        spectrum = np.bincount(bins.ravel(), labelled[s_pred].ravel(), minlength=GRID.size)
        occupied = np.flatnonzero(spectrum)
        threshold = heaviness_threshold(STEP, H, NU, n)
        for members, _ in scan(occupied[:, None], spectrum[occupied], threshold, GRID.size):
            clusters.append(labelled[s_pred] * np.isin(bins, occupied[members]))
            predecessors.append(s_pred)
    state_of, _ = merge_clusters(predecessors, CountSeparation(clusters).loss)
    if state_of.max(initial=-1) != 1:
        return 1.0
    members = [[c for c, own in zip(clusters, state_of) if own == state] for state in (0, 1)]
    right = np.array([[sum(own)[:, s].sum() for s in (0, 1)] for own in members])
    return 1 - max(right.trace(), np.fliplr(right).trace()) / n


def failure_rate(n: int, epsilon: float, beta: float, trials: int) -> float:
    rng = np.random.default_rng(11)
    failures = 0
    for _ in range(trials):
        A, B = visits(n, rng)
        bins = erm_bins(A, B)
        attacks = adversaries(A + B, math.floor(beta * n))
        failures += any(errors_after_one_step(labelled, bins) > beta + epsilon for labelled in attacks)
    return failures / trials


EPSILON = NU / (8 * H) * 0.999  # the theorem's; just below, so that Line 19's >= is the proof's >
BETA = (STEP - 1) * EPSILON


def test_errors_rarely_grow_by_more_than_epsilon_at_the_lemmas_size() -> None:
    assert recursive_step_holds(epsilon=EPSILON, beta=BETA, nu=NU, h=STEP, H=H)
    per_pair = recursive_step_sample_size(GRID, nu=NU, epsilon=EPSILON, delta=DELTA, class_size=4, N_s=2)
    assert failure_rate(math.ceil(per_pair / NU), EPSILON, BETA, trials=40) <= DELTA


def test_but_often_with_few_samples() -> None:
    assert failure_rate(40, EPSILON, BETA, trials=40) > DELTA


def test_and_with_more_wrong_labels_than_the_lemma_allows() -> None:
    beta = 0.7 * NU
    assert not recursive_step_holds(epsilon=EPSILON, beta=beta, nu=NU, h=STEP, H=H)
    assert failure_rate(10**7, EPSILON, beta, trials=5) > DELTA


def test_the_printed_formula() -> None:
    n = recursive_step_sample_size(GRID, epsilon=0.01, nu=NU, delta=DELTA, class_size=4, N_s=2)
    printed = 12800 * (math.log(4 * 4**2 / DELTA) + 2**2 * math.log(GRID.n_xi + 1)) * math.log(1 / GRID.eta) ** 2
    assert n == pytest.approx(printed / (NU * 0.01**2 * GRID.eta**2 * GRID.alpha**4), rel=1e-9)


def test_the_setting_meets_its_own_bounds() -> None:
    log_odds = np.log(SHARE_A / (1 - SHARE_A))
    assert np.abs(np.diff(log_odds, axis=1)).min() >= ALPHA - 1e-12
    assert np.minimum(SHARE_A, 1 - SHARE_A).min() >= ETA
    assert PAIRS.min() >= NU
