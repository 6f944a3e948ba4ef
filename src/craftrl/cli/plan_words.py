"""What `craftrl plan` says: plans and episodes as lines of text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from craftrl.errors import AssumptionWarning
from craftrl.planning.acting import Episode
from craftrl.planning.grounding import Grounding
from craftrl.planning.paths import Plan

__all__ = ["PlanWords", "in_commands", "saying_warnings"]

NAMED = 6  # moves that a line names
LONGEST = 24  # moves of an episode that are written out
WHY = {
    "time is up": "there was no step left",
    "episode ended": "the environment ended the episode",
    "not reachable": "no way was left",
}


# What a sentence of the library advises, as one says it on the command line.
COMMANDS = {
    "or call explore": "or let it try (--explore STEPS)",
    "With deterministic=True": "Without --stochastic",
    "pass deterministic=False": "give --stochastic",
}


def in_commands(text: str) -> str:
    """A sentence of the library with options of the command in place of parameters."""
    for python, command in COMMANDS.items():
        text = text.replace(python, command)
    return text


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Assumptions that do not seem to hold are said in a line each, once."""
    said: list[str] = []
    otherwise = warnings.showwarning

    def say(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not issubclass(category, AssumptionWarning):
            otherwise(message, category, *rest, **more)
        elif str(message) not in said:
            said.append(str(message))
            print(f"Warning: {in_commands(str(message))}", flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", AssumptionWarning)
        warnings.showwarning = say
        yield


class PlanWords:
    """Lines about one grounding; `names` are those of the actions, and numbers stand for those without one."""

    def __init__(self, grounding: Grounding, names: Sequence[str] = ()) -> None:
        self.grounding, self.names = grounding, names

    def state(self, node: int) -> str:
        """A state as short as it can be: 3, or 4:3 for state 3 at step 4."""
        if node < 0:
            return "?"
        h, state = self.grounding.nodes.name(node)
        return str(state) if h is None else f"{h}:{state}"

    def action(self, a: int) -> str:
        return self.names[a] if a < len(self.names) else str(a)

    def path(self, nodes: Sequence[int], actions: Sequence[int], surprises: Sequence[int] = ()) -> str:
        """As in 0 -up-> 7 -left-> 2; an exclamation mark after a state that was a surprise."""
        parts = [
            f"-{self.action(a)}-> {self.state(t)}{'!' if h in surprises else ''}"
            for h, (a, t) in enumerate(zip(actions, nodes[1:]), start=2)
        ]
        if len(parts) > LONGEST:
            parts = [*parts[: LONGEST // 2], f"... {len(parts) - LONGEST} more ...", *parts[-(LONGEST // 2) :]]
        return " ".join([f"state {self.state(nodes[0])}", *parts])

    def grounded(self) -> str:
        """How many moves some action is known to make, and which are missing."""
        missing = self.grounding.missing()
        n = len(self.grounding.moves.edges)
        text = f"Grounded: {n - len(missing)} of {_count(n, 'move')} that the videos show, by "
        text += _count(self.grounding.n_labels, "label") + "."
        if not missing:
            return text
        named = ", ".join(f"{self.state(s)} -> {self.state(t)}" for s, t in missing[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        return f"{text}\nNot grounded, since no label shows the action: {named}{more}."

    def plan(self, plan: Plan) -> str:
        """A plan, and how likely it is to succeed as far as labels tell."""
        if not plan.actions:
            return "Plan: nothing to do, this is the goal."
        line = self.path(plan.nodes, plan.actions)
        return f"Plan: {line} ({_count(len(plan), 'move')}, probability {plan.probability:.2f})"

    def episode(self, number: int, episode: Episode) -> str:
        """What happened, and how it ended."""
        steps = _count(len(episode.actions), "step")
        end = f"goal reached in {steps}" if episode.reached else f"goal not reached: {WHY.get(episode.stopped, '')}"
        surprises = f", {_count(len(episode.surprises), 'surprise')} (!)" if episode.surprises else ""
        return f"Episode {number}: {self.path(episode.nodes, episode.actions, episode.surprises)}; {end}{surprises}."

    def outcome(self, episodes: Sequence[Episode], explored: int) -> str:
        """How often the goal was reached, and at what cost."""
        reached = sum(episode.reached for episode in episodes)
        steps = sum(len(episode.actions) for episode in episodes)
        cost = f"{_count(self.grounding.n_labels, 'label')}, {_count(explored + steps, 'environment step')}"
        split = f" ({explored} of them to explore)" if explored else ""
        return f"Goal reached in {reached} of {_count(len(episodes), 'episode')}; used in all: {cost}{split}."


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
