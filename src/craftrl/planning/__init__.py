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
    from craftrl.planning.curves import Curve
    from craftrl.planning.exploring import Exploration, explore
    from craftrl.planning.grounding import Grounding
    from craftrl.planning.imitation import Imitator, agent_scores, better_agent, read_policy
    from craftrl.planning.moves import Moves
    from craftrl.planning.nodes import Nodes
    from craftrl.planning.paths import Plan, UnreachableGoal, distances, plan_path
    from craftrl.planning.tabular import TabularQ
    from craftrl.planning.tasks import ReachState, success_rate

__all__ = [
    "Curve",
    "Episode",
    "Exploration",
    "Grounding",
    "Imitator",
    "Moves",
    "Nodes",
    "Plan",
    "Planner",
    "ReachState",
    "TabularQ",
    "UnreachableGoal",
    "agent_scores",
    "better_agent",
    "distances",
    "explore",
    "plan_path",
    "read_policy",
    "success_rate",
]

WHERE = {
    "Curve": "curves",
    "Episode": "acting",
    "Exploration": "exploring",
    "Grounding": "grounding",
    "Imitator": "imitation",
    "Moves": "moves",
    "Nodes": "nodes",
    "Plan": "paths",
    "Planner": "acting",
    "ReachState": "tasks",
    "TabularQ": "tabular",
    "UnreachableGoal": "paths",
    "agent_scores": "imitation",
    "better_agent": "imitation",
    "distances": "paths",
    "explore": "exploring",
    "plan_path": "paths",
    "read_policy": "imitation",
    "success_rate": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'craftrl.planning' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.planning.{WHERE[name]}"), name)
