"""Which action makes which move, from a few labels: transitions whose action is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from craftrl.arguments import check_flag, check_kind, check_method, check_whole
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError
from craftrl.planning.beliefs import STRAY, SURE, assign
from craftrl.planning.contradictions import contradictions
from craftrl.planning.moves import Moves
from craftrl.planning.sharing import KnowsLatentActions, SharedLabels

__all__ = ["Grounding", "KnownMoves"]

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

NEW = 0.1  # how plausible a successor is that the videos never show, beside one that they show
TRUST = 0.9  # how far labels of the same latent action in other states are trusted here
PSEUDO = 1.0  # labels that what is expected beforehand is worth, where one action has several successors


@dataclass(frozen=True)
class Belief:
    """What is expected of one state: Pr(successor | action), and of which actions anything is known."""

    successors: NDArray[np.int64]  # (m,)
    chance: Floats  # (n_actions, m); rows may sum to less than 1
    known: NDArray[np.bool_]  # (n_actions,)


@dataclass(frozen=True)
class KnownMoves:
    """Moves that can be made on purpose: from s to t by `action`, which does so with probability `chance`; each (m,)."""

    s: NDArray[np.int64]
    t: NDArray[np.int64]
    action: NDArray[np.int64]
    chance: Floats


class Grounding:
    """Which action makes which move; it learns from every label that is added.

    Three things tell. Labels of the state itself count most. Labels of other states count where `latent` says that a
    move there and a move here are made by the same latent action. And, in a deterministic world, what is excluded: an
    action that leads elsewhere does not make this move, and a move that the videos show is made by some action.

    moves          the graph of the videos
    n_actions      how many actions there are, numbered from 0
    latent         latent actions of these moves, as `craftrl.states.latent_actions.find_latent_actions` finds them
    deterministic  whether an action has one successor in each state; if not, it has a distribution over them
    """

    def __init__(
        self, moves: Moves, n_actions: int, latent: KnowsLatentActions | None = None, deterministic: bool = True
    ) -> None:
        check_kind("moves", moves, Moves, "Moves, as Moves.from_model gives them")
        check_whole("n_actions", n_actions, 1)
        check_flag("deterministic", deterministic)
        self.moves, self.n_actions, self.deterministic = moves, int(n_actions), bool(deterministic)
        self.nodes = moves.nodes
        self._shared = None if latent is None else SharedLabels(latent, moves, self.n_actions)
        self._seen: dict[int, dict[int, dict[int, int]]] = {}  # state, action, successor: how often
        self._beliefs: dict[int, Belief] = {}
        self.n_labels = 0

    # -- labels --------------------------------------------------------------------------------------------------

    def add(self, node: int, action: int, successor: int) -> None:
        """One label: in `node`, `action` was followed by `successor`."""
        check_whole("node", node, 0, self.nodes.n - 1)
        check_whole("successor", successor, 0, self.nodes.n - 1)
        check_whole("action", action, 0, self.n_actions - 1, "say how many actions there are in n_actions")
        node, action, successor = int(node), int(action), int(successor)
        outcomes = self._seen.setdefault(node, {}).setdefault(action, {})
        outcomes[successor] = outcomes.get(successor, 0) + 1
        self.n_labels += 1
        self._beliefs.pop(node, None)
        if self._shared is not None and self._shared.add(node, action, successor):
            self._beliefs.clear()

    def add_labels(self, model: Any, x: ArrayLike, actions: ArrayLike, h: int = 1) -> int:
        """Labels from observations x (n, H, *obs) and the actions (n, H-1) between them, -1 where none is known.

        Pairs of observations are H = 2, and `h` is the step of the first one, which only a model with an encoder for
        each step asks for. Returned is how many labels were added: those whose two states the model could name.
        """
        check_method("model", model, "encode", "a fitted model")
        array, a = np.asarray(x), as_labels("actions", actions)
        a = a[:, None] if a.ndim == 1 else a
        if array.ndim < 2 or a.ndim != 2 or a.shape != (len(array), array.shape[1] - 1):
            raise InvalidDataError(
                "Labels must be observations (n, H, ...) with the action between each two of them, (n, H-1); shapes "
                f"{array.shape} and {a.shape} were given."
            )
        if a.size and a.max() >= self.n_actions:
            raise InvalidDataError(
                f"Actions must lie in 0..{self.n_actions - 1}, or be -1 where unknown; {a.max()} was given; say how "
                "many actions there are in n_actions."
            )
        at = self._read(model, array, a, h)
        rows, steps = np.nonzero((a >= 0) & (at[:, :-1] >= 0) & (at[:, 1:] >= 0))
        for i, j in zip(rows, steps):
            self.add(int(at[i, j]), int(a[i, j]), int(at[i, j + 1]))
        return len(rows)

    def _read(self, model: Any, x: NDArray[Any], a: Ints, h: int) -> NDArray[np.int64]:
        """The nodes (n, H) of observations beside which an action is known; -1 for all others."""
        at = np.full(x.shape[:2], -1, dtype=np.int64)
        for j in range(x.shape[1]):
            beside = np.zeros(len(x), dtype=bool)
            beside |= a[:, j] >= 0 if j < a.shape[1] else False
            beside |= a[:, j - 1] >= 0 if j > 0 else False
            if beside.any():
                at[beside, j] = [self.nodes.number(s, h + j) for s in model.encode(x[beside, j], h + j).tolist()]
        return at

    @property
    def labels(self) -> list[tuple[int, int, int, int]]:
        """All labels that were added, sorted: state, action, successor, and how often."""
        return sorted(
            (s, a, t, times)
            for s, actions in self._seen.items()
            for a, outcomes in actions.items()
            for t, times in outcomes.items()
        )

    @property
    def counts(self) -> csr_array:
        """How often each action was tried in each state, (n, n_actions)."""
        tries = [(s, a, sum(o.values())) for s, actions in self._seen.items() for a, o in actions.items()]
        s, a, n = np.array(tries, dtype=np.int64).reshape(-1, 3).T
        return csr_array((n, (s, a)), shape=(self.nodes.n, self.n_actions))

    def tried(self, node: int) -> NDArray[np.int64]:
        """How often each action was tried in this state, (n_actions,)."""
        here = self._seen.get(node, {})
        return np.array([sum(here.get(a, {}).values()) for a in range(self.n_actions)])

    # -- what they say -------------------------------------------------------------------------------------------

    def belief(self, node: int) -> Belief:
        """What is expected of the actions in one state."""
        if node not in self._beliefs:
            self._beliefs[node] = self._believe(node)
        return self._beliefs[node]

    def _believe(self, node: int) -> Belief:
        seen = self._seen.get(node, {})
        videos = self.moves.successors(node)
        new = sorted({t for outcomes in seen.values() for t in outcomes}.difference(videos.tolist()))
        successors = np.concatenate([videos, np.array(new, dtype=np.int64)])
        times = np.array([[seen.get(a, {}).get(int(t), 0) for t in successors] for a in range(self.n_actions)])
        times = times.reshape(self.n_actions, len(successors))
        prior, told = self._expected(node, successors, len(videos))
        known = told | (times.sum(axis=1) > 0)
        if not self.deterministic:
            own = times.sum(axis=1, keepdims=True)
            chance = (times + PSEUDO * prior[:, :-1] / prior.sum(axis=1, keepdims=True)) / (own + PSEUDO)
            return Belief(successors, chance, known)
        evidence = np.pad(times * np.log((1 - STRAY) / STRAY), ((0, 0), (0, 1)))
        required = np.arange(len(successors) + 1) < len(videos)
        chance = assign(evidence, prior, required)[:, :-1]
        return Belief(successors, chance, known | (chance.max(axis=1, initial=0) > SURE))

    def _expected(self, node: int, successors: Ints, n_videos: int) -> tuple[Floats, NDArray[np.bool_]]:
        """How plausible each successor, and any other, is of each action without labels of this very state."""
        weight = np.where(np.arange(len(successors) + 1) < n_videos, 1.0, NEW)
        prior = np.tile(weight, (self.n_actions, 1))
        elsewhere = None if self._shared is None else self._shared.predicted(node, successors)
        if elsewhere is None:
            return prior, np.zeros(self.n_actions, dtype=bool)
        predicted, told = elsewhere
        mixed = TRUST * np.pad(predicted, ((0, 0), (0, 1))) + (1 - TRUST) * prior / weight.sum()
        return np.where(told[:, None], mixed, prior), told

    def action_of(self, edges: ArrayLike) -> Floats:
        """Pr(action makes this move) of moves (m, 2): (m, n_actions); NaN where nothing is known of a move's state."""
        out = np.full((len(np.asarray(edges)), self.n_actions), np.nan)
        for row, (s, t) in zip(out, np.asarray(edges, dtype=np.int64).reshape(-1, 2)):
            belief = self.belief(int(s))
            if belief.known.any():
                column = np.flatnonzero(belief.successors == t)
                row[:] = belief.chance[:, column[0]] if len(column) else 0.0
        return out

    def reliability(self, s: int, a: int) -> tuple[NDArray[np.int64], Floats]:
        """What action a is expected to do in s: successors and their probabilities, likeliest first; none if unknown."""
        belief = self.belief(s)
        if not belief.known[a]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        order = np.argsort(-belief.chance[a], kind="stable")
        return belief.successors[order], belief.chance[a][order]

    def makes(self, node: int) -> NDArray[np.bool_]:
        """Which actions are known to make which moves out of a state, (n_actions, m) beside `belief(node)`.

        In a deterministic world that is the move likelier than all others together. Else it is every move at least half
        as likely as the likeliest: what an action does now and then, by slipping, is not what it is taken for.
        """
        belief = self.belief(node)
        if not belief.chance.size:
            return np.zeros(belief.chance.shape, dtype=bool)
        least = SURE if self.deterministic else belief.chance.max(axis=1, keepdims=True) / 2
        return (belief.chance > least if self.deterministic else belief.chance >= least) & belief.known[:, None]

    def known_moves(self) -> KnownMoves:
        """All moves that some action is known to make, each with the action that does so most reliably."""
        rows: list[tuple[int, int, int, float]] = []
        for s in range(self.nodes.n):
            if self.moves.out_degree[s] or s in self._seen:
                belief, makes = self.belief(s), self.makes(s)
                chance = np.where(makes, belief.chance, 0.0)
                for j in np.flatnonzero(makes.any(axis=0)):
                    a = int(chance[:, j].argmax())
                    rows.append((s, int(belief.successors[j]), a, float(chance[a, j])))
        s_, t_, a_, p_ = zip(*rows) if rows else ((), (), (), ())
        ints = [np.array(part, dtype=np.int64) for part in (s_, t_, a_)]
        return KnownMoves(*ints, np.array(p_, dtype=float))

    @property
    def grounded(self) -> NDArray[np.bool_]:
        """(E,): which of `moves.edges` some action is known to make."""
        known = self.known_moves()
        n = self.nodes.n
        return np.isin(self.moves.edges @ [n, 1], known.s * n + known.t)

    def missing(self) -> list[tuple[int, int]]:
        """The moves that are not grounded yet, most frequent in the videos first."""
        open_ = np.flatnonzero(~self.grounded)
        order = np.argsort(-self.moves.total.data[open_], kind="stable")
        return [(int(s), int(t)) for s, t in self.moves.edges[open_[order]]]

    def unexplained(self, node: int) -> NDArray[np.int64]:
        """The successors that the videos show here and that no action is known to lead to."""
        videos = self.moves.successors(node)
        return videos[~self.makes(node).any(axis=0)[: len(videos)]]

    def next_trial(self, node: int) -> int:
        """What to try next here: the least tried action that could make a move which is not grounded."""
        tried, belief = self.tried(node), self.belief(node)
        left = np.isin(belief.successors, self.unexplained(node))
        hope = belief.chance[:, left].sum(axis=1) if left.any() else (~belief.known).astype(float)
        return int(np.lexsort((np.arange(self.n_actions), -hope.round(6), tried, belief.known & (tried > 0)))[0])

    @property
    def violations(self) -> tuple[str, ...]:
        """Where the world is said to be deterministic and labels speak against it, in one sentence; none otherwise."""
        return contradictions(self._seen, self.moves) if self.deterministic else ()
