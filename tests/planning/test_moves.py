"""Nodes and moves: states as numbers, and what videos say of which follows which."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from craftrl import CoordinateOracle, InvalidDataError, InvalidParameterError
from craftrl.envs import BitsExBMDP, LockExBMDP, MultiMazeExBMDP, PixelsExBMDP, collect, contrasting_policies
from craftrl.paper import SingleObservation
from craftrl.planning import Moves, Nodes
from exact_models import ExactModel, watched

LAYERED = Nodes((1, 3, 2), False)


def true_moves(world, nodes):
    pairs = [
        (nodes.number(s, h), nodes.number(t, h + 1))
        for h, table in enumerate(world.reachable_pairs(), start=1)
        for s, t in zip(*np.nonzero(table))
    ]
    return set(pairs)


def found(moves):
    return set(map(tuple, moves.edges.tolist()))


def test_nodes_count_step_by_step_and_back():
    assert LAYERED.n == 6
    named = [LAYERED.name(node) for node in range(6)]
    assert named == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]
    assert [LAYERED.number(state, h) for h, state in named] == list(range(6))
    assert LAYERED.numbers([[0, 2, 1], [0, -1, 7]]).tolist() == [[0, 3, 5], [0, -1, -1]]
    assert LAYERED.text(3) == "state 2 at h = 2"
    assert LAYERED.number(-1, 2) == -1


def test_shared_nodes_are_states_at_any_step():
    nodes = Nodes((4,), True)
    assert nodes.number(3, 99) == 3
    assert nodes.numbers([[0, 3, -1, 4]]).tolist() == [[0, 3, -1, -1]]
    assert (nodes.name(2), nodes.text(2), nodes.steps_of(2), nodes.H) == ((None, 2), "state 2", None, None)


def test_nodes_of_models():
    world = PixelsExBMDP(horizon=3, size=2)
    assert Nodes.from_model(ExactModel(world)) == Nodes((1, 4, 4), False)
    assert Nodes.from_model(ExactModel(world), H=2) == Nodes((1, 4), False)
    assert Nodes.from_model(ExactModel(world, shared=True)) == Nodes((4,), True)


def test_a_model_that_does_not_know_its_states_has_those_of_the_data():
    world = PixelsExBMDP(horizon=3, size=2)
    model = ExactModel(world)
    del model.n_states_
    with pytest.raises(InvalidDataError, match="how many states it has"):
        Nodes.from_model(model)
    states = {"states": np.array([[0, 3, 2]]), "agent": [0]}
    assert Moves.from_states(**states, nodes=Nodes.from_states(states["states"], False)).nodes.sizes == (1, 4, 3)


def test_a_baseline_that_does_not_count_its_states_has_moves_as_well():
    world = BitsExBMDP(horizon=4, n_features=4)
    tau = collect(world, world.paper_policies(), 300, seed=0).tau
    moves = Moves.from_model(SingleObservation(CoordinateOracle(2)).fit(tau), tau)
    assert moves.nodes == Nodes((1, 2, 2, 2), False)
    assert len(moves.edges) == 2 + 4 + 4


def test_moves_are_counted_by_agent():
    states = [[0, 1, 0], [0, 1, 1], [0, 2, -1], [0, 1, 0]]
    moves = Moves.from_states(states, [0, 0, 1, 1], LAYERED, min_share=0)
    assert [count.toarray()[0, 2] for count in moves.counts] == [2, 1]
    assert moves.edges.tolist() == [[0, 2], [0, 3], [2, 4], [2, 5]]
    assert moves.total.toarray()[2, 4] == 2
    assert moves.out_degree.tolist() == [2, 0, 2, 0, 0, 0]
    assert moves.successors(2).tolist() == [4, 5]
    assert moves.visits(0) == 4
    assert moves.text((0, 2)) == "state 0 at h = 1 -> state 1 at h = 2"


@pytest.mark.parametrize("world", [LockExBMDP(), MultiMazeExBMDP(), PixelsExBMDP()])
def test_misread_frames_make_few_moves_and_hide_none(world):
    """One frame in a hundred misread: without the rule, every fifth move or more is one that does not exist."""
    tau = collect(world, contrasting_policies(world, alpha=0.7), 500, seed=0).tau
    exact, noisy = ExactModel(world), ExactModel(world, error=0.01)
    true = true_moves(world, Nodes.from_model(exact))
    every = found(Moves.from_model(noisy, tau, min_share=0))
    kept = found(Moves.from_model(noisy, tau))
    assert len(every - true) > 0.2 * len(true)
    assert len(kept - true) < 0.03 * len(true)
    assert len(true - kept) < 0.01 * len(true)
    assert found(Moves.from_model(exact, tau, min_share=0)) == true


def test_steps_share_their_moves_with_a_shared_model():
    world = PixelsExBMDP(size=3)
    moves = watched(world, ExactModel(world, shared=True))
    assert found(moves) == {(s, int(t)) for s, row in enumerate(world.T(world.H - 1)) for t in row}


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(InvalidParameterError, match="sizes must hold"):
        Nodes((1, 2), True)
    with pytest.raises(InvalidDataError, match="at most 3 steps"):
        LAYERED.numbers([[0, 0, 0, 0]])
    with pytest.raises(InvalidDataError, match="between all 6 states"):
        Moves(LAYERED, (csr_array((2, 2)),))
    with pytest.raises(InvalidParameterError, match="min_share must be"):
        Moves.from_states([[0, 1, 1]], [0], LAYERED, min_share=1)
    with pytest.raises(InvalidDataError, match="an agent, numbered from 0"):
        Moves.from_states([[0, 1, 1]], [0, 1], LAYERED)
    with pytest.raises(InvalidParameterError, match="tau must be a TrajectoryDataset"):
        Moves.from_model(ExactModel(PixelsExBMDP()), [[0]])


def test_states_that_cannot_be_numbers_of_nodes():
    assert Nodes((4,), True).numbers([[0, -5, 3, 9]]).tolist() == [[0, -1, 3, -1]]
    with pytest.raises(InvalidParameterError, match=r"\(-1,\) was given"):
        Nodes((-1,), False)
    with pytest.raises(InvalidParameterError, match="must fit into memory"):
        Nodes.from_states(np.full((4, 2), 2**62), False)
    with pytest.raises(InvalidDataError, match=r"below 1000000, .* from 0 to 1099511627776 were given"):
        Moves.from_states([[0, 1], [0, 1]], [0, 2**40], Nodes((1, 2), False))


def test_shares_may_be_fractions():
    states, nodes = np.array([[0, 1], [0, 1], [0, 0]]), Nodes((1, 2), False)
    half, third = (Moves.from_states(states, [0, 1, 1], nodes, share) for share in (Fraction(1, 2), 0.5))
    assert half.edges.tolist() == third.edges.tolist()
