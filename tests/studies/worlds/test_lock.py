"""The diabolical combination lock."""

import numpy as np
import pytest

from craftrl.envs import collect
from craftrl.envs.exbmdp import reachable_states
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from studies.worlds.lock import LockExBMDP, TwoBits


@pytest.mark.parametrize("seed", range(5))
def test_one_secret_action_leads_on_and_the_trap_is_absorbing(seed: int) -> None:
    world = LockExBMDP(horizon=7, n_actions=5, seed=seed)
    assert sorted(world.T(1)[0]) == [0, 1, 2, 2, 2]
    for h in range(2, 7):
        good, bad = world.T(h)[:2], world.T(h)[2]
        assert (bad == 2).all()
        assert ((good == 2).sum(axis=1) == 4).all()
        assert sorted(good[good != 2]) == [0, 1]
    assert all(reached.all() for reached in reachable_states(world))


def test_secrets_differ_between_steps_and_seeds() -> None:
    tables = [np.stack([LockExBMDP(horizon=20, seed=s).T(h) for h in range(2, 20)]) for s in range(2)]
    assert not np.array_equal(*tables)
    assert len(np.unique(tables[0], axis=0)) > 3


def test_noise_bits_flip_one_time_in_ten() -> None:
    world = LockExBMDP(horizon=3, n_features=12)
    rng = np.random.default_rng(0)
    e = world.sample_noise(10_000, rng)
    assert np.allclose((world.step_noise(e, 1, rng) != e).mean(axis=0), 0.1, atol=0.015)


def test_the_class_holds_the_true_encoder_twice_and_decoys_otherwise() -> None:
    world = LockExBMDP(horizon=6, n_features=7, seed=2)
    data = collect(world, world.policies(), 500, seed=0)
    for h in range(2, 7):
        encoders = world.encoders(h)
        assert len(encoders) == 7 * 6
        trap, arm = world.controllable_features(h)
        right = [
            phi
            for phi in encoders
            if len(np.unique(np.stack([phi(data.tau.at(h)), data.truth.states[:, h - 1]]), axis=1).T) == 3
        ]
        assert right == sorted([TwoBits(trap, arm), TwoBits(arm, trap)], key=encoders.index)


def test_policies_keep_every_pair_of_states_alive() -> None:
    world = LockExBMDP(horizon=10)
    found = population_assumptions(world, world.policies(alpha=1.0))
    assert found.alpha.value == pytest.approx(1)
    assert found.nu.value > 0.04
    assert found.eta.value > 0.15


def test_a_lock_needs_three_actions() -> None:
    with pytest.raises(InvalidParameterError, match="n_actions must be an integer from 3"):
        LockExBMDP(n_actions=2)
