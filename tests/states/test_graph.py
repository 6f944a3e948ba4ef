"""The latent transition graph, learned and true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, LockExBMDP, MultiMazeExBMDP, collect
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.states.graph import LatentGraph, compare_graphs, match_to_truth

LOCK = LockExBMDP(horizon=5, n_features=6, seed=2)


def test_counts_say_who_went_where_and_leave_out_the_unassigned() -> None:
    labels = [[0, 1, 0], [0, 0, -1], [0, 1, 1], [0, -1, 1]]
    graph = LatentGraph.from_labels(labels, [0, 0, 1, 1])
    assert graph.H == 3
    assert [graph.n_states(h) for h in (1, 2, 3)] == [1, 2, 2]
    assert graph.counts[0].tolist() == [[[1, 1]], [[0, 1]]]
    assert graph.counts[1].tolist() == [[[0, 0], [1, 0]], [[0, 0], [0, 1]]]
    assert graph.edges(2).tolist() == [[False, False], [True, True]]
    assert graph.pi_emp(1).tolist() == [[[0.5, 0.5]], [[0.0, 1.0]]]
    assert np.isnan(graph.pi_emp(2)[0, 0]).all()


def test_edges_need_their_share_of_support() -> None:
    graph = LatentGraph.from_labels([[0, 0]] * 97 + [[0, 1]] * 3, [0] * 50 + [1] * 50)
    assert graph.edges(1, min_share=0.03).tolist() == [[True, True]]
    assert graph.edges(1, min_share=0.04).tolist() == [[True, False]]
    with pytest.raises(InvalidParameterError, match=r"min_share must be a number from 0 to 1"):
        graph.edges(1, min_share=2)


def test_the_true_graph_counts_actions_and_stops_at_what_is_reachable() -> None:
    graph = LatentGraph.from_world(LOCK)
    for h in range(1, 5):
        assert (graph.counts[h - 1].sum(axis=(0, 2)) == LOCK.n_actions).all()
        assert all(graph.edges(h)[s, s_next] for s in range(LOCK.n_states(h)) for s_next in LOCK.T(h)[s])
    assert [int(graph.edges(h).sum()) for h in range(1, 5)] == [3, 5, 5, 5]


@given(seed=st.integers(0, 10_000), world=st.sampled_from([LOCK, MultiMazeExBMDP(4), BitsExBMDP(5, 4)]))
@settings(max_examples=20)
def test_true_labels_under_any_names_recover_the_true_graph(
    seed: int, world: LockExBMDP | MultiMazeExBMDP | BitsExBMDP
) -> None:
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    data = collect(world, policies, 600, seed=seed)
    rng = np.random.default_rng(seed)
    s = data.truth.states
    labels = np.stack([rng.permutation(world.n_states(h + 1))[s[:, h]] for h in range(world.H)], axis=1)
    labels[rng.random(labels.shape) < 0.1] = -1
    graph = LatentGraph.from_labels(labels, data.tau.agent)
    recovery = compare_graphs(graph, LatentGraph.from_world(world), match_to_truth(labels, s))
    assert recovery.exact


def test_wrong_edges_cost_precision_and_missing_ones_recall() -> None:
    truth = np.array([[0, 0], [0, 1], [0, 2]])
    true = LatentGraph.from_labels(truth, [0, 0, 1])
    split = np.array([[0, 0], [0, 1], [0, 2], [0, 3]])
    found = LatentGraph.from_labels(split, [0, 0, 1, 1])
    matching = match_to_truth(split, np.vstack([truth, [[0, 2]]]))
    assert sorted(matching[1]) == [-1, 0, 1, 2]
    recovery = compare_graphs(found, true, matching)
    assert (recovery.precision, recovery.recall, recovery.exact) == (0.75, 1.0, False)
    merged = np.minimum(truth, 1)
    recovery = compare_graphs(LatentGraph.from_labels(merged, [0, 0, 1]), true, match_to_truth(merged, truth))
    assert (recovery.precision, recovery.recall) == (1.0, pytest.approx(2 / 3))


def test_a_learner_that_found_nothing_has_an_empty_graph() -> None:
    labels = np.array([[0, -1, -1]] * 4)
    truth = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]])
    graph = LatentGraph.from_labels(labels, [0, 0, 1, 1])
    assert [graph.n_states(h) for h in (1, 2, 3)] == [1, 0, 0]
    recovery = compare_graphs(graph, LatentGraph.from_labels(truth, [0, 0, 1, 1]), match_to_truth(labels, truth))
    assert (recovery.precision, recovery.recall) == (1.0, 0.0)


def test_a_models_encoders_make_a_graph_of_every_observation() -> None:
    class Truth:
        def encode(self, x: np.ndarray, h: int) -> np.ndarray:
            return LOCK.phi_star(x, h)

    data = collect(LOCK, LOCK.policies(), 100, seed=0)
    graph = LatentGraph.from_model(Truth(), data.tau)
    assert all(int(table.sum()) == 200 for table in graph.counts)


def test_shapes_must_fit() -> None:
    with pytest.raises(InvalidDataError, match=r"shape \(n, H\)"):
        LatentGraph.from_labels(np.zeros((3, 2), int), [0, 1])
    graph = LatentGraph.from_labels(np.zeros((2, 2), int), [0, 1])
    with pytest.raises(InvalidDataError, match="same steps"):
        compare_graphs(graph, LatentGraph.from_world(LOCK), [])
