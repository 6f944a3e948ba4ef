"""Tests of states: right ones pass at the level promised; fused ones and borders of a distractor do not."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.core.evidence import dependence, log_gamma_tail
from craftrl.diagnostics.tests import run_tests
from craftrl.envs import BitsExBMDP, collect


def passed(codes, tau, n_values=2):
    n_states = (codes.max(axis=0) + 1).tolist()
    return run_tests(codes, n_states, CoordinateOracle(n_values, n_threads=1).prepare(tau))


def three_states(seed, n=400, noise_values=3):
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


def least(codes, tau, n_values=3):
    """The p-value over all steps together."""
    p_value = passed(codes, tau, n_values).p_closure
    return float(p_value.min() * len(p_value))


def test_right_states_pass_about_as_often_as_promised():
    alarms = sum(least(states, tau) < 0.1 for tau, states in map(three_states, range(60)))
    assert alarms <= 12


def test_right_states_pass_where_most_values_are_rare():
    """With twelve values of noise, few visits are expected of most entries of a table."""
    few = [three_states(seed, n=60, noise_values=12) for seed in range(60)]
    assert sum(least(states, tau, 12) < 0.01 for tau, states in few) <= 2


@pytest.mark.parametrize("h", [2, 3, 4])
def test_fused_states_are_seen(h):
    tau, states = three_states(0, n=1500)
    codes = states.copy()
    codes[:, h - 1] = np.minimum(codes[:, h - 1], 1)
    assert least(codes, tau) < 1e-6
    assert least(states, tau) > 0.01


def test_the_border_of_a_distractor_is_seen_and_more_nats_mean_less_probable():
    world = BitsExBMDP(6, 12, seed=1)
    tau = collect(world, world.paper_policies(), 1500, seed=0).tau
    codes = np.stack([world.phi_star(tau.at(h), h) for h in range(1, 7)], axis=1)
    wrong = codes.copy()
    wrong[:, 3] = world.phi_e(tau.at(4), 4)[:, 1]
    found = passed(wrong, tau)
    assert least(codes, tau, 2) > 1e-3
    assert found.p_closure[[2, 3]].max() < 1e-6
    assert found.closure[[2, 3]].min() > passed(codes, tau).closure.max()


def test_steps_that_are_over_are_left_out():
    tau, states = three_states(0, n=300)
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 3 == 0, 2, 4))
    codes = np.where(np.arange(4) < short.lengths[:, None], states, -1)
    assert least(codes, short) > 1e-3


# -- residual information ----------------------------------------------------------------------------------------


def distractor_codes(tau, steps, world):
    """The true states, but s*_h XOR e^1, the frozen distractor, at these steps."""
    codes = [world.phi_star(tau.at(h), h) for h in range(1, tau.H + 1)]
    for h in steps:
        codes[h - 1] = tau.at(h)[:, int(np.flatnonzero(world.permutation[h - 1] == 1)[0])]
    codes[0] = np.zeros(tau.n, dtype=np.int64)
    return np.stack(codes, axis=1).astype(np.int64)


def test_the_frozen_distractor_shows_at_its_borders_and_nowhere_else():
    """Late enough for the start to be forgotten, (s_h XOR e^1, s_{h+1} XOR e^1) is as good as the states."""
    world = BitsExBMDP(10, 8, seed=3)
    tau = collect(world, world.paper_policies(), 4000, 0).tau
    right = passed(distractor_codes(tau, range(0), world), tau)
    assert (right.p_residual > 0.01).all()
    wrong = passed(distractor_codes(tau, range(6, 9), world), tau)
    assert list(np.flatnonzero(wrong.p_residual < 1e-3) + 1) == [5, 8]
    assert wrong.residual[4] == pytest.approx(right.known[4], abs=0.005)


# -- the statistic -----------------------------------------------------------------------------------------------


def drawn(rng, n, cells, agents, values, share, repeats):
    """Tables (cells * agents, repeats, values) of values that know nothing of the agents, given the cell."""
    cell, agent = rng.integers(cells, size=n), (rng.random(n)[:, None] > np.cumsum(share)[:-1]).sum(axis=1)
    rare = rng.dirichlet(np.full(values, 0.5), size=cells)
    size = np.bincount(cell * agents + agent, minlength=cells * agents)
    groups = [rng.multinomial(m, rare[g // agents], size=repeats) for g, m in enumerate(size)]
    return np.array(groups), np.repeat(np.arange(cells), agents)


@pytest.mark.parametrize(
    ("n", "cells", "share", "values"),
    [(400, 4, (0.5, 0.5), 2), (400, 25, (0.5, 0.5), 5), (10200, 16, (0.98, 0.02), 4), (3000, 9, (0.9, 0.07, 0.03), 3)],
)
def test_p_values_are_right_far_out_where_agents_are_unbalanced_and_cells_are_rare(n, cells, share, values):
    rng = np.random.default_rng(0)
    log_p = np.concatenate([dependence(*drawn(rng, n, cells, len(share), values, share, 4000))[0] for _ in range(10)])
    for level, most in ((0.05, 1.3), (1e-2, 1.5), (1e-3, 2.0), (1e-4, 4.0)):
        assert (log_p < math.log(level)).mean() < most * level
    assert (log_p < math.log(0.05)).mean() > 0.02


def test_mean_and_variance_are_those_of_all_tables_with_these_sums():
    """Every arrangement of seven labels against seven others."""
    from itertools import permutations

    from craftrl.core.pearson import pearson

    rows, columns = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 2, 2])
    arranged = np.array(list(set(permutations(columns.tolist()))))
    tables = np.zeros((2, len(arranged), 3), dtype=np.int64)
    for r, column in zip(rows, arranged.T):
        tables[r, np.arange(len(arranged)), column] += 1
    found = pearson(tables, np.array([0, 2]), 0.0)
    assert found[:, 0].mean() == pytest.approx(found[0, 1])
    assert found[:, 0].var() == pytest.approx(found[0, 2])


def test_information_is_measured_in_nats_and_without_bias():
    rng = np.random.default_rng(1)
    p = np.array([[0.4, 0.1], [0.2, 0.3]])
    truth = float((p * np.log(p / np.outer(p.sum(1), p.sum(0)))).sum())
    for shares, expected, error in ((p, truth, 0.1 * truth), (np.full((2, 2), 0.25), 0.0, 3e-4)):
        tables = rng.multinomial(500, shares.ravel(), size=200).reshape(200, 2, 2).transpose(1, 0, 2)
        assert dependence(np.ascontiguousarray(tables), np.zeros(2, dtype=int))[1].mean() == pytest.approx(
            expected, abs=error
        )


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_names_of_cells_agents_and_values_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    tables = rng.choice([1, 3, 7, 20, 50, 90, 130, 170, 230], size=(3, 2, 1, 4), replace=True)
    renamed = tables[rng.permutation(3)][:, rng.permutation(2)][..., rng.permutation(4)]
    stratum = np.repeat(np.arange(3), 2)
    one, other = (dependence(np.ascontiguousarray(t.reshape(6, 1, 4)), stratum)[0] for t in (tables, renamed))
    assert one == pytest.approx(other, rel=0.2)  # rare values that are equally rare are joined in their order


def test_tails_too_small_for_a_float_are_ordered():
    log_p = log_gamma_tail(np.full(4, 3.0), np.array([1.0, 500.0, 900.0, 5000.0]))
    assert (np.diff(log_p) < 0).all()
    assert log_p[-1] == pytest.approx(-5000 + 2 * np.log(5000) - np.log(2), rel=1e-3)
