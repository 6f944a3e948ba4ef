"""Clusters between valleys, on spectra with known hills."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.core.clusters import find_clusters
from craftrl.core.valleys import Valleys


def test_two_hills_that_a_few_strays_bridge_are_two():
    spectrum = np.array([0, 2, 40, 90, 30, 4, 3, 5, 60, 80, 10, 0])
    cluster = Valleys()(spectrum, 1.0)
    assert cluster[[2, 3, 4, 5]].tolist() == [0, 0, 0, 0]
    assert cluster[[7, 8, 9, 10]].tolist() == [1, 1, 1, 1]
    assert find_clusters(spectrum, 1.0).max() == 0  # the paper's scan sees one


def test_a_dent_does_not_split_a_hill():
    assert Valleys()(np.array([0, 10, 30, 22, 35, 12, 0]), 1.0).max() == 0


def test_a_small_hill_is_no_cluster():
    spectrum = np.array([0, 300, 500, 100, 0, 0, 4, 8, 2])
    assert Valleys(min_share=0.03)(spectrum, 1.0).tolist() == [-1, 0, 0, 0, -1, -1, -1, -1, -1]
    assert Valleys(min_share=0.001)(spectrum, 1.0).max() == 1
    assert Valleys(min_share=0.001)(spectrum, 20.0).max() == 0


def test_slips_between_two_hills_are_no_third():
    """Two successors and 2% of pairs that slipped, whose log-odds lie between; at 10% they are a hill of their own."""
    between = np.array([0, 40, 300, 60, 0, 6, 12, 5, 0, 50, 400, 80, 0])
    assert set(Valleys()(between, 1.0)) - {-1} == {0, 1}
    assert (Valleys()(between, 1.0)[5:8] == -1).all()
    assert Valleys()(np.where((between > 0) & (between < 20), 5 * between, between), 1.0).max() == 2


def test_an_empty_spectrum_has_no_cluster():
    assert (Valleys()(np.zeros(9, dtype=int), 0.0) == -1).all()


def test_hills_of_three_agents_lie_in_the_plane():
    y, x = np.mgrid[:12, :12]
    spectrum = sum(np.rint(200 * np.exp(-((y - a) ** 2 + (x - b) ** 2) / 2)) for a, b in [(2, 2), (8, 3), (5, 9)])
    cluster = Valleys()(spectrum.astype(int), 1.0)
    assert cluster.max() == 2
    assert len({cluster[2, 2], cluster[8, 3], cluster[5, 9]}) == 3


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.floats(0.1, 0.9))
@settings(max_examples=100)
def test_clusters_are_runs_of_bins_numbered_from_left_to_right(counts, depth):
    spectrum = np.array(counts)
    cluster = Valleys(depth=depth, min_share=0.0)(spectrum, 0.0)
    seen = cluster[cluster >= 0]
    assert (np.diff(seen) >= 0).all()
    assert sorted(set(seen.tolist())) == list(range(int(cluster.max()) + 1))
    assert (cluster[spectrum > 0] >= 0).all()
    for c in set(seen.tolist()):
        where = np.flatnonzero(cluster == c)
        assert where[-1] - where[0] == len(where) - 1


@pytest.mark.parametrize("threshold", [1.0, 5.0])
def test_where_bins_between_are_empty_it_agrees_with_the_papers_scan(threshold):
    spectrum = np.array([0, 20, 30, 0, 0, 0, 15, 40, 0, 0, 0, 25, 0])
    ours, paper = Valleys()(spectrum, threshold), find_clusters(spectrum, threshold)
    heavy = spectrum >= threshold
    assert np.array_equal(ours[heavy], paper[heavy])
