"""The theorem with every constant: how many trajectories does CRAFT need, and what do mine guarantee?

The paper states its theorem up to constants and logarithms. Its proof has them all; here they are put
together, with the effective alpha and eta of Lines 1-3. They are worst-case constants: docs/theory.md
compares them with practice. Beside them stands what knowing nothing scores, `chance_accuracy`.

Paper: Theorem 3.1, Lemma C.7
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_method, check_number, is_number
from craftrl.core.grid import Grid, check_bound
from craftrl.envs.agents import MarkovPolicy
from craftrl.envs.exbmdp import ExBMDP, check_tables
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import KnowsFeatureAccuracy
from craftrl.paper.assumptions import population_visits


@dataclass(frozen=True)
class SampleSize:
    """What the theorem asks for.

    per_pair  visits |D*(s_h, s_{h+1})| to every possible pair of states, of all agents together
    total     trajectories |tau_A| + |tau_B| that give so many: per_pair / nu
    epsilon   the share of errors that each step may add
    grid      Xi, with the effective alpha and eta of Lines 1-3
    """

    per_pair: int
    total: int
    epsilon: float
    grid: Grid

    def __str__(self) -> str:
        return (
            f"{self.per_pair:.3g} visits to every possible pair of states, {self.total:.3g} trajectories in all "
            f"(effective alpha = {self.grid.alpha:.4g}, eta = {self.grid.eta:.4g}, n_xi = {self.grid.n_xi})"
        )


def sample_size(
    *,
    epsilon_0: float,
    delta: float,
    H: int,
    class_size: int,
    N_s: int,
    alpha: float,
    eta: float,
    nu: float,
    nu_prime: float,
) -> SampleSize:
    """Data with which, with probability 1 - delta, every encoder errs on a share epsilon_0 at most of each state.

        819200 H^2 (ln(8 H |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu eta^2 alpha^4)
            * max(1/nu^2, 1/(epsilon_0^2 nu'^2))

    per pair of states. Each step may add min(nu, nu' epsilon_0) / (8 H) errors, so that H of them hurt neither the
    clusters (nu/8 in all) nor the final encoders (nu' epsilon_0/8 in all). `class_size` is |Phi|, the
    number of encoders per step with all their relabellings (the coordinate class of M bits has 2 M); `alpha`, `eta`,
    `nu`, `nu_prime` are the bounds themselves, as `empirical_assumptions` or `population_assumptions` give them.

    Paper: Theorem 3.1, Lemma C.7, Algorithm 2 Lines 1-3
    """
    check_number("epsilon_0", epsilon_0, "a share of errors in (0, 1]", lambda value: 0 < value <= 1)
    grid = _checked(delta, H, class_size, N_s, alpha, eta, nu, nu_prime)
    with _within_floats("sample_size"):
        epsilon = min(nu, nu_prime * epsilon_0) / (8 * H)
        per_pair = math.ceil(visits_for_one_error(grid, nu, delta / (2 * H), class_size, N_s) / epsilon**2)
        return SampleSize(per_pair, math.ceil(per_pair / nu), epsilon, grid)


def guaranteed_epsilon(
    n: int, *, delta: float, H: int, class_size: int, N_s: int, alpha: float, eta: float, nu: float, nu_prime: float
) -> float | None:
    """The epsilon_0 that n trajectories (all agents together) guarantee with probability 1 - delta.

    The inverse of `sample_size`. None if the theorem says nothing: with fewer than `sample_size` asks for at
    epsilon_0 = nu/nu', the clusters themselves are not sure to be found, and no epsilon_0 follows. In practice
    CRAFT works with far less.

    Paper: Theorem 3.1, Lemma C.7
    """
    _check_count("n", n, 1)
    grid = _checked(delta, H, class_size, N_s, alpha, eta, nu, nu_prime)
    with _within_floats("guaranteed_epsilon"):
        visits = max(1, math.floor(n * nu))
        epsilon = math.sqrt(visits_for_one_error(grid, nu, delta / (2 * H), class_size, N_s) / visits)
        return None if 8 * H * epsilon > nu else 8 * H * epsilon / nu_prime


def visits_for_one_error(grid: Grid, nu: float, delta: float, class_size: int, N_s: int) -> float:
    """Visits that each possible pair of states needs for a turn of the loop that adds a share epsilon of errors at
    most, times epsilon^2:

        12800 (ln(4 |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu eta^2 alpha^4)

    This is the spread of f_h with delta/2 and xi = alpha/4, delta/2 being shared among the |Phi|^2 (n_xi + 1)^(N_s^2)
    members of F_h. The merging tests get the other delta/2 and ask for less than that.

    Paper: Lemma C.6, by Corollary C.2
    """
    log_class = math.log(4 * class_size**2 / delta) + N_s**2 * math.log(grid.n_xi + 1)
    return 50 * log_class * math.log(1 / grid.eta) ** 2 / (nu * grid.eta**2 * grid.xi**4)


def chance_accuracy(world: ExBMDP, policies: Sequence[MarkovPolicy]) -> NDArray[np.float64]:
    """Accuracy at h = 1..H, shape (H,), of somebody who has learned nothing.

    In a world that can tell how accurate each of its coordinates is, that is a coordinate drawn at random: encoders of
    such worlds are coordinates, and even a bad one may agree with the state more often than not. In all others it is
    one and the same state named at every observation of a step: the share of the state that the agents visit most.
    Where there is one state only, as at h = 1, both are right.

    Paper: Section 4 (the world, whose features are all related to the state)
    """
    check_tables(world)
    check_kind("policies", policies, (list, tuple), "a list with the policy of each agent")
    for policy in policies:
        check_method("Each of policies", policy, "probabilities", "a policy, such as a MarkovPolicy")
    if isinstance(world, KnowsFeatureAccuracy):
        right = (world.feature_state_accuracy(h).mean(axis=0) for h in range(1, world.H + 1))
        return np.array([1.0 if world.n_states(h) == 1 else float(own.mean()) for h, own in enumerate(right, start=1)])
    return np.array([float(share.max()) for share in population_visits(world, policies).singles])


def _checked(
    delta: float, H: int, class_size: int, N_s: int, alpha: float, eta: float, nu: float, nu_prime: float
) -> Grid:
    """Raise where a letter means nothing; the grid that alpha and eta give."""
    risk = "it is the probability with which the guarantee may fail, 0.05 for example"
    check_number("delta", delta, "a number in (0, 1)", lambda value: 0 < value < 1, risk)
    for name, value, least in (("H", H, 2), ("class_size", class_size, 1), ("N_s", N_s, 1)):
        _check_count(name, value, least)
    check_bound("nu", nu)
    visits = "whoever visits a pair visits both its states"
    check_number("nu_prime", nu_prime, f"a number in [nu, 1], nu being {nu}", lambda value: nu <= value <= 1, visits)
    if not (is_number(alpha) and alpha == math.inf):
        check_bound("alpha", alpha)
    # An infinite alpha (no state has two successors) is as good as 1: Line 1 takes no more.
    return Grid.from_bounds(min(alpha, 1.0), eta)


def _check_count(name: str, value: float, least: int) -> None:
    whole = f"a whole number of at least {least} that a float holds"
    check_number(name, value, whole, lambda value: least <= value < math.inf and value == math.floor(value))


@contextmanager
def _within_floats(name: str) -> Iterator[None]:
    """One sentence where the numbers of a formula are beyond what floats hold."""
    try:
        yield
    except (OverflowError, ZeroDivisionError) as error:
        raise InvalidParameterError(
            f"{name} must stay below 1e308; the numbers that were given lead beyond; take less extreme ones."
        ) from error
