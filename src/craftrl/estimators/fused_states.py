"""States that most steps take for one, and that the moves to other states tell apart.

Where one agent hardly ever goes, its log-odds say little, and most steps may take two neighbouring states for one. A
few steps that see more know better, but are outvoted when states of different steps are matched. Nor does the loss by
which runs are compared see the mistake: where log-odds say little, states that are one are the shorter description.

The moves do see it. A state says all that there is to know of the next one, given the agent; noise says nothing of it.
So if two steps or more tell the same two parts of a group of nodes apart, and if it matters for the next state in which
part an observation lies, the parts are states of their own.

Paper: Section 2.2 (s_{h+1} depends on s_h and the action alone)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.diagnostics.profiles import foretold
from craftrl.states.visits import count_visits

__all__ = ["FusedState", "fused_states"]

Ints = NDArray[np.integer]
AGREE = 0.5  # normalised mutual information of two steps' ways to part a group, from which on they are one way
EXPLAINS = 0.1  # share of what there is to know of the part that the next state must tell; an encoder's slips tell less
FEWEST = 20  # visits of a part that are enough to ask
COMPARED = 20_000  # observations by which the ways of two steps to part a group are compared


@dataclass(frozen=True)
class FusedState:
    """A group of nodes that is several states: by step `h`, which calls their observations by these `letters`."""

    group: int
    h: int
    letters: tuple[int, ...]


def fused_states(
    nodes: Sequence[tuple[int, int]],
    group_of: Ints,
    readings: Sequence[Mapping[int, Ints]],
    decoded: Sequence[Ints],
    agent: Ints,
) -> list[FusedState]:
    """Which groups of nodes (h, s) are several states.

    group_of  (nodes,): the group of each node, -1 for none
    readings  for h = 1..H, what the encoder of each step says of the observations at h, (n,) each
    decoded   for h = 1..H, the group of every observation at h (n,), -1 where there is none
    agent     (n,)
    """
    found = []
    for group in range(int(group_of.max(initial=-1)) + 1):
        ways = _ways(nodes, group_of == group)
        if len(ways) < 2:
            continue
        rows = [np.flatnonzero(label == group) for label in decoded]
        h = _agreed(ways, rows, readings)
        if h is None:
            continue
        parts = [_parts(ways[h], reading[h][here]) for reading, here in zip(readings, rows)]
        if _explained(parts, rows, decoded, agent) >= EXPLAINS:
            found.append(FusedState(group, h, ways[h]))
    return found


def _ways(nodes: Sequence[tuple[int, int]], mine: NDArray[np.bool_]) -> dict[int, tuple[int, ...]]:
    """The steps that have several nodes among these, and their letters."""
    letters: dict[int, list[int]] = {}
    for i in np.flatnonzero(mine).tolist():
        h, letter = nodes[i]
        letters.setdefault(h, []).append(letter)
    return {h: tuple(sorted(several)) for h, several in letters.items() if len(several) > 1}


def _parts(letters: Sequence[int], said: Ints) -> Ints:
    """Which part an observation lies in by what an encoder says of it; -1 where it says something else."""
    parts = np.full(len(said), -1)
    for part, letter in enumerate(letters):
        parts[said == letter] = part
    return parts


def _agreed(
    ways: Mapping[int, tuple[int, ...]], rows: Sequence[Ints], readings: Sequence[Mapping[int, Ints]]
) -> int | None:
    """The step whose way to part the group is most like that of another step; None if no two are alike."""
    from sklearn.metrics import normalized_mutual_info_score  # dear to import

    every = max(1, sum(map(len, rows)) // COMPARED)
    parts = {
        h: np.concatenate([_parts(letters, reading[h][here[::every]]) for reading, here in zip(readings, rows)])
        for h, letters in ways.items()
    }
    best, found = AGREE, None
    for h in ways:
        for other in ways:
            both = (parts[h] >= 0) & (parts[other] >= 0)
            if other == h or both.sum() < FEWEST:
                continue
            alike = float(normalized_mutual_info_score(parts[h][both], parts[other][both]))
            if alike > best:
                best, found = alike, h
    return found


def _explained(parts: Sequence[Ints], rows: Sequence[Ints], decoded: Sequence[Ints], agent: Ints) -> float:
    """The share of what there is to know of the part that the next group tells, given agent and step."""
    part = np.concatenate(parts[:-1])
    after = np.concatenate([label[here] for label, here in zip(decoded[1:], rows)])
    given = np.concatenate([h * (agent.max() + 1) + agent[here] for h, here in enumerate(rows[:-1])])
    there = (part >= 0) & (after >= 0)
    visits = count_visits(given[there], part[there])
    of_agent = visits.sum(axis=1)
    unknown = float(xlogy(of_agent, of_agent).sum() - xlogy(visits, visits).sum())
    return foretold(part, after, given) * int(there.sum()) / unknown if unknown else 0.0
