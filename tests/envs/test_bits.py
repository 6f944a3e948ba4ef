"""The paper's toy world."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import state_accuracies


@given(horizon=st.integers(2, 7), n_features=st.integers(2, 20), seed=st.integers(0, 1000))
@settings(max_examples=30)
def test_features_are_the_state_and_its_xors_in_an_order_of_each_step(horizon, n_features, seed):
    world = BitsExBMDP(horizon, n_features, seed)
    rng = np.random.default_rng(seed)
    for h in range(1, horizon + 1):
        e_h = rng.integers(0, 2, (5, n_features - 1), dtype=np.uint8)
        s_h = rng.integers(0, world.n_states(h), 5)
        x_h = world.emit(s_h, e_h, h, rng)
        expected = [[s, *(s ^ e for e in row)] for s, row in zip(s_h, e_h)]
        assert np.array_equal(x_h, np.array(expected)[:, world.permutation[h - 1]])
        assert np.array_equal(x_h[:, world.controllable_feature(h)], s_h)


def test_the_adversarial_factor_is_fair_and_frozen():
    world = BitsExBMDP(horizon=8, n_features=6, seed=3)
    tau = collect(world, world.paper_policies(), 2000, seed=0).tau
    e = np.stack([world.phi_e(tau.at(h), h)[:, 0] for h in range(1, 9)])
    assert (e == e[0]).all()
    assert abs(e[0].mean() - 0.5) < 0.05


def test_the_other_factors_move_as_their_chains_say():
    world = BitsExBMDP(horizon=2, n_features=5, seed=4)
    e_1 = np.zeros((20_000, 4), dtype=np.uint8)
    up = world.step_noise(e_1, 1, np.random.default_rng(0)).mean(axis=0)
    down = 1 - world.step_noise(1 - e_1, 1, np.random.default_rng(1)).mean(axis=0)
    assert np.allclose(up, world.p_up, atol=0.02)
    assert np.allclose(down, world.p_down, atol=0.02)


@pytest.mark.parametrize("entangled", [True, False])
def test_accuracy_in_single_states_is_what_a_large_sample_shows(entangled):
    world = BitsExBMDP(horizon=6, n_features=10, seed=5, entangled=entangled)
    data = collect(world, world.paper_policies(), 10_000, seed=1)
    for h in range(2, 7):
        x_h, s_h, expected = data.tau.at(h), data.truth.states[:, h - 1], world.feature_state_accuracy(h)
        assert np.allclose(expected.mean(axis=0), world.feature_accuracy(h))
        for i in range(world.M):
            seen = state_accuracies(x_h[:, i].astype(int), s_h)
            # Where a feature agrees with the state half of the time, either relabelling may win the sample.
            assert sorted(seen) == pytest.approx(sorted(expected[:, i]), abs=0.03)


def test_bare_noise_is_right_in_one_state_as_often_as_wrong_in_the_other():
    world, papers = (BitsExBMDP(4, 8, seed=2, entangled=entangled) for entangled in (False, True))
    best, worst = world.feature_state_accuracy(3)
    assert (best >= worst).all()
    assert worst.min() < 0.3
    assert np.array_equal(*papers.feature_state_accuracy(3))  # XORed with the state: as good in either
    assert papers.feature_state_accuracy(1).shape == (1, 8)


def test_without_entanglement_only_the_adversary_is_xored():
    world, papers = BitsExBMDP(6, 10, seed=5, entangled=False), BitsExBMDP(6, 10, seed=5)
    data, theirs = (collect(w, w.paper_policies(), 5000, seed=1) for w in (world, papers))
    assert np.array_equal(data.truth.states, theirs.truth.states)
    for h in range(2, 7):
        s_h, factors = data.truth.states[:, h - 1], data.tau.at(h)[:, np.argsort(world.permutation[h - 1])]
        e_h = papers.phi_e(theirs.tau.at(h), h)  # the same noise, whatever is XORed with it
        assert np.array_equal(factors, np.column_stack([s_h, s_h ^ e_h[:, 0], e_h[:, 1:]]))
        assert np.array_equal(world.phi_e(data.tau.at(h), h), e_h)
        assert sorted(world.feature_accuracy(h)) == [0.5] * 9 + [1.0]
        assert world.feature_accuracy(h)[world.controllable_feature(h)] == 1.0


def test_the_papers_sizes_and_policies():
    world = BitsExBMDP()
    assert (world.H, world.M) == (30, 128)
    a, b = world.paper_policies()
    assert np.array_equal(a.pi(2), [[0.5, 0.5], [0.5, 0.5]])
    assert np.array_equal(b.pi(2), [[0.75, 0.25], [0.25, 0.75]])
    with pytest.raises(InvalidParameterError, match=r"horizon must be an integer from 2 to \d+; 1 was given"):
        BitsExBMDP(horizon=1)
