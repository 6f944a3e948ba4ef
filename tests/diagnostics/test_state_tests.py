"""Tests of states: right ones pass at the level promised; fused ones, split ones and borders of a distractor do not."""

import numpy as np
import pytest

from craftrl import CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.encoders import named_states
from craftrl.diagnostics.state_tests import run_tests
from craftrl.envs import BitsExBMDP, collect
from small_worlds import walked


def checked(codes, tau, n_values=2, n_states=None):
    n_states = (codes.max(axis=0) + 1).tolist() if n_states is None else n_states
    return run_tests(codes, n_states, CoordinateOracle(n_values, n_threads=1).prepare(tau))


def two_agents(x):
    return TrajectoryDataset.from_arrays(np.split(x, 2))


def three_states(seed, n=400, noise_values=3):
    """Three states on a line, whose moves depend on the state; one coordinate shows it, the others are noise."""
    stay = np.array([[0.8, 0.5, 0.3], [0.5, 0.3, 0.7]])[..., None]
    s, _ = walked(n, np.where(np.eye(3, dtype=bool), stay, (1 - stay) / 2), 4, seed=seed)
    noise = np.random.default_rng(seed).integers(noise_values, size=(2 * n, 4, 3))
    return two_agents(np.concatenate([s[..., None], noise], axis=2)), s


def least(codes, tau, n_values=3):
    """The p-value over all steps together."""
    p_value = checked(codes, tau, n_values).p_closure
    return float(p_value.min() * len(p_value))


@pytest.mark.parametrize(("n", "values", "level", "most"), [(400, 3, 0.1, 12), (60, 12, 0.01, 2)])
def test_right_states_pass_about_as_often_as_promised(n, values, level, most):
    """Also where, with twelve values of noise, few visits are expected of most entries of a table."""
    found = [three_states(seed, n, values) for seed in range(60)]
    assert sum(least(states, tau, values) < level for tau, states in found) <= most


@pytest.mark.parametrize("sizes", [(4000, 200), (10000, 200)])
def test_right_states_of_unbalanced_agents_pass(sizes):
    """Many rare cells, of which the rarer agent shows some once: Pearson's statistic is no chi-square there."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        s, agent = walked(sizes, rng.dirichlet(np.full(5, 0.4), size=(2, 5)), 4, seed=seed)
        noise = rng.choice(5, p=[0.6, 0.3, 0.09, 0.009, 0.001], size=(*s.shape, 6))
        x = np.concatenate([s[..., None], noise], axis=2)
        found = checked(s, TrajectoryDataset.from_arrays([x[agent == k] for k in (0, 1)]), 5, [1, 5, 5, 5])
        assert min(found.p_residual.min(), found.p_closure.min()) * 3 > 1e-3


@pytest.mark.parametrize("h", [2, 3, 4])
def test_fused_states_are_seen(h):
    tau, states = three_states(0, n=1500)
    codes = states.copy()
    codes[:, h - 1] = np.minimum(codes[:, h - 1], 1)
    assert least(codes, tau) < 1e-6
    assert least(states, tau) > 0.01


@pytest.mark.parametrize("ends", [4, 3])
def test_a_state_that_noise_splits_is_seen_where_the_class_reads_it_as_one(ends):
    """A class in which the state stands beside the state with a coin: bounds that are too small take the coin along.
    Also where one agent's trajectories end before the moves out of that state."""
    tau, s = three_states(0, n=1500, noise_values=2)
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    tau = TrajectoryDataset.from_arrays(by_agent, np.where(tau.agent == 0, 4, ends))
    s = np.where(np.arange(4) < tau.lengths[:, None], s, -1)
    oracle = FiniteOracle([lambda x: x[:, 0], lambda x: 2 * x[:, 0] + x[:, 1]], 6)
    codes = s.copy()
    assert np.isinf(run_tests(codes, [1, 3, 3, 3], oracle.prepare(tau)).split).all()
    codes[:, 2] = 2 * s[:, 2] + tau.at(3)[:, 1]
    split = run_tests(codes, [1, 3, 6, 3], oracle.prepare(tau)).split
    assert split[2] < np.log(1e-3)
    assert np.isinf(split[[0, 1, 3]]).all()


def test_codes_that_stand_for_no_state_are_counted_and_read_as_the_commonest():
    codes = np.array([[0, 2], [0, 1], [1, 1], [-1, -1]])
    assert named_states(codes, [1, 2]).tolist() == [[0, 1], [0, 1], [0, 1], [-1, -1]]
    codes = np.stack([np.zeros(400, dtype=int), np.arange(400) % 3, np.arange(400) // 2 % 3], axis=1)
    found = checked(codes, two_agents(np.stack([codes, codes], axis=2)), 3, [1, 2, 3])
    assert found.unnamed == pytest.approx([0, 1 / 3, 0], abs=0.01)


def test_steps_that_are_over_are_left_out():
    tau, states = three_states(0, n=300)
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 3 == 0, 2, 4))
    assert least(np.where(np.arange(4) < short.lengths[:, None], states, -1), short) > 1e-3


def frozen_distractor(horizon, features, seed, n, steps):
    """A world, trajectories, the true states, and the same but s*_h XOR e^1, the frozen distractor, at these steps."""
    world = BitsExBMDP(horizon, features, seed=seed)
    data = collect(world, world.paper_policies(), n, seed=0)
    wrong = data.truth.states.copy()
    for h in steps:
        wrong[:, h - 1] = data.tau.at(h)[:, int(np.flatnonzero(world.permutation[h - 1] == 1)[0])]
    return data.tau, data.truth.states, wrong


def test_the_border_of_a_distractor_is_seen_by_moves_and_more_nats_mean_less_probable():
    tau, states, codes = frozen_distractor(6, 12, 1, 1500, [4])
    right, wrong = checked(states, tau), checked(codes, tau)
    assert least(states, tau, 2) > 1e-3
    assert wrong.p_closure[[2, 3]].max() < 1e-6
    assert wrong.closure[[2, 3]].min() > right.closure.max()


def test_the_frozen_distractor_shows_by_agents_at_its_borders_and_nowhere_else():
    """Late enough for the start to be forgotten, (s_h XOR e^1, s_{h+1} XOR e^1) is as good as the states."""
    tau, states, codes = frozen_distractor(10, 8, 3, 4000, range(6, 9))
    right, wrong = checked(states, tau), checked(codes, tau)
    assert (right.p_residual > 0.01).all()
    assert list(np.flatnonzero(wrong.p_residual < 1e-3) + 1) == [5, 8]
    assert wrong.residual[4] == pytest.approx(right.known[4], abs=0.005)
