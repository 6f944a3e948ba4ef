"""What was found about every pair of agents, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.diagnostics.agent_pairs.contrast import Contrast

__all__ = ["FALSE_ALARMS", "AgentPair", "AgentPairs", "Drift", "PairVerdict", "as_points", "least_visible"]

PairVerdict = Literal["compare", "data short", "other places", "alike", "too little"]

FALSE_ALARMS = 0.05  # how often agents that act alike may be called different, over all pairs together
FEW = 100  # trajectories of an agent, below which nothing was learned reliably
FEW_STEPS = 0.25  # share of the steps at which a difference must be seen, so that data is not short
APART = 0.2  # agents that share less of their places at a step cannot be compared there
COARSE = 0.2  # not to see larger differences says little: the paper's two agents differ by 0.25
PER_CHOICE, PER_TEST = 0.5, 8.0  # nats that the choice among entries takes at a step, times ln(entries); and the test

_D = np.linspace(0, 1, 1001)
_NATS = ((1 + _D) * np.log1p(_D) + xlogy(1 - _D, 1 - _D)) / 2


def as_points(nats: float) -> float:
    """Nats per move as a difference of chances: that of two agents who go one of two ways, one with chance (1 + d)/2,
    the other with (1 - d)/2."""
    return float(np.interp(nats, _NATS, _D))


def least_visible(n: float, entries: int, n_steps: int, n_pairs: int = 1) -> float:
    """The difference in points that is seen in about four of five datasets with n trajectories of each agent.

    At each step they must name the right one of so many entries, which takes evidence in proportion to ln(entries).
    Over all steps together they must tell beyond chance, and more so the more pairs of agents are compared. The factors
    were fitted to worlds of bits and of features; it holds for differences that single entries show.
    """
    test = PER_TEST + 2 * np.log(n_pairs)
    return as_points((PER_CHOICE * np.log(max(entries, 2)) + test / n_steps) / max(n, 1))


@dataclass(frozen=True)
class AgentPair:
    """Two agents, by number and by name.

    n         trajectories of each
    looked_at trajectories of each that were looked at
    contrast  what was found; None where there was too little to look at
    p_value   how likely chance alone tells the agents apart as well, corrected for the number of pairs
    visible   the least difference in points that would have been seen
    """

    agents: tuple[int, int]
    names: tuple[str, str]
    n: tuple[int, int]
    looked_at: tuple[int, int]
    contrast: Contrast | None
    p_value: float
    p_moves: float
    visible: float

    @property
    def points(self) -> float:
        """How differently the agents move, as a difference of chances between 0 and 1; what was seen of it."""
        return 0.0 if self.contrast is None else as_points(float(self.contrast.moves.mean()))

    @property
    def shared(self) -> float:
        """The common share of the places that the two visit, mean over steps."""
        return np.nan if self.contrast is None else float(self.contrast.shared.mean())

    @property
    def differing(self) -> NDArray[np.bool_]:
        """At which of the pairs of steps looked at a difference in moves is seen, by two standard errors."""
        if self.contrast is None:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.contrast.moves > 2 * self.contrast.error)

    @property
    def evidence(self) -> float:
        """What all trajectories together say of a difference in moves, in nats per step: pairs are ranked by it."""
        if self.contrast is None:
            return 0.0
        a, b = self.n
        return 4 * a * b / (a + b) * max(0.0, float(self.contrast.moves.mean()))

    @property
    def verdict(self) -> PairVerdict:
        """What to do with this pair."""
        if self.contrast is None or self.p_value >= FALSE_ALARMS:
            return "too little" if self.contrast is None or self.visible > COARSE else "alike"
        if (self.contrast.shared < APART).mean() > 0.5:
            return "other places"
        if min(self.n) < FEW:
            return "data short"
        if self.p_moves >= FALSE_ALARMS:
            return "other places" if self.shared < 1 - APART else "data short"
        return "data short" if self.differing.mean() < FEW_STEPS else "compare"


@dataclass(frozen=True)
class Drift:
    """An agent's first half of trajectories against its second, in the order of the recordings."""

    agent: int
    name: str
    points: float
    p_value: float

    @property
    def changed(self) -> bool:
        return self.p_value < FALSE_ALARMS


@dataclass(frozen=True)
class AgentPairs:
    """What `compare_agents` found; as text, it is what `craftrl inspect --pairs` prints.

    names    of all agents
    n        trajectories of each
    pairs    the pairs that were compared, those most worth it first
    drifts   whether each agent's habits changed over its recordings; agents with too few trajectories are left out
    steps    pairs of neighbouring steps that were looked at, each by its first h
    counted  whether entries were counted (small integers) or boosted trees trained
    """

    names: tuple[str, ...]
    n: tuple[int, ...]
    pairs: tuple[AgentPair, ...]
    drifts: tuple[Drift, ...]
    steps: tuple[int, ...]
    counted: bool

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences."""
        from craftrl.diagnostics.agent_pairs.words import advice

        return advice(self)

    def __str__(self) -> str:
        from craftrl.diagnostics.agent_pairs.words import table

        return "\n".join([*table(self), *self.advice])
