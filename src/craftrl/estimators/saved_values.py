"""Values as files can hold them: plain ones, arrays, and objects of known kinds.

A model is a tree of plain values, arrays and objects of the classes listed in `KINDS`. Each object is saved once,
however often it occurs, as the trunk that the encoders of all steps share. A file names kinds from that list and
nothing else, so that loading runs no code but ours.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import find_clusters
from craftrl.core.saved import Savable
from craftrl.estimators.base import ByStep
from craftrl.estimators.skops_files import is_foreign_estimator, write_estimator

__all__ = ["ARRAYS", "FUNCTIONS", "KINDS", "ValueWriter", "can_be_saved", "estimator_file"]

ARRAYS = "arrays.safetensors"

# Every class that a model may consist of, by the name that files use for it.
KINDS = {
    name: f"craftrl.{module}:{name}"
    for module, names in {
        "core.craft": "Bounds",
        "core.encoders": "ConstantEncoder CoordinateEncoder",
        "core.findings": "Finding",
        "core.grid": "Grid",
        "core.starts": "StartTest",
        "core.trace": "Cluster Comparison OracleUse StepTrace Trace",
        "core.valleys": "Valleys",
        "oracles.base": "Choice Mixed",
        "oracles.classifier": "ClassifierEncoder ClassifierOracle",
        "oracles.coordinates": "CoordinateOracle",
        "oracles.counting": "FinitePairModel",
        "oracles.functions": "FiniteEncoder FiniteOracle",
        "oracles.network.encoders": "NetworkEncoder",
        "oracles.network.log_odds": "NetworkLogOdds",
        "oracles.network.networks": "Head PairNetwork",
        "oracles.network.trunks": "MapTrunk OwnTrunk VectorTrunk",
        "oracles.network.oracle": "NeuralOracle",
        "oracles.network.settings": "Training",
        "oracles.pair_functions": "ClassifierLogOdds FiniteLogOdds",
        "estimators.matching": "Matching",
        "baselines.trained": "NearestCentre",
    }.items()
    for name in names.split()
}
FUNCTIONS: dict[str, Any] = {"find_clusters": find_clusters}


def can_be_saved(value: Any) -> bool:
    """Whether it is an object of a kind that files name."""
    kind = type(value).__name__
    return isinstance(value, Savable) and KINDS.get(kind) == f"{type(value).__module__}:{kind}"


def estimator_file(number: int) -> str:
    """The name of the file that holds classifier `number`."""
    return f"estimator-{number}.skops"


class ValueWriter:
    """Turns values into plain ones; arrays and foreign estimators go to files of their own."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        self.estimators: list[Any] = []
        self._number: dict[int, int] = {}
        self._held: list[Any] = []  # keeps ids from being used twice

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, Savable):
            return {"object": self._object(value)}
        if isinstance(value, ByStep):
            return {"by_step": [self.plain(item) for item in value]}
        if isinstance(value, tuple):
            return {"tuple": [self.plain(item) for item in value]}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, dict):
            return {"dict": {str(name): self.plain(item) for name, item in value.items()}}
        if is_foreign_estimator(value):
            return {"estimator": self._estimator(value)}
        name = getattr(value, "__name__", "")
        if name in FUNCTIONS and FUNCTIONS[name] is value:
            return {"function": name}
        if isinstance(value, os.PathLike):
            return str(value)
        return {"unsaved": repr(value)}

    def write_files(self, folder: Path) -> None:
        from safetensors.numpy import save

        (folder / ARRAYS).write_bytes(save(self.arrays))
        for i, estimator in enumerate(self.estimators):
            write_estimator(estimator, folder / estimator_file(i))

    def _array(self, value: NDArray[Any]) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(_narrowed(value))
        return name

    def _object(self, value: Savable) -> int:
        if id(value) not in self._number:
            self._held.append(value)
            number = self._number[id(value)] = len(self.objects)
            self.objects.append({})
            if can_be_saved(value):
                parts = {name: self.plain(part) for name, part in value.saved().items()}
                self.objects[number] = {"kind": type(value).__name__, "parts": parts}
            else:
                self.objects[number] = {"unsaved": repr(value)}
        return self._number[id(value)]

    def _estimator(self, value: Any) -> int:
        self.estimators.append(value)
        return len(self.estimators) - 1


def _narrowed(value: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest type that holds them; read back they are the same numbers."""
    if value.dtype.kind != "i" or not value.size:
        return value
    low, high = int(value.min()), int(value.max())
    return value.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high), np.int8))
