"""The spread of a shortest chain's f_h: simulated at its size, and with few samples."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from lemmas import chain_spread_sample_size, enclosing_bins, erm_spread_sample_size

from craftrl.core.grid import Grid

DELTA = 0.1
GRID = Grid(alpha=4.0, eta=1 / (1 + math.exp(2.0)), n_xi=4)  # xi = 1: Xi = {-2, -1, 0, 1, 2}
NU = 1 / 5
EPSILON = 0.3
# Two bits to choose from at h = 2 and at h = 3, s and s XOR e, and noise that is correlated in time.
NOISE = np.array([[0.35, 0.15], [0.2, 0.3]])  # Pr(e_2, e_3)
LOG_ODDS = np.array([[-1.5, 0.4], [0.9, -0.6]])  # ln(a/b) of the latent paths (s_2, s_3)


def bad_event_rate(n: int, trials: int, seed: int) -> float:
    """How often some pair of states of some step has too many samples outside, with n trajectories per latent path."""
    rng = np.random.default_rng(seed)
    a = np.round(n / (1 + np.exp(-LOG_ODDS))).astype(int)
    counts = np.stack(  # (agent, trial, s_2, s_3, e_2, e_3)
        [rng.multinomial(m, NOISE.ravel(), size=(trials, 2, 2)).reshape(trials, 2, 2, 2, 2) for m in (a, n - a)]
    )
    return float(np.mean([strays_somewhere(counts[:, t], a, n) for t in range(trials)]))


def strays_somewhere(counts: np.ndarray, a: np.ndarray, n: int) -> bool:
    s_2, s_3, e_2, e_3 = np.indices(counts.shape[1:])
    chains = product((s_2, s_2 ^ e_2), (s_3, s_3 ^ e_3))
    fits = [[fit_table(counts, np.zeros_like(x_2), x_2), fit_table(counts, x_2, x_3)] for x_2, x_3 in chains]
    best = min(fits, key=lambda fit: fit[0][0] + fit[1][0])
    total = counts.sum(axis=0)
    at_2 = outside(best[0][1], a.sum(axis=1), 2 * n - a.sum(axis=1))  # (s_2, bin)
    strays_2 = (total * at_2[s_2, best[0][1]]).sum(axis=(1, 2, 3))
    at_3 = outside(best[1][1], a, n - a)
    strays_3 = (total * at_3[s_2, s_3, best[1][1]]).sum(axis=(2, 3))
    return bool((strays_2 > EPSILON * 2 * n).any() or (strays_3 > EPSILON * n).any())


def fit_table(counts: np.ndarray, x: np.ndarray, x_next: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss of the best table on (x, x_next), and its bins at every (s_2, s_3, e_2, e_3)."""
    cell = 2 * x + x_next
    loss_A, loss_B = np.logaddexp(0, -GRID.values), np.logaddexp(0, GRID.values)
    total, bins = 0.0, np.zeros_like(cell)
    for c in range(4):
        losses = counts[0][cell == c].sum() * loss_A + counts[1][cell == c].sum() * loss_B
        total += losses.min()
        bins[cell == c] = losses.argmin()
    return total, bins


def outside(bins: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For every pair of states and every bin, whether the bin is none of the two around ln(a/b)."""
    low, high = enclosing_bins(a, b, GRID)
    j = np.arange(GRID.size)
    return (j < low[..., None]) | (j > high[..., None])


def test_the_bad_event_is_rare_at_the_size_given():
    n = chain_spread_sample_size(GRID, nu=NU, epsilon=EPSILON, delta=DELTA, H=3, class_size=4, N_s=2)
    assert bad_event_rate(n, 200, seed=0) <= DELTA


def test_and_common_with_few_samples():
    assert bad_event_rate(8, 200, seed=0) > DELTA


def test_the_printed_formula():
    grid = Grid.from_bounds(1.0, 0.2)
    chains = 29 * (math.log(256) + 4 * math.log(13))
    loss = 4 * 29 * 1.5 * math.sqrt(math.log(2 / 0.05) + chains) / (grid.eta / 16 * math.sqrt(0.1))
    counts = math.sqrt(math.log(2 * 29 / (0.1 * 0.05)) + chains)
    n = chain_spread_sample_size(grid, nu=0.1, epsilon=0.3, delta=0.05, H=30, class_size=256, N_s=2)
    assert n == pytest.approx((loss + counts) ** 2 / 2 / 0.09, rel=1e-9, abs=1)


def test_what_the_guarantee_costs_over_the_papers():
    """Polynomially more in H, in the bound; practice says the opposite (docs/chain.md)."""
    grid = Grid.from_bounds(1.0, 0.2)
    problem = {"nu": 5 / 32, "epsilon": 0.01, "delta": 0.05, "class_size": 256, "N_s": 2}
    ratio = chain_spread_sample_size(grid, H=30, **problem) / erm_spread_sample_size(grid, **problem)
    assert ratio == pytest.approx(1970, rel=0.05)
