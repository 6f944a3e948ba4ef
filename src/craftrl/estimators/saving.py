"""Models as folders: `config.json` for structure, `arrays.safetensors` for numbers, and no pickle anywhere.

`config.json` says which learner it is, its parameters and what it learned; `saved_values` turns these into plain values
and back. What no file can hold, functions and networks of the user's own, is passed to `load` as the oracle that
was fitted.
"""

from __future__ import annotations

import json
import os
import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from craftrl._version import __version__
from craftrl.data.files import check_writable, temporary_name, told_plainly
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError
from craftrl.estimators.base import Learner
from craftrl.estimators.saved_values import ValueReader, ValueWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from craftrl.oracles.base import Oracle

__all__ = ["FORMAT_VERSION", "check_target", "load", "save_model"]

FORMAT = "craftrl model"
FORMAT_VERSION = 1
CONFIG = "config.json"

LEARNERS = {
    "CRAFT": "craftrl.estimators.craft",
    **dict.fromkeys(("SingleObservation", "PairedObservation"), "craftrl.baselines.observation"),
    **dict.fromkeys(("DRAFT", "RecursiveDRAFT"), "craftrl.baselines.draft"),
    **dict.fromkeys(
        (
            "ACState",
            "Autoencoder",
            "ForwardPrediction",
            "LatentAction",
            "PairedFrames",
            "SingleFrame",
            "TemporalContrastive",
        ),
        "craftrl.baselines.objectives",
    ),
}
UNSAVED_ATTRIBUTES = {"network_"}  # the objective that a baseline was trained with; its trunk is in the encoders


def save_model(model: Learner, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a fitted learner to a folder, whole or not at all; see `Learner.save`."""
    target = Path(path)
    check_target(target, overwrite)
    if LEARNERS.get(type(model).__name__) != type(model).__module__:
        raise InvalidParameterError(
            f"A model to save must be one of {', '.join(LEARNERS)}; {type(model).__name__} is not; save its encoders "
            "yourself."
        )
    writer = ValueWriter()
    learned = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "craftrl": __version__,
        "model": type(model).__name__,
        "parameters": {name: writer.plain(value) for name, value in model.get_params(deep=False).items()},
        "learned": {name: writer.plain(learned[name]) for name in sorted(learned.keys() - UNSAVED_ATTRIBUTES)},
        "objects": writer.objects,
    }
    temporary = temporary_name(target)
    try:
        with told_plainly(target, "model"):
            temporary.mkdir(parents=True)
            writer.write_files(temporary)
            (temporary / CONFIG).write_text(json.dumps(content, indent=1) + "\n")
            _move_into_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load(path: str | os.PathLike[str], *, oracle: Oracle | None = None, trusted: Sequence[str] = ()) -> Any:
    """A fitted model from a folder that `save` wrote.

    oracle   the oracle that it was fitted with, needed only where that holds code of yours: functions in a
             `FiniteOracle`, a trunk in a `NeuralOracle`
    trusted  names of further types that a scikit-learn classifier of yours is made of, if loading asks for them
    """
    folder = Path(path)
    content = _read_config(folder)
    try:
        reader = ValueReader(folder, content["objects"], oracle, trusted)
        learner = getattr(import_module(LEARNERS[content["model"]]), content["model"])
        parameters = {name: reader.value(value) for name, value in content["parameters"].items()}
        if oracle is not None and "oracle" in parameters:
            parameters["oracle"] = oracle
        model = learner(**parameters)
        for name, value in content["learned"].items():
            setattr(model, name, reader.value(value))
        if oracle is not None and hasattr(model, "oracle_"):
            model.oracle_ = oracle
    except CraftError:
        raise
    except Exception as error:
        raise _damaged(folder, error) from error
    return model


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / CONFIG).read_text())
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        version = content["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidDataError(
            f"A model must be a folder that save or craftrl fit has written; {folder} has no {CONFIG} of one; check "
            "the name."
        ) from error
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise InvalidDataError(
            f"{folder} was saved by craftrl {content.get('craftrl')} in format {version}; this is craftrl "
            f"{__version__}, which reads formats up to {FORMAT_VERSION}; install a newer one."
        )
    return dict(content)


def _damaged(folder: Path, error: Exception) -> InvalidDataError:
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    return InvalidDataError(
        f"The files of a model must be as save wrote them; those in {folder} are incomplete or altered ({reason}); "
        "save or copy the model again."
    )


def check_target(target: Path, overwrite: bool) -> None:
    """Raise, before any work is done, where a model cannot be put; nothing but a model is ever replaced."""
    check_writable(target.parent)
    if not os.path.lexists(target):
        return
    if not (target / CONFIG).is_file() or target.is_symlink():
        raise InvalidParameterError(f"{target} exists and is no model of ours; choose another name.")
    if not overwrite:
        raise InvalidParameterError(
            f"{target} holds a model already; choose another name, or replace it with overwrite=True (--force)."
        )
    _read_config(target)


def _move_into_place(temporary: Path, target: Path) -> None:
    if target.exists():
        old = temporary_name(target)
        os.replace(target, old)
        os.replace(temporary, target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(temporary, target)
