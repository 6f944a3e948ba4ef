"""Line 25 for all states of a step together: the answers and the merging that one question at a time gives."""

import numpy as np
import pytest

from craftrl.core.clusters import merge_clusters
from craftrl.oracles.network.separation import ClassifierSeparation


def step(seed, n_clusters=30, n_states=8, m=1500, sharpness=3.0):
    """Logits of a classifier over the clusters of a step; clusters of one state look alike to it."""
    rng = np.random.default_rng(seed)
    state = rng.integers(n_states, size=n_clusters)
    share = rng.dirichlet(np.full(n_clusters, 2.0))
    share[0] = 0.0  # a cluster without observations
    cluster = rng.choice(n_clusters, m, p=share / share.sum())
    logits = rng.normal(size=(m, n_clusters)) + sharpness * (state[cluster][:, None] == state)
    return ClassifierSeparation(logits, cluster, n_clusters), sorted(rng.integers(n_states, size=n_clusters).tolist())


@pytest.mark.parametrize("strays", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_merging_is_the_same(seed, strays):
    separation, predecessors = step(seed, sharpness=1.0 + seed)
    state_of, comparisons = merge_clusters(predecessors, separation, strays)
    expected, one_by_one = merge_clusters(predecessors, step(seed, sharpness=1.0 + seed)[0].__call__, strays)
    assert state_of.tolist() == expected.tolist()
    assert len(comparisons) > len(predecessors)
    assert [(c.cluster, c.state, c.merged) for c in comparisons] == [(c.cluster, c.state, c.merged) for c in one_by_one]
    assert [c.loss for c in comparisons] == pytest.approx([c.loss for c in one_by_one])


def test_states_may_be_any_whatever_was_asked_before():
    separation, _ = step(0)
    for states in ([[1], [2, 3]], [[1, 4], [2, 3], [5]], [[6, 7]], [[2], [1], [0]], []):
        fresh = step(0)[0]
        assert separation.losses(8, states) == pytest.approx([fresh(8, members) for members in states])
    assert separation.losses(0, [[1], [2]]).tolist() == [0.0, 0.0]  # the cluster without observations
