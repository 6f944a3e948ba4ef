"""What the actions of each state do, state by state and before names are compared: moves, effects and habits.

In a deterministic world the effects are the moves themselves. Where actions slip they are found by factoring
(`craftrl.planning.factoring`), with its conditions checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.planning.factoring import Factors, factor, read_as_moves

__all__ = ["Condition", "Effects", "StateEffects", "deterministic_effects", "factored_effects"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SCATTERED = 0.95  # how much of the inscribed ball the policies must hold, with room for sampling error
ENOUGH = 64  # visits of an agent per successor: by then its distribution is known to about 0.05 in total variation
MOST_NAMED = 5  # states named in a sentence


@dataclass(frozen=True)
class Condition:
    """Something that the answer rests on: whether it holds (None: cannot be told), in which states not, in words."""

    name: str
    holds: bool | None
    where: tuple[int, ...]
    sentence: str

    def __str__(self) -> str:
        said = {True: "yes", False: "no", None: "not known"}[self.holds]
        some = ", ".join(map(str, self.where[:MOST_NAMED]))
        more = f" and {len(self.where) - MOST_NAMED} more" if len(self.where) > MOST_NAMED else ""
        return f"{self.name}: {said}. {self.sentence}" + (f" Not in states {some}{more}." if some else "")


@dataclass(frozen=True)
class StateEffects:
    """One state: the rows of its moves in `edges` (m,), its actions' effects (r, m), the agents' habits (K, r)."""

    state: int
    moves: Ints
    share: Floats
    policies: Floats


@dataclass(frozen=True)
class Effects:
    """All states that are ever left. `successors[s]`: the usual successor of each action; () where two share one."""

    n: int
    edges: Ints
    visits: Floats  # (K, N)
    states: list[StateEffects]
    successors: list[tuple[int, ...]]
    conditions: tuple[Condition, ...]

    def usual_moves(self) -> list[tuple[int, int]]:
        """The usual move of each action of each state, in the order of `expected` and `habits`."""
        targets = ((local, self.edges[local.moves[local.share.argmax(axis=1)], 1]) for local in self.states)
        return [(local.state, int(t)) for local, found in targets for t in found]

    def expected(self, features: Floats) -> Floats:
        """The mean of the features (E, d) of moves over each action's effects."""
        none = np.zeros((0, features.shape[1]))
        return np.concatenate([none, *(local.share @ features[local.moves] for local in self.states)])

    def habits(self) -> Floats:
        """How often each agent takes each action where it is: (actions, K), NaN where it never was."""
        seen = (np.where(self.visits[:, local.state, None] > 0, local.policies, np.nan) for local in self.states)
        return np.concatenate([np.zeros((0, len(self.visits))), *(found.T for found in seen)])


def deterministic_effects(edges: Ints, by_agent: Floats, N: int, n: int | None, staying: bool) -> Effects:
    """Every move is an action of its state; with `staying` every state has the action that stays, seen or not."""
    visits, rows = _by_state(edges, by_agent, N)
    local = []
    for s, moves in rows.items():
        left = visits[:, s, None]  # weighted counts may lie below 1
        habits = by_agent[:, moves] / np.where(left > 0, left, 1)
        local.append(StateEffects(s, moves, np.eye(len(moves)), habits))
    unseen = {s: int(staying and s not in edges[moves, 1]) for s, moves in rows.items()}
    needed = max((len(moves) + unseen[s] for s, moves in rows.items()), default=1)
    where = tuple(s for s, moves in rows.items() if n is not None and len(moves) > n)
    said = f"A state has up to {needed} successors, so a deterministic world has {needed} actions or more"
    if where:
        said += f", yet there are {n}; give deterministic=False."
    else:
        said += f". Counts cannot tell it from actions that slip{'; give n if it is known' if n is None else ''}."
    holds = False if where else None
    conditions = (Condition("deterministic", holds, where, said),)
    return Effects(max(needed, n or 1), edges, visits, local, _usual(edges, local, N), conditions)


def factored_effects(edges: Ints, by_agent: Floats, N: int, n: int | None, rng: np.random.Generator) -> Effects:
    """Effects of each state's actions from the agents' different habits.

    With no more agents in a state than n actions, the least volume only takes each agent for an action. There moves are
    read as in a deterministic world, where there are not too many of them.
    """
    visits, rows = _by_state(edges, by_agent, N)
    local, found = [], {}
    for s, moves in rows.items():
        seen = visits[:, s] > 0
        made = by_agent[seen][:, moves]
        few_agents = n is not None and len(made) <= n and len(moves) <= n
        found[s] = read_as_moves(made) if few_agents else factor(made, n, rng)
        habits = np.full((len(by_agent), len(found[s].effects)), np.nan)
        habits[seen] = found[s].policies
        local.append(StateEffects(s, moves, found[s].effects, habits))
    n = max((factors.rank for factors in found.values()), default=1) if n is None else n
    conditions = _factoring_conditions(found, rows, visits, n)
    return Effects(n, edges, visits, local, _usual(edges, local, N), conditions)


def _factoring_conditions(
    found: dict[int, Factors], rows: dict[int, Ints], visits: Floats, n: int
) -> tuple[Condition, ...]:
    poor = tuple(s for s, factors in found.items() if factors.rank < n)
    flat = tuple(s for s, factors in found.items() if factors.scatter is not None and factors.scatter < SCATTERED)
    few = tuple(s for s, moves in rows.items() if visits[visits[:, s] > 0, s].min() < ENOUGH * len(moves))
    K, lone = len(visits), tuple(s for s in found if (visits[:, s] > 0).sum() <= n)
    agents = f"More agents than the {n} actions are needed; {K} were given" + (
        "; where there are fewer, moves are read as in a deterministic world if they are not too many." if lone else "."
    )
    rank = f"The successors of {K} agents show {n} actions in {len(found) - len(poor)} of {len(found)} states"
    rank += "; elsewhere actions do the same, or agents behave too much alike." if poor else "."
    scattered = (
        "Elsewhere the policies found are scattered enough. That they are the true ones cannot be told from counts: it "
        "needs agents that nearly never take some actions."
    )
    enough = f"Every agent should have left a state {ENOUGH} times per successor."
    return (
        Condition("deterministic", False, (), "Taken not to be: effects come from the agents' different habits."),
        Condition("more agents than actions", not lone, lone, agents),
        Condition("rank", not poor, poor, rank),
        Condition("scattered policies", False if flat else None, flat, scattered),
        Condition("enough data", not few, few, enough),
    )


def _by_state(edges: Ints, by_agent: Floats, N: int) -> tuple[Floats, dict[int, Ints]]:
    """How often each agent left each state, (K, N), and the rows of each state's moves."""
    visits = np.stack([np.bincount(edges[:, 0], made, minlength=N) for made in by_agent]).astype(float)
    start = np.searchsorted(edges[:, 0], np.arange(N + 1))
    return visits, {s: np.arange(start[s], start[s + 1]) for s in range(N) if start[s + 1] > start[s]}


def _usual(edges: Ints, local: list[StateEffects], N: int) -> list[tuple[int, ...]]:
    successors: list[tuple[int, ...]] = [()] * N
    for state in local:
        usual = edges[state.moves[state.share.argmax(axis=1)], 1].tolist()
        successors[state.state] = tuple(usual) if len(set(usual)) == len(usual) else ()
    return successors
