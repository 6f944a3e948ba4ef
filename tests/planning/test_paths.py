"""Plans: the shortest and the most reliable path, and what is said where there is none."""

from itertools import pairwise

import networkx
import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError
from craftrl.planning import Grounding, StateGraph, UnreachableGoal, plan_path


def graph(pairs, n):
    """Moves of a graph, each seen fifty times."""
    pairs = np.repeat(pairs, 50, axis=0)
    return StateGraph.from_states(pairs, np.zeros(len(pairs), int), sizes=(n,), shared=True)


def grounded(moves, n_actions, chances=None):
    """Each move made by an action of its own; with `chances`, it succeeds so often out of a hundred, else stays."""
    g = Grounding(moves, n_actions, deterministic=chances is None)
    for i, (s, t) in enumerate(moves.edges.tolist()):
        a = int((moves.edges[:i, 0] == s).sum())
        for k in range(3 if chances is None else 100):
            g.add(s, a, t if chances is None or k < chances[i] else s)
    return g


def random_moves(seed, n, m):
    rng = np.random.default_rng(seed)
    return sorted({(int(s), int(t)) for s, t in rng.integers(n, size=(m, 2)) if s != t}), rng


DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 4), (4, 3)]  # 0-1-3 is short, 0-2-4-3 long


def test_the_shortest_path_and_the_most_reliable_one_differ():
    g = grounded(graph(DIAMOND, 5), 2, chances=[60, 98, 60, 98, 98])
    short, sure = plan_path(g, 0, {3}), plan_path(g, 0, {3}, by="reliable")
    assert short.nodes == (0, 1, 3)
    assert sure.nodes == (0, 2, 4, 3)
    assert (len(short), len(sure)) == (2, 3)
    assert short.probability == pytest.approx(0.36, abs=0.03)
    assert sure.probability == pytest.approx(0.94, abs=0.03)
    assert short.goal == frozenset({3})
    assert plan_path(g, 0, {3}, by="reliable", horizon=2).nodes == (0, 1, 3)  # what three moves do in two is not


def test_no_move_is_made_up_where_most_states_have_one_to_most_others():
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (1, 3), (2, 1), (2, 3), (3, 2)]
    g = grounded(graph(pairs, 4), 3, chances=[98, 60, 98, 98, 70, 98, 98, 98])
    assert plan_path(g, 0, {3}, by="reliable").nodes == (0, 1, 2, 3)
    assert plan_path(g, 0, {3}, by="reliable", horizon=2).nodes == (0, 1, 3)


def test_of_equally_short_paths_the_more_reliable_one_is_taken():
    for better in (0, 1):
        pairs = [(0, 1), (0, 2), (1, 3), (2, 3)]
        g = grounded(graph(pairs, 4), 2, chances=[98, 70, 98, 70] if better == 0 else [70, 98, 70, 98])
        assert plan_path(g, 0, {3}).nodes == (0, 1 + better, 3)


def test_a_plan_names_the_actions():
    g = grounded(graph(DIAMOND, 5), 2)
    plan = plan_path(g, 0, [4, 3])
    assert plan.nodes in ((0, 1, 3), (0, 2, 4))
    for (s, t), a in zip(pairwise(plan.nodes), plan.actions):
        assert g.outcomes(s).successors[g.outcomes(s).chance[a].argmax()] == t
    here = plan_path(g, 3, {3})
    assert (here.nodes, here.actions, here.probability) == ((3,), (), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_paths_are_those_that_networkx_finds(seed):
    pairs, _ = random_moves(seed, 12, 30)
    g, reference = grounded(graph(pairs, 12), 12), networkx.DiGraph(pairs)
    reference.add_nodes_from(range(12))
    for s in range(12):
        if networkx.has_path(reference, s, 0):
            assert len(plan_path(g, s, {0})) == networkx.shortest_path_length(reference, s, 0)
        else:
            with pytest.raises(UnreachableGoal, match="The videos must show a way to the goal"):
                plan_path(g, s, {0})


@pytest.mark.parametrize("seed", range(3))
def test_the_most_reliable_path_within_a_number_of_moves_is_the_best_of_all_such_paths(seed):
    pairs, rng = random_moves(seed, 7, 22)
    g = grounded(graph(pairs, 7), 7, chances=rng.integers(40, 100, size=len(pairs)))
    reference = networkx.DiGraph()
    for s, t, _, chance in zip(*(column.tolist() for column in g.known_moves())):
        reference.add_edge(s, t, chance=chance)
    for horizon, goals in ((1, {6}), (2, {6}), (3, {6}), (2, {5, 6})):
        ways = [way for goal in goals for way in networkx.all_simple_paths(reference, 0, goal, cutoff=horizon)]
        best = max((np.prod([reference.edges[m]["chance"] for m in pairwise(way)]) for way in ways), default=0)
        if best:
            plan = plan_path(g, 0, goals, by="reliable", horizon=horizon)
            assert plan.probability == pytest.approx(best)
            assert len(plan) <= horizon
        else:
            with pytest.raises(UnreachableGoal):
                plan_path(g, 0, goals, by="reliable", horizon=horizon)


def test_where_each_step_has_its_own_states_a_goal_is_reached_at_its_step():
    rows = np.repeat([[0, 0, 0], [0, 1, 0], [0, 1, 1]], 50, axis=0)
    g = grounded(StateGraph.from_states(rows, np.zeros(150, int)), 2)
    assert plan_path(g, 0, {g.graph.node(1, 3)}).nodes == (0, 2, 4)
    assert plan_path(g, 0, {g.graph.node(1, 2), g.graph.node(1, 3)}).nodes == (0, 2)
    with pytest.raises(UnreachableGoal, match="none leads from state 0 at h = 2 to state 1 at h = 3"):
        plan_path(g, 1, {4})


def test_missing_labels_are_named_and_the_nearest_state_is_given():
    moves = graph([(i, i + 1) for i in range(8)] + [(i + 1, i) for i in range(8)], 9)
    g = Grounding(moves, 2)
    for i in range(2):
        for a, step in enumerate((1, -1)):
            if i + step >= 0:
                g.add(i, a, i + step)
    with pytest.raises(UnreachableGoal) as caught:
        plan_path(g, 0, {7})
    assert caught.value.nearest == 2
    assert caught.value.missing == tuple((i, i + 1) for i in range(2, 7))
    assert "these are not: state 2 -> state 3, state 3 -> state 4" in str(caught.value)
    assert "call explore" in str(caught.value)
    with pytest.raises(UnreachableGoal, match="and 1 more"):
        plan_path(g, 0, {8})
    with pytest.raises(UnreachableGoal, match=r"in the 7 moves left \(the shortest way has 8\)") as caught:
        plan_path(g, 0, {8}, horizon=7)
    assert caught.value.too_far


def test_the_nearest_state_is_one_from_which_there_are_moves_enough():
    """From 3 one move would lead to the goal, 6, but the way over it has four; the one over 5 has two."""
    pairs = [(0, 1), (0, 5), (1, 2), (2, 3), (3, 6), (3, 0), (3, 1), (5, 6), (5, 0), (5, 1)]
    g = Grounding(graph(pairs, 7), 3)
    for s, t in ((0, 1), (1, 2), (2, 3)):
        g.add(s, 0, t)
    for horizon, nearest in ((3, 0), (4, 3)):
        with pytest.raises(UnreachableGoal) as caught:
            plan_path(g, 0, {6}, horizon=horizon)
        assert caught.value.nearest == nearest


def test_goals_that_do_not_exist_are_refused():
    g = grounded(graph(DIAMOND, 5), 2)
    for goals in ({5}, set(), {-1}, {"a"}, 3):
        with pytest.raises(InvalidParameterError, match=r"Goals must be one or more states, numbered 0..4"):
            plan_path(g, 0, goals)
    with pytest.raises(InvalidParameterError, match="start must be an integer from 0 to 4"):
        plan_path(g, 9, {1})
    with pytest.raises(InvalidParameterError, match="by must be one of 'shortest', 'reliable'"):
        plan_path(g, 0, {1}, by="cheapest")
    assert issubclass(UnreachableGoal, InvalidDataError)
