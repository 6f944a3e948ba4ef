"""Clusters: the general rule is the paper's scan on one axis, and connected components on several."""

import numpy as np
import pytest
from craftrl.core.pairs import cluster_pairs
from hypothesis import given
from hypothesis import strategies as st

from craftrl.core import clusters
from craftrl.core.clusters import find_clusters, heaviness_threshold
from craftrl.core.valleys import Valleys


def paper_scan(spectrum: list[int], threshold: float) -> list[tuple[int, int]]:
    """Lines 17-21 and 39-43, word for word: the bins (first, last) of every cluster."""
    n_xi = len(spectrum) - 1
    clusters, j = [], 0
    while j <= n_xi:
        if spectrum[j] >= threshold:
            light = [k for k in range(j + 1, n_xi + 1) if spectrum[k] < threshold]
            j_end = light[0] if light else n_xi
            clusters.append((max(0, j - 1), j_end))
            j = j_end + 2
        else:
            j += 1
    return clusters


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25))
def test_one_axis_is_the_papers_scan(spectrum):
    expected = np.full(len(spectrum), -1)
    for c, (first, last) in enumerate(paper_scan(spectrum, 2)):
        expected[first : last + 1] = c
    assert find_clusters(np.array(spectrum), 2).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("spectrum", "expected"),
    [
        ([0, 9, 0, 0, 9, 0], [0, 0, 0, 1, 1, 1]),
        ([9, 9, 9], [0, 0, 0]),  # ends on a heavy bin
        ([0, 9, 0, 9, 9, 0], [0, 0, 0, 1, 1, 1]),  # one light bin between: the second starts two bins on
        ([0, 9, 0, 9, 0, 0], [0, 0, 0, -1, -1, -1]),  # and is lost where it has only the one heavy bin
        ([1, 1, 1], [-1, -1, -1]),
    ],
)
def test_corner_cases_of_the_scan(spectrum, expected):
    assert find_clusters(np.array(spectrum), 5).tolist() == expected


def test_two_axes_join_diagonal_neighbours_and_keep_distant_ones_apart():
    spectrum = np.zeros((9, 9), dtype=int)
    spectrum[1, 1] = spectrum[2, 2] = 10
    spectrum[6, 6] = 10
    cluster = find_clusters(spectrum, 5)
    assert cluster[1, 1] == cluster[2, 2] == cluster[0, 0] == cluster[3, 3] == 0
    assert cluster[6, 6] == cluster[5, 7] == 1
    assert cluster[8, 0] == -1


def test_pairs_are_clustered_within_their_predecessor():
    bins = np.array([[1]] * 10 + [[5]] * 10 + [[1]] * 10 + [[-1]])
    label = np.array([0] * 20 + [1] * 9 + [-1] + [0])
    found = cluster_pairs(bins, label, 2, 7, threshold=4, clusterer=find_clusters)
    assert [(c.s_pred, c.bins, c.size) for c in found.clusters] == [
        (0, ((0, 2),), 10),
        (0, ((4, 6),), 10),
        (1, ((0, 2),), 9),
    ]
    assert found.cluster.tolist() == [0] * 10 + [1] * 10 + [2] * 9 + [-1, -1]
    assert found.spectra.sum() == 29


@pytest.mark.parametrize("clusterer", [find_clusters, Valleys(min_share=0.2)], ids=["scan", "valleys"])
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 25), st.integers(4, 9))
def test_boxes_about_occupied_bins_give_the_clusters_of_the_whole_grid(clusterer, seed, n_axes, n_values, grid_size):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, grid_size, size=(n_values, n_axes))
    bins, label = values[rng.integers(n_values, size=80)], rng.integers(-1, 2, size=80)
    whole = cluster_pairs(bins, label, 2, grid_size, threshold=3, clusterer=clusterer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "WHOLE_GRID", 0)
        boxed = cluster_pairs(bins, label, 2, grid_size, threshold=3, clusterer=clusterer)
    assert set(map(key, boxed.clusters)) == set(map(key, whole.clusters))
    assert len(set(zip(whole.cluster, boxed.cluster))) == len(set(whole.cluster)) == len(set(boxed.cluster))
    assert np.array_equal(whole.cluster < 0, boxed.cluster < 0)
    assert whole.spectra.shape == (2, n_axes, grid_size)
    assert (whole.spectra.sum(axis=2) == np.bincount(label + 1, minlength=3)[1:, None]).all()


def key(cluster):
    return cluster.s_pred, cluster.bins, cluster.size


def test_six_agents_on_a_fine_grid_need_no_grid():
    bins = np.repeat([[5, 90, 17, 60, 3], [7, 90, 17, 60, 3], [40, 1, 99, 60, 0]], 10, axis=0)  # 100^5 bins
    found = cluster_pairs(bins, np.zeros(30, dtype=int), 1, 100, threshold=4, clusterer=find_clusters)
    assert found.cluster.tolist() == [0] * 10 + [-1] * 10 + [1] * 10  # two bins from the first: lost, as in the scan
    assert found.clusters[1].bins == ((39, 41), (0, 2), (98, 99), (59, 61), (0, 1))


def test_a_hill_far_from_all_others_still_needs_its_share_of_the_predecessors_pairs():
    bins = np.repeat([[5, 90, 17], [40, 1, 99]], [95, 5], axis=0)  # 100^3 bins: a box for each hill
    label = np.zeros(100, dtype=int)
    assert cluster_pairs(bins, label, 1, 100, 1.0, Valleys(min_share=0.1)).cluster.max() == 0
    assert cluster_pairs(bins, label, 1, 100, 1.0, Valleys(min_share=0.04)).cluster.max() == 1


def test_threshold_counts_h_from_one():
    assert heaviness_threshold(1, 10, 0.4, 1000) == pytest.approx(0.4 / 80 * 1000)
