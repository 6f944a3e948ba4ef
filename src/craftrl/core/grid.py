"""Xi: the grid of log-odds values that f_h may take.

Paper: Algorithm 2, Lines 1-4
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import is_number, shown
from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

__all__ = ["Grid", "check_alpha", "check_eta", "check_nu"]

MOST_BINS = 2**15  # bins are kept as 16-bit integers


@dataclass(frozen=True)
class Grid(Savable):
    """Xi = {-n_xi xi/2, -n_xi xi/2 + xi, ..., n_xi xi/2}, symmetric about 0.

    Lines 1 and 3 replace the given bounds by `alpha` = min(1, alpha) and by the largest `eta` not above the
    given one whose log-odds is a grid point. Both are kept: the caller's in the estimator, the effective ones
    here.

    Paper: Algorithm 2, Lines 1-4
    """

    alpha: float
    eta: float
    n_xi: int

    @classmethod
    def from_bounds(cls, alpha: float, eta: float) -> Grid:
        """Lines 1-4, from lower bounds alpha > 0 and 0 < eta <= 1/2."""
        check_alpha(alpha)
        check_eta(eta)
        alpha = float(min(1, alpha))
        # The guard keeps an eta that lies on the grid already from rounding up to the next point.
        wanted = 8 * math.log(1 / eta - 1) / alpha - 1e-9
        if wanted > MOST_BINS - 1:  # also where it is infinite
            raise InvalidParameterError(
                f"The grid must have fewer than {MOST_BINS} bins; alpha = {alpha} and eta = {eta} ask for "
                f"{wanted:.0f}; raise alpha or eta."
            )
        n_xi = math.ceil(wanted)
        return cls(alpha=alpha, eta=1 / (1 + math.exp(n_xi * alpha / 8)), n_xi=n_xi)

    @property
    def xi(self) -> float:
        """The distance between neighbours, alpha/4."""
        return self.alpha / 4

    @property
    def size(self) -> int:
        """|Xi| = n_xi + 1."""
        return self.n_xi + 1

    @property
    def values(self) -> NDArray[np.float64]:
        """Xi itself, ascending, shape (n_xi + 1,)."""
        return np.asarray((np.arange(self.size) - self.n_xi / 2) * self.xi, dtype=np.float64)


def check_alpha(alpha: float) -> None:
    if not (is_number(alpha) and 0 < alpha <= sys.float_info.max):
        raise InvalidParameterError(
            f"alpha must be a positive number; alpha = {shown(alpha)} was given; it is the least difference between "
            "two agents' log-odds of any two successors of a state."
        )


def check_eta(eta: float) -> None:
    if not (is_number(eta) and 0 < eta <= 0.5):
        raise InvalidParameterError(
            f"eta must lie in (0, 1/2]; eta = {shown(eta)} was given; it is the least share of one agent among the "
            "visits to any pair of states."
        )


def check_nu(nu: float) -> None:
    if not (is_number(nu) and 0 < nu <= 1):
        raise InvalidParameterError(
            f"nu must lie in (0, 1]; nu = {shown(nu)} was given; it is the least share of the trajectories that visit "
            "any possible pair of states."
        )
