"""DRAFT: both forms of its loss, its sample size by simulation, and the tie that makes recursion fragile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lemmas import corrupted_example, draft_loss, draft_loss_from_accuracy, draft_sample_size

DELTA = 0.1
TRIALS = 500


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
@example(seed=168, gamma_A=0.0, gamma_B=0.0)  # an accuracy that rounding puts above 1
def test_the_two_forms_of_the_loss_agree(seed: int, gamma_A: float, gamma_B: float) -> None:
    rng = np.random.default_rng(seed)
    Q, Q_prime = rng.dirichlet(np.ones(6), size=2)
    phi = rng.integers(0, 2, 6)
    p_A, p_B = (gamma * Q + (1 - gamma) * Q_prime for gamma in (gamma_A, gamma_B))
    from_accuracy = draft_loss_from_accuracy(
        float(Q @ (phi == 0)), float(Q_prime @ (phi == 1)), gamma_A=gamma_A, gamma_B=gamma_B
    )
    assert draft_loss(phi, p_A, p_B) == pytest.approx(from_accuracy)


class TestSampleSize:
    """Encoder j takes s for s' with probability errors[j], in one more kind of noise each; encoder 0 is true."""

    gamma_A, gamma_B = 0.7, 0.4
    errors = np.linspace(0, 0.7, 8)
    epsilon = 0.35

    def failure_rate(self, m: int) -> float:
        rng = np.random.default_rng(2)
        noise = np.diff(self.errors, append=1.0)

        def ones(gamma: float) -> np.ndarray:
            """How many of an agent's samples each encoder maps to 1: all of s', and of s where it errs."""
            of_s = round(m * gamma)
            wrong = np.cumsum(rng.multinomial(of_s, noise, size=TRIALS), axis=1)[:, :-1]
            return m - of_s + np.concatenate([np.zeros((TRIALS, 1), dtype=int), wrong], axis=1)

        loss = ones(self.gamma_A) / m + 1 - ones(self.gamma_B) / m
        # Of equal encoders the worst is taken, as the guarantee must hold for any of them.
        chosen = loss.shape[1] - 1 - loss[:, ::-1].argmin(axis=1)
        return float((self.errors[chosen] > self.epsilon).mean())

    def test_bad_encoders_are_rare_at_that_size(self) -> None:
        gap = self.gamma_A - self.gamma_B
        m = draft_sample_size(epsilon=self.epsilon, delta=DELTA, gap=gap, class_size=8)
        assert self.failure_rate(m) <= DELTA

    def test_and_common_with_few_samples(self) -> None:
        assert self.failure_rate(10) > DELTA

    def test_the_formula(self) -> None:
        m = draft_sample_size(epsilon=0.1, delta=0.05, gap=0.25, class_size=256)
        assert m == pytest.approx(4 * math.log(2 * 256 / 0.05) / (0.25**2 * 0.1**2), abs=1)


class TestCorruptedExample:
    @given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.floats(0.01, 1))
    def test_a_wrong_encoder_ties_with_the_true_one(self, one: float, other: float, share: float) -> None:
        gamma_B, gamma_A = sorted([one, other])
        if gamma_A - gamma_B < 1e-6:
            return
        epsilon_bad = share * min(gamma_B, 1 - gamma_A)
        example = corrupted_example(gamma_A, gamma_B, epsilon_bad)
        true, wrong = (draft_loss(phi, example.p_A, example.p_B) for phi in (example.phi_star, example.phi_wrong))
        assert wrong == pytest.approx(true, abs=1e-12)
        gap = gamma_A - gamma_B + epsilon_bad
        assert example.error(example.phi_star) == 0
        assert example.error(example.phi_wrong) == pytest.approx(epsilon_bad / gap)
        assert example.blow_up == pytest.approx(1 / gap)

    def test_the_loss_that_they_share_has_a_factor_of_two(self) -> None:
        """The text says -(gamma_A - gamma_B + epsilon_bad) + C; its own expression gives twice that."""
        gamma_A, gamma_B, bad = 0.7, 0.4, 0.1
        example = corrupted_example(gamma_A, gamma_B, bad)

        def constant(phi: np.ndarray) -> float:
            """C, which must not depend on phi."""
            natural = example.Q @ (phi == 0) + example.Q_prime @ (phi == 1)
            corrupted = example.D_bad @ (phi == 1) + example.D_bad_prime @ (phi == 0)
            expression = -(gamma_A - gamma_B + bad) * natural - bad * corrupted
            return draft_loss(phi, example.p_A, example.p_B) - expression

        every_phi = [np.array([(i >> x) & 1 for x in range(6)]) for i in range(64)]
        assert np.ptp([constant(phi) for phi in every_phi]) == pytest.approx(0, abs=1e-12)
        C = constant(example.phi_star)
        loss = draft_loss(example.phi_star, example.p_A, example.p_B)
        assert loss == pytest.approx(-2 * (gamma_A - gamma_B + bad) + C)

    def test_distributions_are_distributions_and_states_are_unchanged(self) -> None:
        example = corrupted_example(0.7, 0.4, 0.1)
        for p in (example.Q, example.Q_prime, example.D_bad, example.D_bad_prime, example.p_A, example.p_B):
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1)
        assert example.p_A @ (example.phi_star == 0) == pytest.approx(0.7)
        assert example.p_B @ (example.phi_star == 0) == pytest.approx(0.4)
        assert example.Q @ (example.D_bad > 0) == 0
