"""How tightly f_h clusters: the log-odds loss concentrates, so its minimiser hits the right grid points.

A pair of latent states that agent A visits a times and agent B visits b times has the log-odds ln(a/b), which
lies between two neighbouring points of Xi. The lemma bounds how many of the pair's samples may be mapped
elsewhere by an f that is at least as good as the best constant per pair.

Paper: Lemma C.1 (spread of f), Corollary C.2
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.core.grid import Grid
from craftrl.errors import InvalidParameterError
from craftrl.theory.ranges import finite_array, in_range

__all__ = [
    "enclosing_bins",
    "erm_spread_epsilon",
    "erm_spread_sample_size",
    "reference_loss",
    "spread_epsilon",
    "spread_sample_size",
]


@in_range
def spread_sample_size(grid: Grid, *, nu: float, epsilon: float, delta: float) -> int:
    """Samples a_i + b_i that each of the m distributions needs, for one fixed f.

        50 ln(2/delta) ln^2(1/eta) / (nu epsilon^2 eta^2 xi^4)

    With so many, the probability that L(f) <= L_ref and yet some distribution has more than a share epsilon
    of its samples outside its two enclosing grid points is at most delta.

    Paper: Lemma C.1
    """
    return math.ceil(_needed(grid, nu, math.log(2 / delta)) / epsilon**2)


@in_range
def spread_epsilon(n: int, grid: Grid, *, nu: float, delta: float) -> float:
    """The inverse: the share epsilon that n samples per distribution guarantee; above 1 it says nothing."""
    return math.sqrt(_needed(grid, nu, math.log(2 / delta)) / n)


@in_range
def erm_spread_sample_size(grid: Grid, *, nu: float, epsilon: float, delta: float, class_size: int, N_s: int) -> int:
    """Visits |D*(s_h, s_{h+1})| that each possible pair needs, for the f_h that Line 10 finds.

        50 (ln(2 |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu epsilon^2 eta^2 xi^4)

    That is the lemma with delta shared among the |Phi|^2 (n_xi + 1)^(N_s^2) members of F_h.

    Paper: Corollary C.2
    """
    return math.ceil(_needed(grid, nu, _log_class(grid, delta, class_size, N_s)) / epsilon**2)


@in_range
def erm_spread_epsilon(n: int, grid: Grid, *, nu: float, delta: float, class_size: int, N_s: int) -> float:
    """The inverse: the share epsilon that n visits to every pair guarantee; above 1 it says nothing."""
    return math.sqrt(_needed(grid, nu, _log_class(grid, delta, class_size, N_s)) / n)


def _needed(grid: Grid, nu: float, log_term: float) -> float:
    """Samples at epsilon = 1."""
    return 50 * log_term * math.log(1 / grid.eta) ** 2 / (nu * grid.eta**2 * grid.xi**4)


def _log_class(grid: Grid, delta: float, class_size: int, N_s: int) -> float:
    """ln(2 |F_h| / delta)."""
    return math.log(2 * class_size**2 / delta) + N_s**2 * math.log(grid.n_xi + 1)


@in_range
def enclosing_bins(a: ArrayLike, b: ArrayLike, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bins of c_low <= ln(a/b) <= c_high, one and the same where ln(a/b) is a grid point.

    Paper: Lemma C.1
    """
    a, b = _visits(a, b)
    if (a <= 0).any() or (b <= 0).any():
        raise InvalidParameterError(
            "Each distribution must have samples of both agents; one has none; its eta is 0 and no grid reaches it."
        )
    position = np.log(a / b) / grid.xi + grid.n_xi / 2
    nearest = np.rint(position)
    position = np.where(np.isclose(position, nearest, rtol=0, atol=1e-9), nearest, position)
    if (position < 0).any() or (position > grid.n_xi).any():
        raise InvalidParameterError(
            f"|ln(a/b)| must not exceed the grid's end {grid.n_xi * grid.xi / 2:.4g}; a = {a}, b = {b} were given; "
            "lower eta."
        )
    return np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)


@in_range
def reference_loss(a: ArrayLike, b: ArrayLike, grid: Grid) -> float:
    """L_ref: the loss of the best constant grid value for each distribution, summed over distributions.

    Paper: Lemma C.1
    """
    a, b = _visits(a, b)
    c = grid.values[np.stack(enclosing_bins(a, b, grid))]
    return float((a * np.logaddexp(0, -c) + b * np.logaddexp(0, c)).min(axis=0).sum())


def _visits(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two agents' samples of each distribution."""
    first, second = finite_array("a", a), finite_array("b", b)
    if first.shape != second.shape and 1 not in (first.size, second.size):
        raise InvalidParameterError(
            f"a and b must have one entry for each distribution; shapes {first.shape} and {second.shape} were given."
        )
    return first, second
