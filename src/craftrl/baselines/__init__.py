"""What CRAFT is compared with, all with the same `fit` and `encode`.

The paper's own baselines count. Today's learners from video (`TrainedBaseline`) train a network with an objective of
their own, then make states of its features by k-means, with the true number of states given, which CRAFT has to
find; they need torch and are imported when they are first used. All but `ACState` are action-free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from craftrl.baselines.draft import DRAFT, RecursiveDRAFT
from craftrl.baselines.observation import PairedObservation, SingleObservation
from craftrl.errors import require

if TYPE_CHECKING:
    from craftrl.baselines.latent_action import LatentAction
    from craftrl.baselines.objectives import (
        ACState,
        Autoencoder,
        ForwardPrediction,
        PairedFrames,
        SingleFrame,
        TemporalContrastive,
    )
    from craftrl.baselines.trained import TrainedBaseline

__all__ = [
    "DRAFT",
    "ACState",
    "Autoencoder",
    "ForwardPrediction",
    "LatentAction",
    "PairedFrames",
    "PairedObservation",
    "RecursiveDRAFT",
    "SingleFrame",
    "SingleObservation",
    "TemporalContrastive",
    "TrainedBaseline",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'craftrl.baselines' has no attribute {name!r}")
    require("torch", "neural")
    home = {"TrainedBaseline": "trained", "LatentAction": "latent_action"}.get(name, "objectives")
    return getattr(import_module(f"craftrl.baselines.{home}"), name)
