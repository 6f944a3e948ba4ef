"""Closure: right states pass at the level promised, fused ones and borders of a distractor do not."""

import numpy as np
import pytest

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.diagnostics import closure_test
from craftrl.envs import BitsExBMDP, collect


def three_states(seed: int, n: int = 400, noise_values: int = 3) -> tuple[TrajectoryDataset, np.ndarray]:
    """Three states on a line, whose moves depend on the state; one coordinate shows it, the others are noise."""
    rng = np.random.default_rng(seed)
    agent = np.repeat([0, 1], n)
    stay = np.array([[0.8, 0.5, 0.3], [0.5, 0.3, 0.7]])
    s = np.zeros((2 * n, 4), dtype=np.int64)
    for h in range(1, 4):
        moves = rng.random(2 * n) > stay[agent, s[:, h - 1]]
        s[:, h] = (s[:, h - 1] + moves * rng.integers(1, 3, 2 * n)) % 3
    noise = rng.integers(noise_values, size=(2 * n, 4, 3))
    x = np.concatenate([s[..., None], noise], axis=2)
    return TrajectoryDataset.from_arrays([x[agent == k] for k in (0, 1)]), s


def least(codes: np.ndarray, tau: TrajectoryDataset, n_values: int = 3) -> float:
    """The p-value over all steps together."""
    found = closure_test(codes, tau, CoordinateOracle(n_values))
    return float(found.p_value.min() * len(found.p_value))


def test_right_states_pass_about_as_often_as_promised() -> None:
    alarms = sum(least(states, tau) < 0.1 for tau, states in map(three_states, range(60)))
    assert alarms <= 12


def test_right_states_pass_where_most_values_are_rare() -> None:
    """With twelve values of noise, few visits are expected of most entries of a table."""
    few = [three_states(seed, n=60, noise_values=12) for seed in range(60)]
    assert sum(least(states, tau, 12) < 0.01 for tau, states in few) <= 2


@pytest.mark.parametrize("h", [2, 3, 4])
def test_fused_states_are_seen(h: int) -> None:
    tau, states = three_states(0, n=1500)
    codes = states.copy()
    codes[:, h - 1] = np.minimum(codes[:, h - 1], 1)
    assert least(codes, tau) < 1e-6
    assert least(states, tau) > 0.01


def test_the_border_of_a_distractor_is_seen_and_more_nats_mean_less_probable() -> None:
    world = BitsExBMDP(6, 12, seed=1)
    tau = collect(world, world.paper_policies(), 1500, seed=0).tau
    codes = np.stack([world.phi_star(tau.at(h), h) for h in range(1, 7)], axis=1)
    wrong = codes.copy()
    wrong[:, 3] = world.phi_e(tau.at(4), 4)[:, 1]
    found = closure_test(wrong, tau, CoordinateOracle())
    assert least(codes, tau, 2) > 1e-3
    assert found.p_value[[2, 3]].max() < 1e-6
    assert found.nats[[2, 3]].min() > closure_test(codes, tau, CoordinateOracle()).nats.max()


def test_one_state_everywhere_has_nothing_to_be_tested_but_the_other_state() -> None:
    tau, states = three_states(0, n=100)
    found = closure_test(np.zeros_like(states), tau, CoordinateOracle(3))
    assert (found.p_value == 1).all()


def test_steps_that_are_over_are_left_out() -> None:
    tau, states = three_states(0, n=300)
    short = TrajectoryDataset(tau.steps, tau.agent, np.where(np.arange(tau.n) % 3 == 0, 2, 4))
    codes = np.where(np.arange(4) < short.lengths[:, None], states, -1)
    assert least(codes, short) > 1e-3
