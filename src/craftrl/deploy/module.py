"""A network's encoder as a PyTorch module, for whoever trains or plans on top of the states."""

from __future__ import annotations

import copy

from craftrl.arguments import check_kind
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.estimators.base import Learner

torch = require("torch", "neural")

from torch import Tensor, nn  # noqa: E402

from craftrl.oracles.network.encoder import NetworkEncoder  # noqa: E402
from craftrl.oracles.network.frames import to_input  # noqa: E402

__all__ = ["StateModule", "network_of"]


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
        encoder = network_of(model, h)
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


def network_of(model: Learner, h: int | None = None) -> NetworkEncoder:
    """The encoder of a model, which must be a network."""
    check_kind("model", model, Learner, "a fitted model")
    model._check_fitted()
    encoder = model._encoder_at(h)
    if not isinstance(encoder, NetworkEncoder):
        where = "" if h is None else f" at h = {h}"
        raise InvalidParameterError(
            f"The encoder must be a network, as NeuralOracle trains them; it is a {type(encoder).__name__}{where}; "
            "call model.encode, which needs no network."
        )
    return encoder
