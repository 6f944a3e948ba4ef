"""Which action makes which move, from a few labels: transitions whose action is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from craftrl.arguments import check_flag, check_kind, check_method, check_whole
from craftrl.data.dataset import as_observations
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError
from craftrl.planning.contradictions import contradictions
from craftrl.planning.graph import StateGraph
from craftrl.planning.outcomes import Outcomes, expected_outcomes
from craftrl.planning.sharing import KnowsLatentActions, SharedLabels

__all__ = ["MOST_ACTIONS", "Grounding", "KnownMoves"]

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]
MOST_ACTIONS = 10**6


@dataclass(frozen=True)
class KnownMoves:
    """Moves that can be made on purpose: from s to t by `action`, which does so with probability `chance`; all (m,)."""

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
    latent         latent actions of these moves, as `craftrl.planning.latent.find_latent_actions` finds them
    deterministic  whether an action has one successor in each state; if not, it has a distribution over them. Where it
                   is said to be so and labels contradict one another more often than misread frames explain, a
                   distribution is expected all the same (`slips`), and whoever acts is warned
    """

    def __init__(
        self, moves: StateGraph, n_actions: int, latent: KnowsLatentActions | None = None, deterministic: bool = True
    ) -> None:
        check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
        check_whole("n_actions", n_actions, 1, MOST_ACTIONS)
        check_flag("deterministic", deterministic)
        self.graph = moves
        self.n_actions, self.deterministic = int(n_actions), bool(deterministic)
        self.n_labels = 0
        self.slips = not self.deterministic
        self.warned = False  # of violations
        self._shared = None if latent is None else SharedLabels(latent, moves, self.n_actions)
        self._seen: dict[int, dict[int, dict[int, int]]] = {}  # state, action, successor: how often
        self._contradicted = False  # whether some action had two successors in one state
        self._outcomes: dict[int, Outcomes] = {}  # those computed already
        self._known: KnownMoves | None = None

    # -- labels --------------------------------------------------------------------------------------------------

    def add(self, node: int, action: int, successor: int) -> None:
        """One label: in `node`, `action` was followed by `successor`."""
        check_whole("node", node, 0, self.graph.n - 1)
        check_whole("successor", successor, 0, self.graph.n - 1)
        check_whole("action", action, 0, self.n_actions - 1, "say how many actions there are in n_actions")
        node, action, successor = int(node), int(action), int(successor)
        self._check_steps(node, successor)
        outcomes = self._seen.setdefault(node, {}).setdefault(action, {})
        outcomes[successor] = outcomes.get(successor, 0) + 1
        self.n_labels += 1
        self._known = None
        self._outcomes.pop(node, None)
        self._contradicted = self._contradicted or len(outcomes) > 1
        if self._contradicted and self.deterministic and self.slips != bool(self.violations):
            self.slips = not self.slips
            self._outcomes.clear()
        for other in () if self._shared is None else self._shared.add(node, action, successor):
            self._outcomes.pop(other, None)

    def _check_steps(self, node: int, successor: int) -> None:
        h, after = self.graph.step(node), self.graph.step(successor)
        if h is not None and after != h + 1:
            raise InvalidDataError(
                "The state after an action must be one of the next step; "
                f"{self.graph.text(node)} and {self.graph.text(successor)} were given."
            )

    def add_labels(self, model: Any, x: ArrayLike, actions: ArrayLike, h: int = 1) -> int:
        """Labels from observations x (n, H, *obs) and the actions (n, H-1) between them, -1 where none is known.

        Pairs of observations are H = 2, and `h` is the step of the first one, which only a model with an encoder for
        each step asks for. Returned is how many labels were added: those whose two states the model could name.
        """
        check_method("model", model, "encode", "a fitted model")
        check_whole("h", h, 1, self.graph.H)
        array, a = as_observations(x, "the labels"), as_labels("actions", actions)
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
        known = np.pad(a >= 0, ((0, 0), (1, 1)))
        for j, beside in enumerate((known[:, 1:] | known[:, :-1]).T):
            if beside.any():
                at[beside, j] = [self.graph.node(s, h + j) for s in model.encode(x[beside, j], h + j).tolist()]
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
        return csr_array((n, (s, a)), shape=(self.graph.n, self.n_actions))

    # -- what they say -------------------------------------------------------------------------------------------

    def outcomes(self, node: int) -> Outcomes:
        """What is expected of each action in one state."""
        check_whole("node", node, 0, self.graph.n - 1)
        node = int(node)
        if node not in self._outcomes:
            videos = self.graph.successors(node)
            told = None if self._shared is None else self._shared.predicted(node, videos)
            seen = self._seen.get(node, {})
            self._outcomes[node] = expected_outcomes(seen, videos, self.n_actions, not self.slips, told)
        return self._outcomes[node]

    def action_of(self, edges: ArrayLike) -> Floats:
        """Pr(action makes this move) of moves (m, 2): (m, n_actions); NaN where nothing is known of a move's state."""
        given = as_labels("edges", edges, 2)
        out = np.full((len(given), self.n_actions), np.nan)
        for row, (s, t) in zip(out, given):
            here = self.outcomes(int(s))
            if here.known.any():
                column = np.flatnonzero(here.successors == t)
                row[:] = here.chance[:, column[0]] if len(column) else 0.0
        return out

    def reliability(self, s: int, a: int) -> tuple[NDArray[np.int64], Floats]:
        """What action a is expected to do in s: successors and probabilities, likeliest first; none if unknown."""
        check_whole("a", a, 0, self.n_actions - 1)
        here = self.outcomes(s)
        if not here.known[a]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        order = np.argsort(-here.chance[a], kind="stable")
        return here.successors[order], here.chance[a][order]

    def known_moves(self) -> KnownMoves:
        """All moves that some action is known to make, each with the action that does so most reliably."""
        if self._known is None:
            told = [s for s in range(self.graph.n) if self.graph.out_degree[s] or s in self._seen]
            best = [self.outcomes(s).best for s in told]
            s = np.repeat(np.array(told, dtype=np.int64), [len(t) for t, _, _ in best])
            empty = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
            self._known = KnownMoves(s, *(np.concatenate(part) for part in zip(*best, empty)))
        return self._known

    @property
    def grounded(self) -> NDArray[np.bool_]:
        """(E,): which of `moves.edges` some action is known to make."""
        known, n = self.known_moves(), self.graph.n
        return np.isin(self.graph.edges @ [n, 1], known.s * n + known.t)

    def missing(self) -> list[tuple[int, int]]:
        """The moves that are not grounded yet, most frequent in the videos first."""
        left = np.flatnonzero(~self.grounded)
        order = np.argsort(-self.graph.total.data[left], kind="stable")
        return [(int(s), int(t)) for s, t in self.graph.edges[left[order]]]

    def next_trial(self, node: int) -> int:
        """What to try next here: the least tried action that could make a move which is not grounded."""
        return self.outcomes(node).next_trial

    @property
    def violations(self) -> tuple[str, ...]:
        """Where the world is said to be deterministic and labels speak against it, a sentence; none otherwise."""
        return contradictions(self._seen, self.graph) if self.deterministic else ()
