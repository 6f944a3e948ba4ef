"""Clusters: the paper's scan for two agents, connected components for more, and hills where log-odds scatter."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import CRAFT
from craftrl.core import losses
from craftrl.core.clusters import cluster_pairs, heaviness_threshold, scan
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.core.valleys import hills
from craftrl.envs import BitsExBMDP, collect


def clusters_of(clusterer, spectrum, threshold, **settings):
    """The cluster of every occupied bin of a whole spectrum, -1 for none and for empty bins."""
    spectrum = np.asarray(spectrum)
    occupied = np.argwhere(spectrum > 0)
    cluster = np.full(spectrum.shape, -1)
    found = clusterer(occupied, spectrum[tuple(occupied.T)], threshold, spectrum.shape[0], **settings)
    for c, (members, _) in enumerate(found):
        cluster[tuple(occupied[members].T)] = c
    return cluster


# -- the scan --------------------------------------------------------------------------------------------------------


def paper_scan(spectrum, threshold):
    """Lines 17-21 and 39-43, word for word: the bins (first, last) of every cluster."""
    n_xi = len(spectrum) - 1
    found, j = [], 0
    while j <= n_xi:
        if spectrum[j] >= threshold:
            light = [k for k in range(j + 1, n_xi + 1) if spectrum[k] < threshold]
            j_end = light[0] if light else n_xi
            found.append((max(0, j - 1), j_end))
            j = j_end + 2
        else:
            j += 1
    return found


def literal_scan(spectrum, threshold):
    """The same in any number of axes, bin by bin over the whole spectrum: the cluster of every bin."""
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


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25))
def test_two_agents_have_the_papers_scan(spectrum):
    counts = np.array(spectrum)
    occupied = np.flatnonzero(counts)
    found = scan(occupied[:, None], counts[occupied], 2, len(spectrum))
    assert [extent for _, (extent,) in found] == paper_scan(spectrum, 2)
    for members, ((first, last),) in found:
        assert occupied[members].tolist() == [j for j in occupied if first <= j <= last]


@pytest.mark.parametrize(
    ("spectrum", "expected"),
    [
        ([1, 9, 1, 1, 9, 1], [0, 0, 0, 1, 1, 1]),
        ([9, 9, 9], [0, 0, 0]),  # ends on a heavy bin
        ([1, 9, 1, 9, 9, 1], [0, 0, 0, 1, 1, 1]),  # one light bin between: the second starts two bins on
        ([1, 9, 1, 9, 1, 1], [0, 0, 0, -1, -1, -1]),  # and is lost where it has only the one heavy bin
        ([1, 1, 1], [-1, -1, -1]),
    ],
)
def test_corner_cases_of_the_scan(spectrum, expected):
    assert clusters_of(scan, spectrum, 5).tolist() == expected


@given(spectra)
def test_the_scan_of_occupied_bins_is_that_of_the_whole_spectrum(which):
    *shape, threshold = which
    spectrum = drawn(*shape)
    expected = np.where(spectrum > 0, literal_scan(spectrum, threshold), -1)
    assert np.array_equal(clusters_of(scan, spectrum, threshold), expected)
    occupied = np.argwhere(spectrum > 0)
    for members, extent in scan(occupied, spectrum[tuple(occupied.T)], threshold, len(spectrum)):
        first, last = np.transpose(extent)
        assert (first <= occupied[members]).all()
        assert (occupied[members] <= last).all()


def test_two_axes_join_diagonal_neighbours_and_keep_distant_ones_apart():
    spectrum = np.ones((9, 9), dtype=int)
    spectrum[1, 1] = spectrum[2, 2] = 10
    spectrum[6, 6] = 10
    cluster = clusters_of(scan, spectrum, 5)
    assert cluster[1, 1] == cluster[2, 2] == cluster[0, 0] == cluster[3, 3] == 0
    assert cluster[6, 6] == cluster[5, 7] == 1
    assert cluster[8, 0] == -1


def test_pairs_are_clustered_within_their_predecessor():
    bins = np.array([[1]] * 10 + [[5]] * 10 + [[1]] * 10 + [[-1]])
    label = np.array([0] * 20 + [1] * 9 + [-1] + [0])
    found = cluster_pairs(bins, label, 2, 7, 4, scan)
    assert [(c.s_pred, c.bins, c.size) for c in found.clusters] == [
        (0, ((0, 2),), 10),
        (0, ((4, 6),), 10),
        (1, ((0, 2),), 9),
    ]
    assert found.cluster.tolist() == [0] * 10 + [1] * 10 + [2] * 9 + [-1, -1]
    assert found.spectra.sum() == 29


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(4, 9))
def test_spectra_of_more_agents_are_margins(seed, n_axes, grid_size):
    rng = np.random.default_rng(seed)
    bins, label = rng.integers(0, grid_size, size=(80, n_axes)), rng.integers(-1, 2, size=80)
    found = cluster_pairs(bins, label, 2, grid_size, 3, scan)
    assert found.spectra.shape == (2, n_axes, grid_size)
    assert (found.spectra.sum(axis=2) == np.bincount(label + 1, minlength=3)[1:, None]).all()
    assert [c.size for c in found.clusters] == np.bincount(found.cluster[found.cluster >= 0]).tolist()


def test_six_agents_on_a_fine_grid_need_no_grid():
    bins = np.repeat([[5, 90, 17, 60, 3], [7, 90, 17, 60, 3], [40, 1, 99, 60, 0]], 10, axis=0)  # 100^5 bins
    found = cluster_pairs(bins, np.zeros(30, dtype=int), 1, 100, 4, scan)
    assert found.cluster.tolist() == [0] * 10 + [-1] * 10 + [1] * 10  # two bins from the first: lost, as in the scan
    assert found.clusters[1].bins == ((39, 41), (0, 2), (98, 99), (59, 61), (0, 1))


def test_the_nearest_grid_point_is_hardly_worse_than_the_best_corner(monkeypatch):
    grid = Grid.from_bounds(1.0, 0.05)
    counts = np.random.default_rng(0).integers(5, 40, size=(200, 5))
    _, best = best_bins(counts, grid)
    monkeypatch.setattr(losses, "MOST_CORNERS", 4)
    _, nearest = best_bins(counts, grid)
    assert (nearest >= best).all()
    # Half a step along each of four axes, where the loss of a pair is curved by at most 1/2.
    assert ((nearest - best) / FIXED_POINT <= counts.sum(axis=1) / 2 / 2 * 4 * (grid.xi / 2) ** 2).all()


def test_forty_agents():
    """With a neighbourhood of 3^39 bins and 2^39 corners this would never end."""
    world = BitsExBMDP(horizon=4, n_features=8, seed=0)
    data = collect(world, [*world.paper_policies()] * 20, 25, seed=0)
    model = CRAFT().fit(data.tau)
    assert list(model.n_states_) == [1, 2, 2, 2]
    assert np.array_equal(model.transform(data.tau), data.truth.states)


# -- trajectories that are over ---------------------------------------------------------------------------------------


def test_threshold_counts_h_from_one():
    assert heaviness_threshold(1, 10, 0.4, 1000) == pytest.approx(0.4 / 80 * 1000)


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


# -- hills ------------------------------------------------------------------------------------------------------------


def test_two_hills_that_a_few_strays_bridge_are_two():
    spectrum = np.array([0, 2, 40, 90, 30, 4, 3, 5, 60, 80, 10, 0])
    cluster = clusters_of(hills, spectrum, 1.0)
    assert cluster[[2, 3, 4, 5]].tolist() == [0, 0, 0, 0]
    assert cluster[[7, 8, 9, 10]].tolist() == [1, 1, 1, 1]
    assert clusters_of(scan, spectrum, 1.0).max() == 0  # the paper's scan sees one


def test_a_dent_does_not_split_a_hill():
    assert clusters_of(hills, [0, 10, 30, 22, 35, 12, 0], 1.0).max() == 0


def test_a_small_hill_is_no_cluster():
    spectrum = [0, 300, 500, 100, 0, 0, 4, 8, 2]
    assert clusters_of(hills, spectrum, 1.0).tolist() == [-1, 0, 0, 0, -1, -1, -1, -1, -1]
    assert clusters_of(hills, spectrum, 1.0, min_share=0.001).max() == 1
    assert clusters_of(hills, spectrum, 20.0, min_share=0.001).max() == 0


def test_slips_between_two_hills_are_no_third():
    """Two successors and 2% of pairs that slipped, whose log-odds lie between; at 10% they are a hill of their own."""
    between = np.array([0, 40, 300, 60, 0, 6, 12, 5, 0, 50, 400, 80, 0])
    assert set(clusters_of(hills, between, 1.0)) - {-1} == {0, 1}
    assert (clusters_of(hills, between, 1.0)[5:8] == -1).all()
    assert clusters_of(hills, np.where((between > 0) & (between < 20), 5 * between, between), 1.0).max() == 2


def test_an_empty_spectrum_has_no_cluster():
    for clusterer in (scan, hills):
        assert cluster_pairs(np.full((5, 1), -1), np.zeros(5, dtype=int), 1, 9, 1.0, clusterer).clusters == ()


def test_hills_of_three_agents_lie_in_the_plane():
    y, x = np.mgrid[:12, :12]
    spectrum = sum(np.rint(200 * np.exp(-((y - a) ** 2 + (x - b) ** 2) / 2)) for a, b in [(2, 2), (8, 3), (5, 9)])
    cluster = clusters_of(hills, spectrum.astype(int), 1.0)
    assert cluster.max() == 2
    assert len({cluster[2, 2], cluster[8, 3], cluster[5, 9]}) == 3


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.floats(0.1, 0.9))
@settings(max_examples=100)
def test_hills_are_runs_of_bins_numbered_from_left_to_right(counts, depth):
    spectrum = np.array(counts)
    cluster = clusters_of(hills, spectrum, 0.0, depth=depth, min_share=0.0)
    seen = cluster[cluster >= 0]
    assert (np.diff(seen) >= 0).all()
    assert sorted(set(seen.tolist())) == list(range(int(cluster.max()) + 1))
    assert (cluster[spectrum > 0] >= 0).all()
    for c in set(seen.tolist()):
        where = np.flatnonzero(cluster == c)
        assert where[-1] - where[0] == len(where) - 1


@pytest.mark.parametrize("threshold", [1.0, 5.0])
def test_where_bins_between_are_empty_hills_are_what_the_scan_finds(threshold):
    spectrum = np.array([0, 20, 30, 0, 0, 0, 15, 40, 0, 0, 0, 25, 0])
    heavy = spectrum >= threshold
    assert np.array_equal(clusters_of(hills, spectrum, threshold)[heavy], clusters_of(scan, spectrum, threshold)[heavy])


@given(spectra)
def test_hills_are_those_of_the_literal_ascent(which):
    *shape, threshold = which
    spectrum = drawn(*shape)
    assert np.array_equal(clusters_of(hills, spectrum, threshold), literal_hills(spectrum, threshold, 0.6, 0.03))


def literal_hills(height, threshold, depth, min_share):
    """Bin by bin over the whole spectrum: climb to a summit, join hills without a valley between, drop small ones."""
    hill, order = {}, sorted(map(tuple, np.argwhere(height > 0)), key=lambda b: (-height[b], b))
    for bin_ in order:
        higher = [beside for beside in neighbourhood(bin_, height.shape) if beside in hill]
        hill[bin_] = hill[max(higher, key=lambda b: (height[b], [-c for c in b]))] if higher else bin_
    while True:
        passes = {}
        for bin_, beside in ((b, n) for b in hill for n in neighbourhood(b, height.shape) if n in hill):
            if hill[bin_] < hill[beside]:
                ends = hill[bin_], hill[beside]
                passes[ends] = max(passes.get(ends, 0), min(height[bin_], height[beside]))
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
