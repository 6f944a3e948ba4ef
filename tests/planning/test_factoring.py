"""Policies times effects: what the agents' successor distributions show of actions that slip."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from craftrl.planning.factoring import factor, rank_above_noise, scatter

EFFECTS = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.05, 0.05, 0.8, 0.1]])


def drawn(policies, visits, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.multinomial(visits, p) for p in policies @ EFFECTS]).astype(float)


def error(effects):
    distance = np.abs(effects[:, None] - EFFECTS[None]).sum(axis=-1) / 2
    return distance[linear_sum_assignment(distance)].max()


def test_noise_has_the_rank_of_one_action():
    alike = np.tile([0.5, 0.3, 0.2], (8, 1))
    ranks = [rank_above_noise(drawn(alike, 1000, seed)) for seed in range(100)]
    assert np.mean(np.array(ranks) == 1) >= 0.95


@pytest.mark.parametrize(
    ("policies", "rank"), [(np.eye(3), 3), (np.eye(3)[:2], 2), ([[0.5, 0.5, 0], [0, 0.5, 0.5]], 2)]
)
def test_the_rank_is_how_many_actions_can_be_told_apart(policies, rank):
    assert rank_above_noise(drawn(np.array(policies), 1000)) == rank


def test_agents_that_each_take_one_action_show_its_effects():
    found = factor(drawn(np.eye(3), 20_000), 3, np.random.default_rng(0))
    assert error(found.effects) < 0.02
    np.testing.assert_allclose(found.policies.max(axis=1), 1.0, atol=0.02)


def test_agents_that_never_take_one_action_are_enough():
    """No agent shows an effect by itself here; the least volume does."""
    never = np.array([[0, 0.7, 0.3], [0, 0.3, 0.7], [0.7, 0, 0.3], [0.3, 0, 0.7], [0.7, 0.3, 0], [0.3, 0.7, 0]])
    assert scatter(never) == pytest.approx(1.0)  # one facet of their hull touches the ball
    found = factor(drawn(never, 100_000), 3, np.random.default_rng(0))
    assert error(found.effects) < 0.05
    assert error(drawn(never, 100_000)[[0, 2, 4]] / 100_000) > 0.2
    assert found.scatter == pytest.approx(1.0, abs=0.06)


def test_agents_that_all_take_every_action_are_not():
    middle = 0.6 / 3 + 0.4 * np.eye(3)
    found = factor(drawn(np.concatenate([middle, middle]), 20_000), 3, np.random.default_rng(0))
    assert scatter(middle) < 1
    assert error(found.effects) > 0.2  # the least volume is not the truth, and the counts do not say so


def test_policies_in_one_line_are_not_scattered():
    assert scatter(np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0.2, 0.8, 0]])) == 0.0
    assert scatter(np.eye(3)) == pytest.approx(1.0)
    assert scatter(np.eye(2)) is None


def test_no_more_actions_than_the_counts_show():
    assert factor(drawn(np.eye(3)[:2], 1000), 3, np.random.default_rng(0)).effects.shape == (2, 4)
    single = factor(drawn(np.eye(3)[:1], 1000), None, np.random.default_rng(0))
    assert single.policies.tolist() == [[1.0]]
