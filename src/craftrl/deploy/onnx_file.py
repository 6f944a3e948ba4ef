"""A network's encoder as an ONNX file, which runs without PyTorch and without this library."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_target, shown
from craftrl.data.files import check_new, check_suffix, written_whole
from craftrl.deploy.module import StateModule, torch
from craftrl.errors import CraftError, InvalidParameterError, require
from craftrl.estimators.base import Learner

__all__ = ["check_onnx", "export_onnx"]

INPUT, OUTPUT = "observations", "log_probabilities"
CHECKED = 8  # observations on which the file is compared with the model
CLOSE = 1e-3  # of log-probabilities


def export_onnx(
    model: Learner,
    path: str | os.PathLike[str],
    h: int | None = None,
    dtype: Any = None,
    check: bool = True,
    *,
    overwrite: bool = False,
) -> None:
    """Write the encoder to an ONNX file: `observations` (n, *obs) in, `log_probabilities` (n, n_states) out.

    h          the step, for a model with an encoder for each step
    dtype      of the observations: uint8 or float32; None takes that of the data fitted, with floats as float32
    check      compare the file with the model in onnxruntime before it gets its name
    overwrite  whether a file that is there already is replaced
    """
    require("onnx", "onnx")
    where = check_onnx(path, overwrite)
    check_flag("check", check)
    module = StateModule(model, h).cpu()
    x = _examples(module.obs_shape, _dtype_of(model) if dtype is None else _checked_dtype(dtype))
    with written_whole(path, "ONNX file") as temporary:
        _export(module, torch.from_numpy(x), temporary)
        if check:
            _compare(temporary, module, x, where)


def check_onnx(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Where such a file may be written; asked before the work is done."""
    check_suffix(path, "ONNX file", (".onnx",))
    check_new(path, "ONNX file", overwrite)
    return check_target("The ONNX file", path)


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype(object)
    if found not in (np.uint8, np.float32):
        raise InvalidParameterError(f"dtype must be uint8 or float32; {shown(dtype)} was given.")
    return found


def _dtype_of(model: Learner) -> np.dtype[Any]:
    fitted = getattr(model, "data_", {}).get("dtype", "uint8")
    return np.dtype(np.uint8 if fitted == "uint8" else np.float32)


def _examples(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Observations of no meaning, to trace the network with and to compare on."""
    rng = np.random.default_rng(0)
    if dtype == np.uint8:
        return rng.integers(256, size=(CHECKED, *shape), dtype=np.uint8)
    return rng.normal(size=(CHECKED, *shape)).astype(np.float32)


def _export(module: StateModule, x: Any, path: Path) -> None:
    batch = torch.export.Dim("n", min=1)
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of packages that nothing here needs
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about itself
            program = torch.onnx.export(
                module,
                (x,),
                dynamo=True,
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: batch},),
                verbose=False,
            )
            program.save(str(path), external_data=False)
    finally:
        log.setLevel(level)


def _compare(path: Path, module: StateModule, x: NDArray[Any], named: Path) -> None:
    """The file must say what the module says, for any number of observations."""
    session = require("onnxruntime", "onnx").InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for n in (len(x), 1):
        (found,) = session.run([OUTPUT], {INPUT: x[:n]})
        with torch.no_grad():
            expected = module(torch.from_numpy(x[:n])).numpy()
        if found.shape != expected.shape or np.abs(found - expected).max() > CLOSE:
            raise CraftError(
                f"The ONNX file must give what the model gives; {named} would not, so it was not written; use the "
                "model itself, and report this with the versions of torch and onnxruntime."
            )
