"""How tightly the f_h of a shortest chain cluster: Corollary C.2 for `coupling="chain"`, which the paper does not have.

The chain minimises the sum of all steps' losses. The true encoders make every step's population loss as small as it
can be, so no step's excess can be paid for by another one's: what the sum exceeds its minimum by bounds each step.
Only the concentration is weaker, since a trajectory enters H-1 pairs at once and the class is one of whole chains.

docs/chain.md has the proof.
"""

from __future__ import annotations

import math

from craftrl.core.grid import Grid
from craftrl.theory.ranges import in_range

__all__ = ["chain_spread_epsilon", "chain_spread_sample_size"]


@in_range
def chain_spread_sample_size(
    grid: Grid, *, nu: float, epsilon: float, delta: float, H: int, class_size: int, N_s: int
) -> int:
    """Visits |D*(s_h, s_{h+1})| that each possible pair of each step needs, for the f_1..f_{H-1} of a shortest chain.

        (4 (H-1) R sqrt(ln(2 N/delta)) / (eta xi^2 sqrt(nu)) + sqrt(ln(2 N (H-1) / (nu delta))))^2 / (2 epsilon^2)

    with R = n_xi xi/2 the grid's end and N = |Phi|^(H-1) (n_xi + 1)^((H-1) N_s^2) the number of chains. With so
    many, the probability that some pair of some step has more than a share epsilon of its samples outside its two
    enclosing grid points is at most delta.
    """
    return math.ceil(_needed(grid, nu, delta, H, class_size, N_s) / epsilon**2)


@in_range
def chain_spread_epsilon(n: int, grid: Grid, *, nu: float, delta: float, H: int, class_size: int, N_s: int) -> float:
    """The inverse: the share epsilon that n visits to every pair guarantee; above 1 it says nothing."""
    return math.sqrt(_needed(grid, nu, delta, H, class_size, N_s) / n)


def _needed(grid: Grid, nu: float, delta: float, H: int, class_size: int, N_s: int) -> float:
    """Samples at epsilon = 1."""
    log_chains = (H - 1) * (math.log(class_size) + N_s**2 * math.log(grid.n_xi + 1))
    reach = grid.n_xi * grid.xi / 2
    of_the_loss = 4 * (H - 1) * reach * math.sqrt(math.log(2 / delta) + log_chains)
    of_the_counts = math.sqrt(math.log(2 * (H - 1) / (nu * delta)) + log_chains)
    return (of_the_loss / (grid.eta * grid.xi**2 * math.sqrt(nu)) + of_the_counts) ** 2 / 2
