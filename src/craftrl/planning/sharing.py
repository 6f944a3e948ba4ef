"""What a label in one state says of other states: an action is the same latent action in all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError
from craftrl.planning.beliefs import STRAY, SURE, assign
from craftrl.planning.graph import StateGraph

__all__ = ["KnowsLatentActions", "SharedLabels"]

Floats = NDArray[np.floating]
NEWS = 0.01  # a change of probability that other states are told of


class KnowsLatentActions(Protocol):
    """What is used of `craftrl.planning.latent.LatentActions`."""

    @property
    def n(self) -> int:
        """How many latent actions there are."""
        ...

    @property
    def edges(self) -> NDArray[np.integer]:
        """The moves (E, 2)."""
        ...

    @property
    def share(self) -> Floats:
        """(E, n): Pr(successor | state, latent action); all 0 in a state where that is not known."""
        ...

    @property
    def consistent(self) -> NDArray[np.integer]:
        """(N,): the group of each state; latent actions have one meaning within a group. -1 for none."""
        ...


class SharedLabels:
    """Which latent action each action is, within each group of states where latent actions mean the same.

    For each group and action, the log-likelihood of all labels under each latent action; a misread frame may make any
    label, so that a few wrong ones do no harm.
    """

    def __init__(self, latent: KnowsLatentActions, moves: StateGraph, n_actions: int) -> None:
        for name in ("n", "edges", "share", "consistent"):
            if getattr(latent, name, None) is None:
                raise InvalidParameterError(
                    f"latent must be LatentActions with n, edges, share and consistent; it has no {name}."
                )
        self.group = np.asarray(latent.consistent)
        if self.group.shape != (moves.n,):
            raise InvalidParameterError(
                f"latent must be of the same {moves.n} states as moves; it is of {self.group.size}; find latent "
                "actions from moves.counts."
            )
        self.n, self.n_actions = int(latent.n), n_actions
        edges, share = np.asarray(latent.edges).astype(np.int64), np.nan_to_num(np.asarray(latent.share, dtype=float))
        self._share = _by_move(edges, share)
        self._likely = _by_move(edges, _with_unknown(edges, share, moves.n))
        self._evidence: dict[int, Floats] = {}
        self._belief: dict[int, Floats] = {}

    def add(self, node: int, action: int, successor: int) -> Iterable[int]:
        """One more label; the states of which it says something new."""
        g, share = int(self.group[node]), self._likely.get((node, successor))
        if g < 0 or share is None:
            return ()
        if g not in self._evidence:
            self._evidence[g] = np.zeros((self.n_actions, self.n))
        self._evidence[g][action] += np.log((1 - STRAY) * share + STRAY)
        before = self._belief.get(g)
        each = np.ones((self.n_actions, self.n))
        self._belief[g] = assign(self._evidence[g], each, np.ones(self.n, dtype=bool))
        news = before is None or np.abs(self._belief[g] - before).max() > NEWS
        return np.flatnonzero(self.group == g).tolist() if news else ()

    def actions_are(self, node: int) -> Floats | None:
        """(n_actions, n): the probability that each action is each latent action; None where nothing is known."""
        return self._belief.get(int(self.group[node]))

    def predicted(self, node: int, successors: NDArray[np.integer]) -> tuple[Floats, NDArray[np.bool_]] | None:
        """Pr(successor | action) here as labels elsewhere have it, (n_actions, m), and of which actions they tell."""
        belief = self.actions_are(node)
        if belief is None:
            return None
        nothing = np.zeros(self.n)
        share = np.array([self._share.get((node, int(t)), nothing) for t in successors]).reshape(-1, self.n)
        predicted = belief @ share.T
        told = (belief.max(axis=1) > SURE) & (predicted.sum(axis=1) > SURE)
        return predicted, told


def _by_move(edges: NDArray[np.int64], values: Floats) -> dict[tuple[int, int], Floats]:
    return {(s, t): row for (s, t), row in zip(edges.tolist(), values)}


def _with_unknown(edges: NDArray[np.int64], share: Floats, n: int) -> Floats:
    """Shares where a latent action of which nothing is known in a state may make any of its moves."""
    total = np.zeros((n, share.shape[1]))
    np.add.at(total, edges[:, 0], share)
    n_moves = np.bincount(edges[:, 0], minlength=n)
    return np.where(total[edges[:, 0]] > 0, share, 1 / n_moves[edges[:, 0], None])
