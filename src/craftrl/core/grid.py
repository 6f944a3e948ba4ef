"""Xi: the grid of log-odds values that f_h may take.

Paper: Algorithm 2, Lines 1-4
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from craftrl.arguments import is_number, quoted
from craftrl.arrays import Floats
from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

__all__ = ["Grid"]

MAX_BINS = 2**15  # bins are kept as 16-bit integers
RANGES = {  # the largest value of each, what must hold, and what it is the least of
    "alpha": (
        sys.float_info.max,
        "be a positive number",
        "difference of two agents' log-odds of two successors of a state",
    ),
    "eta": (0.5, "lie in (0, 1/2]", "share of one agent among the visits to any pair of states"),
    "nu": (1.0, "lie in (0, 1]", "share of the trajectories that visit any possible pair of states"),
}


@dataclass(frozen=True)
class Grid(Savable):
    """Xi = {-n_xi xi/2, -n_xi xi/2 + xi, ..., n_xi xi/2}, symmetric about 0.

    Lines 1 and 3 replace the given bounds by `alpha` = min(1, alpha) and by the largest `eta` not above the given one
    whose log-odds is a grid point. The estimator keeps the caller's bounds, the grid these effective ones.

    Paper: Algorithm 2, Lines 1-4
    """

    alpha: float
    eta: float
    n_xi: int

    @classmethod
    def from_bounds(cls, alpha: float, eta: float) -> Grid:
        """Lines 1-4, from lower bounds alpha > 0 and 0 < eta <= 1/2."""
        check_bound("alpha", alpha)
        check_bound("eta", eta)
        alpha = float(min(1, alpha))
        # The guard keeps an eta that lies on the grid already from rounding up to the next point.
        wanted = 8 * math.log(1 / eta - 1) / alpha - 1e-9
        if wanted > MAX_BINS - 1:  # also where it is infinite
            raise InvalidParameterError(
                f"The grid must have fewer than {MAX_BINS} bins; alpha = {alpha} and eta = {eta} ask for "
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
    def values(self) -> Floats:
        """Xi itself, ascending, shape (n_xi + 1,)."""
        return np.asarray((np.arange(self.size) - self.n_xi / 2) * self.xi, dtype=np.float64)


def check_bound(name: str, value: float) -> None:
    """Raise where alpha, eta or nu, which `name` says, is none."""
    most, what, meaning = RANGES[name]
    if not (is_number(value) and 0 < value <= most):
        raise InvalidParameterError(
            f"{name} must {what}; {name} = {quoted(value)} was given; it is the least {meaning}."
        )
