"""craftrl: which part of a video do its agents control?

Paper: Levine, Stone, Zhang: Offline Action-Free Learning of Ex-BMDPs by Comparing Diverse Datasets (CRAFT)
"""

from craftrl._version import __version__
from craftrl.data import TrajectoryDataset
from craftrl.errors import (
    AssumptionWarning,
    CraftError,
    InvalidDataError,
    InvalidParameterError,
    MissingDependencyError,
    NotFittedError,
)
from craftrl.estimator import CRAFT
from craftrl.oracles import CoordinateOracle, FiniteOracle

__all__ = [
    "CRAFT",
    "AssumptionWarning",
    "CoordinateOracle",
    "CraftError",
    "FiniteOracle",
    "InvalidDataError",
    "InvalidParameterError",
    "MissingDependencyError",
    "NotFittedError",
    "TrajectoryDataset",
    "__version__",
]
