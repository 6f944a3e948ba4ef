"""Does every agent visit every pair of states as often as eta promises?

States that tell the agents apart too well are as suspicious as states that do not: they may have locked on to
something that names the agent, such as noise that the policies respond to.

Paper: Section 2.5 (eta)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_number
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.given import check_codes
from craftrl.states.visits import count_visits, pair_labels

__all__ = ["AgentShares", "agent_shares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class AgentShares:
    """The agent that is rarest in a pair of states (s_h, s_{h+1}), one entry for each h = 1..H-1.

    share    its share of its own and the most frequent agent's visits, in the pair where that contradicts eta most
    p_value  that eta holds there and chance alone made the share so low, times the number of comparisons; NaN where eta
             was not given, for one that was chosen from the data cannot be tested against it
    """

    share: Floats
    p_value: Floats


def agent_shares(codes: Ints, tau: TrajectoryDataset, eta: float | None) -> AgentShares:
    """Compare the agents' visits to every pair of the states `codes` (n, H), -1 for none, with a given eta."""
    codes = check_codes(codes, tau)
    if eta is not None:
        check_number("eta", eta, "a number above 0, at most 1/2", lambda share: 0 < share <= 0.5)
    return AgentShares(*np.array([_at_step(codes[:, h - 1], codes[:, h], tau, eta) for h in range(1, tau.H)]).T)


def _at_step(s_h: Ints, s_next: Ints, tau: TrajectoryDataset, eta: float | None) -> tuple[float, float]:
    from scipy.stats import binom

    counts = count_visits(pair_labels(s_h, s_next), tau.agent)
    counts = counts[counts.any(axis=1)]
    # eta compares two agents at a time; the rarest against the most frequent one is the least share of all.
    rarest, visits = counts.min(axis=1), counts.min(axis=1) + counts.max(axis=1)
    if eta is None:
        return float((rarest / visits).min()), np.nan
    p = binom.cdf(rarest, visits, float(eta))
    worst = int(np.argmin(p))
    comparisons = len(counts) * tau.K * (tau.K - 1)
    return float(rarest[worst] / visits[worst]), float(min(1.0, p[worst] * comparisons))
