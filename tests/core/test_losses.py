"""The three losses against brute force."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins, best_relabelling, separation_loss, softplus_table

counts_2 = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8)


@given(counts_2, st.sampled_from([0.3, 0.8, 1.0]), st.sampled_from([0.02, 0.2, 0.5]))
def test_best_bin_of_two_agents_is_the_best_of_the_whole_grid(counts, alpha, eta):
    grid = Grid.from_bounds(alpha, eta)
    table = softplus_table(grid)
    bins, loss = best_bins(np.array(counts), grid)
    for (a, b), j, found in zip(counts, bins[:, 0], loss):
        brute = [a * int(table[grid.n_xi - k]) + b * int(table[k]) for k in range(grid.size)]
        assert found == min(brute)
        assert j == brute.index(min(brute))


def test_loss_is_the_papers():
    grid = Grid.from_bounds(1.0, 0.2)
    bins, loss = best_bins(np.array([30, 12]), grid)
    c = grid.values[bins[0]]
    assert loss / FIXED_POINT == pytest.approx(30 * np.log1p(np.exp(-c)) + 12 * np.log1p(np.exp(c)), rel=1e-8)


@given(st.lists(st.tuples(*[st.integers(1, 30)] * 3), min_size=1, max_size=5))
def test_three_agents_come_within_a_bin_of_the_multinomial_optimum(counts):
    grid, array = Grid.from_bounds(1.0, 0.02), np.array(counts)
    bins, loss = best_bins(array, grid)
    f = grid.values[np.indices((grid.size, grid.size))]
    every = -np.tensordot(array, log_softmax([0 * f[0], -f[0], -f[1]], axis=0), axes=1)  # (cells, bins, bins)
    assert loss / FIXED_POINT == pytest.approx(every[np.arange(len(bins)), *bins.T], rel=1e-6)
    assert (loss / FIXED_POINT <= every.min(axis=(1, 2)) + 0.02 * array.sum(axis=1) * grid.xi**2).all()


@given(st.data())
def test_separation_loss_is_the_best_of_all_sets_of_values(data):
    N_s, n_phi = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    n_new, n_state = rng.integers(1, 12, size=2)
    new = np.stack([np.bincount(rng.integers(N_s, size=n_new), minlength=N_s) for _ in range(n_phi)])
    state = np.stack([np.bincount(rng.integers(N_s, size=n_state), minlength=N_s) for _ in range(n_phi)])
    brute = min(
        Fraction(int(n[~np.array(V)].sum()), int(n_new)) + Fraction(int(s[np.array(V)].sum()), int(n_state))
        for n, s in zip(new, state)
        for V in product((True, False), repeat=N_s)
    )
    assert separation_loss(new, state) == float(brute)


@pytest.mark.parametrize(("n_states", "N_s"), [(1, 2), (2, 2), (3, 2), (2, 4), (4, 4), (7, 3), (2, 7), (6, 6)])
def test_encoding_tries_every_relabelling(n_states, N_s):
    rng = np.random.default_rng([n_states, N_s])
    for _ in range(5):
        counts = rng.integers(0, 9, size=(3, 1, n_states, N_s))[:, 0]
        counts[:, :, 0] += counts.sum(axis=2).max() - counts.sum(axis=2)  # the same D_s under every encoder
        index, state_of, loss = best_relabelling(counts)
        share = counts / counts.sum(axis=2, keepdims=True)
        few, many = sorted((n_states, N_s))
        brute = max(
            sum(share[i, s, v] if n_states <= N_s else share[i, v, s] for s, v in enumerate(chosen))
            for i in range(3)
            for chosen in permutations(range(many), few)
        )
        assert loss == pytest.approx(n_states - brute)
        assert sorted(state_of) == sorted(set(state_of)), "one to one"
        hits = sum(share[index, s, v] for v, s in enumerate(state_of) if s < n_states)
        assert hits == pytest.approx(brute)


def test_encoding_without_a_state_is_the_first_encoder():
    index, state_of, loss = best_relabelling(np.zeros((4, 0, 3), dtype=int))
    assert (index, state_of.tolist(), loss) == (0, [0, 1, 2], 0.0)
