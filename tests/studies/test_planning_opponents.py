"""Learners from rewards that planning is compared with: how they are evaluated, and that they learn at all."""

import gymnasium
import numpy as np
import pytest

from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from examples.goals import ReachState, steps_to
from studies.planning.opponents import STAYS, Evaluations, ppo_from_pixels, q_from_pixels

WORLD = PixelsExBMDP(horizon=4, size=2, n_walkers=1)
OPPOSITE = 3  # the cell that is two moves from the start


def images():
    return ReachState(ExBMDPEnv(WORLD), lambda env: env.unwrapped.state == OPPOSITE)


class Cells(gymnasium.ObservationWrapper):
    """The true cell, in place of the image."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Discrete(4)

    def observation(self, x):
        return self.unwrapped.state


def cells():
    return Cells(images())


class Knows:
    """A policy that goes the right way from the first `right` cells, and otherwise stays where it is."""

    def __init__(self, right):
        moves = WORLD.plan.moves
        away = np.array([0 if s == OPPOSITE else 1 if OPPOSITE in moves[s] else 2 for s in range(4)])
        self.best = away[moves].argmin(axis=1)
        self.stay = np.array([moves[s].tolist().index(s) for s in range(4)])
        self.right = right

    def predict(self, x, deterministic):
        assert deterministic
        return np.where(x < self.right, self.best[x], self.stay[x]), None


def evaluations_of(right, every=10):
    found = Evaluations(cells, every)
    found.model, found.num_timesteps = Knows(right), 0
    return found


def test_an_evaluation_is_the_share_of_episodes_that_reach_the_goal():
    assert evaluations_of(4).success() == 1.0
    assert evaluations_of(0).success() == 0.0


def test_training_ends_once_success_stays():
    evaluations = evaluations_of(4)
    goes_on = []
    for step in range(1, 10 * STAYS + 1):
        evaluations.num_timesteps = step
        goes_on.append(evaluations._on_step())
    assert goes_on == [True] * (10 * STAYS - 1) + [False]
    assert evaluations.rows == [(10 * (i + 1), 1.0) for i in range(STAYS)]


def test_one_failure_starts_the_count_again():
    evaluations = evaluations_of(4)
    evaluations.rows = [(10, 1.0), (20, 1.0), (30, 0.9), (40, 1.0), (50, 1.0), (60, 1.0), (70, 1.0)]
    assert not evaluations.arrived
    evaluations.rows.append((80, 1.0))
    assert evaluations.arrived


@pytest.mark.slow
def test_ppo_learns_where_it_sees_the_state():
    curve = ppo_from_pixels(cells, 4000, seed=0, every=256)
    assert steps_to(0.95, curve) is not None


@pytest.mark.slow
@pytest.mark.parametrize("learn", [ppo_from_pixels, q_from_pixels])
def test_images_are_taken_as_they_come_and_a_seed_decides(learn):
    settings = {"learning_starts": 64} if learn is q_from_pixels else {"n_steps": 8}
    one, two = (learn(images, 128, seed=0, every=32, **settings) for _ in range(2))
    assert [steps for steps, _ in one] == [32, 64, 96, 128]
    assert one == two
    assert all(0 <= score <= 1 for _, score in one)
