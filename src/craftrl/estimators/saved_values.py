"""Values as files can hold them: plain ones, arrays, and objects of known kinds.

A model is a tree of plain values, arrays and objects of the classes listed in `KINDS`. Each object is saved once,
however often it occurs, as the trunk that the encoders of all steps share. A file names kinds from that list and
nothing else, so that loading runs no code but ours.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import find_clusters
from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError, require
from craftrl.estimators.base import ByStep
from craftrl.estimators.skops_files import is_foreign_estimator, read_estimator, write_estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from craftrl.oracles.base import Oracle

__all__ = ["KINDS", "Unsaved", "ValueReader", "ValueWriter"]

ARRAYS = "arrays.safetensors"

# Every class that a model may consist of, by the name that files use for it.
KINDS = {
    name: f"craftrl.{module}:{name}"
    for module, names in {
        "core.craft": "Bounds",
        "core.encoders": "ConstantEncoder CoordinateEncoder",
        "core.grid": "Grid",
        "core.trace": "Cluster Comparison OracleUse StepTrace Trace",
        "core.valleys": "Valleys",
        "oracles.base": "Choice Mixed",
        "oracles.classifier": "ClassifierEncoder ClassifierOracle",
        "oracles.coordinates": "CoordinateOracle",
        "oracles.counting": "FinitePairModel",
        "oracles.functions": "FiniteEncoder FiniteOracle",
        "oracles.network.heads": "NetworkEncoder",
        "oracles.network.networks": "ConvTrunk Head OwnTrunk VectorTrunk",
        "oracles.network.oracle": "NeuralOracle",
        "oracles.network.training": "Training",
        "estimators.matching": "Matching",
        "baselines.trained": "NearestCentre",
    }.items()
    for name in names.split()
}
FUNCTIONS = {"find_clusters": find_clusters}


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
            write_estimator(estimator, folder / _estimator_file(i))

    def _array(self, value: NDArray[Any]) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(_narrowed(value))
        return name

    def _object(self, value: Savable) -> int:
        if id(value) not in self._number:
            self._held.append(value)
            number = self._number[id(value)] = len(self.objects)
            self.objects.append({})
            parts = {name: self.plain(part) for name, part in value.saved().items()}
            kind = type(value).__name__
            if KINDS.get(kind) != f"{type(value).__module__}:{kind}":
                self.objects[number] = {"unsaved": repr(value)}
            else:
                self.objects[number] = {"kind": kind, "parts": parts}
        return self._number[id(value)]

    def _estimator(self, value: Any) -> int:
        self.estimators.append(value)
        return len(self.estimators) - 1


class ValueReader:
    """The inverse of `ValueWriter`."""

    def __init__(self, folder: Path, objects: list[Any], oracle: Oracle | None, trusted: Sequence[str]) -> None:
        from safetensors.numpy import load_file

        self.folder = folder
        self.objects = objects
        self.oracle = oracle
        self.trusted = trusted
        self.arrays = load_file(folder / ARRAYS)
        self._made: dict[int, Any] = {}

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ((tag, content),) = plain.items()
        if tag == "array":
            return self.arrays[content]
        if tag == "object":
            return self._object(content)
        if tag == "by_step":
            return ByStep([self.value(item) for item in content])
        if tag == "tuple":
            return tuple(self.value(item) for item in content)
        if tag == "dict":
            return {name: self.value(item) for name, item in content.items()}
        if tag == "estimator":
            return read_estimator(self.folder / _estimator_file(int(content)), self.trusted)
        if tag == "function":
            return FUNCTIONS[content]
        if tag == "unsaved":
            return Unsaved(str(content))
        raise ValueError(f"unknown tag {tag!r}")

    def _object(self, number: int) -> Any:
        if number not in self._made:
            saved = self.objects[number]
            if "unsaved" in saved:
                self._made[number] = Unsaved(str(saved["unsaved"]))
            else:
                self._made[number] = self._restored(saved["kind"], saved["parts"])
        return self._made[number]

    def _restored(self, kind: str, parts: dict[str, Any]) -> Any:
        module, name = KINDS[kind].split(":")
        if ".network" in module or module.endswith("trained"):
            require("torch", "neural")
        cls = getattr(import_module(module), name)
        return cls.restored({part: self.value(value) for part, value in parts.items()}, self.oracle)


class Unsaved:
    """Stands for something of the user's own that a saved model could not hold."""

    def __init__(self, was: str) -> None:
        self.was = was

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise InvalidParameterError(
            f"This part of the model was {self.was}, which no file holds; set it again with set_params, or load the "
            "model with oracle=..."
        )

    def __repr__(self) -> str:
        return f"Unsaved({self.was})"


def _estimator_file(number: int) -> str:
    return f"estimator-{number}.skops"


def _narrowed(value: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest type that holds them; read back they are the same numbers."""
    if value.dtype.kind != "i" or not value.size:
        return value
    low, high = int(value.min()), int(value.max())
    return value.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high), np.int8))
