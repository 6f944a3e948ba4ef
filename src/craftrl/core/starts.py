"""Do all trajectories begin in one state, as the paper assumes? What the first two observations say of that.

If they do, x_1 holds nothing but noise, and noise knows nothing of the agents. Then x_1 alone tells no agent from
another, and x_1 beside x_2 tells no more than x_2 alone: Pr(agent | x_1, x_2) = Pr(agent | x_2). Both can be tested
without knowing a single state. The second is just what CRAFT relies on when it takes the clusters of f_1 for states.

Paper: Section 2.2 (one start state), Algorithm 2, Lines 5-6
"""

from __future__ import annotations

from dataclasses import dataclass

from craftrl.core.evidence import LEVEL, paired_p_value
from craftrl.core.saved import Savable

__all__ = ["StartTest", "paired_p_value"]

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
