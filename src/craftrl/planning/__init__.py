"""Acting with what was learned from videos: which moves there are, which action makes each, and the way to a goal.

A *state* is one that a fitted model reads off an observation. A *move* is a pair state -> successor that the videos
show. A *label* is a transition whose action is known; a few of them *ground* the moves: they say which action makes
each. A *plan* is a path of grounded moves to a goal, and a *surprise* is a next state other than the planned one.
"""

from craftrl.planning.acting import Episode, Exploration, Planner, explore
from craftrl.planning.files import load_grounding, read_labels, save_grounding
from craftrl.planning.graph import StateGraph
from craftrl.planning.grounding import Grounding
from craftrl.planning.latent import LatentActions, find_latent_actions
from craftrl.planning.plan import Plan, UnreachableGoal, plan_path

__all__ = [
    "Episode",
    "Exploration",
    "Grounding",
    "LatentActions",
    "Plan",
    "Planner",
    "StateGraph",
    "UnreachableGoal",
    "explore",
    "find_latent_actions",
    "load_grounding",
    "plan_path",
    "read_labels",
    "save_grounding",
]
