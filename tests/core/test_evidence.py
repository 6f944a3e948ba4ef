"""Tests of log-odds against chance: right rates where nothing is to be found, and power where something is."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax

from craftrl.core.evidence import above_chance, chance_loss, dependence, held_out_p_value


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
    assert held_out_p_value(constant, np.arange(10) % 2) == 1
    assert held_out_p_value(constant[:1], np.array([0])) == 1
    assert held_out_p_value(np.random.default_rng(0).normal(size=(10, 2)), np.zeros(10, dtype=int)) == 1


def test_the_strongest_of_many_tables_is_rarely_significant_once_corrected():
    """Twenty features that have nothing to do with the agents."""
    rng, found = np.random.default_rng(2), []
    for _ in range(100):
        agent, x = rng.integers(2, size=100), rng.integers(2, size=(20, 100))
        tables = np.stack([np.bincount(2 * f + agent, minlength=4).reshape(2, 2) for f in x], axis=1)
        found.append(dependence(tables, np.zeros(2, dtype=int))[0].min() + math.log(20) < math.log(0.05))
    assert np.mean(found) < 0.1
    assert dependence(np.array([[[60, 40]], [[40, 60]]]), np.zeros(2, dtype=int))[0][0] < math.log(0.01)
    assert dependence(np.array([[[50, 50]], [[0, 0]]]), np.zeros(2, dtype=int))[0][0] == 0


def test_a_doubtful_step_is_believed_among_good_ones_only():
    assert above_chance([1e-9, 1e-8, 0.008]).tolist() == [True, True, True]
    assert above_chance([0.9, 0.4, 0.008]).tolist() == [False, False, False]
    assert above_chance([]).tolist() == []
