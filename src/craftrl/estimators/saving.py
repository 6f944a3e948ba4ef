"""Models as folders: `config.json` for structure, `arrays.safetensors` for numbers, and no pickle anywhere.

`config.json` says which learner it is, its parameters and what it learned; `saved_values` turns these into plain values
and back. What no file can hold, functions and networks of the user's own, is passed to `load` as the oracle that
was fitted. `model_folders` writes the folder, on a disk or in a store, and checks it.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from craftrl._version import __version__
from craftrl.arguments import shown
from craftrl.data.files import check_nothing_else
from craftrl.data.places import Place, source
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError
from craftrl.estimators.base import Learner
from craftrl.estimators.loaded_values import Altered, Unsaved, ValueReader
from craftrl.estimators.model_folders import CONFIG, FORMAT_VERSION, checked_files, model_target, own_name, write_folder
from craftrl.estimators.saved_checks import check_loaded
from craftrl.estimators.saved_values import ValueWriter, can_be_saved
from craftrl.oracles.base import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FORMAT_VERSION", "check_model_folder", "load", "save_model"]

FORMAT = "craftrl model"

LEARNERS = {
    "CRAFT": "craftrl.estimators.craft",
    **dict.fromkeys(("DRAFT", "PairedObservation", "RecursiveDRAFT", "SingleObservation"), "craftrl.paper.baselines"),
}


def save_model(model: Learner, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a fitted learner to a folder, whole or not at all; see `Learner.save`."""
    where = check_model_folder(path, overwrite)
    if LEARNERS.get(type(model).__name__) != type(model).__module__:
        raise InvalidParameterError(
            f"A model to save must be one of {', '.join(LEARNERS)}; {type(model).__name__} is not; save its encoders "
            "yourself."
        )
    _check_encoders(model)
    writer = ValueWriter()
    learned = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "craftrl": __version__,
        "model": type(model).__name__,
        "parameters": {name: writer.plain(value) for name, value in model.get_params(deep=False).items()},
        "learned": {name: writer.plain(learned[name]) for name in sorted(learned)},
        "objects": writer.objects,
    }
    write_folder(where, content, writer.write_files, overwrite)


def load(path: str | os.PathLike[str], *, oracle: Oracle | None = None, trusted: Sequence[str] = ()) -> Any:
    """A fitted model from a folder that `save` wrote.

    oracle   the oracle that it was fitted with, needed only where that holds code of yours: functions in a
             `FiniteOracle`, a trunk in a `NeuralOracle`
    trusted  names of further types that a scikit-learn classifier of yours is made of, if loading asks for them
    """
    if not (oracle is None or isinstance(oracle, Oracle)):
        raise InvalidParameterError(f"oracle must be the oracle that was fitted, or None; {shown(oracle)} was given.")
    types = _as_list(trusted)
    if isinstance(trusted, (str, dict)) or not all(isinstance(name, str) for name in types):
        raise InvalidParameterError(f"trusted must be a list of names of types; {shown(trusted)} was given.")
    folder = source("The model", path)
    content = _read_config(folder)
    try:
        with checked_files(folder, content) as files:
            reader = ValueReader(files, content["objects"], oracle, types)
            model = _model(content, reader, oracle)
        if oracle is not None:
            _give_back(model, oracle)
        check_loaded(model)
    except CraftError:
        raise
    except Altered as error:
        raise _damaged(folder, str(error)) from error
    except KeyError as error:
        raise _damaged(folder, f"{CONFIG} has no {error}") from error
    except Exception as error:
        raise _damaged(folder, f"{type(error).__name__}: {error}".splitlines()[0]) from error
    return model


def _as_list(values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        return [values]


def _model(content: dict[str, Any], reader: ValueReader, oracle: Oracle | None) -> Learner:
    """The learner with its parameters and what it learned."""
    name = content["model"]
    if not isinstance(name, str) or name not in LEARNERS:
        raise Altered(f"there is no model {name!r}")
    parameters = {key: reader.value(value) for key, value in content["parameters"].items()}
    model: Learner = getattr(import_module(LEARNERS[name]), name)(**parameters)
    for key, value in content["learned"].items():
        if key.startswith("_") or not key.endswith("_"):
            raise Altered(f"a model learns nothing called {key!r}")
        setattr(model, key, reader.value(value) if key != "f_" else _log_odds(value, reader, oracle))
    return model


def _log_odds(value: Any, reader: ValueReader, oracle: Oracle | None) -> Any:
    """f_1..f_{H-1}, which may come from another oracle than the encoders do; a model encodes without it too."""
    reader.given = oracle
    try:
        return reader.value(value)
    except InvalidParameterError:
        return Unsaved("log-odds with code of yours")
    finally:
        reader.given = oracle


def _give_back(model: Any, oracle: Oracle) -> None:
    """Put the caller's oracle, or its trunk, where the file could hold only part of it."""
    saved = getattr(model, "oracle_", getattr(model, "oracle", None))
    if isinstance(saved, Oracle) and type(saved) is not type(oracle):
        raise InvalidParameterError(
            f"The oracle given must be the one that was fitted; that was a {type(saved).__name__}, and a "
            f"{type(oracle).__name__} was given."
        )
    if "oracle" in model.get_params(deep=False):
        model.oracle = oracle
    elif isinstance(getattr(model, "trunk", None), Unsaved):
        model.trunk = getattr(oracle, "trunk", None)
    if hasattr(model, "oracle_"):
        model.oracle_ = oracle


def _read_config(folder: Place) -> dict[str, Any]:
    try:
        content = json.loads((folder / CONFIG).read_text())
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        version = content["format_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidDataError(
            f"A model must be a folder that save or craftrl fit has written; {folder} has no {CONFIG} of one; check "
            "the name."
        ) from error
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _damaged(folder, f"format_version is {version!r}")
    if version > FORMAT_VERSION:
        raise InvalidDataError(
            f"{folder} was saved by craftrl {content.get('craftrl')} in format {version}; this is craftrl "
            f"{__version__}, which reads formats up to {FORMAT_VERSION}; install a newer one."
        )
    return dict(content)


def _damaged(folder: Place, reason: str) -> InvalidDataError:
    return InvalidDataError(
        f"The files of a model must be as save wrote them; those in {folder} are incomplete or altered ({reason}); "
        "save or copy the model again."
    )


def _check_encoders(model: Learner) -> None:
    """A model that could not encode when it is loaded is not saved in the first place."""
    for encoder in model.encoders_:
        if not can_be_saved(encoder):
            raise InvalidParameterError(
                f"A model can be saved if all its encoders are of kinds that files can hold; {type(encoder).__name__} "
                "is none; save its encoders yourself, with pickle."
            )


def check_model_folder(path: str | os.PathLike[str], overwrite: bool) -> Place:
    """Where a model is to be put; raises, before any work is done, where it cannot be."""
    where, replaces = model_target(path, overwrite)
    if replaces:
        check_nothing_else(where, own_name(_read_config(where)))
    return where
