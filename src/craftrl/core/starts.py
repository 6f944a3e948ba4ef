"""Do all trajectories begin in one state, as the paper assumes? What the first two observations say of that.

If they do, x_1 holds nothing but noise, and noise knows nothing of the agents. Then x_1 alone tells no agent from
another, and x_1 beside x_2 tells no more than x_2 alone: Pr(agent | x_1, x_2) = Pr(agent | x_2). Both can be tested
without knowing a single state. The second is just what CRAFT relies on when it takes the clusters of f_1 for states.

Paper: Section 2.2 (one start state), Algorithm 2, Lines 5-6
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.evidence import LEVEL
from craftrl.core.saved import Savable

__all__ = ["StartTest", "paired_p_value"]

Floats = NDArray[np.float64]
LEAST_SHARE = 0.1  # of what pairs tell of the agents, the share that x_1 must add for it to matter


@dataclass(frozen=True)
class StartTest(Savable):
    """Two tests of one start state.

    p_first   how likely it is by chance alone that x_1 tells the agents apart as well as it does
    p_beyond  how likely it is by chance alone that x_1 adds as much to x_2 as it does
    added     nats per trajectory that x_1 adds to what x_2 tells of the agent
    told      nats per trajectory that x_1 and x_2 tell together
    """

    p_first: float
    p_beyond: float
    added: float
    told: float

    @property
    def agents_differ(self) -> bool:
        """Whether the agents' first observations differ."""
        return self.p_first < LEVEL / 10  # no least size is asked for, so be stricter

    @property
    def several(self) -> bool:
        """Whether x_1 matters beside x_2, so that there is more than one start state."""
        return self.p_beyond < LEVEL / 2 and self.share >= LEAST_SHARE

    @property
    def share(self) -> float:
        """Of what both observations tell of the agent, the part that is lost without the first."""
        return self.added / max(self.told, self.added) if self.added > 0 else 0.0

    def warnings(self) -> Iterator[str]:
        """What was seen, what it means and what to do; nothing where all is well."""
        if self.agents_differ:
            yield (
                f"The agents' first observations differ (p = {self.p_first:.1g}): agents begin in different states, "
                "or were recorded under different conditions, and the states found may be either; record all "
                "agents alike, from one start."
            )
        if self.several:
            yield (
                "Trajectories seem to begin in several states, or agents to respond to noise: of what the first two "
                f"observations tell of the agent, {self.share:.0%} is lost without the first "
                f"(p = {self.p_beyond:.1g}), where otherwise nothing would be. The states found may be wrong; cut the "
                "trajectories so that all begin in one state, name the start of each in fit(..., start=...), or let "
                "the library look: start='find'."
            )


def paired_p_value(gain: Floats) -> float:
    """How likely the mean of these gains, one per trajectory, is so far above zero by chance (one-sided t-test)."""
    from scipy.stats import t

    m = len(gain)
    error = float(gain.std(ddof=1)) / np.sqrt(m) if m > 1 else 0.0
    return float(t.sf(gain.mean() / error, m - 1)) if error > 0 else 1.0
