"""The paper's lemmas as functions: the sample size that each asks for. test_lemmas.py proves them by simulation.

Paper: Sections 3.1, 3.1.1, Lemmas C.1-C.6
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from craftrl.core.clusters import heaviness_threshold
from craftrl.paper.theorem import visits_for_one_error


def spread_sample_size(grid, *, nu, epsilon, delta):
    """Samples of each distribution with which one fixed f, no worse than L_ref, has no more than a share epsilon of any
    distribution's samples outside its two enclosing grid points, with probability 1 - delta.

        50 ln(2/delta) ln^2(1/eta) / (nu epsilon^2 eta^2 xi^4)

    Paper: Lemma C.1
    """
    log_odds = math.log(1 / grid.eta) / (epsilon * grid.eta * grid.xi**2)
    return math.ceil(50 * math.log(2 / delta) * log_odds**2 / nu)


def erm_spread_sample_size(grid, *, nu, epsilon, delta, class_size, N_s):
    """The same for the f_h that Line 10 finds: delta is shared among the members of F_h.

    Paper: Corollary C.2
    """
    members = class_size**2 * (grid.n_xi + 1) ** N_s**2
    return spread_sample_size(grid, nu=nu, epsilon=epsilon, delta=delta / members)


def enclosing_bins(a, b, grid):
    """The bins of c_low <= ln(a/b) <= c_high, one and the same where ln(a/b) is a grid point.

    Paper: Lemma C.1
    """
    position = np.log(np.asarray(a, dtype=float) / b) / grid.xi + grid.n_xi / 2
    nearest = np.rint(position)
    position = np.where(np.isclose(position, nearest, rtol=0, atol=1e-9), nearest, position)
    return np.floor(position).astype(int), np.ceil(position).astype(int)


def reference_loss(a, b, grid):
    """L_ref: the loss of the best constant grid value for each distribution, summed over distributions.

    Paper: Lemma C.1
    """
    c = grid.values[np.stack(enclosing_bins(a, b, grid))]
    return float((a * np.logaddexp(0, -c) + b * np.logaddexp(0, c)).min(axis=0).sum())


def chain_spread_sample_size(grid, *, nu, epsilon, delta, H, class_size, N_s):
    """Corollary C.2 for the f_1..f_{H-1} of a shortest chain, which the paper does not have (docs/theory.md).

        (4 (H-1) R sqrt(ln(2 N/delta)) / (eta xi^2 sqrt(nu)) + sqrt(ln(2 N (H-1) / (nu delta))))^2 / (2 epsilon^2)

    with R = n_xi xi/2 the grid's end and N = |Phi|^(H-1) (n_xi + 1)^((H-1) N_s^2) the number of chains.
    """
    log_chains = (H - 1) * (math.log(class_size) + N_s**2 * math.log(grid.n_xi + 1))
    of_the_loss = 4 * (H - 1) * grid.n_xi * grid.xi / 2 * math.sqrt(math.log(2 / delta) + log_chains)
    of_the_counts = math.sqrt(math.log(2 * (H - 1) / (nu * delta)) + log_chains)
    return math.ceil((of_the_loss / (grid.eta * grid.xi**2 * math.sqrt(nu)) + of_the_counts) ** 2 / 2 / epsilon**2)


def mean_shift_bound(changed, size):
    """How far the mean of `size` numbers in [0, 1] can move when `changed` are inserted or removed.

    Paper: Proposition C.3
    """
    return changed / size


def separation_sample_size(*, delta, class_size, m=0):
    """Samples of the smaller of two sets, m of them corrupted, for the test L(g) > 1/2 to be right: max(8 m,
    (128/7) ln(2 |G| / delta)).

    Paper: Lemma C.4
    """
    return max(8 * m, math.ceil(128 / 7 * math.log(2 * class_size / delta)))


def separation_margin(n, *, delta, class_size, m=0):
    """How far L(g) may lie from its clean expectation (0 or 1), for all g at once; the test needs 1/2 or less.

    Paper: Lemma C.4 (the inequality in its proof)
    """
    return math.sqrt(math.log(2 * class_size / delta) / (n - m)) + mean_shift_bound(2 * m, n)


def encoding_sample_size(*, epsilon, delta, class_size, N, m=0):
    """Samples of the smallest of N sets, m moved between sets, for the encoder of Line 46 to be right on a share
    1 - epsilon of every state: max(8 m / epsilon, 64 N ln(2 |Phi| / delta) / (7 epsilon^2)).

    Paper: Lemma C.5
    """
    return math.ceil(max(8 * m / epsilon, 64 * N * math.log(2 * class_size / delta) / (7 * epsilon**2)))


def recursive_step_holds(*, epsilon, beta, nu, h, H):
    """Whether the lemma speaks of step h, a share beta of whose labels is wrong: strangers, epsilon + beta at most, may
    share a bin and must not make it heavy; so many samples of a state are sure to share one, and must.

    Paper: Lemma C.6; Algorithm 2, Line 11
    """
    q_thresh = heaviness_threshold(h, H, nu, n=1)
    return epsilon < nu / 8 - beta and epsilon + beta <= q_thresh < nu * (1 - epsilon) / 2 - beta


def recursive_step_sample_size(grid, *, nu, epsilon, delta, class_size, N_s):
    """Visits of each possible pair of states for a step that adds at most a share epsilon of errors.

    Paper: Lemma C.6
    """
    return math.ceil(visits_for_one_error(grid, nu, delta, class_size, N_s) / epsilon**2)


def draft_loss(phi, p_A, p_B):
    """L_pop(phi) = E_A phi(x) + E_B (1 - phi(x)), for the distributions p_A and p_B of x_2 in the two datasets.

    Paper: Equations 8, 10
    """
    return float(p_A @ phi + p_B @ (1 - phi))


def draft_loss_from_accuracy(accuracy, accuracy_prime, *, gamma_A, gamma_B):
    """The same from how often phi is right on s and on s'.

    Paper: Equation 9 (last line, with its constant C)
    """
    gap = gamma_A - gamma_B
    return -gap * (accuracy + accuracy_prime) + 1 + gap


def draft_sample_size(*, epsilon, delta, gap, class_size):
    """Trajectories m per agent with which DRAFT's error rates on s and s' add up to epsilon at most:
    4 ln(2 |Phi| / delta) / (gap^2 epsilon^2), with gap = gamma_A - gamma_B.

    L(phi) is a sum of 2m independent terms with range 1/m each, so by Hoeffding all of Phi is within t = sqrt(ln(2
    |Phi|/delta) / m) of L_pop. The minimiser's L_pop is then at most 2t above that of phi*, and it is above it by gap
    times the sum of errors.

    Paper: Section 3.1, which gives O(1 / (gap^2 epsilon^2))
    """
    return math.ceil(4 * math.log(2 * class_size / delta) / (gap * epsilon) ** 2)


class CorruptedExample(NamedTuple):
    """Six observations, three of s and three of s': an ordinary one, one that phi_wrong gets wrong, and one that nature
    never shows but the corruption puts into the data. Distributions, and encoders, (6,)."""

    Q: np.ndarray
    Q_prime: np.ndarray
    D_bad: np.ndarray
    D_bad_prime: np.ndarray
    p_A: np.ndarray
    p_B: np.ndarray
    phi_star: np.ndarray
    phi_wrong: np.ndarray

    def error(self, phi):
        """phi's error rate on each of the natural distributions, the larger of the two."""
        return float(max(self.Q @ (phi != 0), self.Q_prime @ (phi != 1)))


def corrupted_example(gamma_A, gamma_B, epsilon_bad):
    """A share epsilon_bad of each dataset is bad: in tau_A in place of s', in tau_B of s. phi_wrong is wrong on these,
    which wins 2 epsilon_bad, and on so many natural ones that it loses just as much.

    Paper: Section 3.1.1
    """
    wrong = epsilon_bad / (gamma_A - gamma_B + epsilon_bad)
    natural, bad = np.array([1 - wrong, wrong, 0.0]), np.array([0.0, 0.0, 1.0])
    Q, Q_prime, D_bad, D_bad_prime = (np.concatenate(p) for q in (natural, bad) for p in ((q, 0 * q), (0 * q, q)))
    p_A = gamma_A * Q + (1 - gamma_A - epsilon_bad) * Q_prime + epsilon_bad * D_bad_prime
    p_B = (gamma_B - epsilon_bad) * Q + (1 - gamma_B) * Q_prime + epsilon_bad * D_bad
    phi_star, phi_wrong = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]])
    return CorruptedExample(Q, Q_prime, D_bad, D_bad_prime, p_A, p_B, phi_star, phi_wrong)
