"""The paper's lemmas by simulation: the bad event is rare at the size that each asks for, and common with less."""

from __future__ import annotations

import math
from itertools import product

import lemmas
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl.core.clusters import heaviness_threshold, merge_clusters, scan
from craftrl.core.grid import Grid

DELTA, TRIALS = 0.1, 400
NOISE = np.array([0.35, 0.15, 0.2, 0.3])  # Pr(e_h, e_{h+1}) of two bits, correlated in time
KINDS = np.indices((2, 2, 2, 2))  # s_h, s_{h+1}, e_h, e_{h+1} of every kind of sample


def grid_with(xi, n_xi):
    """Any Xi of the lemmas, which do not ask for xi <= 1/4."""
    return Grid(alpha=4 * xi, eta=1 / (1 + math.exp(n_xi * xi / 2)), n_xi=n_xi)


def losses(f):
    """The loss of a sample of agent A and of agent B, for each value of f."""
    return np.logaddexp(0, -f), np.logaddexp(0, f)


def best_table(A, B, x, x_next, grid):
    """Line 10 for one pair of features (2, 2, 2, 2): the loss of the best table and its bin on every kind of sample."""
    cell, (loss_A, loss_B) = 2 * x + x_next, losses(grid.values)
    a, b = (np.bincount(cell.ravel(), counts.ravel(), minlength=4)[:, None] for counts in (A, B))
    each = a * loss_A + b * loss_B
    return each.min(axis=1).sum(), each.argmin(axis=1)[cell]


def outside(bins, a, b, grid):
    """Whether a bin of a sample is none of the two around ln(a/b) of its pair of states."""
    low, high = lemmas.enclosing_bins(a, b, grid)
    shape = (*low.shape, *[1] * (bins.ndim - low.ndim))
    return (bins < low.reshape(shape)) | (bins > high.reshape(shape))


# -- Lemma C.1, Corollary C.2: how tightly f_h clusters -----------------------------------------------------------


class TestSpread:
    grid, epsilon = grid_with(xi=2.0, n_xi=2), 0.4  # Xi = {-2, 0, 2}

    def bad_event_rate(self, a, b, p, seed):
        """How often L(f) <= L_ref and yet too many values of f lie outside; p (m, 3) are f's value frequencies."""
        rng = np.random.default_rng(seed)
        A, B = rng.multinomial(a, p, size=(TRIALS, len(a))), rng.multinomial(b, p, size=(TRIALS, len(b)))
        loss_A, loss_B = losses(self.grid.values)
        no_worse = (A @ loss_A + B @ loss_B).sum(axis=1) <= lemmas.reference_loss(a, b, self.grid)
        strays = ((A + B) * outside(np.tile(np.arange(3), (len(a), 1)), a, b, self.grid)).sum(axis=2)
        return (no_worse & (strays > self.epsilon * (a + b)).any(axis=1)).mean()

    def test_a_fixed_function(self):
        n = lemmas.spread_sample_size(self.grid, nu=1 / 2, epsilon=self.epsilon, delta=DELTA)
        a = np.ceil(n / (1 + np.exp([1.0, -0.5]))).astype(int)
        for seed in range(20):
            p = np.random.default_rng(seed).dirichlet([0.5, 0.5, 0.5], size=2)
            assert self.bad_event_rate(a, n - a, p, seed) <= DELTA
        one = np.array([1, 1])  # with a handful of samples f guesses, and is lucky
        assert self.bad_event_rate(one, one, np.array([[0.5, 0.0, 0.5]] * 2), seed=0) > DELTA

    @given(st.floats(0.05, 4), st.integers(1, 12), st.floats(-1, 1), st.integers(0, 2**32 - 1))
    def test_straying_costs_at_least_what_the_proof_says(self, xi, n_xi, where, seed):
        """L_pop >= L_ref + Pr(stray) (a + b) eta xi^2 / 4, the step that gives the lemma eta^2 xi^4."""
        grid = grid_with(xi, n_xi)
        a, b = math.exp(where * n_xi * xi / 2), 1.0
        low, high = lemmas.enclosing_bins(a, b, grid)
        p = np.random.default_rng(seed).dirichlet(np.full(grid.size, 0.3))
        loss_A, loss_B = losses(grid.values)
        gap = a * p @ loss_A + b * p @ loss_B - lemmas.reference_loss(a, b, grid)
        assert gap >= (1 - p[low : high + 1].sum()) * (a + b) * grid.eta * xi**2 / 4 - 1e-9 * (a + b)

    @pytest.mark.parametrize("chain", [False, True], ids=["one step", "a chain"])
    def test_the_functions_that_are_found(self, chain):
        """For two states at h and h+1, each hidden among two features of one bit; in a chain all steps choose at once,
        from one start."""
        grid, size = grid_with(1.0, 4), {"nu": 1 / 5, "epsilon": 0.3, "delta": DELTA, "class_size": 4, "N_s": 2}
        share = 1 / (1 + np.exp([[-1.5, 0.4], [0.9, -0.6]]))
        s, s_next, e, e_next = KINDS

        def strays(A, B, a, b):
            found = []
            for x, x_next in product((s, s ^ e), (s_next, s_next ^ e_next)):
                first = best_table(A, B, 0 * x, x, grid) if chain else (0.0, None)
                second = best_table(A, B, x, x_next, grid)
                found.append((first[0] + second[0], first[1], second[1]))
            _, first, second = min(found, key=lambda fit: fit[0])
            far = ((A + B) * outside(second, a, b, grid)).sum(axis=(2, 3)) > 0.3 * (a + b)
            if first is None:
                return far.any()
            a, b = a.sum(axis=1), b.sum(axis=1)
            return far.any() or (((A + B) * outside(first, a, b, grid)).sum(axis=(1, 2, 3)) > 0.3 * (a + b)).any()

        def rate(n):
            rng = np.random.default_rng(1)
            a = np.round(n * share).astype(int)
            drawn = [rng.multinomial(m, NOISE, size=(TRIALS // 2, 2, 2)) for m in (a, n - a)]
            A, B = (counts.reshape(-1, 2, 2, 2, 2) for counts in drawn)
            return np.mean([strays(*both, a, n - a) for both in zip(A, B)])

        formula = lemmas.chain_spread_sample_size if chain else lemmas.erm_spread_sample_size
        assert rate(formula(grid, **size, **({"H": 3} if chain else {}))) <= DELTA
        assert rate(8) > DELTA

    def test_the_printed_formulas(self):
        grid, size = Grid.from_bounds(1.0, 0.2), {"nu": 0.1, "epsilon": 0.3, "delta": 0.05}
        common = 50 * math.log(1 / grid.eta) ** 2 / (0.1 * 0.3**2 * grid.eta**2 * grid.xi**4)
        assert lemmas.spread_sample_size(grid, **size) == pytest.approx(common * math.log(2 / 0.05), rel=1e-9, abs=1)
        of_class = math.log(2 * 256**2 / 0.05) + 4 * math.log(13)
        n = lemmas.erm_spread_sample_size(grid, class_size=256, N_s=2, **size)
        assert n == pytest.approx(common * of_class, rel=1e-9, abs=1)
        low, high = lemmas.enclosing_bins([1.0, math.e**2, 1.5], [1.0, 1.0, 1.0], grid_with(2.0, 2))
        assert (low.tolist(), high.tolist()) == ([1, 2, 1], [1, 2, 2])

    def test_what_the_guarantee_of_a_chain_costs_over_the_papers(self):
        """Polynomially more in H, in the bound; practice says the opposite (docs/theory.md)."""
        grid, size = Grid.from_bounds(1.0, 0.2), {"nu": 5 / 32, "epsilon": 0.01, "delta": 0.05}
        of_class = {"class_size": 256, "N_s": 2}
        chain = lemmas.chain_spread_sample_size(grid, H=30, **size, **of_class)
        assert chain / lemmas.erm_spread_sample_size(grid, **size, **of_class) == pytest.approx(1970, rel=0.05)


# -- Proposition C.3, Lemmas C.4 and C.5: classification when some of the data is wrong ---------------------------

numbers = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(numbers, st.lists(st.floats(0, 1), max_size=8), st.lists(st.floats(0, 1), max_size=8))
def test_inserting_and_removing_moves_a_mean_no_further(kept, removed, added):
    bound = lemmas.mean_shift_bound(len(removed) + len(added), len(kept + removed))
    assert abs(np.mean(kept + removed) - np.mean(kept + added)) <= bound + 1e-12


class TestSeparation:
    """G holds all 16 functions on four observations."""

    G = np.array([[(g >> x) & 1 for x in range(4)] for g in range(16)])
    n = lemmas.separation_sample_size(delta=DELTA, class_size=16)

    def least_loss(self, A, B, m):
        """min over g of L(g), after the adversary moved m/2 samples each way so as to lower it; A, B (trials, 4)."""
        wrong_A, wrong_B = A @ (1 - self.G.T), B @ self.G.T
        n_A, n_B = A.sum(axis=1, keepdims=True), B.sum(axis=1, keepdims=True)
        moved_A, moved_B = np.minimum(wrong_A, m // 2), np.minimum(wrong_B, m // 2)
        L = (wrong_A - moved_A) / (n_A - moved_A + moved_B) + (wrong_B - moved_B) / (n_B - moved_B + moved_A)
        return L.min(axis=1)

    def test_equal_distributions_are_rarely_split_but_often_with_few_samples_or_many_strangers(self):
        def rate(n, m):
            A, B = np.random.default_rng(5).multinomial(n, [0.25] * 4, size=(2, TRIALS))
            return (self.least_loss(A, B, m) <= 0.5).mean()

        assert rate(self.n, self.n // 8) <= DELTA
        assert rate(6, 0) > DELTA
        assert rate(self.n, self.n) > DELTA

    @given(st.integers(1, 12), st.integers(0, 96), st.integers(0, 96))
    def test_separable_supports_are_always_found(self, m, from_A, from_B):
        """A lies on observations 0, 1 and B on 2, 3; any m samples change sides."""
        n = lemmas.separation_sample_size(delta=DELTA, class_size=16, m=m)
        from_A = min(from_A, m)
        from_B = min(from_B, m - from_A)
        A, B = np.array([[n - from_A, 0, from_B, 0]]), np.array([[from_A, 0, n - from_B, 0]])
        if min(A.sum(), B.sum()) >= n:
            assert self.least_loss(A, B, m=0)[0] <= 0.5

    def test_the_margin_is_one_half_at_the_lemmas_size(self):
        assert 0.45 < lemmas.separation_margin(self.n, delta=DELTA, class_size=16, m=self.n // 8) <= 0.5
        assert lemmas.separation_sample_size(delta=DELTA, class_size=16, m=1000) == 8000


def false_encoders(size, epsilon, rng, moved=0):
    """How often encoder j, right on all but a share errors[j] of s, errs on each of `size` samples: (TRIALS, 8).

    Errors come with one more kind of noise each; encoder 0 is true.
    """
    errors = np.linspace(0, 0.7, 8)
    hit = np.cumsum(rng.multinomial(size, np.diff(errors, append=1.0), size=TRIALS), axis=1)
    return errors > epsilon, np.concatenate([np.zeros((TRIALS, 1), dtype=int), hit[:, :-1]], axis=1)


def test_bad_encoders_rarely_win_but_often_with_few_samples_or_many_strangers():
    size = {"epsilon": 0.3, "delta": DELTA, "class_size": 8, "N": 3}

    def rate(n, m):
        """m samples moved to help the bad ones."""
        bad, wrong = false_encoders(n, 0.3, np.random.default_rng(9))
        moved = np.minimum(wrong, m)  # to another state's set, where encoder j says they belong
        return (((wrong - moved) / (n - moved) <= moved / (n + moved)) & bad).any(axis=1).mean()

    n = lemmas.encoding_sample_size(**size)
    assert rate(n, math.floor(0.3 * n / 8)) <= DELTA
    assert rate(3, 0) > DELTA
    assert rate(n, math.ceil(0.9 * 0.3 * n)) > DELTA
    m = 0.3 * n / 8  # the proof's inequality
    assert math.sqrt(2 * 3 * math.log(2 * 8 / DELTA) / (n - m)) + 4 * m / n <= 0.3


# -- Lemma C.6: one turn of the loop, with the library's own clustering and merging, against adversaries ----------


class TestRecursiveStep:
    """The lemma asks for some 10^11 visits per pair. They are affordable as counts: a sample is a latent pair with two
    noise bits, so that all samples of an agent are one multinomial draw."""

    H, STEP = 3, 2
    PAIRS = np.array([[0.3, 0.2], [0.2, 0.3]])  # shares of the trajectories
    SHARE_A = 1 / (1 + np.exp([[-0.7, 0.5], [0.3, -1.0]]))  # of each pair; alpha = 1.2 and 1.3
    NU, GRID = 0.2, Grid.from_bounds(1.2, 0.26)
    EPSILON = NU / (8 * H) * 0.999  # the theorem's; just below, so that Line 19's >= is the proof's >

    def adversaries(self, counts, budget):
        """labelled (3, 2, 2, 2, 2): counts by label at h, 2 for none. Each spends its budget on one pair of states."""
        honest = np.zeros((3, *counts.shape), dtype=np.int64)
        for s in (0, 1):
            honest[s, s] = counts[s]
        for s, s_next, other in product((0, 1), (0, 1), (True, False)):
            labelled, left, wrong = honest.copy(), budget, 1 - s if other else 2
            for e in np.ndindex(2, 2):
                taken = min(left, int(counts[s, s_next][e]))
                labelled[(s, s, s_next, *e)] -= taken
                labelled[(wrong, s, s_next, *e)] += taken
                left -= taken
            yield labelled

    def errors_after_one_step(self, labelled, bins):
        """The share of trajectories that are not in their state at h+1; 1 if the states are not two."""
        n, clusters, predecessors = labelled.sum(), [], []
        for s_pred in (0, 1):
            spectrum = np.bincount(bins.ravel(), labelled[s_pred].ravel(), minlength=self.GRID.size)
            occupied = np.flatnonzero(spectrum)
            threshold = heaviness_threshold(self.STEP, self.H, self.NU, n)
            for members, _ in scan(occupied[:, None], spectrum[occupied], threshold, self.GRID.size):
                clusters.append(labelled[s_pred] * np.isin(bins, occupied[members]))
                predecessors.append(s_pred)

        def separation(new, state):
            """Line 25 on counts, with the features s and s XOR e, each way round."""
            sets = clusters[new], sum(clusters[c] for c in state)
            features = KINDS[1], KINDS[1] ^ KINDS[3]
            shares = [[np.bincount(x.ravel(), D.ravel(), minlength=2) / D.sum() for D in sets] for x in features]
            return min(float(np.minimum(*both).sum()) for both in shares)

        state_of, _ = merge_clusters(predecessors, separation)
        if state_of.max(initial=-1) != 1:
            return 1.0
        members = [sum(c for c, own in zip(clusters, state_of) if own == state) for state in (0, 1)]
        right = np.array([[own[:, s].sum() for s in (0, 1)] for own in members])
        return 1 - max(right.trace(), np.fliplr(right).trace()) / n

    def failure_rate(self, n, beta, trials=40):
        rng, failures, (s, s_next, e, e_next) = np.random.default_rng(11), 0, KINDS
        for _ in range(trials):
            total = np.round(n * self.PAIRS).astype(np.int64)
            a = np.round(total * self.SHARE_A).astype(np.int64)
            A, B = (rng.multinomial(c, NOISE).reshape(2, 2, 2, 2) for c in (a, total - a))
            features = product((s, s ^ e), (s_next, s_next ^ e_next))
            bins = min((best_table(A, B, *both, self.GRID) for both in features), key=lambda fit: fit[0])[1]
            attacks = self.adversaries(A + B, math.floor(beta * n))
            failures += any(self.errors_after_one_step(each, bins) > beta + self.EPSILON for each in attacks)
        return failures / trials

    def test_errors_rarely_grow_by_more_than_epsilon(self):
        problem = {"nu": self.NU, "epsilon": self.EPSILON}
        beta = (self.STEP - 1) * self.EPSILON
        assert lemmas.recursive_step_holds(beta=beta, h=self.STEP, H=self.H, **problem)
        n = lemmas.recursive_step_sample_size(self.GRID, delta=DELTA, class_size=4, N_s=2, **problem) / self.NU
        assert self.failure_rate(math.ceil(n), beta) <= DELTA
        assert self.failure_rate(40, beta) > DELTA
        wrong = 0.7 * self.NU  # more wrong labels than the lemma allows
        assert not lemmas.recursive_step_holds(beta=wrong, h=self.STEP, H=self.H, **problem)
        assert self.failure_rate(10**7, wrong, trials=5) > DELTA

    def test_the_printed_formula(self):
        eta, alpha = self.GRID.eta, self.GRID.alpha
        printed = 12800 * (math.log(4 * 4**2 / DELTA) + 2**2 * math.log(self.GRID.n_xi + 1)) * math.log(1 / eta) ** 2
        n = lemmas.recursive_step_sample_size(self.GRID, epsilon=0.01, nu=self.NU, delta=DELTA, class_size=4, N_s=2)
        assert n == pytest.approx(printed / (self.NU * 0.01**2 * eta**2 * alpha**4), rel=1e-9)


# -- Sections 3.1 and 3.1.1: DRAFT --------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_the_two_forms_of_drafts_loss_agree(seed, gamma_A, gamma_B):
    rng = np.random.default_rng(seed)
    (Q, Q_prime), phi = rng.dirichlet(np.ones(6), size=2), rng.integers(0, 2, 6)
    p_A, p_B = (gamma * Q + (1 - gamma) * Q_prime for gamma in (gamma_A, gamma_B))
    right = Q @ (phi == 0), Q_prime @ (phi == 1)
    expected = lemmas.draft_loss_from_accuracy(*right, gamma_A=gamma_A, gamma_B=gamma_B)
    assert lemmas.draft_loss(phi, p_A, p_B) == pytest.approx(expected)


def test_drafts_bad_encoders_are_rare_at_its_size_and_common_with_few_samples():
    def rate(m):
        rng, loss = np.random.default_rng(2), 1.0
        for gamma, sign in ((0.7, 1), (0.4, -1)):
            of_s = round(m * gamma)
            bad, wrong = false_encoders(of_s, 0.35, rng)
            loss = loss + sign * (m - of_s + wrong) / m
        chosen = loss.shape[1] - 1 - loss[:, ::-1].argmin(axis=1)  # of equal encoders the worst
        return bad[chosen].mean()

    assert rate(lemmas.draft_sample_size(epsilon=0.35, delta=DELTA, gap=0.3, class_size=8)) <= DELTA
    assert rate(10) > DELTA


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.floats(0.01, 1))
def test_on_corrupted_data_a_wrong_encoder_ties_with_the_true_one(one, other, share):
    gamma_B, gamma_A = sorted([one, other])
    if gamma_A - gamma_B > 1e-6:
        bad = share * min(gamma_B, 1 - gamma_A)
        example = lemmas.corrupted_example(gamma_A, gamma_B, bad)
        both = example.phi_star, example.phi_wrong
        true, wrong = (lemmas.draft_loss(phi, example.p_A, example.p_B) for phi in both)
        assert wrong == pytest.approx(true, abs=1e-12)
        assert [example.error(phi) for phi in both] == [0, pytest.approx(bad / (gamma_A - gamma_B + bad))]
        assert example.p_A @ (example.phi_star == 0) == pytest.approx(gamma_A)
        assert example.p_B @ (example.phi_star == 0) == pytest.approx(gamma_B)


def test_the_loss_that_the_two_share_has_a_factor_of_two():
    """The text says -(gamma_A - gamma_B + epsilon_bad) + C; its own expression gives twice that."""
    example, gap = lemmas.corrupted_example(0.7, 0.4, 0.1), 0.7 - 0.4 + 0.1

    def constant(phi):
        """C, which must not depend on phi."""
        natural = example.Q @ (phi == 0) + example.Q_prime @ (phi == 1)
        corrupted = example.D_bad @ (phi == 1) + example.D_bad_prime @ (phi == 0)
        return lemmas.draft_loss(phi, example.p_A, example.p_B) + gap * natural + 0.1 * corrupted

    every = [constant(np.array(phi)) for phi in product((0, 1), repeat=6)]
    assert np.ptp(every) == pytest.approx(0, abs=1e-12)
    assert lemmas.draft_loss(example.phi_star, example.p_A, example.p_B) == pytest.approx(-2 * gap + every[0])
