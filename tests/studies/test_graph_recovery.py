"""How well a learned graph recovers the true one: precision and recall of edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, collect
from studies.worlds.graphs import match_to_truth, recovery, tables_of
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

LOCK = LockExBMDP(horizon=5, n_features=6, seed=2)


@given(seed=st.integers(0, 10_000), world=st.sampled_from([LOCK, MultiMazeExBMDP(4), BitsExBMDP(5, 4)]))
@settings(max_examples=10)
def test_true_labels_under_any_names_recover_the_true_graph(seed, world):
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    data = collect(world, policies, 600, seed=seed)
    rng, s = np.random.default_rng(seed), data.truth.states
    labels = np.stack([rng.permutation(world.n_states(h + 1))[s[:, h]] for h in range(world.H)], axis=1)
    labels[rng.random(labels.shape) < 0.1] = -1
    found = tables_of(labels, data.tau.agent)
    assert recovery(found, world.reachable_pairs(), match_to_truth(labels, s)) == (1, 1)


def test_wrong_edges_cost_precision_and_missing_ones_recall():
    truth = np.array([[0, 0], [0, 1], [0, 2]])
    true = tables_of(truth, np.array([0, 0, 1]))
    split, rows = np.array([[0, 0], [0, 1], [0, 2], [0, 3]]), np.array([0, 0, 1, 1])
    matching = match_to_truth(split, np.vstack([truth, [[0, 2]]]))
    assert sorted(matching[1]) == [-1, 0, 1, 2]
    assert recovery(tables_of(split, rows), true, matching) == (0.75, 1)
    merged = np.minimum(truth, 1)
    found = recovery(tables_of(merged, rows[:3]), true, match_to_truth(merged, truth))
    assert found == (1, pytest.approx(2 / 3))
    rare = tables_of(np.array([[0, 0]] * 97 + [[0, 1]] * 3), np.zeros(100, int))
    assert recovery(rare, [np.ones((1, 1))], [np.zeros(1, int), np.array([0, -1])], min_share=0.04) == (1, 1)
    assert recovery(rare, [np.ones((1, 1))], [np.zeros(1, int), np.array([0, -1])], min_share=0.03) == (0.5, 1)


def test_a_learner_that_found_nothing_has_an_empty_graph():
    labels = np.array([[0, -1, -1]] * 4)
    truth = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]])
    true = tables_of(truth, np.zeros(4, int))
    assert recovery(tables_of(labels, np.zeros(4, int)), true, match_to_truth(labels, truth)) == (1, 0)
