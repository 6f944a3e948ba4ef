"""What each state looks like, what decides on it, and what it ignores: from the observations that are in it.

Whatever still differs among observations of one state is ignored by it. That holds for every encoder; which entries
decide is found by changing them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.estimators.craft import CRAFT
from craftrl.report.sample import Sample

__all__ = ["Group", "commonest", "examples_of", "groups", "moments"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """The observations of one state: at one step, or at all of them where one encoder serves all.

    h         None for all steps
    state     its number
    visits    observations in it
    share     of all observations of the step, or of all steps
    by_agent  the same share for each agent
    """

    h: int | None
    state: int
    visits: int
    share: float
    by_agent: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"State {self.state}" + ("" if self.h is None else f" at step {self.h}")

    def steps(self, H: int) -> Iterable[int]:
        """The steps that it is about."""
        return range(1, H + 1) if self.h is None else [self.h]


def groups(model: CRAFT, sample: Sample) -> list[Group]:
    """Every state that was seen, in order."""
    H = sample.tau.H
    found = []
    for h in [None] if hasattr(model, "encoder_") else range(1, H + 1):
        codes = sample.codes if h is None else sample.codes[:, h - 1 : h]
        seen = codes >= 0
        there = np.array([seen[sample.agent == k].sum() for k in range(sample.tau.K)])
        for state in np.unique(codes[seen]).tolist():
            mine = np.array([(codes[sample.agent == k] == state).sum() for k in range(sample.tau.K)])
            by_agent = tuple((mine / np.maximum(there, 1)).tolist())
            found.append(Group(h, state, int(mine.sum()), float(mine.sum() / there.sum()), by_agent))
    return found


def commonest(found: list[Group], most: int) -> list[Group]:
    """At most so many of them, the most visited of each step, in order."""
    steps = {group.h for group in found}
    each = max(1, most // max(1, len(steps)))
    kept = [
        group
        for h in sorted(steps, key=lambda h: h or 0)
        for group in sorted((g for g in found if g.h == h), key=lambda g: -g.visits)[:each]
    ]
    return [group for group in found if group in kept][:most]


def moments(sample: Sample, chosen: list[Group]) -> dict[Group, tuple[Floats, Floats]]:
    """Mean and standard deviation of the observations of each state, entry by entry."""
    sums = {group: np.zeros((2, *sample.tau.obs_shape)) for group in chosen}
    for h in range(1, sample.tau.H + 1):
        mine = [group for group in chosen if group.h in (None, h)]
        for rows, x in sample.at(h) if mine else ():
            codes = sample.codes[rows, h - 1]
            for group in mine:
                inside = x[codes == group.state].astype(np.float64)
                sums[group] += inside.sum(axis=0), (inside**2).sum(axis=0)
    return {group: _mean_and_deviation(total, group.visits) for group, total in sums.items()}


def _mean_and_deviation(total: Floats, n: int) -> tuple[Floats, Floats]:
    mean = total[0] / n
    return mean, np.sqrt(np.maximum(total[1] / n - mean**2, 0))


def examples_of(sample: Sample, group: Group, most: int, seed: int = 0) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """(agent, h, observation) of a few observations of a state, drawn at random, the agents taking turns."""
    rng = np.random.default_rng(seed)
    steps = np.array(list(group.steps(sample.tau.H)))
    rows, at = np.nonzero(sample.codes[:, steps - 1] == group.state)
    order = rng.permutation(len(rows))
    turn = np.zeros(len(rows), dtype=int)
    for k in range(sample.tau.K):
        mine = order[sample.agent[rows[order]] == k]
        turn[mine] = np.arange(len(mine))
    for i in order[np.argsort(turn[order], kind="stable")][:most]:
        h = int(steps[at[i]])
        yield int(sample.agent[rows[i]]), h, sample.one(h, int(rows[i]))
