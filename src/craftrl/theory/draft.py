"""DRAFT: why comparing agents works in one step, and why repeating it is fragile.

Two latent states s and s' at h = 2; agent A reaches s with frequency gamma_A, agent B with gamma_B < gamma_A.
Encoders phi map observations to {0, 1}, and 0 stands for s. Here X is finite, so that a distribution is an
array of probabilities and phi an array of zeros and ones.

Paper: Sections 3.1, 3.1.1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import shown
from craftrl.errors import InvalidParameterError
from craftrl.theory.ranges import check_count, finite_array, in_range

__all__ = [
    "CorruptedExample",
    "corrupted_example",
    "draft_epsilon",
    "draft_loss",
    "draft_loss_from_accuracy",
    "draft_sample_size",
]

Floats = NDArray[np.float64]


@in_range
def draft_loss(phi: ArrayLike, p_A: ArrayLike, p_B: ArrayLike) -> float:
    """L_pop(phi) = E_A phi(x) + E_B (1 - phi(x)), for the distributions p_A and p_B of x_2 in the two datasets.

    Given empirical frequencies, it is the empirical loss of Algorithm 1.

    Paper: Equations 8, 10
    """
    codes, of_A, of_B = finite_array("phi", phi), finite_array("p_A", p_A), finite_array("p_B", p_B)
    if codes.ndim != 1 or not codes.shape == of_A.shape == of_B.shape:
        raise InvalidParameterError(
            f"phi, p_A and p_B must be rows with one entry for each x; shapes {codes.shape}, {of_A.shape} and "
            f"{of_B.shape} were given."
        )
    if not np.isin(codes, (0, 1)).all() or min(of_A.min(), of_B.min()) < 0:
        raise InvalidParameterError(
            f"phi must be 0 or 1 for each x, and p_A and p_B must not be negative; {shown(phi)}, {shown(p_A)} and "
            f"{shown(p_B)} were given."
        )
    return float(of_A @ codes + of_B @ (1 - codes))


@in_range
def draft_loss_from_accuracy(accuracy: float, accuracy_prime: float, *, gamma_A: float, gamma_B: float) -> float:
    """The same loss as a function of the encoder's accuracy alone:

        -(gamma_A - gamma_B) (Pr(phi = 0 | s) + Pr(phi = 1 | s')) + 1 + gamma_A - gamma_B

    So each share of errors costs gamma_A - gamma_B, and phi* is the only minimiser where gamma_A > gamma_B.

    Paper: Equation 9 (last line, with its constant C)
    """
    gap = gamma_A - gamma_B
    return -gap * (accuracy + accuracy_prime) + 1 + gap


@in_range
def draft_sample_size(*, epsilon: float, delta: float, gap: float, class_size: int) -> int:
    """Trajectories m per agent with which DRAFT's error rates on s and s' add up to epsilon at most.

        4 ln(2 |Phi| / delta) / (gap^2 epsilon^2),    gap = gamma_A - gamma_B

    L(phi) is a sum of 2m independent terms with range 1/m each, so by Hoeffding it is further than t from
    L_pop(phi) with probability at most 2 exp(-m t^2). With t = sqrt(ln(2 |Phi|/delta) / m) all of Phi is within t, so
    the minimiser's L_pop is at most 2t above that of phi*; and L_pop is above it by gap times the sum of errors.

    Paper: Section 3.1, which gives O(1 / (gap^2 epsilon^2))
    """
    return math.ceil(_needed(delta, gap, class_size) / epsilon**2)


@in_range
def draft_epsilon(m: int, *, delta: float, gap: float, class_size: int) -> float:
    """The inverse: the sum of both error rates that m trajectories per agent guarantee; above 1 it says little."""
    check_count("m", m)
    return math.sqrt(_needed(delta, gap, class_size) / m)


def _needed(delta: float, gap: float, class_size: int) -> float:
    return 4 * math.log(2 * class_size / delta) / gap**2


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
        codes = finite_array("phi", phi)
        if codes.shape != self.Q.shape:
            raise InvalidParameterError(
                f"phi must have one entry for each of {len(self.Q)} observations; shape {codes.shape} was given."
            )
        return float(max(self.Q @ (codes != 0), self.Q_prime @ (codes != 1)))

    @property
    def blow_up(self) -> float:
        """By which factor DRAFT's error may exceed the corruption: 1 / (gamma_A - gamma_B + epsilon_bad)."""
        return self.error(self.phi_wrong) / self.epsilon_bad


@in_range
def corrupted_example(gamma_A: float, gamma_B: float, epsilon_bad: float) -> CorruptedExample:
    """The paper's example, built: a share epsilon_bad of each dataset is replaced by bad samples.

    In tau_A they replace samples of s', in tau_B samples of s. phi_wrong is wrong on all bad samples, which
    wins 2 epsilon_bad, and on a share epsilon_bad / (gamma_A - gamma_B + epsilon_bad) of the natural ones, which loses
    just as much.

    Paper: Section 3.1.1
    """
    if not 0 <= gamma_B < gamma_A <= 1 or not 0 < epsilon_bad <= min(gamma_B, 1 - gamma_A):
        raise InvalidParameterError(
            "The example needs gamma_B < gamma_A and 0 < epsilon_bad <= min(gamma_B, 1 - gamma_A), for samples "
            f"to replace; gamma_A = {gamma_A}, gamma_B = {gamma_B}, epsilon_bad = {epsilon_bad} were given."
        )
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
