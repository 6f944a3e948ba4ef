"""Worlds: the paper's Ex-BMDPs and any Gymnasium environment, with agents and collection.

Where Gymnasium is installed, importing this package makes `craftrl/Bits-v0` and `craftrl/PixelGrid-v0` known to it.
`craftrl.envs.gym.ExBMDPEnv` makes any Ex-BMDP a Gymnasium environment, `craftrl.envs.overlay.MovingFigures` draws
distractors over images.
"""

from contextlib import suppress

from craftrl.envs.agents import MarkovPolicy, Policy, contrasting_policies
from craftrl.envs.bits import BitsExBMDP
from craftrl.envs.collection import Collection, GroundTruth, collect, record
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.gymworld import GymWorld
from craftrl.envs.pixels import PixelsExBMDP

__all__ = [
    "BitsExBMDP",
    "Collection",
    "ExBMDP",
    "GroundTruth",
    "GymWorld",
    "MarkovPolicy",
    "PixelsExBMDP",
    "Policy",
    "collect",
    "contrasting_policies",
    "record",
]

with suppress(ImportError):
    from gymnasium.envs.registration import register, registry

    for _id, _world in (("craftrl/Bits-v0", BitsExBMDP), ("craftrl/PixelGrid-v0", PixelsExBMDP)):
        if _id not in registry:
            register(_id, entry_point="craftrl.envs.gym:make", kwargs={"world": _world})
