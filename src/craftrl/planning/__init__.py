"""Acting with what was learned from videos: which moves there are, which action makes each, and the way to a goal.

A *state* is one that a fitted model reads off an observation. A *move* is a pair state -> successor that the videos
show. A *label* is a transition whose action is known; a few of them *ground* the moves, that is, tell which action
makes each. A *plan* is a path of grounded moves to a goal, and a *surprise* is a next state other than the planned one.

Nothing is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.planning.acting import Episode, Planner
    from craftrl.planning.exploring import Exploration, explore
    from craftrl.planning.grounding import Grounding
    from craftrl.planning.moves import Moves
    from craftrl.planning.nodes import Nodes
    from craftrl.planning.paths import Plan, UnreachableGoal, distances, plan_path

__all__ = [
    "Episode",
    "Exploration",
    "Grounding",
    "Moves",
    "Nodes",
    "Plan",
    "Planner",
    "UnreachableGoal",
    "distances",
    "explore",
    "plan_path",
]

WHERE = {
    "Episode": "acting",
    "Exploration": "exploring",
    "Grounding": "grounding",
    "Moves": "moves",
    "Nodes": "nodes",
    "Plan": "paths",
    "Planner": "acting",
    "UnreachableGoal": "paths",
    "distances": "paths",
    "explore": "exploring",
    "plan_path": "paths",
}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'craftrl.planning' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.planning.{WHERE[name]}"), name)
