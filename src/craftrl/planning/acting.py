"""Acting in closed loop: read the state, follow the plan, plan again at a surprise."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_kind, check_method, check_whole, is_whole, shown
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.planning.grounding import Grounding
from craftrl.planning.plan import By, Plan, UnreachableGoal, check_by, check_goals, plan_path
from craftrl.planning.reading import Reader

__all__ = ["Episode", "Planner"]

PATIENCE = 10  # moves per state after which an episode of any length is given up, unless told otherwise


@dataclass(frozen=True)
class Episode:
    """What happened: the states read, the actions taken between them, and every plan that was followed.

    nodes         states as they were read, one more than actions; -1 where the model named none
    surprises     steps h, counted from 1, at which another state than the planned one was read
    reached       whether the goal was reached, as far as the model can tell
    stopped       why the episode is over: "reached", "time is up", "episode ended" or "not reachable"
    observations  what was seen, where it was to be kept
    believed      the likeliest state at each step, given all that was read and done: `nodes` without misread frames
    message       where no plan led to the goal at the end: the sentence that says what is missing
    """

    nodes: tuple[int, ...]
    actions: tuple[int, ...]
    plans: tuple[Plan, ...]
    surprises: tuple[int, ...]
    reached: bool
    stopped: str
    observations: tuple[NDArray[Any], ...] = ()
    believed: tuple[int, ...] = ()
    message: str = ""


class Planner:
    """Reaches goals in an environment through a model's encoder.

    model      a fitted model; anything with `encode(x, h)`
    grounding  which action makes which move
    by         what to plan for, as in `plan_path`
    learn      whether every transition seen is added to `grounding` as a label
    """

    def __init__(self, model: Any, grounding: Grounding, by: By = "shortest", learn: bool = True) -> None:
        check_method("model", model, "encode", "a fitted model")
        check_kind("grounding", grounding, Grounding, "a Grounding")
        check_flag("learn", learn)
        check_by(by)
        self.model, self.grounding, self.by, self.learn = model, grounding, by, learn

    def goal_nodes(self, goal: Any) -> frozenset[int]:
        """The states that a goal means.

        A state's number; a text "h:state" for a model with an encoder for each step, for which a number alone means
        that state at any step; an observation of it, or a pair (h, observation) for such a model; or a set of numbers
        of `grounding.graph`.
        """
        nodes = self.grounding.graph
        if isinstance(goal, (set, frozenset)):
            return check_goals(self.grounding, goal)
        if isinstance(goal, tuple) and len(goal) == 2 and is_whole(goal[0]):
            return self._of_observation(goal[1], int(goal[0]))
        if isinstance(goal, np.ndarray) and goal.ndim:
            return self._of_observation(goal, None)
        if isinstance(goal, str):
            return self._of_text(goal)
        if not is_whole(goal):
            raise InvalidParameterError(
                f'A goal must be a state, a text "h:state", an observation or a set of nodes; {shown(goal)} was given.'
            )
        steps = range(1, len(nodes.sizes) + 1)
        found = {nodes.node(int(goal), h) for h in steps} - {-1}
        if not found:
            raise InvalidDataError(
                f"The goal must be one of the states 0..{max(nodes.sizes) - 1} of the model; {shown(goal)} was given."
            )
        return frozenset(found)

    def _of_text(self, goal: str) -> frozenset[int]:
        parts = goal.split(":")
        if not (len(parts) in (1, 2) and all(part.strip().isdecimal() for part in parts)):
            raise InvalidParameterError(
                f'A goal must be a state as "3" or "h:state" as "4:3"; {shown(goal)} was given.'
            )
        if len(parts) == 1 or self.grounding.graph.shared:
            return self.goal_nodes(int(parts[-1]))
        h, state = (int(part) for part in parts)
        H = self.grounding.graph.H
        node = self.grounding.graph.node(state, h) if H is not None and 1 <= h <= H else -1
        if node < 0:
            raise InvalidDataError(f"The goal must be a state of the model at a step from 1 to {H}; {goal!r} is none.")
        return frozenset({node})

    def _of_observation(self, x: Any, h: int | None) -> frozenset[int]:
        nodes = self.grounding.graph
        if h is None and not nodes.shared:
            raise InvalidParameterError(
                "A goal given as an observation must come with its step, (h, observation): this model has an encoder "
                "for each step; none was given."
            )
        node = nodes.node(int(self.model.encode(np.asarray(x)[None], h)[0]), h)
        if node < 0:
            raise InvalidDataError(
                "The goal must be an observation of a state that the videos show; the model names none for this one; "
                "choose another."
            )
        return frozenset({node})

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
        reader = Reader(env, self.model, self.grounding)
        episode = _Course(self, goals, reader, _most_steps(self.grounding, max_steps), keep)
        out = episode.run(seed)
        warn_of_violations(self.grounding)
        return out


def _most_steps(grounding: Grounding, max_steps: int | None) -> int:
    H = grounding.graph.H
    most = PATIENCE * grounding.graph.n if H is None else H - 1
    return most if max_steps is None else max_steps if H is None else min(max_steps, most)


def warn_of_violations(grounding: Grounding) -> None:
    """One warning for each grounding where the world does not seem to be what it was said to be."""
    if not grounding.warned and grounding.violations:
        grounding.warned = True
        warnings.warn(" ".join(grounding.violations), AssumptionWarning, stacklevel=3)


class _Course:
    """One episode while it is under way."""

    def __init__(self, planner: Planner, goals: frozenset[int], reader: Reader, most: int, keep: bool) -> None:
        self.grounding, self.by, self.learn = planner.grounding, planner.by, planner.learn
        self.goals, self.reader, self.most, self.keep = goals, reader, most, keep
        self.nodes: list[int] = []
        self.believed: list[int] = []
        self.actions: list[int] = []
        self.plans: list[Plan] = []
        self.surprises: list[int] = []
        self.seen: list[NDArray[Any]] = []
        self.message, self.too_late = "", False
        self.ahead: list[tuple[int, int]] = []  # of the plan: each action, and where it should lead

    def run(self, seed: int | None) -> Episode:
        self._note(self.reader.reset(seed))
        while True:
            if self.reader.believed in self.goals:
                return self._end("reached")
            if len(self.actions) >= self.most:
                return self._end("time is up")
            if self.reader.over:
                return self._end("episode ended")
            action = self._choose()
            if action is None:
                return self._end("time is up" if self.too_late else "not reachable")
            self._note(self.reader.step(action, self.learn))
            self.actions.append(action)

    def _note(self, x: Any) -> None:
        """What was read; the plan goes on only if it is where the plan leads."""
        self.nodes.append(self.reader.node)
        self.believed.append(self.reader.believed)
        planned = self.ahead.pop(0)[1] if self.ahead else None
        if planned is not None and planned != self.reader.node:
            self.surprises.append(len(self.nodes))
        if planned != self.reader.believed:
            self.ahead = []
        if self.keep:
            self.seen.append(np.array(x))

    def _choose(self) -> int | None:
        """The next action of the plan, or of a new one; where there is none, what to try; None to give up.

        A plan starts where one most likely is; if no way leads on from there, where one may be as well.
        """
        if self.ahead:
            return self.ahead[0][0]
        likely = self.reader.likely()
        if not likely:  # the model names no state here: any action may lead to one that it names
            return len(self.actions) % self.grounding.n_actions
        for here in likely:
            nearest = self._follow(here, self.goals) if here not in self.goals else None
            if nearest == here:
                return self.grounding.next_trial(here)
            if nearest is not None:
                self._follow(here, {nearest})
            if self.ahead:
                return self.ahead[0][0]
        return None

    def _follow(self, here: int, goals: Collection[int]) -> int | None:
        """Make a plan; where there is none yet, return the nearest state that can be reached, if the videos lead on."""
        try:
            plan = plan_path(self.grounding, here, goals, by=self.by, horizon=self._left())
        except UnreachableGoal as error:
            if here == self.reader.believed:
                self.message, self.too_late = str(error), error.too_far
            return error.nearest
        if goals == self.goals:
            self.message = ""
        self.plans.append(plan)
        self.ahead = list(zip(plan.actions, plan.nodes[1:]))
        return None

    def _left(self) -> int:
        return self.most - len(self.actions)

    def _end(self, why: str) -> Episode:
        return Episode(
            tuple(self.nodes),
            tuple(self.actions),
            tuple(self.plans),
            tuple(self.surprises),
            why == "reached",
            why,
            tuple(self.seen),
            tuple(self.believed),
            "" if why == "reached" else self.message,
        )
