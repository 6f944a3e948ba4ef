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


class NoTable(BitsExBMDP):
    def T(self, h):
        return super().T(h)[0]


class OtherSteps(BitsExBMDP):
    def step(self, s_h, a_h, h):
        return 1 - super().step(s_h, a_h, h)


class NoControl(BitsExBMDP):
    def T(self, h):
        return np.zeros_like(super().T(h))


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


class FewMarginals(BitsExBMDP):
    def noise_marginal(self, h):
        return super().noise_marginal(h)[:-1]


class TooBright(BitsExBMDP):
    obs_high = 0.5


class OtherType(BitsExBMDP):
    def emit(self, s_h, e_h, h, rng):
        return super().emit(s_h, e_h, h, rng).astype(np.float64)


class NeverTheSame(BitsExBMDP):
    def sample_noise(self, n, rng):
        return super().sample_noise(n, np.random.default_rng())


class AlwaysTheSame(BitsExBMDP):
    """Noise without its generator."""

    def sample_noise(self, n, rng):
        return super().sample_noise(n, np.random.default_rng(0))

    def step_noise(self, e_h, h, rng):
        return super().step_noise(e_h, h, np.random.default_rng(h))


class Fails(BitsExBMDP):
    def phi_star(self, x_h, h):
        raise IndexError("no such entry")


MUTANTS = [
    (Fails, "inverses must come without an error; IndexError was raised: no such entry"),
    (TwoStarts, "one state at h = 1; there are 2"),
    (LeadsAstray, r"must lead to states in 0..1; it leads to"),
    (NoTable, r"must be an integer table of shape \(1, 2\)"),
    (OtherSteps, "step must be what T says"),
    (NoControl, "Two policies must be found|no action changes anything"),
    (WrongInverse, "phi_star must recover"),
    (ForgetsNoise, "phi_e must recover"),
    (NoiseKnows, "must not depend on states or actions"),
    (BoastsOfNoise, r"marginals that noise_marginal\(1\) claims"),
    (FewMarginals, "must have the shape of the noise"),
    (TooBright, r"must lie in \[0, 0.5\]"),
    (OtherType, "must be uint8 of shape"),
    (NeverTheSame, "same data twice"),
]


@pytest.mark.parametrize(("mutant", "message"), MUTANTS)
def test_a_broken_world_is_caught(mutant, message):
    with pytest.raises(AssertionError, match=message):
        check_world(mutant(horizon=4, n_features=6, seed=0))


def test_a_world_whose_noise_ignores_the_seed_still_has_other_states():
    check_world(BitsExBMDP(horizon=4, n_features=6, seed=0))
    check_world(AlwaysTheSame(horizon=4, n_features=6, seed=0))


def test_what_is_no_world_is_caught():
    with pytest.raises(AssertionError, match="must be an ExBMDP; list is none"):
        check_world([])
