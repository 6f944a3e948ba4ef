"""How many trajectories can be counted, and how many pairs of observations a coupling can add up.

Losses are integers in units of 2^-30 nats, so that a sum is the same in any order. They are added up in 64 bits, which
is enough for some 10^8 trajectories and not for any number of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from craftrl.core.losses import FIXED_POINT
from craftrl.core.oracle import Coupling
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["check_counts", "check_sums", "sums_fit", "too_many_for", "widest_coupling"]

MOST = 2**31  # trajectories of one agent: counts of pairs are 32-bit integers


def check_counts(most: int) -> None:
    """Refuse data with too many trajectories of an agent to be counted; `most` is the largest of these numbers."""
    if most >= MOST:
        raise InvalidDataError(
            f"There must be fewer than 2**31 trajectories of an agent; {most} were given; leave some out."
        )


def sums_fit(coupling: Coupling, pairs: Sequence[int], K: int, N_s: int) -> bool:
    """Whether the losses of so many pairs of observations at each step, of K agents, fit into 64 bits.

    A pair loses at most ln K nats by the agent and, where dependences are charged, as much again and 2 ln N_s by the
    codes on both sides. Steps that are chosen one by one are not added up. Likelihood ratios need n ln n.
    """
    nats = (max(pairs) if coupling == "independent" else sum(pairs)) * math.log(K)
    if coupling in ("markov", "tied"):
        nats = max(2 * nats + 2 * sum(pairs) * math.log(N_s), max(pairs) * math.log(max(pairs[0], 2)))
    return nats * FIXED_POINT < 2**63


def widest_coupling(wanted: Coupling, pairs: Sequence[int], K: int, N_s: int) -> Coupling:
    """The coupling wanted, or what comes closest to it and can add up so many pairs."""
    nearest: tuple[Coupling, ...] = (wanted, "chain", "independent")
    return next((coupling for coupling in nearest if sums_fit(coupling, pairs, K, N_s)), wanted)


def too_many_for(coupling: Coupling, pairs: Sequence[int]) -> str:
    """Why another coupling is taken than this one."""
    return f'the losses of {sum(pairs):.2g} pairs of observations are more than "{coupling}" can add up.'


def check_sums(coupling: Coupling, pairs: Sequence[int], K: int, N_s: int) -> None:
    """Refuse data whose losses would not fit into 64 bits when they are added up."""
    if not sums_fit(coupling, pairs, K, N_s):
        widest = widest_coupling(coupling, pairs, K, N_s)
        other = "" if widest == coupling else f"coupling='{widest}', "
        raise InvalidParameterError(
            f"coupling='{coupling}' adds up losses of all steps in 64 bits, which must be enough; {sum(pairs):.2g} "
            f"pairs of observations are too many for it; use {other}fewer trajectories or fewer steps."
        )
