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
    from craftrl.core.valleys import Valleys
    from craftrl.data import TrajectoryDataset
    from craftrl.diagnostics import diagnose
    from craftrl.estimators.craft import CRAFT
    from craftrl.estimators.sharing import StationaryCRAFT
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
    "StationaryCRAFT",
    "TrajectoryDataset",
    "Valleys",
    "__version__",
    "diagnose",
]

_HOME = {
    "CRAFT": "craftrl.estimators.craft",
    "CoordinateOracle": "craftrl.oracles",
    "FiniteOracle": "craftrl.oracles",
    "StationaryCRAFT": "craftrl.estimators.sharing",
    "TrajectoryDataset": "craftrl.data",
    "Valleys": "craftrl.core.valleys",
    "diagnose": "craftrl.diagnostics",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'craftrl' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
