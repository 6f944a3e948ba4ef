"""Labels that contradict one another: one action, one state, two successors."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.stats import binom

from craftrl.planning.beliefs import STRAY
from craftrl.planning.graph import StateGraph

__all__ = ["contradictions"]

RARER = 1e-3  # how rarely misread frames alone may make as many contradictions as were seen


def contradictions(seen: Mapping[int, Mapping[int, Mapping[int, int]]], moves: StateGraph) -> tuple[str, ...]:
    """A sentence where labels disagree more often than misread frames explain; `seen[state][action][successor]`.

    Counted are labels other than their state's and action's most frequent one that lead where the videos lead as
    well: a misread frame mostly makes a move that the videos do not show.
    """
    labels = against = 0
    worst: tuple[int, int, int, int, int] | None = None
    for s, actions in seen.items():
        real = set(moves.successors(s).tolist())
        for a, outcomes in actions.items():
            ranked = sorted(((n, t) for t, n in outcomes.items() if t in real), reverse=True)
            if sum(n for n, _ in ranked) < 2:
                continue
            labels += sum(n for n, _ in ranked)
            against += sum(n for n, _ in ranked[1:])
            if len(ranked) > 1 and (worst is None or ranked[1][0] > worst[0]):
                worst = (ranked[1][0], s, a, ranked[0][1], ranked[1][1])
    if worst is None or binom.sf(against - 1, labels, STRAY) >= RARER:
        return ()
    _, s, a, t, other = worst
    return (
        f"With deterministic=True one action must have one successor in each state; {against} of {labels} labels say "
        f"otherwise (action {a} led from {moves.text(s)} to {moves.text(t)} and to "
        f"{moves.text(other)}), more than misread frames explain. From now on several are expected; pass "
        "deterministic=False, or fit a model with more states.",
    )
