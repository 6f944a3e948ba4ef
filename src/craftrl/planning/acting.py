"""Acting in closed loop: read the state, follow a plan, plan again at a surprise, and explore what actions do."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from craftrl.arguments import check_choice, check_flag, check_kind, check_method, check_whole, is_whole, quoted
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.planning.graph import check_same_observations
from craftrl.planning.grounding import READING_ERRORS, Grounding
from craftrl.planning.plan import By, Plan, UnreachableGoal, check_goals, plan_path

CONFIRMED = 0.9  # how likely the goal must be, beside being read, to count as reached
PATIENCE = 10  # moves per state after which an episode of any length is given up, by default
SURPRISING = 0.02  # how likely an action leads elsewhere than all labels say
UNSEEN = 0.1  # of these times, how often it leads where the videos show no move from here
MIN_BELIEF = 1e-3  # states less likely than this are forgotten
MAX_TRIES = 3  # of each action in a state with a move that no action makes: a reading error may have shown it
TRIES = 5  # of each action in a state where it has several successors
MAX_SEED = 2**31  # environments take seeds below this


class Filter:
    """The probability of each state, updated with every action and every state read (the forward filter of an HMM).

    Now and then a frame is read as any other state of its step, and now and then an action leads where it never led,
    mostly by a move that the videos show. Which of the two explains a surprise better depends on that, and on how well
    the action was tested here.
    """

    def __init__(self, grounding: Grounding) -> None:
        self.grounding = grounding
        self.belief: dict[int, float] = {}

    def start(self, read: int) -> None:
        """An episode begins in the state that was read; -1 for none."""
        self.belief = {read: 1.0} if read >= 0 else {}

    def update(self, action: int, read: int) -> None:
        """An action was taken and a state was read, -1 for none."""
        expected: dict[int, float] = {}
        for s, p in self.belief.items():
            outcomes = self.grounding.outcomes(s)
            for t, chance in zip(outcomes.successors.tolist(), outcomes.chance[action].tolist()):
                expected[t] = expected.get(t, 0.0) + (1 - SURPRISING) * p * chance
        if read >= 0:
            graph = self.grounding.graph
            h = graph.step(read)
            others = max(1, graph.sizes[0 if h is None else h - 1] - 1)  # that a frame may be read as wrongly
            ways = float(sum(p / graph.out_degree[s] for s, p in self.belief.items() if read in graph.successors(s)))
            surprise = (1 - UNSEEN) * ways + UNSEEN / others
            here = (expected.get(read, 0.0) + SURPRISING * surprise) * (1 - READING_ERRORS)
            expected = {t: p * READING_ERRORS / others for t, p in expected.items()} | {read: here}
        total = sum(expected.values())
        self.belief = {t: p / total for t, p in expected.items() if p > MIN_BELIEF * total}

    def likely(self) -> list[int]:
        """The states it may be, likeliest first."""
        return sorted(self.belief, key=lambda node: -self.belief[node])

    @property
    def node(self) -> int:
        """The likeliest state; -1 where nothing is known."""
        return self.likely()[0] if self.belief else -1


class _Reader:
    """Steps an environment and reads every state by the model.

    nodes     the states read in this episode, as numbers of `grounding.graph`; -1 where the model names none
    believed  the likeliest state after each of them
    actions   taken in this episode; steps: in all episodes
    over      whether the episode is over, or the model has no encoder for a further step
    """

    def __init__(self, env: Any, model: Any, grounding: Grounding) -> None:
        n = n_actions(env)
        if n < grounding.n_actions:
            raise InvalidParameterError(
                f"env must have the {grounding.n_actions} actions that moves are grounded in; it has {n}; make "
                "Grounding with its number of actions."
            )
        self.env, self.model, self.grounding, self.filter = env, model, grounding, Filter(grounding)
        self.steps = 0

    def reset(self, seed: int | None = None) -> NDArray[Any]:
        """Start an episode; what is seen."""
        if seed is not None:
            check_whole("seed", seed)
        self.nodes, self.believed, self.actions = list[int](), list[int](), list[int]()
        x = self._read(self.env.reset(seed=seed)[0], False)
        self.filter.start(self.nodes[-1])
        self.believed.append(self.filter.node)
        return x

    def step(self, action: int, learn: bool) -> NDArray[Any]:
        """Take an action; to learn is to add what was seen to the grounding, unless the state before is in doubt."""
        before, certain = self.nodes[-1], self.nodes[-1] == self.believed[-1]
        x, _, terminated, truncated, _ = self.env.step(int(action))
        self.steps += 1
        self.actions.append(action)
        x = self._read(x, bool(terminated or truncated))
        after = self.nodes[-1]
        self.filter.update(action, after)
        self.believed.append(self.filter.node)
        if learn and certain and before >= 0 and after >= 0:
            self.grounding.add(before, action, after)
        return x

    def _read(self, x: Any, over: bool) -> NDArray[Any]:
        array, h, graph = np.asarray(x), len(self.nodes) + 1, self.grounding.graph
        check_same_observations("The environment", self.model, array.shape, array.dtype)
        self.over = over or (graph.H is not None and h >= graph.H)
        self.nodes.append(graph.node(int(self.model.encode(array[None], h)[0]), h))
        return array


def n_actions(env: Any) -> int:
    """How many actions an environment has, numbered from 0; no other actions will do."""
    for method in ("reset", "step"):
        check_method("env", env, method, "a Gymnasium environment")
    space = getattr(env, "action_space", None)
    n: Any = getattr(space, "n", None)
    if not is_whole(n) or getattr(space, "shape", ()) != () or getattr(space, "start", 0) != 0:
        raise InvalidParameterError(
            f"The environment must have discrete actions, numbered from 0; its are {quoted(space)}; wrap it in "
            "gymnasium.wrappers.TransformAction with a list of actions."
        )
    return int(n)


# -- towards a goal ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Episode:
    """What happened: the states read, the actions taken between them, and every plan that was followed.

    nodes         states as they were read, one more than actions; -1 where the model named none
    believed      the likeliest state at each step, given all that was read and done: `nodes` without reading errors
    actions       what was done
    plans         in the order in which they were made
    surprises     steps h, counted from 1, at which another state than the planned one was read
    stopped       why the episode is over: "reached", "not confirmed", "time is up", "episode ended" or "not reachable".
                  "not confirmed": the goal was read at the end or was the likeliest state, but not both
    message       where the goal was not reached: the sentence that says what is missing, if more can be said
    observations  what was seen, where it was to be kept
    """

    nodes: tuple[int, ...]
    believed: tuple[int, ...]
    actions: tuple[int, ...]
    plans: tuple[Plan, ...]
    surprises: tuple[int, ...]
    stopped: str
    message: str = ""
    observations: tuple[NDArray[Any], ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the goal was read at the end, and what was read and done before agrees."""
        return self.stopped == "reached"


class Planner:
    """Reaches goals in an environment through a model's encoder.

    A goal counts as reached if the encoder reads it, *and* it is likely (0.9) given all that was read and done before,
    *and* it was read at half or more of the frames at which it was the likeliest state. Neither a plan that should have
    led there nor a single frame that does not fit is enough.

    model      a fitted model; anything with `encode(x, h)`
    grounding  which action makes which move
    by         what to plan for, as in `plan_path`
    learn      whether every transition seen is added to `grounding` as a label
    """

    def __init__(self, model: Any, grounding: Grounding, by: By = "shortest", learn: bool = True) -> None:
        check_method("model", model, "encode", "a fitted model")
        check_kind("grounding", grounding, Grounding, "a Grounding")
        check_flag("learn", learn)
        check_choice("by", by, get_args(By))
        self.model, self.grounding, self.by, self.learn = model, grounding, by, learn

    def goal_nodes(self, goal: Any) -> frozenset[int]:
        """The states that a goal means, as numbers of `grounding.graph`.

        A state's number; a text "h:state" for a model with an encoder for each step, for which a number alone means
        that state at any step; an observation of it, or a pair (h, observation) for such a model; or a set of numbers
        of `grounding.graph`.
        """
        graph = self.grounding.graph
        if isinstance(goal, (set, frozenset)):
            return check_goals(graph, goal)
        if isinstance(goal, np.ndarray) and goal.ndim:
            goal = (None, goal)
        if isinstance(goal, tuple) and len(goal) == 2 and (goal[0] is None or is_whole(goal[0])):
            h, x = goal[0], np.asarray(goal[1])
            if h is None and not graph.shared:
                raise InvalidParameterError(
                    "A goal given as an observation must come with its step, (h, observation): this model has an "
                    "encoder for each step; none was given."
                )
            check_same_observations("The goal", self.model, x.shape, x.dtype)
            node = graph.node(int(self.model.encode(x[None], h)[0]), h)
            if node < 0:
                raise InvalidDataError(
                    "The goal must be an observation of a state that the videos show; the model names none for this "
                    "one; choose another."
                )
            return frozenset({node})
        text = str(goal) if isinstance(goal, str) or is_whole(goal) else ""
        parts = re.fullmatch(r"(?:\s*(\d+)\s*:)?\s*(\d+)\s*", text)
        if parts is None:
            raise InvalidParameterError(
                'A goal must be a state as 3 or "3", a state at a step "h:state" as "4:3", an observation or a set of '
                f"nodes; {quoted(goal)} was given."
            )
        at, found = "", {graph.node(int(parts[2]), h) for h in range(1, len(graph.sizes) + 1)} - {-1}
        if parts[1] and not graph.shared:
            at, found = f" at a step from 1 to {graph.H}", {node for node in found if graph.step(node) == int(parts[1])}
        if not found:
            raise InvalidDataError(
                f"The goal must be one of the states 0..{max(graph.sizes) - 1} of the model{at}; {quoted(goal)} is "
                "none."
            )
        return frozenset(found)

    def run(
        self, env: Any, goal: Any, *, seed: int | None = None, max_steps: int | None = None, keep: bool = False
    ) -> Episode:
        """One episode towards a goal, in any form that `goal_nodes` takes.

        env        a Gymnasium environment with as many discrete actions as were grounded
        seed       of `env.reset`
        max_steps  the most actions; by default as many as the model has steps, or ten per state
        keep       whether to keep the observations
        """
        goals = self.goal_nodes(goal)
        check_flag("keep", keep)
        if max_steps is not None:
            check_whole("max_steps", max_steps)
        graph = self.grounding.graph
        most = PATIENCE * graph.n if graph.H is None else graph.H - 1
        most = most if max_steps is None else max_steps if graph.H is None else min(max_steps, most)
        reader = _Reader(env, self.model, self.grounding)
        seen, plans, surprises = [reader.reset(seed)], list[Plan](), list[int]()
        ahead: list[tuple[int, int | None]] = []  # the next actions, and where each should lead
        error: UnreachableGoal | None = None
        while True:
            left = most - len(reader.actions)
            stopped = "reached" if _confirmed(reader, goals) else "time is up" if left <= 0 else ""
            stopped = stopped or ("episode ended" if reader.over else "")
            if not (stopped or ahead):
                following, error = self._next(reader, goals, left)
                if isinstance(following, Plan):
                    plans.append(following)
                    ahead = list(zip(following.actions, following.nodes[1:]))
                elif following is not None:
                    ahead = [(following, None)]
                else:
                    stopped = "time is up" if error is not None and error.too_far else "not reachable"
            if stopped:
                break
            action, planned = ahead.pop(0)
            x = reader.step(action, self.learn)
            if keep:
                seen.append(x)
            if planned is not None and planned != reader.nodes[-1]:
                surprises.append(len(reader.nodes))
            if planned != reader.believed[-1]:
                ahead = []
        message = "" if stopped == "reached" or error is None else str(error)
        if stopped != "reached" and {reader.nodes[-1], reader.believed[-1]} & goals:
            ends = (graph.text(node) if node >= 0 else "none" for node in (reader.nodes[-1], reader.believed[-1]))
            stopped = "not confirmed"
            message = (
                "A goal must be read, and agree with what was read and done before, to count as reached; at the end "
                f"{' was read where '.join(ends)} is the likeliest; look at frames of both, or explore more."
            )
        _warn_of_contradiction(self.grounding)
        return Episode(
            tuple(reader.nodes),
            tuple(reader.believed),
            tuple(reader.actions),
            tuple(plans),
            tuple(surprises),
            stopped,
            message,
            tuple(seen) if keep else (),
        )

    def _next(
        self, reader: _Reader, goals: frozenset[int], left: int
    ) -> tuple[Plan | int | None, UnreachableGoal | None]:
        """What to do with so many actions left, a plan or one action, and why no plan leads to a goal.

        A plan starts where one most likely is; if no way leads on from there, where one may be as well. A goal that was
        not confirmed is left by a plan from the other states that it may be.
        """
        if not reader.filter.belief:  # as in `_to_try`
            return reader.steps % self.grounding.n_actions, None
        error: UnreachableGoal | None = None
        for here in reader.filter.likely():
            if here in goals:
                continue
            try:
                return plan_path(self.grounding, here, goals, by=self.by, horizon=left), None
            except UnreachableGoal as unreachable:
                error = error or unreachable
                if unreachable.nearest == here:
                    return self.grounding.outcomes(here).next_trial, error
                if unreachable.nearest is not None:
                    return plan_path(self.grounding, here, {unreachable.nearest}, by=self.by, horizon=left), error
        return None, error


def _confirmed(reader: _Reader, goals: frozenset[int]) -> bool:
    """Whether the goal is read, is likely, and was read at half of the frames at which it was the likeliest state."""
    likely = sum(reader.filter.belief.get(node, 0.0) for node in goals)
    read = [node in goals for node, likeliest in zip(reader.nodes, reader.believed) if likeliest in goals]
    return reader.nodes[-1] in goals and likely >= CONFIRMED and 2 * sum(read) >= len(read)


def _warn_of_contradiction(grounding: Grounding) -> None:
    """One warning for each grounding where the world does not seem to be what it was said to be."""
    if not grounding.warned and grounding.contradiction:
        grounding.warned = True
        warnings.warn(f"{grounding.contradiction} From now on several are expected.", AssumptionWarning, stacklevel=3)


# -- exploring ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exploration:
    """What exploring took, and what it left.

    steps     actions taken in the environment
    episodes  episodes begun
    missing   moves that are not grounded yet
    finished  whether it ended because nothing was left to try that can be reached
    """

    steps: int
    episodes: int
    missing: tuple[tuple[int, int], ...]
    finished: bool


def explore(
    env: Any,
    model: Any,
    grounding: Grounding,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
) -> Exploration:
    """Ground moves by trying: each time go to the nearest state with something to try, and try it.

    Every transition seen is added to `grounding`. A state is done with once all moves that the videos show there are
    grounded. It ends when nothing is left to try in any state that known moves lead to from the start, or when the
    budget is used up.

    steps, episodes  the budget: actions in the environment, episodes; one of them or both
    seed             of the environment's episodes
    """
    check_method("model", model, "encode", "a fitted model")
    check_kind("grounding", grounding, Grounding, "a Grounding")
    check_whole("seed", seed)
    for name, budget in {"steps": steps, "episodes": episodes}.items():
        if budget is not None:
            check_whole(name, budget, 0)
    if steps is None and episodes is None:
        raise InvalidParameterError("explore must have a budget; none was given; pass steps=1000 or episodes=100.")
    reader, rng, begun, finished = _Reader(env, model, grounding), np.random.default_rng(seed), 0, False
    most = np.inf if steps is None else steps
    while not finished and reader.steps < most and (episodes is None or begun < episodes):
        reader.reset(int(rng.integers(MAX_SEED)))
        begun += 1
        action = _to_try(reader)
        finished = action is None
        while action is not None and not reader.over and reader.steps < most:
            reader.step(action, learn=True)
            action = _to_try(reader)
    _warn_of_contradiction(grounding)
    return Exploration(reader.steps, begun, tuple(grounding.missing()), finished)


def _to_try(reader: _Reader) -> int | None:
    """The next action: try one here, or go on to the nearest state with something to try; None if there is none."""
    grounding, here = reader.grounding, reader.believed[-1]
    if here < 0:  # the model names no state here: any action may lead to one that it names
        return reader.steps % grounding.n_actions
    if _is_open(grounding, here):
        outcomes = grounding.outcomes(here)
        return int(outcomes.tried.argmin()) if grounding.slips else outcomes.next_trial
    known = grounding.known_moves()
    ways = known.costing(known.chance, grounding.graph.n)
    reached = breadth_first_order(ways, here, return_predecessors=False)
    goals = [node for node in reached.tolist() if _is_open(grounding, node)]
    return plan_path(grounding, here, goals).actions[0] if goals else None


def _is_open(grounding: Grounding, node: int) -> bool:
    """Whether something is left to try in a state."""
    here = grounding.outcomes(node)
    if grounding.graph.H is not None and grounding.graph.step(node) == grounding.graph.H:
        return False  # no action follows
    if grounding.slips:
        return bool(here.n_videos and here.tried.min() < TRIES)
    return bool(here.left.any() and here.tried.min() < MAX_TRIES)
