"""What must hold between the parts of a loaded model, checked before anybody uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl.core.craft import Bounds
from craftrl.core.encoders import CoordinateEncoder, FeatureEncoder, ValueEncoder
from craftrl.core.trace import Trace
from craftrl.estimators.base import ByStep
from craftrl.estimators.loaded_values import Altered
from craftrl.oracles.classifier import ClassifierEncoder

__all__ = ["check_loaded"]


def check_loaded(model: Any) -> None:
    """Raise `Altered` where sizes and ranges do not go together."""
    encoders, shape = getattr(model, "encoders_", None), getattr(model, "obs_shape_", None)
    if not isinstance(encoders, ByStep) or len(encoders) < 2 or not all(map(callable, encoders)):
        raise Altered("encoders_ must hold one encoder for each of two steps or more")
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and size > 0 for size in shape):
        raise Altered(f"obs_shape_ must be positive integers, and is {shape}")
    _check_parts(model)
    n_states = _checked_counts(model, len(encoders))
    _check_labels(model, len(encoders))
    for h, encoder in enumerate(encoders, start=1):
        _check_encoder(encoder, shape, n_states[h - 1], h)


def _check_parts(model: Any) -> None:
    """What `diagnose` and `summary` of a CRAFT model read is there, and is of its kind."""
    if type(model).__name__ != "CRAFT":
        return
    kinds = {"bounds_": Bounds, "trace_": Trace, "choices_": tuple, "agents_": tuple, "n_states_": ByStep}
    for name, kind in kinds.items():
        if not isinstance(getattr(model, name, None), kind):
            raise Altered(f"{name} must be a {kind.__name__}, and is {getattr(model, name, None)!r:.40}")
    described = getattr(model, "data_", {"fingerprint": ""})  # models of earlier versions have none
    if not (isinstance(described, dict) and isinstance(described.get("fingerprint"), str)):
        raise Altered(f"data_ must describe the data fitted, and is {described!r:.40}")
    if not (getattr(model, "f_", None) is None or callable(model.f_)):
        raise Altered(f"f_ must be a function of trajectories, and is {model.f_!r:.40}")
    if getattr(model, "oracle_", None) is None:
        raise Altered("oracle_ is missing")
    counts = described.get("trajectories")  # where labels stayed with shards, this alone says how many there are
    if not hasattr(model, "labels_") and not (isinstance(counts, list) and all(isinstance(n, int) for n in counts)):
        raise Altered("labels_ is missing")


def _checked_counts(model: Any, H: int) -> list[int]:
    """How many states there may be at each step, 0 where that is not known."""
    if not hasattr(model, "n_states_"):
        return [0] * H
    n_states = list(model.n_states_)
    if len(n_states) != H or not all(isinstance(n, int) and n >= 0 for n in n_states):
        raise Altered(f"n_states_ must give a number for each of {H} steps, and is {n_states}")
    return [max(n, getattr(model, "n_states_total_", 0)) for n in n_states]


def _check_labels(model: Any, H: int) -> None:
    if not hasattr(model, "labels_"):
        return
    labels = np.asarray(model.labels_)
    if labels.ndim != 2 or labels.shape[1] != H or labels.dtype.kind != "i" or labels.min(initial=-1) < -1:
        raise Altered(f"labels_ must be states of trajectories at {H} steps, and has shape {labels.shape}")
    unseen = np.asarray(getattr(getattr(model, "f_", None), "unseen", ()))
    if unseen.size and not (unseen.dtype.kind == "i" and unseen.min() >= 0 and unseen.max() < len(labels)):
        raise Altered(f"f_ must name trajectories below {len(labels)} that it did not learn from")


def _check_encoder(encoder: Any, obs_shape: tuple[int, ...], n_states: int, h: int) -> None:
    size = int(np.prod(obs_shape))
    if isinstance(encoder, CoordinateEncoder) and not (
        isinstance(encoder.feature, int) and 0 <= encoder.feature < size
    ):
        raise Altered(f"the encoder of h = {h} reads entry {encoder.feature} of observations with {size}")
    if isinstance(encoder, ValueEncoder):
        top, state_of = max(n_states, np.size(encoder.state_of)), np.asarray(encoder.state_of)
        if state_of.ndim != 1 or not state_of.size or state_of.min() < 0 or state_of.max() >= top:
            raise Altered(f"the encoder of h = {h} must name states below {top}, and names {state_of.tolist()}")
    if isinstance(encoder, (FeatureEncoder, ClassifierEncoder)):
        try:
            encoder(np.zeros((1, *obs_shape)))
        except Exception as error:
            raise Altered(f"the encoder of h = {h} does not take observations of shape {obs_shape}") from error
