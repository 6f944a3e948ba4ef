"""Worlds: Ex-BMDPs with their policies, collection and a Gymnasium shell."""

from craftrl.envs.bits import BitsExBMDP
from craftrl.envs.collection import Collection, GroundTruth, collect
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.policies import AdaptivePolicy, HistoryPolicy, MarkovPolicy, Policy, SwitchingPolicy

__all__ = [
    "AdaptivePolicy",
    "BitsExBMDP",
    "Collection",
    "ExBMDP",
    "GroundTruth",
    "HistoryPolicy",
    "MarkovPolicy",
    "Policy",
    "SwitchingPolicy",
    "collect",
]
