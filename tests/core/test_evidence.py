"""Tests against chance: right rates where nothing is to be found, and power where something is."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from craftrl.core.evidence import above_chance, chance_loss, dependence, held_out_p_value, log_gamma_tail
from craftrl.core.pearson import pearson

# -- log-odds ---------------------------------------------------------------------------------------------------------


def test_chance_is_the_entropy_of_the_agents():
    assert chance_loss(np.array([0, 1, 0, 1])) == pytest.approx(math.log(2))
    assert chance_loss(np.array([0, 0, 0, 1])) == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert chance_loss(np.array([], dtype=int)) == 0


@pytest.mark.parametrize("K", [2, 3])
def test_held_out_log_odds_that_know_nothing_have_uniform_p_values(K):
    """Whether they are calibrated or overconfident, and however rare an agent is."""
    rng = np.random.default_rng(0)
    p = []
    for _ in range(400):
        agent = (rng.random(200)[:, None] > np.array([0.2, 0.6])[: K - 1]).sum(axis=1)
        p.append(held_out_p_value(log_softmax(1 + 3 * rng.normal(size=(200, K)), axis=1), agent))
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09
    assert 0.42 < np.mean(np.array(p) < 0.5) < 0.58


def test_held_out_log_odds_that_know_something_are_found_and_those_that_say_nothing_are_not():
    rng = np.random.default_rng(1)
    agent = rng.integers(2, size=300)
    f = np.where(rng.random(300) < 0.65, agent, 1 - agent) * 2.0 - 1
    log_p = log_softmax(np.stack([-f, f], axis=1), axis=1)
    assert held_out_p_value(log_p, agent) < 1e-4
    assert held_out_p_value(log_p[:, ::-1], agent) > 0.99  # worse than chance is not better than chance
    constant = np.log(np.full((10, 2), 0.5))
    for none, who in ((constant, np.arange(10) % 2), (constant[:1], [0]), (rng.normal(size=(10, 2)), [0] * 10)):
        assert held_out_p_value(none, np.array(who)) == 1


def test_a_doubtful_step_is_believed_among_good_ones_only():
    assert above_chance([1e-9, 1e-8, 0.008]).tolist() == [True, True, True]
    assert above_chance([0.9, 0.4, 0.008]).tolist() == [False, False, False]
    assert above_chance([]).tolist() == []


# -- tables -----------------------------------------------------------------------------------------------------------


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
    rows, columns = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 2, 2])
    arranged = np.array(list(set(permutations(columns.tolist()))))
    tables = np.zeros((2, len(arranged), 3), dtype=np.int64)
    for r, column in zip(rows, arranged.T):
        tables[r, np.arange(len(arranged)), column] += 1
    found = pearson(tables, np.array([0, 2]), 0.0)
    assert found[:, 0].mean() == pytest.approx(found[0, 1])
    assert found[:, 0].var() == pytest.approx(found[0, 2])


def test_what_differs_is_found_and_information_is_measured_in_nats_and_without_bias():
    one = np.zeros(2, dtype=int)
    assert dependence(np.array([[[60, 40]], [[40, 60]]]), one)[0][0] < math.log(0.01)
    assert dependence(np.array([[[50, 50]], [[0, 0]]]), one)[0][0] == 0
    rng = np.random.default_rng(1)
    p = np.array([[0.4, 0.1], [0.2, 0.3]])
    truth = float((p * np.log(p / np.outer(p.sum(1), p.sum(0)))).sum())
    for shares, expected, error in ((p, truth, 0.1 * truth), (np.full((2, 2), 0.25), 0.0, 3e-4)):
        tables = rng.multinomial(500, shares.ravel(), size=200).reshape(200, 2, 2).transpose(1, 0, 2)
        assert dependence(np.ascontiguousarray(tables), one)[1].mean() == pytest.approx(expected, abs=error)


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
