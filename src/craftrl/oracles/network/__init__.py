"""Neural oracles; the only part of the library that imports torch."""

from craftrl.errors import require

require("torch", "neural")

from craftrl.oracles.network.oracle import NeuralOracle  # noqa: E402
from craftrl.oracles.network.settings import Training, TrainingError  # noqa: E402

__all__ = ["NeuralOracle", "Training", "TrainingError"]
