"""Which action makes which move, from a few labels: transitions whose action is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.stats import binom

from craftrl.arguments import check_flag, check_kind, check_method, check_whole, quoted
from craftrl.arrays import Bools, Floats, Ints
from craftrl.data.dataset import as_observations
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.graph import StateGraph, check_same_observations
from craftrl.planning.latent import LatentActions

MAX_ACTIONS = 10**6
READING_ERRORS = (
    0.05  # share of labels that are taken to be wrong: encoders with a few percent of errors must do no harm
)
MAJORITY = 0.5  # a latent action or a successor is taken as known once it is likelier than all others together
UNSEEN_WEIGHT = 0.1  # how plausible a successor is that the videos never show, beside one that they show
BY_EXCLUSION = 0.9  # how likely one successor of an untried action must be, once others are excluded, to count as known
TRANSFER = 0.9  # how likely labels of the same latent action in other states hold here
PRIOR_LABELS = 1.0  # labels that the prior is worth, where one action has several successors
MIN_CHANGE = 0.01  # a change of probability after which other states are looked at again
MAX_P_VALUE = 1e-3  # how likely reading errors alone make as many contradictions as were seen; below it, actions slip


class KnownMoves(NamedTuple):
    """Moves that can be made on purpose: from s to t by `action`, which does so with probability `chance`; all (m,)."""

    s: Ints
    t: Ints
    action: Ints
    chance: Floats

    def costing(self, cost: Floats, n: int) -> csr_array:
        """These moves between n states as a graph, each at its cost (m,)."""
        return csr_array((cost, (self.s, self.t)), shape=(n, n))


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
    known: Bools
    tried: Ints
    deterministic: bool

    @cached_property
    def makes(self) -> Bools:
        """Which actions are known to make which moves, (n_actions, m).

        In a deterministic world that is the move likelier than all others together. Else it is every move at least half
        as likely as the likeliest: what an action does now and then, by slipping, is not what it is taken for.
        """
        if self.deterministic:
            return (self.chance > MAJORITY) & self.known[:, None]
        return (self.chance >= self.chance.max(axis=1, keepdims=True, initial=0) / 2) & self.known[:, None]

    @cached_property
    def left(self) -> Bools:
        """(m,): the moves that the videos show and that no action is known to make."""
        return ~self.makes.any(axis=0) & (np.arange(len(self.successors)) < self.n_videos)

    @cached_property
    def next_trial(self) -> int:
        """The least tried action that could make a move which none is known to make; else the least known action."""
        hope = self.chance[:, self.left].sum(axis=1) if self.left.any() else (~self.known).astype(float)
        hopeless = hope < READING_ERRORS / len(hope) if self.left.any() else self.known
        return int(np.lexsort((np.arange(len(hope)), -hope.round(6), self.tried, hopeless))[0])


class Grounding:
    """Which action makes which move; it learns from every label that is added.

    Three things count. Labels of the state itself count most. Labels of other states count where `latent` says that a
    move there and a move here are made by the same latent action. And, in a deterministic world, what is excluded: an
    action that leads elsewhere does not make this move, and a move that the videos show is made by some action.

    graph          the states and moves of the videos
    n_actions      how many actions there are, numbered from 0
    latent         latent actions of these moves, as `find_latent_actions(graph)` finds them
    deterministic  whether an action has one successor in each state; if not, it has a distribution over them. Where it
                   is said to be so and acting shows otherwise, more often than reading errors explain, a distribution
                   is expected all the same (`slips`), and whoever acts is warned
    """

    def __init__(
        self, graph: StateGraph, n_actions: int, latent: LatentActions | None = None, deterministic: bool = True
    ) -> None:
        check_kind("graph", graph, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
        check_whole("n_actions", n_actions, 1, MAX_ACTIONS)
        check_flag("deterministic", deterministic)
        if latent is not None and not np.array_equal(getattr(latent, "edges", ()), graph.edges):
            raise InvalidParameterError(
                f"latent must be latent actions of the {len(graph.edges)} moves of this graph, or None; "
                f"{quoted(latent)} was given; call find_latent_actions(graph)."
            )
        self.graph = graph
        self.n_actions, self.deterministic = int(n_actions), bool(deterministic)
        self.n_labels = 0
        self.slips = not self.deterministic
        self.warned = False  # of contradicting labels
        self._latent = None if latent is None else _LatentLabels(latent, graph, self.n_actions)
        self._seen: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)  # state: (action, successor)
        self._ambiguous = False  # whether some action had two successors in one state
        self._outcomes: dict[int, Outcomes] = {}  # those computed already
        self._known: KnownMoves | None = None

    # -- labels --------------------------------------------------------------------------------------------------

    def add(self, node: int, action: int, successor: int) -> None:
        """One label: in `node`, `action` was followed by `successor`."""
        check_whole("node", node, 0, self.graph.n - 1)
        check_whole("successor", successor, 0, self.graph.n - 1)
        check_whole("action", action, 0, self.n_actions - 1, "say how many actions there are in n_actions")
        node, action, successor = int(node), int(action), int(successor)
        h, after = self.graph.step(node), self.graph.step(successor)
        if h is not None and after != h + 1:
            raise InvalidDataError(
                "The state after an action must be one of the next step; "
                f"{self.graph.text(node)} and {self.graph.text(successor)} were given."
            )
        seen = self._seen[node]
        seen[action, successor] += 1
        self.n_labels += 1
        self._known = None
        self._outcomes.pop(node, None)
        self._ambiguous = self._ambiguous or sum(a == action for a, _ in seen) > 1
        if self._ambiguous and self.deterministic and self.slips != bool(self.contradiction):
            self.slips = not self.slips
            self._outcomes.clear()
        for other in () if self._latent is None else self._latent.add(node, action, successor):
            self._outcomes.pop(other, None)

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
        check_same_observations("Labels", model, array.shape[2:], array.dtype)
        if a.size and a.max() >= self.n_actions:
            raise InvalidDataError(
                f"Actions must lie in 0..{self.n_actions - 1}, or be -1 where unknown; {a.max()} was given; say how "
                "many actions there are in n_actions."
            )
        nodes = np.full(array.shape[:2], -1, dtype=np.int64)
        known = np.pad(a >= 0, ((0, 0), (1, 1)))
        for j, beside in enumerate((known[:, 1:] | known[:, :-1]).T):  # only what lies beside a known action is read
            if beside.any():
                nodes[beside, j] = self.graph.nodes(model.encode(array[beside, j], h + j)[:, None], h + j)[:, 0]
        rows, steps = np.nonzero((a >= 0) & (nodes[:, :-1] >= 0) & (nodes[:, 1:] >= 0))
        for i, j in zip(rows.tolist(), steps.tolist()):
            self.add(nodes[i, j], a[i, j], nodes[i, j + 1])
        if self.contradiction:
            raise InvalidDataError(self.contradiction)
        return len(rows)

    @property
    def labels(self) -> list[tuple[int, int, int, int]]:
        """All labels that were added, sorted: state, action, successor, and how often."""
        return sorted((s, a, t, times) for s, seen in self._seen.items() for (a, t), times in seen.items())

    @property
    def contradiction(self) -> str:
        """Where labels of a world that is said to be deterministic disagree, a sentence; "" where none do.

        Counted are labels other than their state's and action's most frequent one that lead where the videos lead as
        well: a reading error mostly makes a move that the videos do not show. As many as such frames explain will do.
        """
        if not self.deterministic or not self._ambiguous:
            return ""
        labels, against, worst = 0, 0, (0, 0, 0, 0, 0)  # of the worst: how often, and which label against which
        for s, seen in self._seen.items():
            real = set(self.graph.successors(s).tolist())
            for a in {a for a, _ in seen}:
                ranked = sorted(((n, t) for (b, t), n in seen.items() if b == a and t in real), reverse=True)
                if sum(n for n, _ in ranked) > 1:
                    labels += sum(n for n, _ in ranked)
                    against += sum(n for n, _ in ranked[1:])
                if len(ranked) > 1 and ranked[1][0] > worst[0]:
                    worst = (ranked[1][0], s, a, ranked[0][1], ranked[1][1])
        if not against or binom.sf(against - 1, labels, READING_ERRORS) >= MAX_P_VALUE:
            return ""
        _, s, a, t, other = worst
        return (
            f"With deterministic=True one action must have one successor in each state; {against} of {labels} labels "
            f"say otherwise (action {a} led from {self.graph.text(s)} to {self.graph.text(t)} and to "
            f"{self.graph.text(other)}), more than reading errors explain; pass deterministic=False, or fit a model "
            "with more states."
        )

    # -- what they say -------------------------------------------------------------------------------------------

    def outcomes(self, node: int) -> Outcomes:
        """What is expected of each action in one state, from all that labels say."""
        check_whole("node", node, 0, self.graph.n - 1)
        node = int(node)
        if node not in self._outcomes:
            videos = self.graph.successors(node)
            elsewhere = None if self._latent is None else self._latent.predicted(node)
            seen: Mapping[tuple[int, int], int] = self._seen.get(node, {})
            self._outcomes[node] = _outcomes(seen, videos, self.n_actions, not self.slips, elsewhere)
        return self._outcomes[node]

    def known_moves(self) -> KnownMoves:
        """All moves that some action is known to make, each with the action that does so most reliably."""
        if self._known is None:
            found: list[tuple[int, int, int, float]] = []
            for s in sorted({*self._seen, *np.flatnonzero(self.graph.out_degree).tolist()}):
                here = self.outcomes(s)
                chance = np.where(here.makes, here.chance, 0.0)
                for j in np.flatnonzero(here.makes.any(axis=0)):
                    best = int(chance[:, j].argmax())
                    found.append((s, int(here.successors[j]), best, float(chance[best, j])))
            start, end, action = np.array([move[:3] for move in found], dtype=np.int64).reshape(-1, 3).T
            self._known = KnownMoves(start, end, action, np.array([move[3] for move in found], dtype=float))
        return self._known

    @property
    def grounded(self) -> Bools:
        """(E,): which of `graph.edges` some action is known to make."""
        known, n = self.known_moves(), self.graph.n
        return np.isin(self.graph.edges @ [n, 1], known.s * n + known.t)

    def missing(self) -> list[tuple[int, int]]:
        """The moves that are not grounded yet, most frequent in the videos first."""
        left = np.flatnonzero(~self.grounded)
        order = np.argsort(-self.graph.total.data[left], kind="stable")
        return [(int(s), int(t)) for s, t in self.graph.edges[left[order]]]


class _LatentLabels:
    """Which latent action each action is, within each group of states where latent actions mean the same.

    For each group and action, the log-likelihood of all labels under each latent action; a reading error may make any
    label, so that a few wrong ones do no harm.
    """

    def __init__(self, latent: LatentActions, graph: StateGraph, n_actions: int) -> None:
        self.graph, self.group = graph, latent.group
        self.share = np.nan_to_num(latent.share)
        s = graph.edges[:, 0]
        total = np.zeros((graph.n, latent.n))
        np.add.at(total, s, self.share)
        # a latent action of which nothing is known in a state may make any of its moves
        self.likely = np.where(total[s] > 0, self.share, 1 / graph.out_degree[s, None])
        self.evidence: defaultdict[int, Floats] = defaultdict(partial(np.zeros, (n_actions, latent.n)))
        self.belief: dict[int, Floats] = {}

    def add(self, node: int, action: int, successor: int) -> list[int]:
        """One more label; the states of which it says something new."""
        g, here = int(self.group[node]), self.graph.successors(node) == successor
        if not here.any():
            return []
        likely = self.likely[self.graph.rows(node)][here][0]
        self.evidence[g][action] += np.log((1 - READING_ERRORS) * likely + READING_ERRORS)
        before, n = self.belief.get(g), self.share.shape[1]
        self.belief[g] = assign(self.evidence[g], np.ones_like(self.evidence[g]), np.ones(n, dtype=bool))
        news = before is None or np.abs(self.belief[g] - before).max() > MIN_CHANGE
        return np.flatnonzero(self.group == g).tolist() if news else []

    def predicted(self, node: int) -> tuple[Floats, Bools] | None:
        """Pr(successor | action) here as labels elsewhere have it, (n_actions, m), and of which actions they say so."""
        belief = self.belief.get(int(self.group[node]))
        if belief is None:
            return None
        predicted = belief @ self.share[self.graph.rows(node)].T
        return predicted, (belief.max(axis=1) > MAJORITY) & (predicted.sum(axis=1) > MAJORITY)


def _outcomes(
    seen: Mapping[tuple[int, int], int],
    videos: Ints,
    n_actions: int,
    deterministic: bool,
    elsewhere: tuple[Floats, Bools] | None,
) -> Outcomes:
    """All evidence on one state: labels of its own, successors in the videos, and what labels elsewhere predict."""
    new = sorted({t for _, t in seen}.difference(videos.tolist()))
    successors = np.concatenate([videos, np.array(new, dtype=np.int64)])
    column = {t: j for j, t in enumerate(successors.tolist())}
    times = np.zeros((n_actions, len(successors)), dtype=np.int64)
    for (a, t), n in seen.items():
        times[a, column[t]] = n
    tried = times.sum(axis=1)
    weight = np.concatenate([np.ones(len(videos)), np.full(len(new) + 1, UNSEEN_WEIGHT)])  # the last for one never seen
    prior, known = np.tile(weight, (n_actions, 1)), tried > 0
    if elsewhere is not None:
        predicted, said = elsewhere
        mixed = TRANSFER * np.pad(predicted, ((0, 0), (0, len(new) + 1))) + (1 - TRANSFER) * prior / weight.sum()
        prior, known = np.where(said[:, None], mixed, prior), said | known
    if deterministic:
        evidence = np.pad(times * np.log((1 - READING_ERRORS) / READING_ERRORS), ((0, 0), (0, 1)))
        chance = assign(evidence, prior, np.arange(len(successors) + 1) < len(videos))[:, :-1]
        known = known | (chance.max(axis=1, initial=0) > BY_EXCLUSION)
    else:
        expected = prior[:, :-1] / prior.sum(axis=1, keepdims=True)
        chance = (times + PRIOR_LABELS * expected) / (tried[:, None] + PRIOR_LABELS)
    return Outcomes(successors, len(videos), chance, known, tried, deterministic)


def assign(evidence: Floats, prior: Floats, required: Bools) -> Floats:
    """The probability (A, M) of each of M options for each of A actions.

    Each action has one option; several may have the same one. What is known of some actions says something of the
    others: an option that some action must have (videos show it) and that no known action has is left to the unknown
    ones. If one action is left for it, it is this one.

    evidence  (A, M): the log-likelihood of each action's labels under each option, 0 where there is none
    prior     (A, M): how plausible the options are without these labels; need not sum to 1
    required  (M,): options that some action must have
    """
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    belief = _normalised(prior * likelihood)
    known = belief.max(axis=1) > MAJORITY
    claimed = np.zeros(len(required), dtype=bool)
    claimed[belief[known].argmax(axis=1)] = True
    left = required & ~claimed
    if known.all() or not left.any():
        return belief
    options = float(prior[~known].sum(axis=1).mean() / max(prior[~known].max(), 1e-300))  # in units of one
    unknown, n_left = int((~known).sum()), int(left.sum())
    all_covered = _covered(unknown, n_left, options)
    if all_covered > 0:
        other = _covered(unknown - 1, n_left, options) / (options * all_covered)
        weight = np.where(left, max(0.0, 1 - (options - n_left) * other) / n_left, other)
    else:  # more is left over than actions: some of it is read wrongly, and nothing says what
        weight = left / n_left
    belief[~known] = _normalised(prior[~known] * weight * likelihood[~known])
    return belief


def _covered(actions: int, left: int, options: float) -> float:
    """The probability that all that is left over is covered if each action draws one of the options at random.

    Computed action by action, over how many are covered already: sums with alternating signs would overflow, or
    cancel, where there are many actions.
    """
    new = np.clip((left - np.arange(left + 1)) / max(options, left), 0.0, 1.0)  # that the next draw covers one more
    covered = np.zeros(left + 1)
    covered[0] = 1.0
    for _ in range(actions):
        covered = covered * (1 - new) + np.concatenate([[0.0], (covered * new)[:-1]])
    return float(covered[-1])


def _normalised(weights: Floats) -> Floats:
    """Rows that sum to 1; a row of zeros is left as it is."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
