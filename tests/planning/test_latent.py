"""Latent actions: names of moves, where they agree, and where nothing says that they do."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from craftrl.envs.pixels import grid_moves
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning import StateGraph, find_latent_actions
from craftrl.planning.latent import factor, rank_above_noise, scatter
from studies.agreement import accuracy_by_group, agreement
from studies.worlds.multimaze import CELLS as MAZE
from studies.worlds.multimaze import NEXT_CELL

GRID = grid_moves(np.argwhere(np.ones((4, 4))))
TAILED = np.array([*np.argwhere(np.ones((4, 4))), (0, 4), (3, 4)])  # and two cells with a single way out
ROAD = np.stack([np.maximum(np.arange(8) - 1, 0), np.arange(8), np.minimum(np.arange(8) + 1, 7)], axis=1)


def turning(size):
    """Turn left, turn right, walk on: states are a cell and a direction; walls stop."""
    cells = np.argwhere(np.ones((size, size)))
    ahead = grid_moves(cells)[:, [3, 1, 2, 0]]
    cell, way = np.divmod(np.arange(4 * len(cells)), 4)
    return np.stack([4 * cell + (way - 1) % 4, 4 * cell + (way + 1) % 4, 4 * ahead[cell, way] + way], axis=1)


def unrelated(n_states, n_actions, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(n_states, n_actions, replace=False) for _ in range(n_states)])


def ring(size):
    return np.stack([(np.arange(size) - 1) % size, (np.arange(size) + 1) % size], axis=1)


def graph_of(counts):
    return StateGraph((counts[0].shape[0],), True, tuple(csr_array(table) for table in counts))


def play(moves, seed=0, n_agents=2, n=4000, same_habits=False, slip=0.0, concentration=1.0):
    """Transitions s, a, t of each agent from states drawn at random, and the graph of their moves."""
    rng = np.random.default_rng(seed)
    N, n_actions = moves.shape
    habits = rng.dirichlet(np.full(n_actions, concentration), (n_agents, 1 if same_habits else N))
    habits = np.broadcast_to(habits, (n_agents, N, n_actions))
    s = rng.integers(N, size=(n_agents, n))
    chance = np.take_along_axis(habits, s[..., None], axis=1).cumsum(axis=-1)
    a = (rng.random((n_agents, n, 1)) > chance[..., :-1]).sum(axis=-1)
    slipped = rng.random(a.shape) < slip
    t = moves[s, np.where(slipped, rng.integers(n_actions, size=a.shape), a)]
    graph = graph_of([csr_array((np.ones(n), (s[k], t[k])), shape=(N, N)) for k in range(n_agents)])
    return graph, s.ravel(), t.ravel(), a.ravel()


def holds(latent):
    return {condition.name: condition.holds for condition in latent.conditions}


def shifts(graph):
    """Where each move of the maze leads, and a little noise."""
    start, end = MAZE[graph.edges.T]
    return end - start + np.random.default_rng(0).normal(0, 0.1, start.shape)


def swapped(graph):
    """Which way each move of the grid with tails goes, but rows are taken for columns on the right."""
    start, end = TAILED[graph.edges.T]
    return np.where(start[:, 1:] < 2, end - start, (end - start)[:, ::-1])


def often(graph):
    """How often each agent makes each move."""
    s, t = graph.edges.T
    return np.sqrt([graph.policy(k)[s, t] for k in range(len(graph.counts))]).T


def noise(graph):
    return np.random.default_rng(0).normal(size=(len(graph.edges), 2))


# -- which names agree ---------------------------------------------------------------------------------------------

MANY, ALIKE = {"n": 20_000}, {"n": 20_000, "n_agents": 3, "same_habits": True}
# what is played and how, what is asked for, the sizes of the groups of states within which names mean the same, and
# conditions that hold or do not
KNOWN = {
    "a grid": (GRID, {}, {}, [16], {"deterministic": None, "moves commute": True, "one permutation": True}),
    "one agent": (GRID, {"n_agents": 1}, {"n": 4}, [16], {"deterministic": None}),
    # a room turned by a quarter behind its door would give the same graph, so no data could tie their names
    "rooms": (NEXT_CELL, MANY, {}, [1] * 4 + [16] * 4, {"one permutation": False}),
    "rooms with features": (NEXT_CELL, MANY, {"features": shifts}, [68], {}),
    "a grid and features that contradict it": (grid_moves(TAILED), MANY, {"features": swapped}, [1] * 18, {}),
    "moves that turn": (turning(4), MANY, {}, [1] * 64, {"moves commute": False}),
    "moves that turn, and noise": (turning(3), {}, {"features": noise}, [1] * 36, {"features": False}),
    "unrelated moves": (unrelated(30, 3, 0), MANY, {}, [1] * 30, {"moves commute": False}),
    "two unrelated moves": (unrelated(60, 2, 2), MANY, {}, [1] * 60, {"moves commute": False}),
    "the same habits everywhere": (unrelated(20, 3, 0), ALIKE, {"features": often}, [20], {"one permutation": True}),
    "which others have not": (
        unrelated(20, 3, 0),
        {**ALIKE, "same_habits": False},
        {"features": often},
        [1] * 20,
        {"features": False},
    ),
    # twice right is twice left on a ring of four: names could be swapped in every other state
    "a ring of four": (ring(4), {}, {}, [1] * 4, {}),
    "a ring of seven": (ring(7), {}, {}, [7], {}),
    "a road": (ROAD, {}, {}, [1] * 8, {}),
    "a ring on which one may stay and nobody does": (ring(7), {}, {"staying": True}, [7], {}),
    "a road on which one may stay": (ROAD, {}, {"staying": True}, [8], {}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_names_agree_where_something_ties_them_and_only_there(name):
    moves, how, options, groups, conditions = KNOWN[name]
    graph, s, t, a = play(moves, **how)
    given = {key: value(graph) if callable(value) else value for key, value in options.items()}
    latent = find_latent_actions(graph, **given)
    assert np.bincount(latent.group).tolist() == groups[::-1]  # the largest first
    assert conditions.items() <= holds(latent).items()
    assert latent.n == moves.shape[1] + ("nobody" in name)
    found = agreement(latent, s, t, a)
    assert found["clear"] == 1.0
    assert found["by_group"] <= found["by_state"] <= found["ceiling"]
    if len(groups) < len(moves):
        assert found["clear_share"] > 0.7
    again = find_latent_actions(graph_of([table / 4096 for table in graph.counts]), **given)  # shares, no counts
    np.testing.assert_allclose(again.policies, latent.policies)


def test_moves_of_one_state_with_the_same_features_are_not_tied():
    graph = play(GRID)[0]
    edges = graph.edges
    cell = np.stack(np.divmod(edges, int(np.sqrt(len(GRID)))))  # rows and columns, of each move's two ends
    numbers = (cell[..., 1] - cell[..., 0]).T.astype(float)
    loud = np.flatnonzero((edges[:, 0] == 0) & (edges[:, 1] != 0))
    numbers[loud] = numbers[loud[0]]
    (unclear,) = (c for c in find_latent_actions(graph, features=numbers).conditions if c.name == "features")
    assert unclear.where == (0,)


def test_claimed_names_are_right_among_random_walls():
    wrong = total = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        moves = grid_moves(np.argwhere(rng.random((6, 6)) > 0.1))
        graph, s, t, a = play(moves, seed=seed)
        found = agreement(find_latent_actions(graph), s, t, a)
        wrong += (1 - found["clear"]) * found["clear_share"]
        total += found["clear_share"]
    assert wrong < 0.005 * total


def test_layers_of_steps_tie_nothing():
    """Where a state is another one at every step, a bump looks like a move, and squares would mislead."""
    lattice = csr_array(np.triu(np.ones((6, 6)), 1))
    latent = find_latent_actions(graph_of([lattice, lattice]))
    assert not holds(latent)["moves commute"]
    assert len(np.unique(latent.group)) == 6
    assert np.isnan(latent.policies[:, 5]).all()


# -- what is known of each move ------------------------------------------------------------------------------------


def test_the_arrays_are_distributions_and_give_back_the_counts():
    counts = list(play(GRID, n_agents=3)[0].counts)
    counts[1] = csr_array(counts[1].toarray() * (np.arange(16) != 5)[:, None])  # agent 1 is never seen to leave 5
    latent = find_latent_actions(graph_of(counts))
    s, t = latent.edges.T
    by_state = np.zeros((16, 4))
    np.add.at(by_state, s, latent.share)
    np.testing.assert_allclose(by_state, 1.0)
    np.testing.assert_allclose(latent.posterior.sum(axis=1), 1.0)
    assert np.isnan(latent.policies[1, 5]).all()
    for k, table in enumerate(counts):
        seen = table.toarray()[s].sum(axis=1) > 0
        expected = table.toarray()[s, t] / table.toarray()[s].sum(axis=1).clip(1)
        np.testing.assert_allclose((latent.policies[k, s] * latent.share).sum(axis=1)[seen], expected[seen])


def test_a_bump_is_what_all_names_do_that_lead_nowhere_else():
    latent = find_latent_actions(play(GRID)[0])
    corner = latent.share[(latent.edges == 0).all(axis=1)][0]
    assert corner.tolist().count(1.0) == 2  # up and left
    edge = latent.share[(latent.edges == 1).all(axis=1)][0]
    assert edge.tolist().count(1.0) == 1
    assert (edge <= corner).all()  # up is one of them


def test_unknown_moves_have_no_latent_action():
    latent = find_latent_actions(play(GRID)[0])
    assert latent.of_moves([0, 0, -1, 0, 99], [15, 1, 0, -1, 0]).tolist()[::2] == [-1, -1, -1]
    assert latent.of_moves([0], [1])[0] >= 0
    assert latent.certainty([0, 0, 0], [15, 1, 0]).tolist() == [0.0, 1.0, 0.5]
    with pytest.raises(InvalidDataError, match="one t per s; 2 and 1 were given"):
        latent.of_moves([0, 1], [1])


@pytest.mark.parametrize("given", [{}, {"features": np.zeros((0, 2))}, {"deterministic": False}])
def test_no_moves_no_latent_actions(given):
    latent = find_latent_actions(graph_of([np.zeros((3, 3))]), **given)
    assert latent.edges.shape == (0, 2)
    assert latent.of_moves([0], [1]).tolist() == [-1]
    assert len(np.unique(latent.group)) == 3


# -- actions that slip ---------------------------------------------------------------------------------------------


def test_more_successors_than_actions_are_no_deterministic_world():
    latent = find_latent_actions(play(GRID)[0], n=3, deterministic=True)
    assert holds(latent)["deterministic"] is False
    assert latent.n == 4
    assert "give deterministic=False" in str(latent)


def test_where_actions_slip_their_effects_are_found():
    graph, s, t, a = play(ROAD[:5, [0, 2]].clip(0, 4), n_agents=10, n=30_000, slip=0.3, concentration=0.2)
    latent, same = (find_latent_actions(graph, n=2, deterministic=False) for _ in range(2))
    assert holds(latent) == {
        "deterministic": False,
        "more agents than actions": True,
        "rank": True,
        "scattered policies": None,
        "enough data": True,
        "moves commute": True,
        "one permutation": True,
    }
    sure = latent.share[latent.edges[:, 0] == 3].max(axis=0)
    np.testing.assert_allclose(sure, 0.85, atol=0.04)  # a slip leads the right way half the time
    found = agreement(latent, s, t, a)
    assert found["overall"] == pytest.approx(found["ceiling"], abs=0.005)
    np.testing.assert_array_equal(same.share, latent.share)


def test_two_agents_cannot_show_four_actions_that_slip():
    graph, *_ = play(GRID, n=20_000, slip=0.2)
    latent = find_latent_actions(graph, n=4, deterministic=False)
    np.testing.assert_array_equal(latent.share, find_latent_actions(graph).share)  # the moves, as if none slipped
    assert holds(latent)["more agents than actions"] is False
    rank = next(condition for condition in latent.conditions if condition.name == "rank")
    assert rank.holds is False
    assert len(rank.where) == 16


# -- policies times effects, in one state --------------------------------------------------------------------------

EFFECTS = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.05, 0.05, 0.8, 0.1]])


def drawn(policies, visits, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.multinomial(visits, p) for p in np.array(policies) @ EFFECTS]).astype(float)


def error(effects):
    distance = np.abs(effects[:, None] - EFFECTS[None]).sum(axis=-1) / 2
    return distance[linear_sum_assignment(distance)].max()


def test_noise_has_the_rank_of_one_action():
    ranks = [rank_above_noise(drawn(np.tile([0.5, 0.3, 0.2], (8, 1)), 1000, seed)) for seed in range(100)]
    assert np.mean(np.array(ranks) == 1) >= 0.95


def test_agents_that_never_take_one_action_show_the_effects_of_all():
    """No agent shows an effect by itself here; the least volume does."""
    never = np.array([[0, 0.7, 0.3], [0, 0.3, 0.7], [0.7, 0, 0.3], [0.3, 0, 0.7], [0.7, 0.3, 0], [0.3, 0.7, 0]])
    assert scatter(never) == pytest.approx(1.0)  # one facet of their hull touches the ball
    habits, effects = factor(drawn(never, 100_000), 3)
    assert error(effects) < 0.05
    assert error(drawn(never, 100_000)[[0, 2, 4]] / 100_000) > 0.2
    assert scatter(habits) == pytest.approx(1.0, abs=0.06)
    habits, effects = factor(drawn(np.eye(3), 20_000), 3)  # each takes one alone
    assert error(effects) < 0.02
    np.testing.assert_allclose(habits.max(axis=1), 1.0, atol=0.02)


def test_policies_in_one_line_are_not_scattered():
    assert scatter(np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0.2, 0.8, 0]])) == 0.0
    assert scatter(np.eye(3)) == pytest.approx(1.0)
    assert scatter(np.eye(2)) == np.inf


# -- what cannot be, and how agreement is counted ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"graph": [np.ones((2, 2))]}, "graph must be a StateGraph"),
        ({"n": 0}, "n must be an integer from 1"),
        ({"deterministic": "maybe"}, "deterministic must be True or False"),
        ({"features": np.ones((3, 2))}, "one row of numbers for each of the 4 moves"),
    ],
)
def test_what_cannot_be(arguments, message):
    given = {"graph": graph_of([np.ones((2, 2))]), **arguments}
    with pytest.raises((InvalidParameterError, InvalidDataError), match=message):
        find_latent_actions(**given)


def test_agreement_counts_by_hand():
    codes, truth, group = [0, 0, 1, 1, 0, 1, -1], [2, 2, 0, 0, 0, 2, 0], [0, 0, 0, 0, 1, 1, 1]
    assert accuracy_by_group(codes, truth, group) == 6 / 7
    assert accuracy_by_group(codes, truth, np.zeros(7, dtype=int)) == 4 / 7


def test_agreement_leaves_out_unknown_actions_and_counts_unknown_moves_as_wrong():
    graph, s, t, a = play(ROAD[:, [0, 2]])
    latent = find_latent_actions(graph)
    assert agreement(latent, s, t, np.where(np.arange(len(a)) % 2, a, -1))["by_group"] == 1.0
    assert agreement(latent, np.where(np.arange(len(s)) % 2, s, -1), t, a)["by_group"] == 0.5
