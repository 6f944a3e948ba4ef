"""Clusters of two successors are taken apart by their profiles; strays of one successor come back in merging."""

import numpy as np

from craftrl.core.clusters import PairClusters
from craftrl.core.learned import Profiles
from craftrl.core.splitting import split_by_profile
from craftrl.core.trace import Cluster


def clusters(*s_pred: int, rows: int = 60) -> PairClusters:
    """One cluster of `rows` trajectories for each predecessor named."""
    found = tuple(Cluster(s, ((0, 1),), rows) for s in s_pred)
    return PairClusters(np.repeat(np.arange(len(found)), rows), found, np.zeros((max(s_pred) + 1, 2), dtype=np.int64))


def profiles(*means: tuple[float, ...], rows: int = 60) -> np.ndarray:
    """Log-odds that scatter by 0.2, `rows` for each mean."""
    centres = np.repeat(np.array(means), rows, axis=0)
    return (centres + 0.2 * np.random.default_rng(0).normal(size=centres.shape))[..., None]


def split(found: PairClusters, *parts: np.ndarray, gap: float, n_before: int = 2) -> PairClusters:
    """Of profiles whose first `n_before` log-odds are beside predecessors."""
    return split_by_profile(found, Profiles(np.concatenate(parts), n_before), gap)


def test_a_cluster_of_two_successors_is_two():
    mixed = clusters(0, 1)
    half = profiles((0, -2), (0, 2), rows=30)  # alike beside their own predecessor 0
    found = split(mixed, half, profiles((0, 2)), gap=0.5)
    assert [(c.s_pred, c.size) for c in found.clusters] == [(0, 30), (0, 30), (1, 60)]
    assert len(np.unique(found.cluster[:30])) == len(np.unique(found.cluster[30:60])) == 1


def test_a_cluster_of_one_successor_stays_whole():
    whole = clusters(0, 1)
    assert split(whole, profiles((0, 2), (1, 2)), gap=0.1).clusters == whole.clusters


def test_a_predecessor_that_leads_to_neither_has_no_say():
    half = profiles((0, -2), (0, 2), rows=30)
    elsewhere = profiles((9, 9))  # nothing comes from predecessor 1 to what is in the first cluster
    assert len(split(clusters(0, 1), half, elsewhere, gap=0.5).clusters) == 2


def test_what_follows_tells_apart_what_no_predecessor_does():
    half = profiles((0, 1, -2), (0, 1, 2), rows=30)
    whole = profiles((0, 1, -2))
    assert [c.size for c in split(clusters(0, 1), half, whole, gap=0.5).clusters] == [30, 30, 60]
    beside_a_third = split(clusters(0, 1), half, whole, gap=0.5, n_before=3)  # which leads to neither
    assert len(beside_a_third.clusters) == 2


def test_kinds_differ_by_the_gap():
    half = profiles((0, -2), (0, 2), rows=30)
    assert len(split(clusters(0, 1), half, profiles((0, 2)), gap=6.0).clusters) == 2


def test_rows_without_a_profile_belong_to_no_cluster():
    found = clusters(0)
    found.cluster[:5] = -1
    values = profiles((0, 0))
    values[:5] = np.nan
    assert (split(found, values, gap=0.5).cluster[:5] == -1).all()


def test_a_cluster_whose_profiles_are_all_the_same_stays_whole():
    rng, whole = np.random.default_rng(0), clusters(0)
    for same in rng.normal(size=(20, 1, 3, 1)):
        assert split(whole, np.repeat(same, 60, axis=0), gap=0.5, n_before=1).clusters == whole.clusters
