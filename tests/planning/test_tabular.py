"""Tasks with a goal, learning curves, and Q-learning on states."""

import gymnasium
import numpy as np
import pytest

from craftrl import CRAFT
from craftrl.deploy import StateObservation
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.planning import Curve, ReachState, TabularQ, success_rate

PIXELS = PixelsExBMDP(horizon=8, size=3, n_walkers=1)
CORNER = 8


class Cells(gymnasium.ObservationWrapper):
    """The true cell, in place of the image."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Discrete(9)

    def observation(self, x):
        return self.unwrapped.state


def corner(limit=None):
    return ReachState(ExBMDPEnv(PIXELS), lambda env: env.unwrapped.state == CORNER, limit)


def directions():
    """Actions that lead from the middle to the corner and its neighbours."""
    moves = PIXELS.plan.moves
    first = next(a for a in range(4) if CORNER in moves[moves[0, a]])
    second = next(a for a in range(4) if moves[moves[0, first], a] == CORNER)
    return first, second


# -- tasks -------------------------------------------------------------------------------------------------------


def test_the_goal_is_rewarded_once_and_ends_the_episode():
    env = corner()
    env.reset(seed=0)
    first, second = directions()
    _, reward, terminated, truncated, info = env.step(first)
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, False, False, False)
    _, reward, terminated, truncated, info = env.step(second)
    assert (reward, terminated, truncated, info["is_success"]) == (1.0, True, False, True)
    assert info["state"] == CORNER
    assert env.steps_taken == 2


def test_an_episode_is_cut_off_at_its_limit_and_steps_are_counted_over_episodes():
    env = corner(limit=3)
    away = directions()[0]
    for _ in range(2):
        env.reset(seed=0)
        ends = [env.step(away)[2:4] for _ in range(3)]
        assert ends == [(False, False), (False, False), (False, True)]
    assert env.steps_taken == 6


def test_success_is_the_share_of_episodes_that_reach_the_goal():
    path = directions()
    assert success_rate(corner(), lambda x, h: path[h - 1], 5) == 1.0
    assert success_rate(corner(), lambda x, h: path[0], 5) == 0.0
    turns = iter(np.tile([*path, *[path[0]] * 7], 5))  # one episode of two steps, the next of seven
    assert success_rate(corner(), lambda x, h: int(next(turns)), 10) == 0.5


def test_odd_tasks_are_refused():
    with pytest.raises(InvalidParameterError, match="env must be a Gymnasium environment"):
        ReachState(None, lambda env: True)
    with pytest.raises(InvalidParameterError, match="limit must be an integer of at least 1"):
        corner(limit=0)
    with pytest.raises(InvalidParameterError, match="reached must be a function"):
        ReachState(ExBMDPEnv(PIXELS), 3)
    with pytest.raises(gymnasium.error.ResetNeeded):
        ExBMDPEnv(PIXELS).state  # noqa: B018


# -- curves ------------------------------------------------------------------------------------------------------


def test_a_level_counts_as_reached_once_it_stays():
    curve = Curve.of([(100, 0.2), (200, 0.96), (300, 0.5), (400, 0.97), (500, 1.0)])
    assert curve.first(0.95) == 400
    assert curve.first(0.1) == 100
    assert curve.first(1.1) is None
    assert Curve.of([(1, 1.0), (2, 0.0)]).first(0.5) is None
    assert Curve.of([]).first() is None


def test_a_curve_is_smoothed_and_read_at_any_step():
    curve = Curve.of([(2, 0.0), (4, 1.0), (6, 1.0)])
    assert np.array_equal(curve.smoothed(2).steps, [4, 6])
    assert np.allclose(curve.smoothed(2).score, [0.5, 1.0])
    assert len(curve.smoothed(4)) == 0
    assert np.array_equal(curve.at([1, 2, 5, 9]), [np.nan, 0.0, 1.0, 1.0], equal_nan=True)
    with pytest.raises(InvalidDataError, match="one score for each number of steps, in order"):
        Curve(np.array([2, 1]), np.array([0.0, 0.0]))


# -- Q-learning --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "H"), [(0.5, None), ("visits", None), (1.0, 8)])
def test_it_learns_the_shortest_way(step, H):
    learner = TabularQ(step=step, H=H, seed=1).fit(Cells(corner()), 1500)
    assert learner.q_.shape == (H or 1, 9, 4)
    assert learner.visits_.sum() == learner.steps_ == 1500
    assert success_rate(Cells(corner()), learner.act, 20) == 1.0
    moves = PIXELS.plan.moves
    after = moves[0, learner.act(0)]
    assert CORNER in moves[after]
    # with rewards of 1 two moves away, the value of the start is the discount
    if H is not None:
        assert learner.q_[0, 0].max() == pytest.approx(0.95)


def test_one_seed_learns_the_same_and_returns_are_kept():
    one, two, other = (TabularQ(seed=seed).fit(Cells(corner()), 300) for seed in (0, 0, 5))
    assert np.array_equal(one.q_, two.q_)
    assert not np.array_equal(one.visits_, other.visits_)
    assert set(one.curve_.score) <= {0.0, 1.0}
    assert one.curve_.score[-20:].mean() > one.curve_.score[:20].mean()
    assert one.curve_.steps[-1] <= 300


def test_learning_goes_on_where_it_stopped():
    learner = TabularQ(seed=0).partial_fit(Cells(corner()), 100)
    before = learner.visits_.copy()
    learner.partial_fit(Cells(corner()), 50)
    assert learner.steps_ == 150
    assert (learner.visits_ >= before).all()
    assert learner.fit(Cells(corner()), 20).steps_ == 20


def test_a_cut_off_episode_is_worth_what_follows():
    """Cut off after one step, the way on is still worth something; at a real end it is not."""
    learner = TabularQ(step=1.0, optimism=0.5).fit(Cells(corner(limit=1)), 40)
    tried = learner.visits_[0, 0] > 0
    assert np.allclose(learner.q_[0, 0, tried], 0.95 * 0.5)


class Combination(gymnasium.Env):
    """One state; at step h the action must be the h-th of a combination, and whoever has all of them right wins."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)
    right = (0, 1, 1, 0)

    def reset(self, *, seed=None, options=None):
        self.done = 0
        return 0, {}

    def step(self, action):
        wrong = action != self.right[self.done]
        self.done += 1
        won = not wrong and self.done == len(self.right)
        return 0, float(won), bool(wrong or won), False, {"is_success": won}


def test_states_that_mean_something_else_at_every_step_need_a_table_for_each():
    by_step, for_all = TabularQ(H=4).fit(Combination(), 400), TabularQ().fit(Combination(), 400)
    assert [by_step.act(0, h) for h in range(1, 5)] == [0, 1, 1, 0]
    assert success_rate(Combination(), by_step.act, 3) == 1.0
    assert success_rate(Combination(), for_all.act, 3) == 0.0


def test_it_learns_on_the_states_of_a_model():
    world = BitsExBMDP(horizon=5, n_features=6, seed=0)
    model = CRAFT().fit(collect(world, world.paper_policies(), 500, seed=0).tau)
    goal = lambda env: env.unwrapped.h == 5 and env.unwrapped.state == 1  # noqa: E731
    env = StateObservation(ReachState(ExBMDPEnv(world), goal), model)
    learner = TabularQ(H=5, seed=0).fit(env, 1000)
    assert success_rate(env, learner.act, 20) == 1.0


def test_odd_environments_and_settings_are_refused():
    with pytest.raises(InvalidDataError, match=r"Discrete observations .* wrap it with .*StateObservation"):
        TabularQ().fit(corner(), 10)
    with pytest.raises(InvalidParameterError, match=r"env must be a Gymnasium environment; <object .* was given"):
        TabularQ().fit(object(), 10)
    with pytest.raises(NotFittedError):
        TabularQ().act(0)
    with pytest.raises(InvalidParameterError, match=r'step must be a number in \(0, 1\]; 0 was given; or "visits"'):
        TabularQ(step=0).fit(Cells(corner()), 10)
    with pytest.raises(InvalidParameterError, match="steps must be an integer of at least 1"):
        TabularQ().fit(Cells(corner()), 0)
    fitted = TabularQ().fit(Cells(corner()), 10)
    with pytest.raises(InvalidParameterError, match="state must be an integer from 0 to 8"):
        fitted.act(9)
    other = Cells(corner())
    other.observation_space = gymnasium.spaces.Discrete(3)
    with pytest.raises(InvalidDataError, match="must have 9 states and 4 actions, as before; it has 3 and 4"):
        fitted.partial_fit(other, 10)


@pytest.mark.parametrize("rows", [None, 3, "x", [1, 2], [(1, 2, 3)], [(1.5, 0.0)], [(1, "x")]])
def test_a_curve_is_made_of_pairs(rows):
    with pytest.raises(InvalidDataError, match=r"must be (pairs of steps and score|whole numbers|finite numbers)"):
        Curve.of(rows)
    assert len(Curve.of([])) == 0


def test_a_half_beyond_64_bits_is_a_number():
    table = TabularQ(half=2**63).fit(Cells(ExBMDPEnv(PIXELS)), 20)
    assert table.steps_ == 20
    with pytest.raises(InvalidParameterError, match="The table of values must fit into memory"):
        TabularQ(H=2**40).fit(Cells(ExBMDPEnv(PIXELS)), 20)
