"""A model is one file: its arrays are the tensors of a safetensors file, all else is JSON in the file's header.

The JSON says which learner it is, its parameters and what it learned, and begins with a SHA-256 of the whole file, in
which 64 zeros stand for the checksum itself. A model consists of plain values, arrays, `Savable`s and scikit-learn
estimators, which skops writes without pickle. A file names classes of this package, and types that skops, `KNOWN` or
the caller vouch for, so that loading runs no code of the file. What no file can hold, functions and networks of the
user's own, is passed to `load` as the oracle fitted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes
from sklearn.base import BaseEstimator

from craftrl._version import __version__
from craftrl.arguments import check_flag, quoted
from craftrl.core.saved import Savable
from craftrl.data import urls
from craftrl.data.files import check_new
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError, require
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles.base import Oracle

Kind = TypeVar("Kind")

FORMAT_VERSION = 1
METADATA = "craftrl"  # the key of the JSON in the header
NO_CHECKSUM = "0" * 64
SEQUENCES: dict[str, Any] = {"by_step": ByStep, "tuple": tuple, "list": list}
# Where the classes are that a file may name. The last ones need torch, and are imported if no other has the name.
MODULES = ("craftrl.estimators.craft", "craftrl.paper.baselines", "craftrl.oracles.network")
# Parts of scikit-learn's own classifiers that skops does not vouch for. They are numbers, and no code.
KNOWN = (
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)


def save_model(model: Learner, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a fitted learner to a file, whole or not at all; see `Learner.save`."""
    where = check_model_path(path, overwrite)
    for part in (model, *model.encoders_):  # what could not encode when it is loaded is not saved in the first place
        if not (isinstance(part, (Learner, Savable)) and _is_ours(part)):
            raise InvalidParameterError(
                f"A model can be saved if it and its encoders are of kinds that files can hold; {type(part).__name__} "
                "is none; save its encoders yourself, with pickle."
            )
    writer = _Writer()
    content = {
        "sha256": NO_CHECKSUM,
        "format_version": FORMAT_VERSION,
        "craftrl": __version__,
        "model": type(model).__name__,
        "parameters": {name: writer.plain(value) for name, value in model.get_params(deep=False).items()},
        "learned": {name: writer.plain(value) for name, value in vars(model).items() if name.endswith("_")},
        "objects": writer.objects,
    }
    data = tensor_bytes(writer.tensors, {METADATA: json.dumps(content)})
    data = data.replace(NO_CHECKSUM.encode(), hashlib.sha256(data).hexdigest().encode(), 1)
    urls.write_bytes(where, data, "model")


def load(path: str | os.PathLike[str], *, oracle: Oracle | None = None, trusted: Sequence[str] = ()) -> Any:
    """A fitted model from a file that `save` wrote.

    oracle   the oracle that it was fitted with, needed only where that holds code of yours: functions in a
             `FiniteOracle`, a trunk in a `NeuralOracle`
    trusted  names of further types that a scikit-learn classifier of yours is made of, if loading asks for them
    """
    if not (oracle is None or isinstance(oracle, Oracle)):
        raise InvalidParameterError(f"oracle must be the oracle that was fitted, or None; {quoted(oracle)} was given.")
    if not (isinstance(trusted, (list, tuple, set)) and all(isinstance(name, str) for name in trusted)):
        raise InvalidParameterError(f"trusted must be a list of names of types; {quoted(trusted)} was given.")
    where = urls.source("The model", path)
    data, content = _read(where)
    if content.get("format_version") != FORMAT_VERSION:
        raise InvalidDataError(
            f"{where} was saved by craftrl {content.get('craftrl')} in format {content.get('format_version')}; this is "
            f"craftrl {__version__}, which reads format {FORMAT_VERSION}; install a newer one."
        )
    try:
        checksum = content["sha256"]
        if hashlib.sha256(data.replace(checksum.encode(), NO_CHECKSUM.encode(), 1)).hexdigest() != checksum:
            raise ValueError("its checksum does not fit")
        model = _model(content, _Reader(content["objects"], read_tensors(data), oracle, trusted))
    except CraftError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        raise InvalidDataError(
            f"A model must be as save wrote it; {where} was cut short or altered ({' '.join(reason.split()):.200}); "
            "save or copy it again."
        ) from error
    return model


def check_model_path(path: str | os.PathLike[str], overwrite: bool) -> urls.Place:
    """Where a model is to be put; raises, before any work is done, where it cannot be. Only a model is replaced."""
    where = urls.target("The model", path)
    check_flag("overwrite", overwrite)
    if isinstance(where, Path):
        check_new(where, "model", replace=True)  # neither a link nor a folder
    if urls.exists(where):
        try:
            _read(where)
        except InvalidDataError as error:
            raise InvalidParameterError(f"{where} exists and is no model of craftrl; choose another name.") from error
        if not overwrite:
            raise InvalidParameterError(
                f"The model must be a new file; {where} is there already; choose another name, or replace it with "
                "--force (overwrite=True)."
            )
    urls.check_place_writable(where)
    return where


def _read(where: urls.Place) -> tuple[bytes, dict[str, Any]]:
    """All bytes of a file, and the JSON of the model in it, before its checksum was looked at."""
    try:
        if isinstance(where, Path) and where.is_dir():
            raise IsADirectoryError
        data = urls.read_bytes(where)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return data, dict(json.loads(header["__metadata__"][METADATA]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reasons = {"IsADirectoryError": "is a folder", "FileNotFoundError": "is not there"}
        reason = reasons.get(type(error).__name__, "cannot be read, is of another kind, or was cut short or altered")
        raise InvalidDataError(
            f"A model must be a file that save or craftrl fit has written; {where} {reason}; check the name."
        ) from error


class _Writer:
    """Turns values into what JSON can hold. Arrays become tensors, and an object is written once however often it
    occurs, as the trunk that the encoders of all steps share."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.tensors: dict[str, NDArray[Any]] = {}
        self._number: dict[int, tuple[int, Savable]] = {}  # with the object itself, so that no id is used twice

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return {"array": self._tensor(value)}
        if isinstance(value, Savable) and _is_ours(value):
            if id(value) not in self._number:
                parts = {name: self.plain(part) for name, part in value.saved().items()}
                self._number[id(value)] = len(self.objects), value
                self.objects.append({"kind": type(value).__name__, "parts": parts})
            return {"object": self._number[id(value)][0]}
        for name, kind in SEQUENCES.items():
            if isinstance(value, kind):
                return {name: [self.plain(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.plain(name), self.plain(item)] for name, item in value.items()]}
        if isinstance(value, BaseEstimator) and not isinstance(value, Savable):
            return {"estimator": self._tensor(np.frombuffer(_skops_bytes(value), dtype=np.uint8))}
        return {"unsaved": repr(value)[:200]}

    def _tensor(self, array: NDArray[Any]) -> str:
        """Its name; integers take the smallest type that holds them, and are int64 again when they are read."""
        if array.dtype.kind == "i" and array.size:
            array = array.astype(np.min_scalar_type(min(-1, int(array.min()), -1 - int(array.max()))))
        name = str(len(self.tensors))
        self.tensors[name] = np.ascontiguousarray(array)
        return name


@dataclass
class _Reader:
    """The inverse of `_Writer`; any exception means that the file is not what that has written."""

    objects: list[dict[str, Any]]
    tensors: dict[str, NDArray[Any]]
    oracle: Oracle | None
    trusted: Sequence[str]
    made: dict[int, Savable] = field(default_factory=dict)

    def value(self, plain: Any) -> Any:
        if not isinstance(plain, dict):
            return plain
        ((tag, content),) = plain.items()
        if tag == "array":
            array = self.tensors[content]
            return array.astype(np.int64) if array.dtype.kind == "i" else array
        if tag == "object":
            if content not in self.made:
                saved = self.objects[content]
                parts = {name: self.value(part) for name, part in saved["parts"].items()}
                self.made[content] = _class(Savable, saved["kind"]).restored(parts, self.oracle)
            return self.made[content]
        if tag in SEQUENCES:
            return SEQUENCES[tag]([self.value(item) for item in content])
        if tag == "dict":
            return {self.value(name): self.value(item) for name, item in content}
        if tag == "estimator":
            return _estimator(self.tensors[content].tobytes(), self.trusted)
        if tag == "unsaved":
            return Unsaved(str(content))
        raise ValueError(f"there is no value {tag!r}")


def _model(content: dict[str, Any], reader: _Reader) -> Learner:
    """The learner with what it learned; the caller's oracle takes the place of that of which a file holds part."""
    parameters = {name: reader.value(value) for name, value in content["parameters"].items()}
    model = _class(Learner, content["model"])(**parameters)
    for name, value in content["learned"].items():
        if name.startswith("_") or not name.endswith("_"):
            raise ValueError(f"a model learns nothing called {name!r}")
        try:
            setattr(model, name, reader.value(value))
        except InvalidParameterError:
            if name != "f_":  # the log-odds: a model encodes without them too
                raise
            setattr(model, name, Unsaved("log-odds with code of yours"))
    if reader.oracle is not None:
        saved = getattr(model, "oracle_", getattr(model, "oracle", None))
        if isinstance(saved, Oracle) and type(saved) is not type(reader.oracle):
            raise InvalidParameterError(
                f"The oracle given must be the one that was fitted; that was a {type(saved).__name__}, and a "
                f"{type(reader.oracle).__name__} was given."
            )
        for name in {"oracle", "oracle_"} & vars(model).keys():
            setattr(model, name, reader.oracle)
    return model


def _skops_bytes(estimator: BaseEstimator) -> bytes:
    """The estimator, unless it holds what no file could bring back, such as a function without a name."""
    skops = require("skops.io", "classifiers")
    try:
        data: bytes = skops.dumps(estimator)
        if lost := [name for name in skops.get_untrusted_types(data=data) if "<" in name]:
            raise TypeError(f"it holds {', '.join(lost)}, which cannot be imported by name")
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidParameterError(
            f"A classifier can be saved if skops can write it; {type(estimator).__name__} cannot be written ({error}); "
            "define what it is made of at the top of a module."
        ) from error
    return data


def _estimator(data: bytes, trusted: Sequence[str]) -> BaseEstimator:
    """The estimator again, if it is made of known or trusted types."""
    skops = require("skops.io", "classifiers")
    if unknown := sorted(set(skops.get_untrusted_types(data=data)) - {*KNOWN, *trusted}):
        raise InvalidDataError(
            f"A classifier is loaded only if every type in it is known; this one has {', '.join(unknown)}; if you "
            f"trust where it comes from, call craftrl.load(path, trusted={unknown})."
        )
    estimator: BaseEstimator = skops.loads(data, trusted=[*KNOWN, *trusted])
    caches = [name for name in estimator.get_params() if name.split("__")[-1] == "memory"]
    return estimator.set_params(**dict.fromkeys(caches))  # a pipeline's folder, which is read with pickle


class UnsavedError(InvalidParameterError, AttributeError):
    """Something was asked of a part of a model that no file holds."""


class Unsaved:
    """Stands for something of the user's own that a saved model could not hold."""

    def __init__(self, was: str) -> None:
        self.was = was

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsavedError(
            f"This part of the model was {self.was}, which no file holds; set it again with set_params, or load the "
            "model with oracle=..."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "was":  # as copies and pickles ask for
            raise AttributeError(name)
        return self()

    def __repr__(self) -> str:
        return f"Unsaved({self.was})"


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("craftrl.")


def _class(base: type[Kind], name: str) -> type[Kind]:
    """The class of this package with that name; modules are imported one after the other until it is found."""
    for module in MODULES:
        import_module(module)
        classes = base.__subclasses__()
        for cls in classes:
            if cls.__name__ == name and cls.__module__.startswith("craftrl."):
                return cls
            classes += cls.__subclasses__()  # which are looked at in their turn
    raise ValueError(f"there is no {base.__name__} {name!r}")
