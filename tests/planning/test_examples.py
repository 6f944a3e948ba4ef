"""The examples run as written, with small settings; what they teach is right."""

import gymnasium
import numpy as np
import pytest

from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, StateGraph
from examples import imitate, q_learning
from examples.goals import ReachState, steps_to, success_rate
from examples.q_learning import TabularQ
from planning.line_world import LEFT, RIGHT, Line, Reads, walks

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
    return Cells(ReachState(ExBMDPEnv(PIXELS), lambda env: env.unwrapped.state == CORNER, limit))


def path():
    """Actions that lead from the middle to the corner."""
    moves = PIXELS.plan.moves
    first = next(a for a in range(4) if CORNER in moves[moves[0, a]])
    return first, next(a for a in range(4) if moves[moves[0, first], a] == CORNER)


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


# -- goals ---------------------------------------------------------------------------------------------------------


def test_success_is_the_share_of_episodes_that_reach_the_goal_within_their_limit():
    actions = path()
    assert success_rate(corner(), lambda x, h: actions[h - 1], 5) == 1.0
    assert success_rate(corner(limit=1), lambda x, h: actions[h - 1], 5) == 0.0
    turns = iter(np.tile([*actions, *[actions[0]] * 7], 5))  # one episode of two steps, the next of seven
    assert success_rate(corner(), lambda x, h: int(next(turns)), 10) == 0.5


def test_a_level_counts_as_reached_once_it_stays():
    curve = [(100, 0.2), (200, 0.96), (300, 0.5), (400, 0.97), (500, 1.0)]
    assert [steps_to(level, curve) for level in (0.95, 0.1, 1.1)] == [400, 100, None]
    assert steps_to(0.5, [(1, 1.0), (2, 0.0)]) is None
    assert steps_to(0.5, []) is None


# -- Q-learning ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "H"), [(0.5, 1), (1.0, 8)])
def test_it_learns_the_shortest_way(rate, H):
    learner, again = TabularQ(rate=rate, H=H, seed=1), TabularQ(rate=rate, H=H, seed=1)
    learner.learn(corner(), 1000)
    again.learn(corner(), 1000)
    assert np.array_equal(learner.q, again.q)
    assert learner.visits.sum() == learner.steps == 1000
    assert success_rate(corner(), learner.act, 10) == 1.0
    assert CORNER in PIXELS.plan.moves[PIXELS.plan.moves[0, learner.act(0)]]
    if H > 1:
        assert learner.q[0, 0].max() == pytest.approx(0.95)  # a reward of 1, two moves away


def test_a_cut_off_episode_is_worth_what_follows():
    """Cut off after one step, the way on is still worth something; at a real end it is not."""
    learner = TabularQ(rate=1.0, optimism=0.5)
    learner.learn(corner(limit=1), 40)
    assert np.allclose(learner.q[0, 0, learner.visits[0, 0] > 0], 0.95 * 0.5)


# -- imitation -----------------------------------------------------------------------------------------------------

ROW = range(4)
CELLS = np.concatenate([walks(4, 1, share, H=7, seed=i)[0] for i, share in enumerate((0.2, 0.8))])
GRAPH = StateGraph.from_states(CELLS, np.repeat([0, 1], 300), sizes=(4,), shared=True)


def imitator(agent, *labels):
    grounding = Grounding(GRAPH, 2)
    for label in labels:
        grounding.add(*label)
    return imitate.Imitator(Reads(ROW), grounding, agent)


ALL = [(s, a, int(np.clip(s + 2 * a - 1, 0, 3))) for s in ROW for a in (LEFT, RIGHT)]


def test_chances_are_the_probabilities_of_a_walk():
    """From cell 1 the last cell is two moves to the right: within two moves, both must go right."""
    assert imitate.chances(GRAPH, 3, start=1, horizon=2) == pytest.approx([0.2**2, 0.8**2], abs=0.03)
    assert imitate.chances(GRAPH, 3, start=1, horizon=1) == [0, 0]


def test_with_all_actions_known_it_does_what_the_agent_did():
    one = imitator(1, *ALL)
    assert np.mean([one.act(1) for _ in range(300)]) == pytest.approx(0.8, abs=0.07)
    share = np.mean([one.reaches(Line(4, 1, limit=6), 3, seed=i) for i in range(200)])
    assert share == pytest.approx(imitate.chances(GRAPH, 3, start=1, horizon=6)[1], abs=0.07)


def test_without_labels_it_acts_at_random():
    one = imitator(1)
    assert np.mean([one.act(1) for _ in range(300)]) == pytest.approx(0.5, abs=0.07)
