"""The graph of states: nodes and their names, what videos say of which follows which, and what is left out."""

import networkx
import numpy as np
import pytest

from craftrl import CoordinateOracle, InvalidDataError, InvalidParameterError
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.paper import SingleObservation
from craftrl.planning import StateGraph
from exact_models import ExactModel

SIZES = (1, 3, 2)
STATES = [[0, 1, 0], [0, 1, 1], [0, 2, -1], [0, 1, 0]]
LAYERED = StateGraph.from_states(STATES, [0, 0, 1, 1], sizes=SIZES, min_share=0)


def test_nodes_count_step_by_step_and_back():
    named = [LAYERED.name(node) for node in range(LAYERED.n)]
    assert named == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
    assert [LAYERED.node(state, h) for h, state in named] == list(range(6))
    assert [LAYERED.step(node) for node in range(6)] == [1, 2, 2, 2, 3, 3]
    assert LAYERED.nodes([[0, 2, 1], [0, -1, 7]]).tolist() == [[0, 3, 5], [0, -1, -1]]
    assert LAYERED.nodes([[2, 1], [-1, 7]], h=2).tolist() == [[3, 5], [-1, -1]]
    assert (LAYERED.node(-1, 2), LAYERED.node(3, 2)) == (-1, -1)
    assert LAYERED.text(3) == "state 2 at h = 2"
    assert LAYERED.text(0, 2) == "state 0 at h = 1 -> state 1 at h = 2"


def test_where_steps_share_their_states_a_node_is_a_state():
    graph = StateGraph.from_states([[0, 1]], [0], sizes=(4,), shared=True)
    assert (graph.n, graph.H, graph.node(3, 99), graph.node(4)) == (4, None, 3, -1)
    assert graph.nodes([[0, 3, -1, -5, 4]]).tolist() == [[0, 3, -1, -1, -1]]
    assert (graph.name(2), graph.text(2), graph.step(2)) == ((None, 2), "state 2", None)


def test_moves_are_counted_by_agent():
    assert [table.toarray()[0, 2] for table in LAYERED.counts] == [2, 1]
    assert LAYERED.edges.tolist() == [[0, 2], [0, 3], [2, 4], [2, 5]]
    assert LAYERED.total.toarray()[2, 4] == 2
    assert LAYERED.out_degree.tolist() == [2, 0, 2, 0, 0, 0]
    assert LAYERED.successors(2).tolist() == [4, 5]
    by_default = StateGraph.from_states(STATES, [0, 0, 1, 1])
    assert (by_default.sizes, by_default.shared) == (SIZES, False)
    shared = StateGraph.from_states(STATES, [0, 0, 1, 1], shared=True, min_share=0)
    assert shared.total.toarray().tolist() == [[0, 3, 1], [2, 1, 0], [0, 0, 0]]


def test_moves_that_reading_errors_explain_are_left_out():
    """0 -> 2 is one of 201 moves out of 0, 4 -> 1 one of 206 moves to 1; 3 -> 1 is too frequent for errors."""
    pairs = [[0, 1]] * 200 + [[0, 2], [4, 1]] + [[3, 1]] * 5
    kept, every = (
        StateGraph.from_states(pairs, [0] * 207, sizes=(5,), shared=True, **share) for share in ({}, {"min_share": 0})
    )
    assert kept.edges.tolist() == [[0, 1], [3, 1]]
    assert every.edges.tolist() == [[0, 1], [0, 2], [3, 1], [4, 1]]


def test_policies_are_shares_of_what_an_agent_did():
    assert LAYERED.policy(1).toarray()[0].tolist() == [0, 0, 0.5, 0.5, 0, 0]
    assert LAYERED.policy(0).toarray().sum(axis=1).tolist() == [1, 0, 1, 0, 0, 0]  # empty where it never was


def test_as_a_networkx_graph():
    graph = LAYERED.to_networkx()
    assert isinstance(graph, networkx.DiGraph)
    assert graph.nodes[(2, 1)] == {"h": 2, "state": 1}
    assert graph.edges[(1, 0), (2, 1)] == {"count": 3, "counts": [2, 1]}
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (6, 4)
    shared = StateGraph.from_states([[0, 1, 0]], [0], shared=True, min_share=0).to_networkx()
    assert set(shared.edges) == {(0, 1), (1, 0)}
    assert shared.nodes[1] == {"h": None, "state": 1}


def test_a_models_states_are_those_that_it_claims_and_those_that_it_reads():
    world = PixelsExBMDP(horizon=3, size=2)
    tau = collect(world, world.policies(), 50, seed=0).tau
    assert StateGraph.from_model(ExactModel(world), tau).sizes == (1, 4, 4)
    shared = StateGraph.from_model(ExactModel(world, shared=True), tau)
    assert (shared.sizes, shared.shared) == ((4,), True)
    modest = ExactModel(world)
    modest.n_states_ = [1, 1, 9]
    states = np.array([[0, 3, 2]] * tau.n)
    assert StateGraph.from_model(modest, tau, states=states).sizes == (1, 4, 9)
    del modest.n_states_
    assert StateGraph.from_model(modest, tau, states=states).sizes == (1, 4, 3)


def test_a_baseline_that_does_not_count_its_states_has_moves_as_well():
    world = BitsExBMDP(horizon=4, n_features=4)
    tau = collect(world, world.paper_policies(), 300, seed=0).tau
    graph = StateGraph.from_model(SingleObservation(CoordinateOracle(2)).fit(tau), tau)
    assert (graph.sizes, graph.shared, len(graph.edges)) == ((1, 2, 2, 2), False, 2 + 4 + 4)


ONE = [[0, 1, 1]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *(
            (
                lambda sizes=sizes, shared=shared: StateGraph.from_states([[0, 0]], [0], sizes=sizes, shared=shared),
                "sizes must hold the number of states of each step",
            )
            for sizes, shared in (((1, 2), True), ((-1, 1), False), ((), False))
        ),
        (lambda: LAYERED.nodes([[0, 0, 0, 0]]), "at most 3 steps"),
        (lambda: LAYERED.nodes([[0, 0]], h=3), "at most 3 steps"),
        (lambda: LAYERED.nodes([[0]], h=0), "h must be an integer of at least 1"),
        (lambda: LAYERED.node(0, 4), "h must be an integer from 1 to 3"),
        (lambda: LAYERED.policy(2), "agent must be an integer from 0 to 1; 2 was given"),
        (lambda: StateGraph.from_states(ONE, [0], min_share=1), "min_share must be"),
        (lambda: StateGraph.from_states(ONE, [0, 1]), "an agent, numbered from 0"),
        (
            lambda: StateGraph.from_states([[0, 1], [0, 1]], [0, 2**40]),
            r"below 1000000, .* from 0 to 1099511627776 were given",
        ),
        (lambda: StateGraph.from_states(np.full((4, 2), 2**62), np.zeros(4, int)), "must fit into memory"),
        (lambda: StateGraph.from_model(ExactModel(PixelsExBMDP()), [[0]]), "tau must be a TrajectoryDataset"),
    ],
)
def test_what_cannot_be_counted_is_refused(call, sentence):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=sentence):
        call()
