"""What people learn from videos with today, on the same trunk and data: same `fit`, same `encode`.

Each rival trains the trunk with an objective of its own; k-means on the trunk's features then makes states of it,
with the true number of states given, which CRAFT has to find. All but `ACState` are action-free.
"""

from craftrl.errors import require

require("torch", "neural")

from craftrl.rivals.base import Rival  # noqa: E402
from craftrl.rivals.objectives import (  # noqa: E402
    ACState,
    Autoencoder,
    ForwardPrediction,
    LatentAction,
    PairedFrames,
    SingleFrame,
    TemporalContrastive,
)

__all__ = [
    "ACState",
    "Autoencoder",
    "ForwardPrediction",
    "LatentAction",
    "PairedFrames",
    "Rival",
    "SingleFrame",
    "TemporalContrastive",
]
