"""Clusters of occupied bins alone are those of whole spectra, and many agents cost no more than their number."""

from itertools import product

import numpy as np
import pytest
from craftrl.core.occupied import near_pairs, scan_occupied
from craftrl.core.pairs import cluster_pairs
from hypothesis import given
from hypothesis import strategies as st

from craftrl import CRAFT
from craftrl.core import losses
from craftrl.core.clusters import find_clusters, neighbourhood
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins, log_loss
from craftrl.core.valleys import Valleys
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError

spectra = st.tuples(st.integers(1, 3), st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 2.0, 4.0]))


def drawn(n_axes, side, seed):
    """A spectrum of which most bins are empty."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 7, size=(side,) * n_axes) * (rng.random((side,) * n_axes) < 0.5)


@given(spectra)
def test_the_scan_of_occupied_bins_is_that_of_the_whole_spectrum(which):
    *shape, threshold = which
    spectrum = drawn(*shape)
    occupied = np.argwhere(spectrum > 0)
    found = scan_occupied(occupied, spectrum[tuple(occupied.T)], threshold)
    assert np.array_equal(found, find_clusters(spectrum, threshold)[tuple(occupied.T)])


@given(spectra)
def test_hills_are_those_of_the_literal_ascent(which):
    *shape, threshold = which
    spectrum = drawn(*shape)
    assert np.array_equal(Valleys()(spectrum, threshold), literal_valleys(spectrum, threshold, 0.6, 0.03))


def literal_valleys(height, threshold, depth, min_share):
    """Bin by bin over the whole spectrum: climb to a summit, join hills without a valley between, drop small ones."""
    hill, order = {}, sorted(map(tuple, np.argwhere(height > 0)), key=lambda b: (-height[b], b))
    for bin_ in order:
        higher = [near for near in neighbourhood(bin_, height.shape) if near in hill]
        hill[bin_] = hill[max(higher, key=lambda b: (height[b], [-c for c in b]))] if higher else bin_
    while True:
        passes = {}
        for bin_, near in ((b, n) for b in hill for n in neighbourhood(b, height.shape) if n in hill):
            if hill[bin_] < hill[near]:
                ends = hill[bin_], hill[near]
                passes[ends] = max(passes.get(ends, 0), min(height[bin_], height[near]))
        peak = {s: max(height[b] for b in hill if hill[b] == s) for s in set(hill.values())}
        shallow = [(level, *ends) for ends, level in passes.items() if level >= depth * min(peak[s] for s in ends)]
        if not shallow:
            break
        _, first, second = max(shallow)
        hill = {b: first if s == second else s for b, s in hill.items()}
    cluster, least = np.full(height.shape, -1), max(threshold, min_share * height.sum(), 1)
    kept = [
        s for s in dict.fromkeys(hill[b] for b in sorted(hill)) if sum(height[b] for b in hill if hill[b] == s) >= least
    ]
    for bin_, s in hill.items():
        if s in kept:
            cluster[bin_] = kept.index(s)
    return cluster


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_near_pairs_are_all_of_them(n_axes, distance, seed):
    bins = np.unique(np.random.default_rng(seed).integers(0, 6, size=(12, n_axes)), axis=0)
    expected = {
        (i, j) for i, j in product(range(len(bins)), repeat=2) if i < j and np.abs(bins[i] - bins[j]).max() <= distance
    }
    assert set(map(tuple, np.sort(near_pairs(bins, distance), axis=1).tolist())) == expected


def test_the_nearest_grid_point_is_hardly_worse_than_the_best_corner(monkeypatch):
    grid = Grid.from_bounds(1.0, 0.05)
    counts = np.random.default_rng(0).integers(5, 40, size=(200, 5))
    _, best = best_bins(counts, grid)
    monkeypatch.setattr(losses, "MOST_CORNERS", 4)
    _, nearest = best_bins(counts, grid)
    assert (nearest >= best).all()
    # Half a step along each of four axes, where the loss of a pair is curved by at most 1/2.
    assert (log_loss(nearest - best) <= counts.sum(axis=1) / 2 / 2 * 4 * (grid.xi / 2) ** 2).all()


def test_forty_agents():
    """With a neighbourhood of 3^39 bins and 2^39 corners this would never end."""
    world = BitsExBMDP(horizon=4, n_features=8, seed=0)
    data = collect(world, [*world.paper_policies()] * 20, 25, seed=0)
    model = CRAFT().fit(data.tau)
    assert list(model.n_states_) == [1, 2, 2, 2]
    assert np.array_equal(model.transform(data.tau), data.truth.states)


def test_a_clusterer_that_wants_whole_spectra_has_few_agents():
    bins = np.random.default_rng(0).integers(0, 3, size=(40, 30))
    with pytest.raises(InvalidParameterError, match="without a method on_occupied must be given at most"):
        cluster_pairs(bins, np.zeros(40, dtype=int), 1, 13, 1.0, lambda spectrum, threshold, n: spectrum)


def test_trajectories_that_are_over_do_not_raise_the_threshold():
    """Few long episodes among many short ones: what is asked of a bin is a share of those that are still there."""
    world = BitsExBMDP(horizon=8, n_features=6, seed=0)
    tau = collect(world, world.paper_policies(), 3000, seed=0).tau
    lengths = np.where(np.arange(tau.n) % 10 == 0, 8, 4)
    x = np.stack([tau.at(h) for h in range(1, 9)], axis=1)
    episodes = [[x[i, : lengths[i]] for i in np.flatnonzero(tau.agent == k)] for k in (0, 1)]
    model = CRAFT(alpha=1, eta=0.2, nu=0.15, coupling="chain", relabel=False).fit(episodes)
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2, 2, 2]
    assert model.trace_[5].threshold == pytest.approx(5 * 0.15 / 64 * 600)
