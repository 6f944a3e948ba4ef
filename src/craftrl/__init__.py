"""craftrl: which part of a video do its agents control?

The names below are imported when they are first used, so that the command line answers at once.

Paper: Levine, Stone, Zhang: Offline Action-Free Learning of Ex-BMDPs by Comparing Diverse Datasets (CRAFT)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from craftrl._version import __version__
from craftrl.errors import (
    AssumptionWarning,
    CraftError,
    InvalidDataError,
    InvalidParameterError,
    MissingDependencyError,
    NotFittedError,
)

if TYPE_CHECKING:
    from craftrl.data import TrajectoryDataset
    from craftrl.estimators import CRAFT, Partition, load
    from craftrl.oracles import ClassifierOracle, CoordinateOracle, FiniteOracle, NeuralOracle, Training

__all__ = [
    "CRAFT",
    "AssumptionWarning",
    "ClassifierOracle",
    "CoordinateOracle",
    "CraftError",
    "FiniteOracle",
    "InvalidDataError",
    "InvalidParameterError",
    "MissingDependencyError",
    "NeuralOracle",
    "NotFittedError",
    "Partition",
    "Training",
    "TrajectoryDataset",
    "__version__",
    "load",
]

_HOME = {
    "CRAFT": "craftrl.estimators",
    "ClassifierOracle": "craftrl.oracles",
    "CoordinateOracle": "craftrl.oracles",
    "FiniteOracle": "craftrl.oracles",
    "NeuralOracle": "craftrl.oracles",
    "Partition": "craftrl.estimators",
    "Training": "craftrl.oracles",
    "TrajectoryDataset": "craftrl.data",
    "load": "craftrl.estimators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'craftrl' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
