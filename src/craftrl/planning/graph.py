"""The graph of learned states: which state follows which in the videos, and how often for each agent.

Paper: Section 2.2 (T), Section 2.4 (empirical policies)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.stats import poisson

from craftrl.arguments import (
    check_flag,
    check_kind,
    check_method,
    check_number,
    check_room_in_memory,
    check_whole,
    is_whole,
    quoted,
)
from craftrl.core.encoders import encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError, require

# The share of moves that reading errors are taken to make, by default: an encoder that reads one frame in a hundred
# wrongly makes two in a hundred transitions wrong, since each has two frames.
RARE = 0.02
CHANCE = 0.05  # a move stays if reading errors alone would rarely, less often than this, make as many sightings of it
MAX_AGENTS = 10**6
BYTES = 128  # that a graph needs for a state, before any move


@dataclass(frozen=True)
class StateGraph:
    """The states of a model, and the moves between them that videos show.

    A *node* is a number from 0 to n-1. Where one encoder serves all steps (stationary=True) it is a state. Else each
    step h has states of its own, and a node is a pair (h, state), counted step by step. A *move* is a pair of nodes,
    one following the other.

    sizes    how many states there are at each step; one entry where one encoder serves all steps
    shared   whether one encoder serves all steps
    counts   for each agent how often each node followed each, (n, n)
    """

    sizes: tuple[int, ...]
    shared: bool
    counts: tuple[csr_array, ...]

    @classmethod
    def from_model(
        cls, model: Any, tau: TrajectoryDataset, min_share: float = RARE, states: ArrayLike | None = None
    ) -> StateGraph:
        """What a fitted model reads off videos.

        min_share  the share of moves that reading errors are taken to make: twice the encoder's error. A move is
                   dropped that makes up less of all moves out of its state, or that is seen no more often than if
                   such frames were taken for a state at random. 0 keeps all moves
        states     (n, H), if they were read already
        """
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        check_method("model", model, "encode", "a fitted model")
        check_same_observations("Videos", model, tau.obs_shape, tau.dtype)
        if states is None:
            states = encode_dataset([partial(model.encode, h=h) for h in range(1, tau.H + 1)], tau)
        total = getattr(model, "n_states_total_", None)
        shared = total is not None or hasattr(model, "encoder_")
        sizes = _sizes(as_labels("states", states, 2), shared)  # an encoder may have values beyond the states found
        found = (total or 0,) if shared else getattr(model, "n_states_", sizes)
        sizes = tuple(max(int(n), seen) for n, seen in zip(found, sizes))
        return cls.from_states(states, tau.agent, sizes=sizes, shared=shared, min_share=min_share)

    @classmethod
    def from_states(
        cls,
        states: ArrayLike,
        agent: ArrayLike,
        *,
        sizes: tuple[int, ...] | None = None,
        shared: bool = False,
        min_share: float = RARE,
    ) -> StateGraph:
        """From states (n, H) that were read already, -1 for none, and the agent of each row, numbered from 0.

        sizes   how many states there are; by default those that occur
        shared  whether a number means the same state at every step
        """
        check_number("min_share", min_share, "a number from 0 up to 1", lambda share: 0 <= share < 1)
        check_flag("shared", shared)
        given, k = as_labels("states", states, 2), as_labels("agent", agent, 1)
        if len(k) != len(given) or not len(k) or k.min() < 0 or k.max() >= MAX_AGENTS:
            range_ = f" from {k.min()} to {k.max()}" if len(k) else ""
            raise InvalidDataError(
                f"There must be an agent, numbered from 0 and below {MAX_AGENTS}, for each of {len(given)} "
                f"trajectories; {len(k)}{range_} were given."
            )
        sizes = _sizes(given, shared) if sizes is None else sizes
        check_kind("sizes", sizes, tuple, "a tuple with the number of states of each step")
        if not sizes or (shared and len(sizes) != 1) or not all(is_whole(n) and n >= 0 for n in sizes):
            raise InvalidParameterError(
                "sizes must hold the number of states of each step, and a single one where steps share their states; "
                f"{quoted(sizes)} was given with shared={shared}."
            )
        check_room_in_memory(f"A graph of {sum(sizes)} states", BYTES * sum(sizes), "number the states from 0")
        without = cls(sizes, shared, ())
        at, counts = without.nodes(given), []
        for agent_k in range(int(k.max()) + 1):
            moves = np.stack([at[k == agent_k, :-1].ravel(), at[k == agent_k, 1:].ravel()])
            moves = moves[:, (moves >= 0).all(axis=0)]
            table = csr_array((np.ones(moves.shape[1], dtype=np.int64), tuple(moves)), shape=(without.n, without.n))
            table.sum_duplicates()
            counts.append(table)
        return replace(without, counts=_without_strays(counts, sizes, float(min_share)))

    @property
    def n(self) -> int:
        """How many nodes there are."""
        return sum(self.sizes)

    @property
    def H(self) -> int | None:
        """The number of steps; None where steps share their states, and episodes may be of any length."""
        return None if self.shared else len(self.sizes)

    # -- nodes and their names -----------------------------------------------------------------------------------

    def node(self, state: int, h: int | None = None) -> int:
        """The node of a state at step h, counted from 1; -1 for state -1 and for one that there is not."""
        if not is_whole(state):
            raise InvalidParameterError(f"state must be a whole number; {quoted(state)} was given.")
        if not self.shared:
            check_whole("h", h, 1, len(self.sizes), "each step has its own states")
        known = 0 <= state < self.sizes[0 if self.shared or h is None else h - 1]
        return int(self.nodes([[state]], h or 1)[0, 0]) if known else -1

    def nodes(self, states: ArrayLike, h: int = 1) -> NDArray[np.int64]:
        """The nodes (n, m) of trajectories of states from step h on, as `model.transform` gives them; -1 stays -1."""
        check_whole("h", h, 1)
        given = as_labels("states", states, 2)
        last = h - 1 + given.shape[1]
        if not self.shared and last > len(self.sizes):
            raise InvalidDataError(
                f"Trajectories must have at most {len(self.sizes)} steps, each of which has its own states; {last} "
                "were given; cut them, or fit with stationary=True."
            )
        here = slice(0, 1) if self.shared else slice(h - 1, last)
        size, end = np.array(self.sizes)[here], np.cumsum(self.sizes)[here]
        return np.where((given >= 0) & (given < size), given + end - size, -1)

    def step(self, node: int) -> int | None:
        """The step h of a node; None where steps share their states."""
        return self.name(node)[0]

    def name(self, node: int) -> tuple[int | None, int]:
        """The pair (h, state) of a node; h is None where steps share their states."""
        check_whole("node", node, 0, self.n - 1)
        if self.shared:
            return None, int(node)
        ends = np.cumsum(self.sizes)
        h = int(np.searchsorted(ends, node, side="right")) + 1
        return h, int(node - ends[h - 1] + self.sizes[h - 1])

    def text(self, *nodes: int) -> str:
        """Nodes in a sentence: a state, or a move from one to another."""
        named = (self.name(node) for node in nodes)
        return " -> ".join(f"state {state}" if h is None else f"state {state} at h = {h}" for h, state in named)

    # -- moves ---------------------------------------------------------------------------------------------------

    @cached_property
    def total(self) -> csr_array:
        """The counts of all agents together, (n, n)."""
        out = csr_array(sum(self.counts[1:], start=self.counts[0].copy()))
        out.eliminate_zeros()
        out.sort_indices()
        return out

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The moves (E, 2), each a pair node -> successor, sorted."""
        return np.stack([np.repeat(np.arange(self.n), self.out_degree), self.total.indices], axis=1).astype(np.int64)

    @cached_property
    def made(self) -> NDArray[np.float64]:
        """How often each agent made each move, (K, E)."""
        out = np.zeros((len(self.counts), len(self.edges)))
        for row, table in zip(out, self.counts if len(self.edges) else ()):
            row[:] = table[tuple(self.edges.T)]
        return out

    @cached_property
    def out_degree(self) -> NDArray[np.int64]:
        """How many moves lead out of each node, (n,)."""
        return np.diff(self.total.indptr).astype(np.int64)

    def successors(self, node: int) -> NDArray[np.int64]:
        """The nodes that were seen to follow this one, sorted."""
        check_whole("node", node, 0, self.n - 1)
        return self.edges[self.rows(int(node)), 1]

    def rows(self, node: int) -> slice:
        """Where the moves out of a node are in `edges`."""
        return slice(*self.total.indptr[node : node + 2].tolist())

    def policy(self, agent: int) -> csr_array:
        """pi^emp_k(successor | state) of one agent, (n, n), with an empty row where it was never seen to go on.

        Paper: Equation 3 (empirical policies)
        """
        check_whole("agent", agent, 0, len(self.counts) - 1, "agents are numbered from 0")
        out = csr_array(self.counts[int(agent)], dtype=float, copy=True)
        out.eliminate_zeros()
        out.data /= np.repeat(np.asarray(out.sum(axis=1)).ravel(), np.diff(out.indptr))
        return out

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph` of the states and moves; nodes are pairs (h, state), or states where steps share them.

        Nodes have `h` and `state`; edges have `count`, and `counts`, a list with one entry per agent.
        """
        graph = require("networkx", "graphs").DiGraph()
        keys = []
        for h, state in map(self.name, range(self.n)):
            keys.append(state if h is None else (h, state))
            graph.add_node(keys[-1], h=h, state=state)
        for (s, t), counts in zip(self.edges.tolist(), self.made.T.astype(int).tolist()):
            graph.add_edge(keys[s], keys[t], count=sum(counts), counts=counts)
        return graph


def check_same_observations(what: str, model: Any, shape: tuple[int, ...] | None, dtype: Any) -> None:
    """Raise unless observations are like those that a model was fitted to, in shape and in kind of number."""
    fitted, known = getattr(model, "obs_shape_", shape), getattr(model, "data_", {}).get("dtype", dtype)
    if shape != fitted or (np.dtype(known).kind == "f") != (np.dtype(dtype).kind == "f"):
        raise InvalidDataError(
            f"{what} must show what the model was fitted to, {known} observations of shape {fitted}; {dtype} of shape "
            f"{shape} was given; cut, scale or wrap it as the data was recorded."
        )


def _sizes(states: NDArray[np.int64], shared: bool) -> tuple[int, ...]:
    """As many states as occur, one at least."""
    if shared:
        return (max(1, int(states.max(initial=-1)) + 1),)
    return tuple(np.maximum(states.max(axis=0, initial=-1) + 1, 1).tolist())


def _without_strays(counts: list[csr_array], sizes: tuple[int, ...], min_share: float) -> tuple[csr_array, ...]:
    """Counts without the moves that reading errors explain.

    If the frame after is read wrongly, most often as one and the same other state, the move has a small share of those
    out of its state. If the frame before is, its state may be a rare one, of whose moves a single wrong one is a large
    share; then arrivals at the successor are many, and one of so many states that they may seem to come from.
    """
    total = csr_array(sum(counts[1:], start=counts[0]))
    total.sum_duplicates()
    s, t = np.repeat(np.arange(len(total.indptr) - 1), np.diff(total.indptr)), total.indices
    out, into = (np.asarray(total.sum(axis=axis)).ravel() for axis in (1, 0))
    by_chance = min_share * into[t] / np.repeat(sizes, sizes)[s]
    kept = csr_array(total, dtype=bool, copy=True)
    kept.data = (total.data >= min_share * out[s]) & (poisson.sf(total.data - 1, by_chance) < CHANCE)
    kept.eliminate_zeros()
    return tuple(csr_array(table.multiply(kept)) for table in counts)
