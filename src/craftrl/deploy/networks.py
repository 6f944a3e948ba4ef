"""A network's encoder as a PyTorch module, and as an ONNX file, which runs without PyTorch and without this library."""

from __future__ import annotations

import copy
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_target
from craftrl.data.files import check_new, written_whole
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError, require
from craftrl.estimators.base import Learner

torch = require("torch", "neural")

from torch import Tensor, nn  # noqa: E402

from craftrl.oracles.network.encoder import NetworkEncoder  # noqa: E402
from craftrl.oracles.network.frames import to_input  # noqa: E402

INPUT, OUTPUT = "observations", "log_probabilities"
CHECKED = 8  # observations on which the file is compared with the model
CLOSE = 1e-3  # of log-probabilities


class StateModule(nn.Module):
    """Log-probabilities of the states (n, n_states) of observations (n, *obs), as they were recorded.

    Images have channels last, bytes or floats, as in the data fitted; there is nothing to scale or to move. The state
    is the most likely one: `module(x).argmax(-1)` is `model.encode(x)`. Weights are copies: training them leaves the
    model as it is.

    model   fitted with a network
    h       the step whose encoder it is; not needed for a model with `stationary=True`
    """

    def __init__(self, model: Learner, h: int | None = None) -> None:
        super().__init__()
        check_kind("model", model, Learner, "a fitted model")
        model.check_fitted()
        encoder = model.encoder_at(h)
        if not isinstance(encoder, NetworkEncoder):
            where = "" if h is None else f" at h = {h}"
            raise InvalidParameterError(
                f"The encoder must be a network, as NeuralOracle trains them; it is a {type(encoder).__name__}{where}; "
                "call model.encode, which needs no network."
            )
        self.obs_shape = model.obs_shape_
        self.trunk = copy.deepcopy(encoder.trunk)
        self.head = copy.deepcopy(encoder.head)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor) or x.shape[1:] != self.obs_shape:
            given = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InvalidDataError(
                f"Observations must be a tensor of shape (n, {', '.join(map(str, self.obs_shape))}); {given} was given."
            )
        return self.head(self.trunk(to_input(x)).float()).log_softmax(dim=-1)


def export_onnx(
    model: Learner,
    path: str | os.PathLike[str],
    h: int | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the encoder to an ONNX file: `observations` (n, *obs) in, `log_probabilities` (n, n_states) out.

    Observations are bytes or float32, as the data fitted. The file is compared with the model in onnxruntime before it
    gets its name.

    h          the step, for a model with an encoder for each step
    overwrite  whether a file that is there already is replaced
    """
    require("onnx", "onnx")
    check_new(path, "ONNX file", overwrite, (".onnx",))
    module = StateModule(model, h).cpu()
    bytes_ = getattr(model, "data_", {}).get("dtype", "uint8") == "uint8"
    rng, shape = np.random.default_rng(0), (CHECKED, *module.obs_shape)  # observations of no meaning
    x = rng.integers(256, size=shape, dtype=np.uint8) if bytes_ else rng.normal(size=shape).astype(np.float32)
    with written_whole(path, "ONNX file") as temporary:
        _export(module, torch.from_numpy(x), temporary)
        _compare(temporary, module, x, check_target("The ONNX file", path))


def _export(module: StateModule, x: Any, path: Path) -> None:
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # it warns of packages that nothing here needs
    names: Any = {"input_names": [INPUT], "output_names": [OUTPUT]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about itself
            batch = ({0: torch.export.Dim("n", min=1)},)
            program = torch.onnx.export(module, (x,), dynamo=True, dynamic_shapes=batch, verbose=False, **names)
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
