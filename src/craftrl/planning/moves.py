"""The moves that videos show: which state follows which, and how often for each agent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.stats import poisson

from craftrl.arguments import check_kind, check_method, check_number, check_whole, shown
from craftrl.core.encoders import encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError
from craftrl.planning.nodes import Nodes

__all__ = ["RARE", "Moves"]

RARE = 0.02
"""The share of moves that misread frames are taken to make, unless told otherwise.

An encoder that misreads one frame in a hundred makes two in a hundred transitions wrong, since each has two frames.
"""
MOST_AGENTS = 10**6
CHANCE = 0.05  # a move stays if misread frames alone would rarely, less often than this, make as many sightings of it


@dataclass(frozen=True)
class Moves:
    """The graph of the videos: for each agent, how often each node followed each, (n, n) counts."""

    nodes: Nodes
    counts: tuple[csr_array, ...]

    def __post_init__(self) -> None:
        check_kind("nodes", self.nodes, Nodes, "Nodes, as Nodes.from_model gives them")
        check_kind("counts", self.counts, tuple, "a tuple with one sparse matrix of counts for each agent")
        n = self.nodes.n
        if not self.counts or any(not issparse(count) or count.shape != (n, n) for count in self.counts):
            raise InvalidDataError(
                f"Moves must be counted between all {n} states in a sparse matrix, for one agent or more; "
                f"{shown(self.counts)} was given; call Moves.from_model."
            )

    @classmethod
    def from_model(cls, model: Any, tau: TrajectoryDataset, min_share: float = RARE) -> Moves:
        """What a fitted model reads off videos.

        min_share  the share of moves that misread frames are taken to make: twice the encoder's error. A move is
                   dropped that makes up less of all moves out of its state, or that is seen no more often than if
                   such frames were taken for a state at random. 0 keeps all moves
        """
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        check_method("model", model, "encode", "a fitted model")
        encoders = [partial(model.encode, h=h) for h in range(1, tau.H + 1)]
        states = encode_dataset(encoders, tau)
        return cls.from_states(states, tau.agent, nodes_of(model, states), min_share)

    @classmethod
    def from_states(cls, states: ArrayLike, agent: ArrayLike, nodes: Nodes, min_share: float = RARE) -> Moves:
        """From states (n, H) that were read already, -1 for none, and the agent of each row, numbered from 0."""
        check_number("min_share", min_share, "a number from 0 up to 1", lambda share: 0 <= share < 1)
        check_kind("nodes", nodes, Nodes, "Nodes, as Nodes.from_model gives them")
        at, k = nodes.numbers(states), as_labels("agent", agent, 1)
        if len(k) != len(at) or not len(k) or k.min() < 0 or k.max() >= MOST_AGENTS:
            range_ = f" from {k.min()} to {k.max()}" if len(k) else ""
            raise InvalidDataError(
                f"There must be an agent, numbered from 0 and below {MOST_AGENTS}, for each of {len(at)} trajectories; "
                f"{len(k)}{range_} were given."
            )
        counts = [_count(at[k == agent_k], nodes.n) for agent_k in range(int(k.max()) + 1)]
        return cls(nodes, tuple(_without_strays(counts, nodes, float(min_share))))

    @cached_property
    def total(self) -> csr_array:
        """The counts of all agents together."""
        out = self.counts[0].copy()
        for more in self.counts[1:]:
            out = out + more
        out = csr_array(out)
        out.eliminate_zeros()
        out.sort_indices()
        return out

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The moves (E, 2), each a pair node -> successor, sorted."""
        s = np.repeat(np.arange(self.nodes.n), np.diff(self.total.indptr))
        return np.stack([s, self.total.indices], axis=1).astype(np.int64)

    @cached_property
    def out_degree(self) -> NDArray[np.int64]:
        """How many moves lead out of each node."""
        return np.diff(self.total.indptr).astype(np.int64)

    def successors(self, node: int) -> NDArray[np.int64]:
        """The nodes that were seen to follow this one, sorted."""
        start, stop = self._row(node)
        return self.total.indices[start:stop].astype(np.int64)

    def visits(self, node: int) -> int:
        """How many moves out of this node were seen."""
        start, stop = self._row(node)
        return int(self.total.data[start:stop].sum())

    def _row(self, node: int) -> tuple[int, int]:
        """Where the moves out of a node begin and end in `total`."""
        check_whole("node", node, 0, self.nodes.n - 1)
        start, stop = self.total.indptr[int(node) : int(node) + 2].tolist()
        return start, stop

    def text(self, edge: ArrayLike) -> str:
        """The name of a move in a sentence."""
        move = as_labels("edge", edge, 1)
        if move.shape != (2,):
            raise InvalidDataError(f"A move must be a pair of nodes; {shown(edge)} was given.")
        s, t = move.tolist()
        return f"{self.nodes.text(s)} -> {self.nodes.text(t)}"


def nodes_of(model: Any, states: NDArray[np.integer]) -> Nodes:
    """The nodes of a model, and of all states that it read: an encoder may have values beyond the states found."""
    shared = hasattr(model, "encoder_") or getattr(model, "n_states_total_", None) is not None
    seen = Nodes.from_states(states, shared)
    if not (hasattr(model, "n_states_total_") if shared else hasattr(model, "n_states_")):
        return seen
    claimed = Nodes.from_model(model).sizes[: len(seen.sizes)]
    return Nodes(tuple(max(pair) for pair in zip(claimed, seen.sizes)), shared)


def _count(at: NDArray[np.int64], n: int) -> csr_array:
    """How often each node follows each in trajectories of nodes."""
    s, t = at[:, :-1].ravel(), at[:, 1:].ravel()
    known = (s >= 0) & (t >= 0)
    ones = np.ones(int(known.sum()), dtype=np.int64)
    out = csr_array((ones, (s[known], t[known])), shape=(n, n))
    out.sum_duplicates()
    return out


def _without_strays(counts: list[csr_array], nodes: Nodes, min_share: float) -> list[csr_array]:
    """Counts without the moves that misread frames explain.

    If the frame after is misread, most often as one and the same other state, the move has a small share of those out
    of its state. If the frame before is misread, its state may be a rare one, of whose moves a single wrong one is a
    large share; then arrivals at the successor are many, and one of so many states that they may seem to come from.
    """
    total = csr_array(sum(counts[1:], start=counts[0]))
    total.sum_duplicates()
    s, t = np.repeat(np.arange(nodes.n), np.diff(total.indptr)), total.indices
    out, into = (np.asarray(total.sum(axis=axis)).ravel() for axis in (1, 0))
    by_chance = min_share * into[t] / np.repeat(nodes.sizes, nodes.sizes)[s]
    kept = csr_array(total, dtype=bool, copy=True)
    kept.data = (total.data >= min_share * out[s]) & (poisson.sf(total.data - 1, by_chance) < CHANCE)
    kept.eliminate_zeros()
    return [csr_array(count.multiply(kept)) for count in counts]
