"""The paper's lemmas as functions: the sample size that each asks for.

The theorem in `craftrl.paper.theorem` needs one of them alone (Lemma C.6); the tests beside this file prove all of
them by simulation. Arguments are not checked.

Paper: Sections 3.1, 3.1.1, Lemmas C.1-C.6
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.core.clusters import heaviness_threshold
from craftrl.core.grid import Grid
from craftrl.paper.theorem import visits_for_one_error

Floats = NDArray[np.float64]


# -- Lemma C.1, Corollary C.2: how tightly f_h clusters -----------------------------------------------------------


def spread_sample_size(grid: Grid, *, nu: float, epsilon: float, delta: float) -> int:
    """Samples a_i + b_i that each of the m distributions needs, for one fixed f.

        50 ln(2/delta) ln^2(1/eta) / (nu epsilon^2 eta^2 xi^4)

    With so many, the probability that L(f) <= L_ref and yet some distribution has more than a share epsilon
    of its samples outside its two enclosing grid points is at most delta.

    Paper: Lemma C.1
    """
    return math.ceil(
        50 * math.log(2 / delta) * math.log(1 / grid.eta) ** 2 / (nu * (epsilon * grid.eta * grid.xi**2) ** 2)
    )


def erm_spread_sample_size(grid: Grid, *, nu: float, epsilon: float, delta: float, class_size: int, N_s: int) -> int:
    """Visits |D*(s_h, s_{h+1})| that each possible pair needs, for the f_h that Line 10 finds.

        50 (ln(2 |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu epsilon^2 eta^2 xi^4)

    That is the lemma with delta shared among the |Phi|^2 (n_xi + 1)^(N_s^2) members of F_h.

    Paper: Corollary C.2
    """
    members = class_size**2 * (grid.n_xi + 1) ** N_s**2
    return spread_sample_size(grid, nu=nu, epsilon=epsilon, delta=delta / members)


def enclosing_bins(a: ArrayLike, b: ArrayLike, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bins of c_low <= ln(a/b) <= c_high, one and the same where ln(a/b) is a grid point.

    Paper: Lemma C.1
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    position = np.log(a / b) / grid.xi + grid.n_xi / 2
    nearest = np.rint(position)
    position = np.where(np.isclose(position, nearest, rtol=0, atol=1e-9), nearest, position)
    return np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)


def reference_loss(a: ArrayLike, b: ArrayLike, grid: Grid) -> float:
    """L_ref: the loss of the best constant grid value for each distribution, summed over distributions.

    Paper: Lemma C.1
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    c = grid.values[np.stack(enclosing_bins(a, b, grid))]
    return float((a * np.logaddexp(0, -c) + b * np.logaddexp(0, c)).min(axis=0).sum())


# -- the same for a shortest chain, which the paper does not have: docs/chain.md has the proof --------------------


def chain_spread_sample_size(
    grid: Grid, *, nu: float, epsilon: float, delta: float, H: int, class_size: int, N_s: int
) -> int:
    """Visits |D*(s_h, s_{h+1})| that each possible pair of each step needs, for the f_1..f_{H-1} of a shortest chain.

        (4 (H-1) R sqrt(ln(2 N/delta)) / (eta xi^2 sqrt(nu)) + sqrt(ln(2 N (H-1) / (nu delta))))^2 / (2 epsilon^2)

    with R = n_xi xi/2 the grid's end and N = |Phi|^(H-1) (n_xi + 1)^((H-1) N_s^2) the number of chains. With so
    many, the probability that some pair of some step has more than a share epsilon of its samples outside its two
    enclosing grid points is at most delta.
    """
    log_chains = (H - 1) * (math.log(class_size) + N_s**2 * math.log(grid.n_xi + 1))
    reach = grid.n_xi * grid.xi / 2
    of_the_loss = 4 * (H - 1) * reach * math.sqrt(math.log(2 / delta) + log_chains)
    of_the_counts = math.sqrt(math.log(2 * (H - 1) / (nu * delta)) + log_chains)
    return math.ceil((of_the_loss / (grid.eta * grid.xi**2 * math.sqrt(nu)) + of_the_counts) ** 2 / 2 / epsilon**2)


# -- Proposition C.3, Lemmas C.4 and C.5: classification when some of the data is wrong ---------------------------


def mean_shift_bound(changed: int, size: int) -> float:
    """How far the mean of `size` numbers in [0, 1] can move when `changed` are inserted or removed.

    Paper: Proposition C.3
    """
    return changed / size


def separation_sample_size(*, delta: float, class_size: int, m: int = 0) -> int:
    """Samples that the smaller of two sets needs, m of them corrupted, for the test L(g) > 1/2 to be right.

        max(8 m, (128/7) ln(2 |G| / delta))

    Then with probability 1 - delta the best g in G has L(g) > 1/2 if both sets have one distribution, and
    L(g) <= 1/2 if some g in G separates their supports.

    Paper: Lemma C.4
    """
    return max(8 * m, math.ceil(128 / 7 * math.log(2 * class_size / delta)))


def separation_margin(n: int, *, delta: float, class_size: int, m: int = 0) -> float:
    """How far L(g) may lie from its clean expectation (0 or 1), for all g at once; the test needs 1/2 or less.

        sqrt(ln(2 |G| / delta) / (n - m)) + 2 m / n

    Paper: Lemma C.4 (the inequality in its proof)
    """
    return math.sqrt(math.log(2 * class_size / delta) / (n - m)) + mean_shift_bound(2 * m, n)


def encoding_sample_size(*, epsilon: float, delta: float, class_size: int, N: int, m: int = 0) -> int:
    """Samples that the smallest of N sets needs, m moved between sets, for an encoder right on 1 - epsilon.

        max(8 m / epsilon, 64 N ln(2 |Phi| / delta) / (7 epsilon^2))

    Then with probability 1 - delta, the encoder of Line 46 is right with probability at least 1 - epsilon on
    every one of the N states.

    Paper: Lemma C.5
    """
    statistical = 64 * N * math.log(2 * class_size / delta) / (7 * epsilon**2)
    return math.ceil(max(8 * m / epsilon, statistical))


# -- Lemma C.6: one turn of the loop ------------------------------------------------------------------------------


def recursive_step_holds(*, epsilon: float, beta: float, nu: float, h: int, H: int) -> bool:
    """Whether the lemma speaks of step h: epsilon < nu/8 - beta and epsilon + beta <= q < nu (1 - epsilon)/2 - beta.

    `beta` is the share of trajectories whose labels at h are wrong already, and q the share that makes a bin heavy.
    So many strangers, epsilon + beta, may share a bin and must not make it heavy; so many samples of a
    state, the right-hand side, are sure to share one and must.

    Paper: Lemma C.6; Algorithm 2, Line 11
    """
    q_thresh = heaviness_threshold(h, H, nu, n=1)
    return epsilon < nu / 8 - beta and epsilon + beta <= q_thresh < nu * (1 - epsilon) / 2 - beta


def recursive_step_sample_size(
    grid: Grid, *, nu: float, epsilon: float, delta: float, class_size: int, N_s: int
) -> int:
    """Visits that each possible pair of states needs for a step that adds at most a share epsilon of errors.

        12800 (ln(4 |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu epsilon^2 eta^2 alpha^4)

    This is the spread of f_h with delta/2 and xi = alpha/4; the merging tests get the other delta/2 and ask for
    less than that.

    Paper: Lemma C.6
    """
    return math.ceil(visits_for_one_error(grid, nu, delta, class_size, N_s) / epsilon**2)


# -- Sections 3.1 and 3.1.1: DRAFT --------------------------------------------------------------------------------


def draft_loss(phi: ArrayLike, p_A: ArrayLike, p_B: ArrayLike) -> float:
    """L_pop(phi) = E_A phi(x) + E_B (1 - phi(x)), for the distributions p_A and p_B of x_2 in the two datasets.

    Given empirical frequencies, it is the empirical loss of Algorithm 1.

    Paper: Equations 8, 10
    """
    codes, of_A, of_B = (np.asarray(of, dtype=float) for of in (phi, p_A, p_B))
    return float(of_A @ codes + of_B @ (1 - codes))


def draft_loss_from_accuracy(accuracy: float, accuracy_prime: float, *, gamma_A: float, gamma_B: float) -> float:
    """The same loss as a function of the encoder's accuracy alone:

        -(gamma_A - gamma_B) (Pr(phi = 0 | s) + Pr(phi = 1 | s')) + 1 + gamma_A - gamma_B

    So each share of errors costs gamma_A - gamma_B, and phi* is the only minimiser where gamma_A > gamma_B.

    Paper: Equation 9 (last line, with its constant C)
    """
    gap = gamma_A - gamma_B
    return -gap * (accuracy + accuracy_prime) + 1 + gap


def draft_sample_size(*, epsilon: float, delta: float, gap: float, class_size: int) -> int:
    """Trajectories m per agent with which DRAFT's error rates on s and s' add up to epsilon at most.

        4 ln(2 |Phi| / delta) / (gap^2 epsilon^2),    gap = gamma_A - gamma_B

    L(phi) is a sum of 2m independent terms with range 1/m each, so by Hoeffding it is further than t from
    L_pop(phi) with probability at most 2 exp(-m t^2). With t = sqrt(ln(2 |Phi|/delta) / m) all of Phi is within t, so
    the minimiser's L_pop is at most 2t above that of phi*; and L_pop is above it by gap times the sum of errors.

    Paper: Section 3.1, which gives O(1 / (gap^2 epsilon^2))
    """
    return math.ceil(4 * math.log(2 * class_size / delta) / (gap * epsilon) ** 2)


@dataclass(frozen=True)
class CorruptedExample:
    """A world of six observations in which a wrong encoder ties with the true one, once data is corrupted.

    For each of s and s' there are three observations: an ordinary one, one that phi_wrong gets wrong, and one
    that nature never shows but the corruption puts into the data. Arrays of shape (6,):

    Q, Q_prime          Q(s, P^e_2) and Q(s', P^e_2)
    D_bad, D_bad_prime  the distributions of the samples put in, still of state s and s'
    p_A, p_B            what the two datasets look like after the corruption
    phi_star            the true encoder: 0 for s, 1 for s'
    phi_wrong           the other one

    Paper: Section 3.1.1
    """

    Q: Floats
    Q_prime: Floats
    D_bad: Floats
    D_bad_prime: Floats
    p_A: Floats
    p_B: Floats
    phi_star: NDArray[np.int64]
    phi_wrong: NDArray[np.int64]
    epsilon_bad: float

    def error(self, phi: ArrayLike) -> float:
        """phi's error rate on each of the natural distributions, the larger of the two."""
        codes = np.asarray(phi)
        return float(max(self.Q @ (codes != 0), self.Q_prime @ (codes != 1)))

    @property
    def blow_up(self) -> float:
        """By which factor DRAFT's error may exceed the corruption: 1 / (gamma_A - gamma_B + epsilon_bad)."""
        return self.error(self.phi_wrong) / self.epsilon_bad


def corrupted_example(gamma_A: float, gamma_B: float, epsilon_bad: float) -> CorruptedExample:
    """The paper's example, built: a share epsilon_bad of each dataset is replaced by bad samples.

    In tau_A they replace samples of s', in tau_B samples of s. phi_wrong is wrong on all bad samples, which
    wins 2 epsilon_bad, and on a share epsilon_bad / (gamma_A - gamma_B + epsilon_bad) of the natural ones, which loses
    just as much.

    Paper: Section 3.1.1
    """
    wrong = epsilon_bad / (gamma_A - gamma_B + epsilon_bad)
    nothing = np.zeros(3)
    natural, bad = np.array([1 - wrong, wrong, 0.0]), np.array([0.0, 0.0, 1.0])
    Q, Q_prime = np.concatenate([natural, nothing]), np.concatenate([nothing, natural])
    D_bad, D_bad_prime = np.concatenate([bad, nothing]), np.concatenate([nothing, bad])
    return CorruptedExample(
        Q=Q,
        Q_prime=Q_prime,
        D_bad=D_bad,
        D_bad_prime=D_bad_prime,
        p_A=gamma_A * Q + (1 - gamma_A - epsilon_bad) * Q_prime + epsilon_bad * D_bad_prime,
        p_B=(gamma_B - epsilon_bad) * Q + (1 - gamma_B) * Q_prime + epsilon_bad * D_bad,
        phi_star=np.array([0, 0, 0, 1, 1, 1]),
        phi_wrong=np.array([0, 1, 1, 1, 0, 0]),
        epsilon_bad=epsilon_bad,
    )
