"""Any Gymnasium environment as a world: what is seen, what is true, and the same for any number of workers."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

import gymnasium
import numpy as np
import pytest

from craftrl.data import TrajectoryDataset, read_actions, read_true_states
from craftrl.envs import GymWorld, Policy, collect, record
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy

MOVES = np.clip(np.arange(5)[:, None] + np.array([-1, 0, 1]), 0, 4)


class Line(gymnasium.Env):
    """Five places on a line and a lamp that flickers by itself; the episode ends at `end`, if there is one."""

    observation_space = gymnasium.spaces.Box(0, 255, (2, 5), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)
    metadata: ClassVar[dict[str, list[str]]] = {"render_modes": []}

    def __init__(self, end=None, random_start=False):
        self.end, self.random_start = end, random_start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(5)) if self.random_start else 2
        return self._see(), {}

    def step(self, action):
        self.place = int(MOVES[self.place, action])
        return self._see(), 0.0, self.place == self.end, False, {}

    def _see(self):
        x = np.zeros((2, 5), np.uint8)
        x[0, self.place], x[1] = 255, self.np_random.integers(256)
        return x


def place(env):
    return env.unwrapped.place


WORLD = GymWorld(Line, place, 5, (0, 1, 2), 4)
WORLD = replace(WORLD, agents=WORLD.policies(alpha=1.0, seed=0))


class TakesTurns(Policy):
    """Goes by the number of the episode alone."""

    def probabilities(self, history, episode):
        return np.eye(3)[episode % 3]


def test_an_agent_knows_the_number_of_its_episode():
    for workers in (1, 2):
        found = collect(WORLD, [TakesTurns(), TakesTurns()], [7, 5], seed=1, workers=workers)
        assert found.truth.actions[:, 0].tolist() == [*(i % 3 for i in range(7)), *(i % 3 for i in range(5))]


def test_what_is_seen_is_what_is_true():
    found = collect(WORLD, WORLD.policies(), [30, 20], seed=1)
    x = np.stack([found.tau.at(h) for h in range(1, 5)], axis=1)
    states, actions = found.truth.states, found.truth.actions
    assert found.tau.counts.tolist() == [30, 20]
    assert (x[:, :, 0].argmax(axis=-1) == states).all()
    assert (states[:, 0] == 2).all()
    assert (MOVES[states[:, :-1], actions] == states[:, 1:]).all()


def test_the_result_depends_on_the_seed_and_not_on_the_workers():
    one, two = (collect(WORLD, WORLD.policies(), 40, seed=3, workers=w) for w in (1, 2))
    other = collect(WORLD, WORLD.policies(), 40, seed=4)
    for h in range(1, 5):
        assert (one.tau.at(h) == two.tau.at(h)).all()
    assert (one.truth.states == two.truth.states).all()
    assert (one.truth.actions == two.truth.actions).all()
    assert (one.truth.actions != other.truth.actions).any()


def test_what_moves_by_itself_does_not_know_the_policies():
    """The same seed gives the same lamp to agents of another kind, who act otherwise."""
    left = HistoryPolicy(lambda history: np.tile([1.0, 0.0, 0.0], (len(history), 1)))
    first, second = collect(WORLD, WORLD.policies(), 20, seed=5), collect(WORLD, [left, left], 20, seed=5)
    assert (first.truth.states != second.truth.states).any()
    assert all((first.tau.at(h)[:, 1] == second.tau.at(h)[:, 1]).all() for h in range(1, 5))


def test_agents_act_with_the_chances_of_their_tables():
    found = collect(WORLD, WORLD.policies(), 1000, seed=6)
    for k, policy in enumerate(WORLD.policies()):
        first = found.truth.actions[found.tau.agent == k, 0]
        assert np.allclose(np.bincount(first, minlength=3) / 1000, policy.pi(1)[2], atol=0.06)


def test_episodes_may_end_early(tmp_path):
    world = GymWorld(partial(Line, end=1), place, 5, (0, 1, 2), 4)
    record(world, WORLD.policies(), 60, tmp_path / "x", seed=0)
    tau = TrajectoryDataset.open(tmp_path / "x")
    states = read_true_states(tmp_path / "x")
    ended = (states == 1).any(axis=1)
    assert ended.any()
    assert (tau.lengths[~ended] == 4).all()
    assert (tau.lengths[ended] == (states == 1).argmax(axis=1)[ended] + 1).all()
    assert ((states >= 0).sum(axis=1) == tau.lengths).all()


def test_a_bar_for_those_who_wait(capsys):
    collect(WORLD, WORLD.policies(), 3, seed=0, progress=True)
    assert "6/6" in capsys.readouterr().err


def test_several_starts_are_warned_of():
    world = GymWorld(partial(Line, random_start=True), place, 5, (0, 1, 2), 4)
    with pytest.warns(AssumptionWarning, match="one true state, as CRAFT assumes; these start in 5"):
        collect(world, WORLD.policies(), 40, seed=0)


def test_an_environment_is_enough_and_its_states_may_be_unknown(tmp_path):
    world = GymWorld(Line, H=4)
    assert list(world.actions) == [0, 1, 2]
    found = record(world, world.policies(), 30, tmp_path / "x", seed=0)
    assert (found.truth.states == -1).all()
    assert len(read_actions(tmp_path / "x")[0]) == 30
    with pytest.raises(InvalidDataError, match="must know the true states"):
        read_true_states(tmp_path / "x")
    first = found.truth.actions[:30]
    assert np.bincount(first.ravel(), minlength=3).argmax() == world.policies()[0].pi(1).argmax()


def test_agents_act_in_an_environment_of_numbered_actions_and_H_observations():
    env = GymWorld(Line, place, 5, (2, 0), 4).environment()
    env.reset(seed=0)
    assert env.action_space.n == 2
    assert [env.step(a)[3] for a in (0, 0, 1)] == [False, False, True]
    assert place(env) == 3
    env.close()


class FromOne(Line):
    """Its actions are 1, 2 and 3, and it counts how often one is closed."""

    action_space = gymnasium.spaces.Discrete(3, start=1)
    closed = 0

    def step(self, action):
        return super().step(action - 1)

    def close(self):
        FromOne.closed += 1


def test_actions_may_begin_at_another_number_and_environments_are_closed():
    world = GymWorld(FromOne, place, 5, H=4)
    assert list(world.actions) == [1, 2, 3]
    collect(world, WORLD.policies(), 2, seed=0)
    assert FromOne.closed == 3  # those that were made to see its actions and its space, and the one that was played


class Faulty(Line):
    """A line on which something is wrong."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault = fault

    def step(self, action):
        if self.fault == "raises":
            raise KeyError("lost")
        x, *rest = super().step(action)
        return {"shape": x[:1], "dtype": x.astype(float)}[self.fault], *rest


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("raises", "must run without errors; KeyError: 'lost', in episode . of agent 0"),
        ("shape", r"uint8 of shape \(2, 5\); one is uint8 of shape \(1, 5\)"),
        ("dtype", r"uint8 of shape \(2, 5\); one is float64 of shape \(2, 5\)"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_environment_that_fails_gets_a_sentence(fault, sentence, workers):
    with pytest.raises(InvalidDataError, match=sentence):
        collect(GymWorld(partial(Faulty, fault), place, 5, (0, 1, 2), 4), WORLD.policies(), 2, workers=workers)


class Named(gymnasium.ObservationWrapper):
    observation_space = gymnasium.spaces.Dict({"image": Line.observation_space})


ADAPTIVE = AdaptivePolicy(lambda past: WORLD.agents[0], batch=2)


@pytest.mark.parametrize(
    ("world", "policies", "more", "sentence"),
    [
        (GymWorld(Line, lambda env: 7, 5, (0, 1, 2), 4), None, {}, r"integer in 0\.\.4; 7 was read"),
        (GymWorld(lambda: Named(Line()), place, 5, (0, 1, 2), 4), None, {}, "must be arrays of one shape"),
        (GymWorld(Line, place, 5, (0, 1), 4), None, {}, r"shape \(1, 2\); MarkovPolicy gave float64 of shape \(1, 3\)"),
        (WORLD, [ADAPTIVE, ADAPTIVE], {}, "one with a batch was given"),
        (replace(WORLD, H=10**6), [TakesTurns()] * 2, {"n": 10**6}, "2000000 trajectories must fit into memory"),
        (WORLD, None, {"workers": 0}, "workers must be an integer from 1 to 1024; 0 was given"),
    ],
)
def test_what_cannot_be_collected_is_refused(world, policies, more, sentence):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=sentence):
        collect(world, policies or WORLD.policies(), **{"n": 2, **more})


def continuous():
    return gymnasium.wrappers.TransformAction(Line(), int, gymnasium.spaces.Box(0, 1, (1,)))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"make": 3}, "make must make the environment when called"),
        ({"state": 3}, "state must be a function"),
        ({"H": 1}, r"H must be .*; 1 was given; an episode has at least two steps"),
        ({"actions": "left"}, "actions must list what `step` is given; 'left' was given"),
        ({"make": dict}, "must be a Gymnasium environment"),
        ({"make": continuous}, r"must have discrete actions; its actions are Box\(0.0, 1.0, \(1,\)"),
        ({"agents": [3]}, "agents must be a list of Markov policies"),
    ],
)
def test_what_makes_no_world_is_refused(given, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        GymWorld(**{"make": Line, **given})
