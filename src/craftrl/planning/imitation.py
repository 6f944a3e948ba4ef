"""Imitation: an agent's habits, read off the graph of the videos, executed with the actions that labels gave away.

The videos say which successor an agent prefers in each state, and never which action it took. A few labels tell which
action makes each move. Together that is a policy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from craftrl.arguments import check_flag, check_kind, check_method, check_whole, is_whole
from craftrl.data.labels import as_array
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.acting import PATIENCE, Episode, warn_of_violations
from craftrl.planning.graph import StateGraph
from craftrl.planning.grounding import Grounding
from craftrl.planning.plan import check_goals
from craftrl.planning.reading import Reader

__all__ = ["Imitator", "agent_scores", "better_agent", "read_policy"]

Floats = NDArray[np.float64]


def read_policy(moves: StateGraph, agent: int) -> csr_array:
    """Pr(successor | state) of one agent, numbered from 0: (n, n), with an empty row where it was never seen."""
    check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    check_whole("agent", agent, 0, len(moves.counts) - 1, "agents are numbered from 0")
    return _shares(moves.counts[int(agent)])


def agent_scores(moves: StateGraph, aim: Any, *, start: int | None = None, horizon: int | None = None) -> Floats:
    """How well each agent does, (K,), by its own habits as the videos show them.

    aim      a goal, as a state or a set of states: the score is the probability to get there. Or an array with the
             value of each state: the score is the expected sum of the values of the states that are entered
    start    the state that episodes begin in; a model with an encoder for each step needs none if it has one at h = 1
    horizon  moves in an episode; by default one less than the model has steps, or as many as there are states

    What an agent does in a state where it was never seen is not known, and scores nothing.
    """
    check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    begin, most = _start(moves, start), _horizon(moves, horizon)
    goal, value = _aim(moves, aim)
    scores = []
    for agent in range(len(moves.counts)):
        after, at, score = read_policy(moves, agent), np.eye(1, moves.n, begin)[0], 0.0
        for _ in range(most):
            at[goal] = 0.0  # who is there has arrived
            at = after.T @ at
            score += float(at @ value)
        scores.append(1.0 if begin in goal else score)
    return np.array(scores)


def better_agent(moves: StateGraph, aim: Any, *, start: int | None = None, horizon: int | None = None) -> int:
    """The agent with the largest of `agent_scores`; of equals, the first."""
    return int(agent_scores(moves, aim, start=start, horizon=horizon).argmax())


class Imitator:
    """Acts as an agent of the videos did, as far as actions are known.

    In each state it draws a successor by the agent's habits and takes the action that makes this move. Where the agent
    was never seen it does what the agents together did there.

    model      a fitted model; anything with `encode(x, h)`
    grounding  which action makes which move
    policy     Pr(successor | state), as `read_policy` gives it
    learn      whether transitions are added to `grounding` as labels. Then a move that is not grounded is an occasion
               to try what `grounding.next_trial` names; else an action is drawn by how likely it makes the move
    seed       of what is drawn
    """

    def __init__(self, model: Any, grounding: Grounding, policy: Any, learn: bool = False, seed: int = 0) -> None:
        check_method("model", model, "encode", "a fitted model")
        check_kind("grounding", grounding, Grounding, "a Grounding")
        check_flag("learn", learn)
        check_whole("seed", seed)
        self.model, self.grounding, self.learn = model, grounding, learn
        self.policy = _check_policy(policy, grounding.graph.n)
        self._together = _shares(grounding.graph.total)
        self._rng = np.random.default_rng(seed)

    def choose(self, node: int) -> tuple[int, int]:
        """The successor drawn in a state, -1 where no agent was ever seen to go on, and the action to take."""
        check_whole("node", node, 0, self.grounding.graph.n - 1)
        row = self.policy[[node], :]
        row = row if row.nnz else self._together[[node], :]
        if not row.nnz:
            return -1, self._anything()
        successor = int(self._rng.choice(row.indices, p=row.data / row.data.sum()))
        return successor, self._action(node, successor)

    def _action(self, node: int, successor: int) -> int:
        known = self.grounding.known_moves()
        made = np.flatnonzero((known.s == node) & (known.t == successor))
        if len(made):
            return int(known.action[made[0]])
        if self.learn:
            return self.grounding.next_trial(node)
        likely = self.grounding.action_of([(node, successor)])[0]
        if np.isnan(likely).any() or not likely.any():
            return self._anything()
        return int(self._rng.choice(len(likely), p=likely / likely.sum()))

    def _anything(self) -> int:
        return int(self._rng.integers(self.grounding.n_actions))

    def run(
        self,
        env: Any,
        goal: Collection[int] | None = None,
        *,
        seed: int | None = None,
        max_steps: int | None = None,
        keep: bool = False,
    ) -> Episode:
        """One episode; it ends where the environment ends it, at a state in `goal`, or after `max_steps` actions.

        Where another state was read than the one drawn, that step is among the `surprises`; there are no plans.
        """
        goals = frozenset[int]() if goal is None else check_goals(self.grounding, goal)
        most = PATIENCE * self.grounding.graph.n if max_steps is None else max_steps
        check_whole("max_steps", most, 0)
        check_flag("keep", keep)
        reader = Reader(env, self.model, self.grounding)
        seen, nodes, actions, surprises = [reader.reset(seed)], [reader.node], list[int](), list[int]()
        while not (reader.over or nodes[-1] in goals or len(actions) >= most):
            here = reader.believed
            drawn, action = (-1, self._anything()) if here < 0 else self.choose(here)
            x = reader.step(action, self.learn)
            nodes.append(reader.node)
            actions.append(action)
            if keep:
                seen.append(x)
            if drawn >= 0 and reader.node != drawn:
                surprises.append(len(nodes))
        warn_of_violations(self.grounding)
        reached = nodes[-1] in goals
        stopped = "reached" if reached else "episode ended" if reader.over else "time is up"
        kept = tuple(seen) if keep else ()
        return Episode(tuple(nodes), tuple(actions), (), tuple(surprises), reached, stopped, kept)


def _shares(counts: csr_array) -> csr_array:
    """Counts with rows that sum to 1; empty rows stay empty."""
    out = csr_array(counts, dtype=float, copy=True)
    out.eliminate_zeros()
    total = np.asarray(out.sum(axis=1)).ravel()
    out.data /= np.repeat(total, np.diff(out.indptr))
    return out


def _start(moves: StateGraph, start: int | None) -> int:
    nodes = moves
    if start is None:
        if nodes.shared or nodes.sizes[0] != 1:
            raise InvalidParameterError(
                "start must be the state that episodes begin in, unless the model has a single one at h = 1; none was "
                "given; encode a first observation."
            )
        return 0
    check_whole("start", start, 0, nodes.n - 1)
    return int(start)


def _horizon(moves: StateGraph, horizon: int | None) -> int:
    if horizon is None:
        return moves.n if moves.H is None else moves.H - 1
    check_whole("horizon", horizon, 0)
    return int(horizon)


def _aim(moves: StateGraph, aim: Any) -> tuple[list[int], Floats]:
    """The states that end an episode, and what entering each state is worth."""
    n = moves.n
    if is_whole(aim) or isinstance(aim, (set, frozenset)):
        goal = [aim] if is_whole(aim) else list(aim)
        for state in goal:
            check_whole("aim", state, 0, n - 1, "a goal is a state, or a set of them")
        if not goal:
            raise InvalidParameterError("aim must hold at least one state; an empty set was given.")
        return [int(state) for state in goal], np.isin(np.arange(n), goal).astype(float)
    value = as_array("aim", aim).astype(float)
    if value.shape != (n,):
        raise InvalidDataError(
            f"aim must be a state, a set of states, or an array with the value of each of {n} states; shape "
            f"{value.shape} was given."
        )
    return [], value


def _check_policy(policy: Any, n: int) -> csr_array:
    """A policy as sparse rows of probabilities."""
    try:
        table = csr_array(policy, dtype=float)
    except (TypeError, ValueError):
        table = csr_array((0, 0))
    if table.shape != (n, n) or (table.data < 0).any() or not np.isfinite(table.data).all():
        raise InvalidDataError(
            f"policy must hold Pr(successor | state) for {n} states, shape ({n}, {n}); shape {table.shape} was given; "
            "call read_policy."
        )
    table.eliminate_zeros()
    return table
