"""Habits read off the graph of the videos, compared, and executed with actions from labels."""

import numpy as np
import pytest

from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning import Grounding, Imitator, StateGraph, agent_scores, better_agent, read_policy

LEFT, RIGHT = 0, 1
N = 4


class Corridor:
    """Cells 0..3 in a row, begun in cell 1; an observation is the cell. No Gymnasium is needed for this."""

    class action_space:
        n = 2

    def reset(self, *, seed=None):
        self.cell, self.steps = 1, 0
        return np.array([self.cell]), {}

    def step(self, action):
        self.cell = min(max(self.cell + (1 if action == RIGHT else -1), 0), N - 1)
        self.steps += 1
        return np.array([self.cell]), 0.0, False, self.steps == 6, {}


class Sees:
    """Reads the cell off the observation."""

    obs_shape_ = (1,)

    def encode(self, x, h=None):
        return np.asarray(x)[:, 0]


def walks(share_right, n=400, H=7, seed=0):
    """Cells of agents that go right with this probability each."""
    rng = np.random.default_rng(seed)
    cells = np.ones((2 * n, H), dtype=int)
    right = rng.random((2 * n, H)) < np.repeat(share_right, n)[:, None]
    for h in range(1, H):
        cells[:, h] = np.clip(cells[:, h - 1] + np.where(right[:, h], 1, -1), 0, N - 1)
    return cells, np.repeat([0, 1], n)


@pytest.fixture
def moves():
    return StateGraph.from_states(*walks([0.2, 0.8]), sizes=(N,), shared=True)


def grounding_of(moves, *labels):
    grounding = Grounding(moves, 2)
    for label in labels:
        grounding.add(*label)
    return grounding


ALL = [(s, a, min(max(s + 2 * a - 1, 0), N - 1)) for s in range(N) for a in (LEFT, RIGHT)]


def test_a_policy_is_what_the_agent_did(moves):
    table = read_policy(moves, 1).toarray()
    assert np.allclose(table.sum(axis=1), 1)
    assert table[1, 2] == pytest.approx(0.8, abs=0.05)
    assert read_policy(moves, 0).toarray()[1, 2] == pytest.approx(0.2, abs=0.05)
    assert not table[0, 2:].any()


def test_rows_of_states_that_an_agent_never_left_are_empty():
    states = np.array([[0, 1, 2], [0, 0, 0]])
    table = read_policy(StateGraph.from_states(states, [0, 1], sizes=(3,), shared=True), 1)
    assert table.toarray().sum(axis=1).tolist() == [1, 0, 0]


def test_the_better_agent_depends_on_the_aim(moves):
    assert better_agent(moves, 3, start=1) == 1
    assert better_agent(moves, {0}, start=1) == 0
    assert better_agent(moves, [0.0, 0.0, 0.0, 1.0], start=1, horizon=5) == 1


def test_scores_are_the_probabilities_of_a_walk(moves):
    """From cell 1 the last cell is two moves to the right: within two moves, both must go right."""
    scores = agent_scores(moves, 3, start=1, horizon=2)
    assert scores == pytest.approx([0.2**2, 0.8**2], abs=0.03)
    assert agent_scores(moves, 3, start=3).tolist() == [1, 1]
    within = [agent_scores(moves, 3, start=1, horizon=n)[0] for n in range(30)]
    assert within[0] == within[1] == 0
    assert (np.diff(within) >= 0).all()
    assert within[-1] <= 1
    everywhere = agent_scores(moves, np.ones(N), start=1, horizon=5)
    assert everywhere == pytest.approx([5, 5])  # a value of 1 for each of five states entered


def test_layers_need_no_start():
    cells, agent = walks([0.2, 0.8], H=4)
    states = np.where(np.arange(4) == 0, 0, cells)
    layered = StateGraph.from_states(states, agent, sizes=(1, N, N, N))
    last = layered.node(3, 4)
    assert better_agent(layered, last) == 1
    # the last cell at h = 4: right three times, or right, right and then bumping into the wall
    assert agent_scores(layered, last)[1] == pytest.approx(0.8**3, abs=0.06)


def test_odd_aims_and_agents_are_refused(moves):
    with pytest.raises(InvalidParameterError, match="agent must be an integer from 0 to 1; 2 was given"):
        read_policy(moves, 2)
    with pytest.raises(InvalidParameterError, match="start must be the state that episodes begin in"):
        better_agent(moves, 3)
    with pytest.raises(InvalidParameterError, match="aim must be an integer from 0 to 3"):
        better_agent(moves, 4, start=1)
    with pytest.raises(InvalidParameterError, match="at least one state"):
        better_agent(moves, set(), start=1)
    with pytest.raises(InvalidDataError, match="the value of each of 4 states"):
        better_agent(moves, [1.0, 2.0], start=1)
    with pytest.raises(InvalidDataError, match=r"shape \(4, 4\); shape \(2, 2\)"):
        Imitator(Sees(), grounding_of(moves), np.eye(2))


def test_with_all_actions_known_it_does_what_the_agent_did(moves):
    imitator = Imitator(Sees(), grounding_of(moves, *ALL), read_policy(moves, 1), seed=0)
    episodes = [imitator.run(Corridor()) for _ in range(200)]
    assert all(len(episode.actions) == 6 and not episode.surprises for episode in episodes)
    assert np.mean([episode.actions for episode in episodes]) == pytest.approx(0.8, abs=0.05)
    assert {episode.stopped for episode in episodes} == {"episode ended"}


def test_one_seed_gives_the_same_episodes(moves):
    def twice(seed):
        imitator = Imitator(Sees(), grounding_of(moves, *ALL), read_policy(moves, 1), seed=seed)
        return [imitator.run(Corridor()).nodes for _ in range(5)]

    assert twice(3) == twice(3) != twice(4)


def test_it_stops_at_a_goal_or_after_so_many_steps_and_keeps_what_it_saw(moves):
    imitator = Imitator(Sees(), grounding_of(moves, *ALL), np.eye(N, k=1))  # always to the right
    episode = imitator.run(Corridor(), {3}, keep=True)
    assert (episode.nodes, episode.actions, episode.stopped, episode.reached) == ((1, 2, 3), (1, 1), "reached", True)
    assert [int(x[0]) for x in episode.observations] == [1, 2, 3]
    assert imitator.run(Corridor(), max_steps=1).stopped == "time is up"


def test_what_is_not_grounded_is_tried_and_learned(moves):
    grounding = grounding_of(moves)
    imitator = Imitator(Sees(), grounding, read_policy(moves, 1), learn=True, seed=0)
    for _ in range(10):
        imitator.run(Corridor())
    assert grounding.n_labels == 60
    assert grounding.grounded.all()
    assert not imitator.run(Corridor()).surprises


def test_without_labels_and_without_learning_it_acts_at_random(moves):
    imitator = Imitator(Sees(), grounding_of(moves), read_policy(moves, 1), seed=0)
    taken = np.concatenate([imitator.run(Corridor()).actions for _ in range(100)])
    assert taken.mean() == pytest.approx(0.5, abs=0.07)
    assert imitator.grounding.n_labels == 0


def test_where_the_agent_never_was_it_does_what_the_others_did():
    cells, agent = walks([0.0, 1.0], n=20)
    moves = StateGraph.from_states(cells, agent, sizes=(N,), shared=True)
    assert not read_policy(moves, 1).toarray()[0].any()  # who always goes right never sees the first cell
    imitator = Imitator(Sees(), grounding_of(moves, *ALL), read_policy(moves, 1))
    assert imitator.choose(0) == (0, LEFT)


def test_odd_nodes_and_seeds_are_refused(moves):
    imitator = Imitator(Sees(), grounding_of(moves, *ALL), read_policy(moves, 0))
    for node in (-1, N, True, "x", [0]):
        with pytest.raises(InvalidParameterError, match="node must be an integer from 0 to 3"):
            imitator.choose(node)
    for seed in (-1, 1.5, "x"):
        with pytest.raises(InvalidParameterError, match="seed must be an integer of at least 0"):
            imitator.run(Corridor(), seed=seed)
