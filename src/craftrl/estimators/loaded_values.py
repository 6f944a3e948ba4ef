"""Values read from a model's files: the inverse of `saved_values`, for files that may have been altered."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError, require
from craftrl.estimators.base import ByStep
from craftrl.estimators.saved_values import ARRAYS, FUNCTIONS, KINDS, estimator_file
from craftrl.estimators.skops_files import read_estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from craftrl.oracles.base import Oracle

__all__ = ["Altered", "Unsaved", "ValueReader"]


class Altered(ValueError):
    """What a folder holds is not what `save` writes; the message says what is wrong."""


class UnsavedError(InvalidParameterError, AttributeError):
    """Something was asked of a part of a model that no file holds."""


class Unsaved:
    """Stands for something of the user's own that a saved model could not hold."""

    def __init__(self, was: str) -> None:
        self.was = was

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("_") or name == "was" else self._error()

    def _error(self) -> UnsavedError:
        return UnsavedError(
            f"This part of the model was {self.was}, which no file holds; set it again with set_params, or load the "
            "model with oracle=..."
        )

    def __repr__(self) -> str:
        return f"Unsaved({self.was})"


class ValueReader:
    """The inverse of `ValueWriter`; raises `Altered` where the files are not what it wrote.

    given    the oracle that the caller passed, for what no file holds
    trusted  names of further types that classifiers may consist of
    """

    def __init__(self, folder: Path, objects: Any, given: Oracle | None, trusted: Sequence[str]) -> None:
        self.folder = folder
        self.objects = objects
        self.given = given
        self.trusted = trusted
        self.arrays = _read_arrays(folder / ARRAYS)
        self._made: dict[int, Any] = {}
        self._readers = {
            "array": self._array,
            "object": self._object,
            "by_step": lambda content: ByStep([self.value(item) for item in content]),
            "tuple": lambda content: tuple(self.value(item) for item in content),
            "dict": lambda content: {name: self.value(item) for name, item in content.items()},
            "estimator": lambda content: read_estimator(folder / estimator_file(int(content)), trusted),
            "function": lambda content: _entry(FUNCTIONS, content, "function"),
            "unsaved": lambda content: Unsaved(str(content)),
        }

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        if len(plain) != 1:
            raise Altered(f"a value must have one tag, and {sorted(plain)} were found")
        ((tag, content),) = plain.items()
        return _entry(self._readers, tag, "tag")(content)

    def _array(self, name: str) -> NDArray[Any]:
        """Integers are widened again: sums of small types would overflow."""
        array = _entry(self.arrays, name, "array")
        return array.astype(np.int64) if array.dtype.kind == "i" else array

    def _object(self, number: int) -> Any:
        if number not in self._made:
            if not (isinstance(number, int) and 0 <= number < len(self.objects)):
                raise Altered(f"there is no object number {number}")
            saved = self.objects[number]
            if "unsaved" in saved:
                self._made[number] = Unsaved(str(saved["unsaved"]))
            else:
                self._made[number] = self._restored(saved["kind"], saved["parts"])
        return self._made[number]

    def _restored(self, kind: str, parts: dict[str, Any]) -> Any:
        module, name = _entry(KINDS, kind, "kind of object").split(":")
        if ".network" in module or module.endswith("trained"):
            require("torch", "neural")
        cls = getattr(import_module(module), name)
        return cls.restored({part: self.value(value) for part, value in parts.items()}, self.given)


def _entry(known: dict[str, Any], name: Any, what: str) -> Any:
    if not isinstance(name, str) or name not in known:
        raise Altered(f"there is no {what} {name!r}")
    return known[name]


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.is_file():
        raise Altered(f"{path.name} is missing")
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise Altered(f"{path.name} is cut short or damaged") from error
