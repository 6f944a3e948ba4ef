"""Whether two sets of observations can be told apart, from one classifier over all clusters of a step.

Paper: Line 25, Equation 17
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassifierSeparation"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


class ClassifierSeparation:
    """Line 25 for all clusters of a step from one classifier over all of them.

    `logits` (m, n_clusters) are held-out: each row's come from a classifier that never saw it. Restricted to a
    cluster and a state, the classifier's odds, corrected for the sizes of the two, decide between them; L(g) is
    the sum of the two error rates. No pair of candidates needs a training run.

    Paper: Line 25, Equation 17
    """

    def __init__(self, logits: Floats, cluster: Ints, n_clusters: int) -> None:
        self.scores = np.ascontiguousarray(logits.T)  # one row per cluster
        self.sizes = np.bincount(cluster, minlength=n_clusters)
        self.rows = np.split(np.argsort(cluster, kind="stable"), np.cumsum(self.sizes)[:-1])
        self._of_state: dict[tuple[int, ...], _Union] = {}
        self._states = _States(self)

    def losses(self, new: int, states: Sequence[Sequence[int]]) -> Floats:
        """The same against each of the states, all at once: a step may have 500 clusters and 150 states."""
        self._states.become(states)
        return self._states.losses(new)

    def __call__(self, new: int, state: Sequence[int]) -> float:
        of_new, union = self.rows[new], self._union(tuple(state))
        if not len(of_new) or not len(union.rows):
            return 0.0
        score, handicap = self.scores[new], np.log(self.sizes[new])
        missed = np.count_nonzero(score[of_new] - handicap <= union.score[of_new])
        taken = np.count_nonzero(score[union.rows] - handicap > union.own)
        return missed / len(of_new) + taken / len(union.rows)

    def _union(self, members: tuple[int, ...]) -> _Union:
        """A state grows by one cluster at a time, and is asked about by many: what is known of it is kept."""
        if members not in self._of_state:
            rows = np.concatenate([self.rows[c] for c in members])
            *before, last = members
            known = self._of_state.pop(tuple(before), None)
            if known is None:
                together = np.logaddexp.reduce(self.scores[list(members)], axis=0)
            else:
                together = np.logaddexp(known.score + np.log(self.sizes[before].sum()), self.scores[last])
            with np.errstate(divide="ignore"):
                score = together - np.log(self.sizes[list(members)].sum())
            self._of_state[members] = _Union(rows, score, score[rows])
        return self._of_state[members]


class _States:
    """All states of a step as they grow, for questions about all of them.

    members  the clusters of each
    scores   (states, m): the score of each state on every row, as in `_Union`
    state    int (m,): the state of each row, -1 for none yet
    own      float (m,): the score of that state
    sizes    how many rows each has
    """

    def __init__(self, of: ClassifierSeparation) -> None:
        self.of = of
        self.members: list[tuple[int, ...]] = []
        self.scores = np.empty_like(of.scores)  # there are at most as many states as clusters
        self.sizes = np.zeros(len(of.scores), dtype=np.int64)
        self.state, self.own = np.full(of.scores.shape[1], -1), np.full(of.scores.shape[1], np.inf)

    def become(self, states: Sequence[Sequence[int]]) -> None:
        """Take over what has changed since the last question, which is mostly one cluster that joined one state."""
        for s in range(len(states), len(self.members)):
            self._forget(s)
        self.members = self.members[: len(states)] + [()] * (len(states) - len(self.members))
        for s, members in enumerate(map(tuple, states)):
            known = self.members[s]
            if members == known:
                continue
            if members[: len(known)] != known:
                self._forget(s)
            for cluster in members[len(self.members[s]) :]:
                self._join(s, cluster)

    def _forget(self, s: int) -> None:
        self.members[s], self.sizes[s] = (), 0
        self.state[self.state == s] = -1

    def _join(self, s: int, cluster: int) -> None:
        rows, together = self.of.rows[cluster], self.scores[s]
        if self.members[s]:
            together += np.log(self.sizes[s])
            np.logaddexp(together, self.of.scores[cluster], out=together)
        else:
            together[:] = self.of.scores[cluster]
        self.sizes[s] += len(rows)
        with np.errstate(divide="ignore"):
            together -= np.log(self.sizes[s])
        self.state[rows] = s
        own = self.state == s
        self.own[own] = together[own]
        self.members[s] += (cluster,)

    def losses(self, new: int) -> Floats:
        """L(g) of a cluster against each state."""
        n, of_new = len(self.members), self.of.rows[new]
        score = self.of.scores[new] - np.log(self.of.sizes[new]) if len(of_new) else self.of.scores[new]
        missed = np.count_nonzero(score[of_new] <= self.scores[:n, of_new], axis=1)
        taken = np.bincount(self.state[(score > self.own) & (self.state >= 0)], minlength=n)
        with np.errstate(invalid="ignore", divide="ignore"):
            losses = missed / len(of_new) + taken / self.sizes[:n]
        return np.where((self.sizes[:n] > 0) & (len(of_new) > 0), losses, 0.0)


@dataclass(frozen=True, eq=False)
class _Union:
    """A union of clusters: its rows, its score on all rows, and on its own."""

    rows: Ints
    score: Floats
    own: Floats
