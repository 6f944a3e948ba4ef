"""Lemma C.1 and Corollary C.2: simulated, and their deterministic steps checked one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemmas import enclosing_bins, erm_spread_sample_size, reference_loss, spread_sample_size

from craftrl.core.grid import Grid

DELTA = 0.1
TRIALS = 400


def grid_with(xi: float, n_xi: int) -> Grid:
    """Any Xi of the lemma, which does not ask for xi <= 1/4."""
    return Grid(alpha=4 * xi, eta=1 / (1 + math.exp(n_xi * xi / 2)), n_xi=n_xi)


def losses(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of a sample of agent A and of agent B, for each value of f."""
    return np.logaddexp(0, -f), np.logaddexp(0, f)


class TestFixedFunction:
    """One f, given by the distribution of its values under each D_i."""

    grid = grid_with(xi=2.0, n_xi=2)  # Xi = {-2, 0, 2}
    epsilon = 0.4

    def bad_event_rate(self, a: np.ndarray, b: np.ndarray, p: np.ndarray, seed: int) -> float:
        """How often L(f) <= L_ref and yet too many values of f lie outside; `p` (m, 3) are f's value frequencies."""
        rng = np.random.default_rng(seed)
        A, B = rng.multinomial(a, p, size=(TRIALS, len(a))), rng.multinomial(b, p, size=(TRIALS, len(b)))
        loss_A, loss_B = losses(self.grid.values)
        L = (A @ loss_A + B @ loss_B).sum(axis=1)
        low, high = enclosing_bins(a, b, self.grid)
        j = np.arange(self.grid.size)
        outside = (j < low[:, None]) | (j > high[:, None])
        strays = ((A + B) * outside).sum(axis=2)
        no_worse = L <= reference_loss(a, b, self.grid)  # noqa: SIM300
        return float((no_worse & (strays > self.epsilon * (a + b)).any(axis=1)).mean())

    @pytest.mark.parametrize("seed", range(20))
    def test_the_bad_event_is_rare_at_the_lemmas_size(self, seed: int) -> None:
        n = spread_sample_size(self.grid, nu=1 / 2, epsilon=self.epsilon, delta=DELTA)
        share = 1 / (1 + np.exp([1.0, -0.5]))  # ln(a/b) = -1 and 1/2
        a = np.ceil(n * share).astype(int)
        p = np.random.default_rng(seed).dirichlet([0.5, 0.5, 0.5], size=2)
        assert self.bad_event_rate(a, n - a, p, seed) <= DELTA

    def test_and_common_with_a_handful_of_samples(self) -> None:
        one = np.array([1, 1])
        p = np.array([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]])  # f guesses, and is lucky
        assert self.bad_event_rate(one, one, p, seed=0) > DELTA

    @given(st.floats(0.05, 4), st.integers(1, 12), st.floats(-1, 1), st.integers(0, 2**32 - 1))
    def test_straying_costs_at_least_what_the_proof_says(self, xi: float, n_xi: int, where: float, seed: int) -> None:
        """L_pop >= L_ref + Pr(stray) (a + b) eta xi^2 / 4, the step that gives the lemma eta^2 xi^4."""
        grid = grid_with(xi, n_xi)
        ratio = where * n_xi * xi / 2
        a, b = math.exp(ratio), 1.0
        low, high = enclosing_bins(a, b, grid)
        p = np.random.default_rng(seed).dirichlet(np.full(grid.size, 0.3))
        loss_A, loss_B = losses(grid.values)
        stray = 1 - p[low : high + 1].sum()
        gap = a * p @ loss_A + b * p @ loss_B - reference_loss(a, b, grid)
        assert gap >= stray * (a + b) * grid.eta * xi**2 / 4 - 1e-9 * (a + b)

    @given(st.floats(1e-3, 50), st.integers(1, 40))
    def test_equation_40(self, xi: float, n_xi: int) -> None:
        if n_xi * xi < 1000:  # exp of more overflows
            grid = grid_with(xi, n_xi)
            assert math.log(1 / grid.eta) / (grid.eta * xi**2) > 1


class TestErm:
    """f_h from Line 10, for two states at h and two at h+1, each hidden among two features of one bit."""

    grid = grid_with(xi=1.0, n_xi=4)
    noise = np.array([0.35, 0.15, 0.2, 0.3])  # Pr(e_h, e_{h+1}) for 00, 01, 10, 11: correlated in time
    epsilon = 0.3
    nu = 1 / 5

    def bad_event_rate(self, n: int, trials: int, seed: int) -> float:
        """How often some pair of states has more than a share epsilon of its samples outside."""
        rng = np.random.default_rng(seed)
        share_A = 1 / (1 + np.exp([[-1.5, 0.4], [0.9, -0.6]]))
        a = np.round(n * share_A).astype(int)
        A = rng.multinomial(a, self.noise, size=(trials, 2, 2)).reshape(trials, 2, 2, 2, 2)
        B = rng.multinomial(n - a, self.noise, size=(trials, 2, 2)).reshape(trials, 2, 2, 2, 2)
        bins = self.erm_bins(A, B)
        low, high = enclosing_bins(a, n - a, self.grid)
        outside = (bins < low[..., None, None]) | (bins > high[..., None, None])
        strays = ((A + B) * outside).sum(axis=(3, 4))
        return float((strays > self.epsilon * n).any(axis=(1, 2)).mean())

    def erm_bins(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The bin of f_h for each (s, s', e, e'): the best of the four pairs of features, its table free."""
        s, s_next, e, e_next = np.indices(A.shape[1:])
        loss_A, loss_B = losses(self.grid.values)
        best = np.full(len(A), np.inf)
        bins = np.zeros(A.shape, dtype=int)
        for x in (s, s ^ e):
            for x_next in (s_next, s_next ^ e_next):
                cell = 2 * x + x_next
                member = (cell[..., None] == np.arange(4)).astype(float)
                in_cell = [np.einsum("tijkl,ijklc->tc", counts, member) for counts in (A, B)]
                loss = in_cell[0][..., None] * loss_A + in_cell[1][..., None] * loss_B
                total = loss.min(axis=2).sum(axis=1)
                better = total < best
                best[better] = total[better]
                bins[better] = loss.argmin(axis=2)[better][:, cell]
        return bins

    def test_the_bad_event_is_rare_at_the_corollarys_size(self) -> None:
        n = erm_spread_sample_size(self.grid, nu=self.nu, epsilon=self.epsilon, delta=DELTA, class_size=4, N_s=2)
        assert self.bad_event_rate(n, TRIALS, seed=1) <= DELTA

    def test_and_common_with_few_samples(self) -> None:
        assert self.bad_event_rate(10, TRIALS, seed=1) > DELTA


class TestFormulas:
    def test_the_printed_formulas(self) -> None:
        grid = Grid.from_bounds(1.0, 0.2)
        eta, xi = grid.eta, grid.xi
        common = 50 * math.log(1 / eta) ** 2 / (0.1 * 0.3**2 * eta**2 * xi**4)
        n = spread_sample_size(grid, nu=0.1, epsilon=0.3, delta=0.05)
        assert n == pytest.approx(common * math.log(2 / 0.05), rel=1e-9, abs=1)
        n = erm_spread_sample_size(grid, nu=0.1, epsilon=0.3, delta=0.05, class_size=256, N_s=2)
        assert n == pytest.approx(common * (math.log(2 * 256**2 / 0.05) + 4 * math.log(13)), rel=1e-9, abs=1)

    def test_the_enclosing_points_are_one_where_the_ratio_is_on_the_grid(self) -> None:
        low, high = enclosing_bins([1.0, math.e**2, 1.5], [1.0, 1.0, 1.0], grid_with(2.0, 2))
        assert low.tolist() == [1, 2, 1]
        assert high.tolist() == [1, 2, 2]
