"""check_world fails where it should: the world of bits, with one thing wrong at a time."""

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP
from craftrl.testing import check_world


class TwoStarts(BitsExBMDP):
    def n_states(self, h):
        return 2


class LeadsAstray(BitsExBMDP):
    def T(self, h):
        return super().T(h) + 1


class WrongInverse(BitsExBMDP):
    def phi_star(self, x_h, h):
        return np.zeros(len(x_h), dtype=np.int64)


class ForgetsNoise(BitsExBMDP):
    def phi_e(self, x_h, h):
        return 1 - super().phi_e(x_h, h)


class NoiseKnows(BitsExBMDP):
    """Remembers the last states that it was asked for, and mixes them into the noise."""

    seen = 0

    def step(self, s_h, a_h, h):
        self.seen = int(s_h.sum())
        return super().step(s_h, a_h, h)

    def sample_noise(self, n, rng):
        return np.roll(super().sample_noise(n, rng), self.seen, axis=0)


class BoastsOfNoise(BitsExBMDP):
    def noise_marginal(self, h):
        return np.clip(super().noise_marginal(h) + 0.2, 0, 1)


class NeverTheSame(BitsExBMDP):
    def sample_noise(self, n, rng):
        return super().sample_noise(n, np.random.default_rng())


class Fails(BitsExBMDP):
    def phi_star(self, x_h, h):
        raise IndexError("no such entry")


MUTANTS = [
    (Fails, "inverses must come without an error; IndexError was raised: no such entry"),
    (TwoStarts, "one state at h = 1; there are 2"),
    (LeadsAstray, r"must lead to states in 0..1; it leads to"),
    (WrongInverse, "phi_star must recover"),
    (ForgetsNoise, "phi_e must recover"),
    (NoiseKnows, "must not depend on states or actions"),
    (BoastsOfNoise, r"marginals that noise_marginal\(1\) claims"),
    (NeverTheSame, "same data twice"),
]


@pytest.mark.parametrize(("mutant", "message"), MUTANTS)
def test_a_broken_world_is_caught(mutant, message):
    with pytest.raises(AssertionError, match=message):
        check_world(mutant(horizon=4, n_features=6, seed=0))


def test_the_world_that_the_broken_ones_are_made_of_is_right():
    check_world(BitsExBMDP(horizon=4, n_features=6, seed=0))


def test_what_is_no_world_is_caught():
    with pytest.raises(AssertionError, match="must be an ExBMDP; list is none"):
        check_world([])
