"""Worlds: the paper's Ex-BMDPs and any Gymnasium environment, with policies, collection and a Gymnasium shell.

Importing this package makes the worlds known to Gymnasium, where that is installed, as `craftrl/Bits-v0` and so
on; the shell itself, `craftrl.envs.gym.ExBMDPEnv`, is imported when it is first used.
"""

from craftrl.envs.bits import BitsExBMDP
from craftrl.envs.catalogue import WORLDS, make_world
from craftrl.envs.collection import Collection, GroundTruth, collect
from craftrl.envs.contrast import contrasting_policies, coverage_policy
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.gymworld import GymWorld
from craftrl.envs.habits import contrasting_habits
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.envs.policies import MarkovPolicy, Policy
from craftrl.envs.recording import record
from craftrl.envs.registration import register_worlds

register_worlds()

__all__ = [
    "WORLDS",
    "BitsExBMDP",
    "Collection",
    "ExBMDP",
    "GroundTruth",
    "GymWorld",
    "MarkovPolicy",
    "PixelsExBMDP",
    "Policy",
    "collect",
    "contrasting_habits",
    "contrasting_policies",
    "coverage_policy",
    "make_world",
    "record",
    "register_worlds",
]
