"""The theorem with every constant: how many trajectories does CRAFT need, and what do mine guarantee?

The paper states its theorem up to constants and logarithms. Its proof has them all; here they are put
together, with the effective alpha and eta of Lines 1-3. They are worst-case constants: docs/theory.md
compares them with practice.

Paper: Theorem 3.1, Lemma C.7
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from craftrl.core.grid import Grid
from craftrl.errors import InvalidParameterError
from craftrl.theory.ranges import in_range
from craftrl.theory.recursion import recursive_step_epsilon, recursive_step_sample_size

__all__ = ["SampleSize", "guaranteed_epsilon", "sample_size", "step_epsilon"]


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


@in_range
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

    per pair of states: the recursive step with delta/(2H) and `step_epsilon`. `class_size` is |Phi|, the
    number of encoders per step with all their relabellings (the coordinate class of M bits has 2 M); `alpha`, `eta`,
    `nu`, `nu_prime` are the bounds themselves, as `empirical_assumptions` or `population_assumptions` give them.

    Paper: Theorem 3.1, Lemma C.7, Algorithm 2 Lines 1-3
    """
    grid = _checked_grid(alpha, eta, nu, nu_prime)
    epsilon = step_epsilon(epsilon_0, H=H, nu=nu, nu_prime=nu_prime)
    per_pair = recursive_step_sample_size(
        grid, nu=nu, epsilon=epsilon, delta=delta / (2 * H), class_size=class_size, N_s=N_s
    )
    return SampleSize(per_pair, math.ceil(per_pair / nu), epsilon, grid)


@in_range
def guaranteed_epsilon(
    n: int,
    *,
    delta: float,
    H: int,
    class_size: int,
    N_s: int,
    alpha: float,
    eta: float,
    nu: float,
    nu_prime: float,
) -> float | None:
    """The epsilon_0 that n trajectories (all agents together) guarantee with probability 1 - delta.

    The inverse of `sample_size`. None if the theorem says nothing: with fewer than `sample_size` asks for at
    epsilon_0 = nu/nu', the clusters themselves are not sure to be found, and no epsilon_0 follows. In practice
    CRAFT works with far less.

    Paper: Theorem 3.1, Lemma C.7
    """
    grid = _checked_grid(alpha, eta, nu, nu_prime)
    per_step = recursive_step_epsilon(
        max(1, math.floor(n * nu)), grid, nu=nu, delta=delta / (2 * H), class_size=class_size, N_s=N_s
    )
    if 8 * H * per_step > nu:
        return None
    return 8 * H * per_step / nu_prime


@in_range
def step_epsilon(epsilon_0: float, *, H: int, nu: float, nu_prime: float) -> float:
    """min(nu, nu' epsilon_0) / (8 H): errors that each step may add, so that H of them hurt neither the clusters
    (nu/8 in all) nor the final encoders (nu' epsilon_0/8 in all).

    Paper: Lemma C.7
    """
    return min(nu, nu_prime * epsilon_0) / (8 * H)


def _checked_grid(alpha: float, eta: float, nu: float, nu_prime: float) -> Grid:
    if not nu <= nu_prime <= 1:
        raise InvalidParameterError(
            f"nu_prime must lie in [nu, 1]; nu_prime = {nu_prime} and nu = {nu} were given; whoever visits a pair "
            "visits both its states."
        )
    # An infinite alpha (no state has two successors) is as good as 1: Line 1 takes no more.
    return Grid.from_bounds(min(alpha, 1.0), eta)
