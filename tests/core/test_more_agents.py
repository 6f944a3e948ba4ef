"""What the paper does not speak of: more than two agents, trajectories that end early, losses of one half.

For two agents test_against_reference.py is the test of losses, clusters, merging and encoders.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from craftrl import CRAFT
from craftrl.core import losses
from craftrl.core.clusters import cluster_pairs, merge_clusters, scan
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.envs import BitsExBMDP, collect


@given(st.lists(st.tuples(*[st.integers(1, 30)] * 3), min_size=1, max_size=5))
def test_three_agents_come_within_a_bin_of_the_multinomial_optimum(counts):
    grid, array = Grid.from_bounds(1.0, 0.02), np.array(counts)
    bins, loss = best_bins(array, grid)
    f = grid.values[np.indices((grid.size, grid.size))]
    every = -np.tensordot(array, log_softmax([0 * f[0], -f[0], -f[1]], axis=0), axes=1)  # (cells, bins, bins)
    assert loss / FIXED_POINT == pytest.approx(every[np.arange(len(bins)), *bins.T], rel=1e-6)
    assert (loss / FIXED_POINT <= every.min(axis=(1, 2)) + 0.02 * array.sum(axis=1) * grid.xi**2).all()


def test_the_nearest_grid_point_is_hardly_worse_than_the_best_corner(monkeypatch):
    grid = Grid.from_bounds(1.0, 0.05)
    counts = np.random.default_rng(0).integers(5, 40, size=(200, 5))
    _, best = best_bins(counts, grid)
    monkeypatch.setattr(losses, "MAX_CORNERS", 4)
    _, nearest = best_bins(counts, grid)
    assert (nearest >= best).all()
    # Half a step along each of four axes, where the loss of a pair is curved by at most 1/2.
    assert ((nearest - best) / FIXED_POINT <= counts.sum(axis=1) / 2 / 2 * 4 * (grid.xi / 2) ** 2).all()


def literal_scan(spectrum, threshold):
    """The paper's scan in any number of axes, bin by bin over the whole spectrum: the cluster of every bin."""
    heavy = dict.fromkeys(map(tuple, np.argwhere(spectrum >= threshold).tolist()))
    taken, n_clusters = {}, 0
    for start in heavy:
        if any(bin_ in taken for bin_ in neighbourhood(start, spectrum.shape)):
            continue
        stack, component = [start], {start}
        while stack:
            for bin_ in neighbourhood(stack.pop(), spectrum.shape):
                if bin_ in heavy and bin_ not in taken and bin_ not in component:
                    component.add(bin_)
                    stack.append(bin_)
        for bin_ in component:
            for wide in neighbourhood(bin_, spectrum.shape):
                taken.setdefault(wide, n_clusters)
        n_clusters += 1
    cluster = np.full(spectrum.shape, -1)
    for bin_, c in taken.items():
        cluster[bin_] = c
    return cluster


def neighbourhood(bin_, shape):
    return list(product(*(range(max(0, b - 1), min(size, b + 2)) for b, size in zip(bin_, shape))))


def drawn(n_axes, side, seed):
    """A spectrum of which most bins are empty."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 7, size=(side,) * n_axes) * (rng.random((side,) * n_axes) < 0.5)


spectra = st.tuples(st.integers(1, 3), st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 2.0, 4.0]))


@given(spectra)
def test_the_scan_of_occupied_bins_is_that_of_the_whole_spectrum(which):
    *shape, threshold = which
    spectrum = drawn(*shape)
    occupied, cluster = np.argwhere(spectrum > 0), np.full(spectrum.shape, -1)
    for c, (members, extent) in enumerate(scan(occupied, spectrum[spectrum > 0], threshold, len(spectrum))):
        cluster[tuple(occupied[members].T)] = c
        first, last = np.transpose(extent)
        assert (first <= occupied[members]).all()
        assert (occupied[members] <= last).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(4, 9))
def test_spectra_of_more_agents_are_margins(seed, n_axes, grid_size):
    rng = np.random.default_rng(seed)
    bins, label = rng.integers(0, grid_size, size=(80, n_axes)), rng.integers(-1, 2, size=80)
    found = cluster_pairs(bins, label, 2, grid_size, 3)
    assert found.spectra.shape == (2, n_axes, grid_size)
    assert (found.spectra.sum(axis=2) == np.bincount(label + 1, minlength=3)[1:, None]).all()
    assert [c.size for c in found.clusters] == np.bincount(found.cluster[found.cluster >= 0]).tolist()


def test_six_agents_on_a_fine_grid_need_no_grid():
    bins = np.repeat([[5, 90, 17, 60, 3], [7, 90, 17, 60, 3], [40, 1, 99, 60, 0]], 10, axis=0)  # 100^5 bins
    found = cluster_pairs(bins, np.zeros(30, dtype=int), 1, 100, 4)
    assert found.cluster.tolist() == [0] * 10 + [-1] * 10 + [1] * 10  # two bins from the first: lost, as in the scan
    assert found.clusters[1].bins == ((39, 41), (0, 2), (98, 99), (59, 61), (0, 1))


def test_forty_agents():
    """With a neighbourhood of 3^39 bins and 2^39 corners this would never end."""
    world = BitsExBMDP(horizon=4, n_features=8, seed=0)
    data = collect(world, [*world.paper_policies()] * 20, 25, seed=0)
    model = CRAFT().fit(data.tau)
    assert list(model.n_states_) == [1, 2, 2, 2]
    assert np.array_equal(model.transform(data.tau), data.truth.states)


def test_trajectories_that_are_over_do_not_count():
    """Few long episodes among many short ones: what is asked of a bin, and who has a state, are shares of those that
    are still there."""
    world = BitsExBMDP(horizon=8, n_features=6, seed=0)
    tau = collect(world, world.paper_policies(), 3000, seed=0).tau
    lengths = np.where(np.arange(tau.n) % 10 == 0, 8, 4)
    x = np.stack([tau.at(h) for h in range(1, 9)], axis=1)
    episodes = [[x[i, : lengths[i]] for i in np.flatnonzero(tau.agent == k)] for k in (0, 1)]
    model = CRAFT(alpha=1, eta=0.2, nu=0.15, coupling="chain", relabel=False).fit(episodes)
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2, 2, 2]
    assert model.trace_[5].threshold == pytest.approx(5 * 0.15 / 64 * 600)
    assert min(step.assigned for step in model.trace_) > 0.75


def test_a_loss_of_one_half_separates():
    assert merge_clusters([0, 1], lambda new, state: 0.5)[0].tolist() == [0, 1]
