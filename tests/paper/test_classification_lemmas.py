"""Proposition C.3 by property test; Lemmas C.4 and C.5 by simulation, against an adversary who sees everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lemmas import encoding_sample_size, mean_shift_bound, separation_margin, separation_sample_size

DELTA = 0.1
TRIALS = 500

unit = st.floats(0, 1)


class TestMeanShift:
    @given(st.lists(unit, max_size=8), st.lists(unit, max_size=8), st.lists(unit, max_size=8))
    def test_inserting_and_removing_moves_a_mean_no_further(
        self, kept: list[float], removed: list[float], added: list[float]
    ) -> None:
        Z, Z_new = kept + removed, kept + added
        assume(Z and Z_new)
        bound = mean_shift_bound(len(removed) + len(added), len(Z))
        assert abs(np.mean(Z) - np.mean(Z_new)) <= bound + 1e-12

    @given(st.integers(1, 20), st.integers(0, 20))
    def test_and_removing_from_a_two_valued_set_attains_it(self, ones: int, zeros: int) -> None:
        """All zeros removed from zeros and ones: the mean goes from ones/size to 1, by exactly k/size."""
        assert 1 - ones / (ones + zeros) == pytest.approx(mean_shift_bound(zeros, ones + zeros))


class TestSeparation:
    """G holds all 16 functions on four observations."""

    G = np.array([[(g >> x) & 1 for x in range(4)] for g in range(16)])

    def least_loss(self, A: np.ndarray, B: np.ndarray, m: int) -> np.ndarray:
        """min over g of L(g), after the adversary moved m/2 samples each way so as to lower it; A, B (trials, 4)."""
        wrong_A, wrong_B = A @ (1 - self.G.T), B @ self.G.T
        n_A, n_B = A.sum(axis=1, keepdims=True), B.sum(axis=1, keepdims=True)
        moved_A, moved_B = np.minimum(wrong_A, m // 2), np.minimum(wrong_B, m // 2)
        L = (wrong_A - moved_A) / (n_A - moved_A + moved_B) + (wrong_B - moved_B) / (n_B - moved_B + moved_A)
        return L.min(axis=1)

    def false_split_rate(self, n: int, m: int) -> float:
        """How often two sets of one distribution look separable."""
        rng = np.random.default_rng(5)
        A, B = rng.multinomial(n, [0.25] * 4, size=(2, TRIALS))
        return float((self.least_loss(A, B, m) <= 0.5).mean())

    def test_equal_distributions_are_rarely_split_at_the_lemmas_size(self) -> None:
        n = separation_sample_size(delta=DELTA, class_size=16)
        assert self.false_split_rate(n, m=n // 8) <= DELTA

    def test_but_often_with_few_samples_or_many_strangers(self) -> None:
        n = separation_sample_size(delta=DELTA, class_size=16)
        assert self.false_split_rate(6, m=0) > DELTA
        assert self.false_split_rate(n, m=n) > DELTA

    @given(st.integers(1, 12), st.integers(0, 96), st.integers(0, 96))
    def test_separable_supports_are_always_found(self, m: int, from_A: int, from_B: int) -> None:
        """A lies on observations 0, 1 and B on 2, 3; any m samples change sides."""
        n = separation_sample_size(delta=DELTA, class_size=16, m=m)
        from_A = min(from_A, m)
        from_B = min(from_B, m - from_A)
        A = np.array([[n - from_A, 0, from_B, 0]])
        B = np.array([[from_A, 0, n - from_B, 0]])
        if min(A.sum(), B.sum()) >= n:
            assert self.least_loss(A, B, m=0)[0] <= 0.5

    def test_the_margin_is_one_half_at_the_lemmas_size(self) -> None:
        n = separation_sample_size(delta=DELTA, class_size=16)
        assert 0.45 < separation_margin(n, delta=DELTA, class_size=16, m=n // 8) <= 0.5
        assert n == math.ceil(128 / 7 * math.log(2 * 16 / DELTA))

    def test_corruption_alone_can_ask_for_more(self) -> None:
        assert separation_sample_size(delta=DELTA, class_size=16, m=1000) == 8000

    def test_the_lemma_holds_for_clean_sizes_with_a_smaller_constant(self) -> None:
        """docs/theory.md: with n the size before corruption, 16 ln(2|G|/delta) does, and 128/7 > 16."""
        n = 16 * math.log(2 * 16 / DELTA)
        assert math.sqrt(math.log(2 * 16 / DELTA) / n) + 2 * (n / 8) / n == pytest.approx(0.5)


class TestEncoding:
    """Three states, eight kinds of noise; encoder j errs on state 0 for the first j kinds, encoder 0 never."""

    N = 3
    epsilon = 0.3
    errors = np.linspace(0, 0.7, 8)

    def failure_rate(self, n: int, m: int) -> float:
        """How often an encoder with more than epsilon errors beats or ties the true one, m samples moved to help it."""
        rng = np.random.default_rng(9)
        noise = np.diff(self.errors, append=1.0)
        hit = np.cumsum(rng.multinomial(n, noise, size=TRIALS), axis=1)  # state 0's samples with noise 0..j
        wrong = np.concatenate([np.zeros((TRIALS, 1), dtype=int), hit[:, :-1]], axis=1)
        moved = np.minimum(wrong, m)  # to state 1's set, where encoder j says they belong
        loss = (wrong - moved) / (n - moved)
        loss_of_truth = moved / (n + moved)
        bad = self.errors > self.epsilon
        return float(((loss <= loss_of_truth) & bad).any(axis=1).mean())

    def test_bad_encoders_rarely_win_at_the_lemmas_size(self) -> None:
        n = encoding_sample_size(epsilon=self.epsilon, delta=DELTA, class_size=8, N=self.N)
        m = math.floor(self.epsilon * n / 8)
        assert self.failure_rate(n, m) <= DELTA

    def test_but_often_with_few_samples_or_many_strangers(self) -> None:
        n = encoding_sample_size(epsilon=self.epsilon, delta=DELTA, class_size=8, N=self.N)
        assert self.failure_rate(3, m=0) > DELTA
        assert self.failure_rate(n, m=math.ceil(0.9 * self.epsilon * n)) > DELTA

    @given(st.floats(0.01, 1), st.floats(0.01, 0.9), st.integers(1, 1000), st.integers(1, 9))
    def test_the_proofs_inequality_holds_at_that_size(
        self, epsilon: float, delta: float, class_size: int, N: int
    ) -> None:
        """sqrt(2 N ln(2|Phi|/delta) / (n - m)) + 4m/n <= epsilon with m = epsilon n / 8."""
        n = encoding_sample_size(epsilon=epsilon, delta=delta, class_size=class_size, N=N)
        m = epsilon * n / 8
        bound = math.sqrt(2 * N * math.log(2 * class_size / delta) / (n - m)) + 4 * m / n
        assert bound <= epsilon * (1 + 1e-12)
