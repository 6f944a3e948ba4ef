"""Acting with what was learned from videos: which moves there are, which action makes each, and the way to a goal.

A *state* is one that a fitted model reads off an observation. A *move* is a pair state -> successor that the videos
show. A *label* is a transition whose action is known; a few of them *ground* the moves, that is, tell which action
makes each. A *plan* is a path of grounded moves to a goal, and a *surprise* is a next state other than the planned one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from craftrl.planning.acting import Episode, Planner
    from craftrl.planning.curves import Curve
    from craftrl.planning.exploring import Exploration, explore
    from craftrl.planning.files import load_grounding, model_fingerprint, read_labels, save_grounding
    from craftrl.planning.graph import StateGraph
    from craftrl.planning.grounding import Grounding
    from craftrl.planning.imitation import Imitator, agent_scores, better_agent, read_policy
    from craftrl.planning.latent import (
        Agreement,
        Condition,
        LatentActions,
        accuracy_by_group,
        agreement,
        find_latent_actions,
    )
    from craftrl.planning.plan import Plan, UnreachableGoal, distances, plan_path
    from craftrl.planning.tabular import TabularQ
    from craftrl.planning.tasks import ReachState, success_rate

__all__ = [
    "Agreement",
    "Condition",
    "Curve",
    "Episode",
    "Exploration",
    "Grounding",
    "Imitator",
    "LatentActions",
    "Plan",
    "Planner",
    "ReachState",
    "StateGraph",
    "TabularQ",
    "UnreachableGoal",
    "accuracy_by_group",
    "agent_scores",
    "agreement",
    "better_agent",
    "distances",
    "explore",
    "find_latent_actions",
    "load_grounding",
    "model_fingerprint",
    "plan_path",
    "read_labels",
    "read_policy",
    "save_grounding",
    "success_rate",
]

WHERE = {
    "Agreement": "latent",
    "Condition": "latent",
    "Curve": "curves",
    "Episode": "acting",
    "Exploration": "exploring",
    "Grounding": "grounding",
    "Imitator": "imitation",
    "LatentActions": "latent",
    "Plan": "plan",
    "Planner": "acting",
    "ReachState": "tasks",
    "StateGraph": "graph",
    "TabularQ": "tabular",
    "UnreachableGoal": "plan",
    "accuracy_by_group": "latent",
    "agent_scores": "imitation",
    "agreement": "latent",
    "better_agent": "imitation",
    "distances": "plan",
    "explore": "exploring",
    "find_latent_actions": "latent",
    "load_grounding": "files",
    "model_fingerprint": "files",
    "plan_path": "plan",
    "read_labels": "files",
    "read_policy": "imitation",
    "save_grounding": "files",
    "success_rate": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'craftrl.planning' has no attribute {name!r}")
    return getattr(import_module(f"craftrl.planning.{WHERE[name]}"), name)
