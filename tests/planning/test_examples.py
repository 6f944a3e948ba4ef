"""The examples run as written, with small settings; what they teach is right."""

import gymnasium
import numpy as np
import pytest

from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from examples import imitate, q_learning
from examples.goals import ReachState, steps_to, success_rate
from examples.q_learning import TabularQ


def test_q_learning(capsys):
    (curve,) = q_learning.main(["--videos", "1500", "--steps", "400", "--seeds", "1"])
    assert curve[-1] == (400, 1.0)
    assert "16 states, from videos without actions" in capsys.readouterr().out


def test_imitate():
    reached = imitate.main(["--videos", "800", "--labels", "0", "100", "--episodes", "50", "--seeds", "1"])
    assert reached[0] < [0.6]
    assert reached[100] > [0.75]


@pytest.mark.slow
def test_stable_baselines_on_states():
    from examples import sb3_on_states

    curves = sb3_on_states.main(["--videos", "2000", "--steps", "128", "--every", "64", "--seeds", "1"])
    assert set(curves) == {"PPO pixels", "PPO states", "DQN states"}
    assert all([steps for steps, _ in curve] == [64, 128] for (curve,) in curves.values())


def test_a_level_counts_as_reached_once_it_stays():
    curve = [(100, 0.2), (200, 0.96), (300, 0.5), (400, 0.97), (500, 1.0)]
    assert [steps_to(level, curve) for level in (0.95, 0.1, 1.1)] == [400, 100, None]
    assert steps_to(0.5, [(1, 1.0), (2, 0.0)]) is None
    assert steps_to(0.5, []) is None


PIXELS, CORNER = PixelsExBMDP(horizon=8, size=3, n_walkers=1), 8


class Cells(gymnasium.ObservationWrapper):
    """The true cell, in place of the image."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Discrete(9)

    def observation(self, x):
        return self.unwrapped.state


def corner(limit=None):
    return Cells(ReachState(ExBMDPEnv(PIXELS), lambda env: env.unwrapped.state == CORNER, limit))


@pytest.mark.parametrize(("rate", "H"), [(0.5, 1), (1.0, 8)])
def test_it_learns_the_shortest_way_and_success_is_counted_within_the_limit(rate, H):
    learner, again = TabularQ(rate=rate, H=H, seed=1), TabularQ(rate=rate, H=H, seed=1)
    learner.learn(corner(), 1000)
    again.learn(corner(), 1000)
    assert np.array_equal(learner.q, again.q)
    assert learner.visits.sum() == learner.steps == 1000
    assert [success_rate(corner(limit), learner.act, 10) for limit in (None, 2, 1)] == [1.0, 1.0, 0.0]
    if H > 1:
        assert learner.q[0, 0].max() == pytest.approx(0.95)  # a reward of 1, two moves away


def test_a_cut_off_episode_is_worth_what_follows():
    """Cut off after one step, the way on is still worth something; at a real end it is not."""
    learner = TabularQ(rate=1.0, optimism=0.5)
    learner.learn(corner(limit=1), 40)
    assert np.allclose(learner.q[0, 0, learner.visits[0, 0] > 0], 0.95 * 0.5)
