"""One turn of CRAFT's loop: errors grow from beta to beta + epsilon, by addition and not by a factor.

Paper: Lemma C.6 (the recursive step)
"""

from __future__ import annotations

from craftrl.core.clusters import heaviness_threshold
from craftrl.core.grid import Grid
from craftrl.theory.ranges import in_range
from craftrl.theory.spread import erm_spread_epsilon, erm_spread_sample_size

__all__ = ["recursive_step_epsilon", "recursive_step_holds", "recursive_step_sample_size"]


@in_range
def recursive_step_holds(*, epsilon: float, beta: float, nu: float, h: int, H: int) -> bool:
    """Whether the lemma speaks of step h: epsilon < nu/8 - beta and epsilon + beta <= q < nu (1 - epsilon)/2 - beta.

    `beta` is the share of trajectories whose labels at h are wrong already, and q the share that makes a bin heavy.
    So many strangers, epsilon + beta, may share a bin and must not make it heavy; so many samples of a
    state, the right-hand side, are sure to share one and must.

    Paper: Lemma C.6; Algorithm 2, Line 11
    """
    q_thresh = heaviness_threshold(h, H, nu, n=1)
    return epsilon < nu / 8 - beta and epsilon + beta <= q_thresh < nu * (1 - epsilon) / 2 - beta


@in_range
def recursive_step_sample_size(
    grid: Grid, *, nu: float, epsilon: float, delta: float, class_size: int, N_s: int
) -> int:
    """Visits that each possible pair of states needs for a step that adds at most a share epsilon of errors.

        12800 (ln(4 |Phi|^2/delta) + N_s^2 ln(n_xi + 1)) ln^2(1/eta) / (nu epsilon^2 eta^2 alpha^4)

    This is the spread of f_h with delta/2 and xi = alpha/4; the merging tests get the other delta/2 and ask for
    less than that.

    Paper: Lemma C.6
    """
    return erm_spread_sample_size(grid, nu=nu, epsilon=epsilon, delta=delta / 2, class_size=class_size, N_s=N_s)


@in_range
def recursive_step_epsilon(n: int, grid: Grid, *, nu: float, delta: float, class_size: int, N_s: int) -> float:
    """The inverse: the share of errors that a step adds at most, given n visits to every pair.

    It means something only where `recursive_step_holds`.
    """
    return erm_spread_epsilon(n, grid, nu=nu, delta=delta / 2, class_size=class_size, N_s=N_s)
