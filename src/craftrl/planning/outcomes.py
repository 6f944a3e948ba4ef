"""What is expected of the actions in one state, from all that labels say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from craftrl.planning.beliefs import STRAY, SURE, assign

__all__ = ["Outcomes", "expected_outcomes"]

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]
Told = tuple[Floats, Flags]

NEW = 0.1  # how plausible a successor is that the videos never show, beside one that they show
CERTAIN = 0.9  # an action that was never tried is known if what is excluded leaves one successor about this surely
TRUST = 0.9  # how far labels of the same latent action in other states are trusted here
PSEUDO = 1.0  # labels that what is expected beforehand is worth, where one action has several successors


@dataclass(frozen=True)
class Outcomes:
    """Pr(successor | action) in one state.

    successors     (m,): those that the videos show, then those that only labels show
    n_videos       how many of them the videos show
    chance         (n_actions, m); what a row lacks to 1 is the chance of a successor that was never seen
    known          (n_actions,): of which actions anything is known
    tried          (n_actions,): how many labels there are of each
    deterministic  whether each action has one successor
    """

    successors: Ints
    n_videos: int
    chance: Floats
    known: Flags
    tried: Ints
    deterministic: bool

    @cached_property
    def makes(self) -> Flags:
        """Which actions are known to make which moves, (n_actions, m).

        In a deterministic world that is the move likelier than all others together. Else it is every move at least half
        as likely as the likeliest: what an action does now and then, by slipping, is not what it is taken for.
        """
        if not self.chance.size:
            return np.zeros(self.chance.shape, dtype=bool)
        if self.deterministic:
            return (self.chance > SURE) & self.known[:, None]
        return (self.chance >= self.chance.max(axis=1, keepdims=True) / 2) & self.known[:, None]

    @cached_property
    def best(self) -> tuple[Ints, Ints, Floats]:
        """The successors that can be reached on purpose, the most reliable action to each, and its probability."""
        j = np.flatnonzero(self.makes.any(axis=0))
        chance = np.where(self.makes, self.chance, 0.0)[:, j]
        a = chance.argmax(axis=0) if len(j) else np.empty(0, dtype=np.int64)
        return self.successors[j], a, chance[a, np.arange(len(j))]

    @cached_property
    def left(self) -> Flags:
        """(m,): the moves that the videos show and that no action is known to make."""
        return ~self.makes.any(axis=0) & (np.arange(len(self.successors)) < self.n_videos)

    @cached_property
    def next_trial(self) -> int:
        """The least tried action that could make a move which none is known to make; else the least known action."""
        hope = self.chance[:, self.left].sum(axis=1) if self.left.any() else (~self.known).astype(float)
        hopeless = hope < STRAY / len(hope) if self.left.any() else self.known
        return int(np.lexsort((np.arange(len(hope)), -hope.round(6), self.tried, hopeless))[0])


def expected_outcomes(
    seen: Mapping[int, Mapping[int, int]], videos: Ints, n_actions: int, deterministic: bool, told: Told | None
) -> Outcomes:
    """All evidence on one state put together.

    seen    seen[action][successor]: the labels of this state
    videos  (v,): the successors that the videos show
    told    what labels of other states say by way of latent actions: Pr(successor | action), (n_actions, v), and of
            which actions they say it
    """
    new = sorted({t for outcomes in seen.values() for t in outcomes}.difference(videos.tolist()))
    successors = np.concatenate([videos, np.array(new, dtype=np.int64)])
    times = np.array([[seen.get(a, {}).get(int(t), 0) for t in successors] for a in range(n_actions)])
    times = times.reshape(n_actions, len(successors))
    tried = times.sum(axis=1)
    prior, is_told = _before(len(videos), len(new), n_actions, told)
    known = is_told | (tried > 0)
    if deterministic:
        evidence = np.pad(times * np.log((1 - STRAY) / STRAY), ((0, 0), (0, 1)))
        chance = assign(evidence, prior, np.arange(len(successors) + 1) < len(videos))[:, :-1]
        known = known | (chance.max(axis=1, initial=0) > CERTAIN)
    else:
        expected = prior[:, :-1] / prior.sum(axis=1, keepdims=True)
        chance = (times + PSEUDO * expected) / (tried[:, None] + PSEUDO)
    return Outcomes(successors, len(videos), chance, known, tried, deterministic)


def _before(n_videos: int, n_new: int, n_actions: int, told: Told | None) -> Told:
    """How plausible each successor, and one never seen, is without labels of this state; and of which actions told."""
    weight = np.concatenate([np.ones(n_videos), np.full(n_new + 1, NEW)])
    prior = np.tile(weight, (n_actions, 1))
    if told is None:
        return prior, np.zeros(n_actions, dtype=bool)
    predicted, is_told = told
    mixed = TRUST * np.pad(predicted, ((0, 0), (0, n_new + 1))) + (1 - TRUST) * prior / weight.sum()
    return np.where(is_told[:, None], mixed, prior), is_told
