"""The latent transition graph: which state follows which, how often, and for which agent.

Paper: Section 2.2 (T), Section 2.4 (empirical policies)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_method, check_number, check_whole, shown
from craftrl.core.encoders import encode_dataset
from craftrl.core.relabelling import best_matching
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.labels import as_labels, as_labels_by_step
from craftrl.errors import InvalidDataError, require
from craftrl.states.accuracy import confusion
from craftrl.states.visits import count_visits

Ints = NDArray[np.integer]

__all__ = ["GraphRecovery", "LatentGraph", "compare_graphs", "match_to_truth"]


class KnowsItsPairs(Protocol):
    """A world that can say which pairs of states can occur, as `craftrl.envs.exbmdp.ExBMDP` can."""

    def reachable_pairs(self) -> list[NDArray[np.int64]]:
        """For each h, how many actions lead from each s_h that can be reached to each s_{h+1}."""
        ...


@dataclass(frozen=True)
class LatentGraph:
    """A layered graph over the states of h = 1..H.

    counts  entry h-1 has shape (K, n_states at h, n_states at h+1): transitions of each agent at h. A graph
            of the true dynamics has K = 1 and counts the actions that make each transition
    """

    counts: tuple[Ints, ...]

    @classmethod
    def from_labels(cls, labels: ArrayLike, agent: ArrayLike) -> LatentGraph:
        """From states (n, H) that a learner assigned, -1 for none, and agents (n,); no label, no transition."""
        states, k = as_labels("labels", labels), as_labels("agent", agent)
        if states.ndim != 2 or k.shape != states.shape[:1] or states.shape[1] < 2 or not len(states):
            raise InvalidDataError(
                f"Labels must have shape (n, H), H >= 2, with one agent per row; {states.shape} and {k.shape} "
                "were given."
            )
        if (k < 0).any():
            raise InvalidDataError(f"Agents are numbered from 0; {k.min()} was given; leave its trajectories out.")
        n_states = np.maximum(states.max(axis=0) + 1, 0)
        steps = zip(states.T, states.T[1:], n_states, n_states[1:])
        return cls(tuple(count_visits(k, s, s_next, sizes=(k.max() + 1, m, m_next)) for s, s_next, m, m_next in steps))

    @classmethod
    def from_model(cls, model: Any, tau: TrajectoryDataset) -> LatentGraph:
        """From what a fitted learner's encoders say of every observation: `model.encode(x, h)`."""
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        check_method("model", model, "encode", "a fitted model")
        encoders = [partial(model.encode, h=h) for h in range(1, tau.H + 1)]
        return cls.from_labels(encode_dataset(encoders, tau), tau.agent)

    @classmethod
    def from_world(cls, world: KnowsItsPairs) -> LatentGraph:
        """The true graph, as far as it can be reached from the start."""
        check_method("world", world, "reachable_pairs", "a world that knows its pairs of states, such as BitsExBMDP()")
        return cls(tuple(actions[None] for actions in world.reachable_pairs()))

    @property
    def H(self) -> int:
        return len(self.counts) + 1

    def n_states(self, h: int) -> int:
        """How many states there are at h."""
        _check_step(h, self.H)
        return self.counts[0].shape[1] if h == 1 else self.counts[h - 2].shape[2]

    def edges(self, h: int, min_share: float = 0.0) -> NDArray[np.bool_]:
        """Which transitions s_h -> s_{h+1} occur, and make up at least `min_share` of those seen at h."""
        _check_step(h, self.H - 1)
        check_number("min_share", min_share, "a number from 0 to 1", lambda share: 0 <= share <= 1)
        total = self.counts[h - 1].sum(axis=0)
        return (total > 0) & (total >= min_share * total.sum())

    def to_networkx(self, min_share: float = 0.0) -> Any:
        """A `networkx.DiGraph` with a node (h, state) for each state and an edge for each transition that occurs.

        Nodes have `h` and `state`; edges have `count`, and `counts`, a list with one entry per agent. `min_share` as in
        `edges`.
        """
        graph = require("networkx", "graphs").DiGraph()
        for h in range(1, self.H + 1):
            graph.add_nodes_from(((h, s), {"h": h, "state": s}) for s in range(self.n_states(h)))
        for h in range(1, self.H):
            for s, t in zip(*np.nonzero(self.edges(h, min_share))):
                by_agent = self.counts[h - 1][:, s, t].tolist()
                graph.add_edge((h, int(s)), (h + 1, int(t)), count=sum(by_agent), counts=by_agent)
        return graph

    def pi_emp(self, h: int) -> NDArray[np.floating]:
        """pi^emp_k(s_{h+1} | s_h), shape (K, n_states(h), n_states(h+1)); NaN where agent k never was at s_h.

        Paper: Equation 3 (empirical policies)
        """
        _check_step(h, self.H - 1)
        visits = self.counts[h - 1].sum(axis=2, keepdims=True)
        return np.divide(self.counts[h - 1], visits, out=np.full(self.counts[h - 1].shape, np.nan), where=visits > 0)


@dataclass(frozen=True)
class GraphRecovery:
    """How well one graph recovers another: edges found, right and true, each of shape (H-1,)."""

    found: Ints
    right: Ints
    true: Ints

    @property
    def precision(self) -> float:
        """The share of found edges that are true; 1 where none was found."""
        return float(self.right.sum() / self.found.sum()) if self.found.sum() else 1.0

    @property
    def recall(self) -> float:
        """The share of true edges that were found."""
        return float(self.right.sum() / self.true.sum()) if self.true.sum() else 1.0

    @property
    def exact(self) -> bool:
        """Whether the two graphs have the same edges."""
        return self.precision == self.recall == 1.0


def match_to_truth(labels: ArrayLike, truth: ArrayLike) -> list[Ints]:
    """For each h, the true state of each learned one: the one-to-one matching that most trajectories agree with.

    `labels` and `truth` have shape (n, H); a learned state that is left over is matched with -1.
    """
    matching = []
    for learned, true in zip(*(states.T for states in as_labels_by_step(labels, truth))):
        table = confusion(learned, true)
        partner = np.full(len(table), -1)
        for state, true_state in best_matching(table).items():
            partner[state] = true_state
        matching.append(partner)
    return matching


def compare_graphs(
    learned: LatentGraph, true: LatentGraph, matching: Sequence[Ints], min_share: float = 0.0
) -> GraphRecovery:
    """Edges of the learned graph that are edges of the true one, after renaming its states by `matching`.

    An edge from or to a learned state without a partner (-1) counts as found and wrong. `min_share` leaves
    out learned edges with less support, such as those that a few mislabelled trajectories make.
    """
    for name, graph in {"learned": learned, "true": true}.items():
        check_kind(name, graph, LatentGraph, "a LatentGraph")
    check_kind("matching", matching, (list, tuple), "a list with one array per step, as match_to_truth gives")
    matching = [as_labels("matching", partner, 1) for partner in matching]
    if learned.H != true.H or len(matching) != true.H:
        raise InvalidDataError(
            f"Both graphs and the matching must cover the same steps; they cover {learned.H}, {true.H} and "
            f"{len(matching)}."
        )
    for h, partner in enumerate(matching, start=1):
        if len(partner) != learned.n_states(h) or (partner >= true.n_states(h)).any():
            raise InvalidDataError(
                f"matching must name a true state, or -1, for each of the {learned.n_states(h)} learned ones at "
                f"h = {h}; {shown(partner.tolist())} was given; call match_to_truth."
            )
    rows = []
    for h in range(1, true.H):
        s, s_next = (m[i] for m, i in zip(matching[h - 1 : h + 1], np.nonzero(learned.edges(h, min_share))))
        actual = true.edges(h)
        matched = (s >= 0) & (s_next >= 0)
        rows.append((len(s), int(actual[s[matched], s_next[matched]].sum()), int(actual.sum())))
    return GraphRecovery(*np.array(rows).T)


def _check_step(h: int, last: int) -> None:
    check_whole("h", h, 1, last, "count from 1, as the paper does")
