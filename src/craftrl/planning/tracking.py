"""Where one is, from all that was read and done: a misread frame is told from a move that went another way."""

from __future__ import annotations

from craftrl.planning.beliefs import STRAY
from craftrl.planning.grounding import Grounding

__all__ = ["Tracker"]

SURPRISING = 0.02  # how likely an action leads elsewhere than all labels say
UNSEEN = 0.1  # of these times, how often it leads where the videos show no move from here
LEAST = 1e-3  # states less likely than this are forgotten


class Tracker:
    """The probability of each state, updated with every action and every state read (the forward filter of an HMM).

    A frame is misread now and then, as any other state of its step; an action leads now and then where it never led,
    mostly by a move that the videos show. Which of the two explains a surprise better depends on that, and on how well
    the action was tested here.
    """

    def __init__(self, grounding: Grounding) -> None:
        self.grounding = grounding
        self.belief: dict[int, float] = {}

    def start(self, read: int) -> None:
        """An episode begins in the state that was read; -1 for none."""
        self.belief = {read: 1.0} if read >= 0 else {}

    def update(self, action: int, read: int) -> None:
        """An action was taken and a state was read, -1 for none."""
        expected = self._after(action)
        if read >= 0:
            others = self._others(read)
            here = (expected.get(read, 0.0) + SURPRISING * self._surprise(read, others)) * (1 - STRAY)
            expected = {t: p * STRAY / others for t, p in expected.items()} | {read: here}
        total = sum(expected.values())
        self.belief = {t: p / total for t, p in expected.items() if p > LEAST * total}

    def likely(self) -> list[int]:
        """The states it may be, likeliest first."""
        return sorted(self.belief, key=lambda node: -self.belief[node])

    @property
    def node(self) -> int:
        """The likeliest state; -1 where nothing is known."""
        return self.likely()[0] if self.belief else -1

    def _after(self, action: int) -> dict[int, float]:
        """Pr(state) after an action, as far as labels tell what it does."""
        expected: dict[int, float] = {}
        for s, p in self.belief.items():
            outcomes = self.grounding.outcomes(s)
            for t, chance in zip(outcomes.successors.tolist(), outcomes.chance[action].tolist()):
                expected[t] = expected.get(t, 0.0) + (1 - SURPRISING) * p * chance
        return expected

    def _surprise(self, read: int, others: int) -> float:
        """How likely a move that labels do not expect leads to the state that was read.

        Mostly it is one that the videos show, by another action: two cells on, say, is a misread frame; the next cell
        back may be a collision.
        """
        moves = self.grounding.graph
        ways = [p / moves.out_degree[s] for s, p in self.belief.items() if read in moves.successors(s)]
        return (1 - UNSEEN) * float(sum(ways)) + UNSEEN / others

    def _others(self, node: int) -> int:
        """How many states of its step a frame may be misread as."""
        nodes, h = self.grounding.graph, self.grounding.graph.step(node)
        return max(1, nodes.sizes[0 if h is None else h - 1] - 1)
