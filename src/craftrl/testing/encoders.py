"""What an encoder must do, and what its class declares that it can do beside encoding."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import Encoder, FeatureEncoder
from craftrl.core.saved import Savable
from craftrl.oracles.base import Oracle
from craftrl.testing.claims import about, must, must_answer

__all__ = ["can_be_pickled", "check_encoder"]


@about("The states of an encoder")
def check_encoder(encoder: Encoder, x: NDArray[Any], n_states: int, oracle: Oracle) -> None:
    """Shape and range of its states, and whatever its class declares."""
    name = f"The encoder ({type(encoder).__name__})"
    states = must_answer(lambda: encoder(x), f"{name} must encode observations of shape {x.shape}")
    must(
        isinstance(states, np.ndarray) and states.shape == (len(x),) and states.dtype.kind in "iu",
        f"{name} must return an integer array with one state for each of {len(x)} observations; it returns "
        f"{getattr(states, 'dtype', type(states).__name__)} of shape {np.shape(states)}.",
    )
    must(
        states.min(initial=0) >= 0 and states.max(initial=0) < max(n_states, 1),
        f"{name} must return states in 0..{max(n_states, 1) - 1}; it returns {states.min()}..{states.max()}.",
    )
    nothing = must_answer(lambda: encoder(x[:0]), f"{name} must encode an empty batch")
    must(np.shape(nothing) == (0,), f"{name} must return no state for no observation; got {np.shape(nothing)}.")
    _check_features(encoder, x, states, name)
    _check_copies(encoder, x, states, oracle, name)


def _check_features(encoder: Encoder, x: NDArray[Any], states: NDArray[Any], name: str) -> None:
    if not isinstance(encoder, FeatureEncoder):
        return
    z = encoder.features(x)
    must(
        z.ndim == 2 and len(z) == len(x),
        f"{name} is a FeatureEncoder, and its features must have shape ({len(x)}, dim); they have {z.shape}.",
    )
    must(
        np.array_equal(encoder.of_features(z), states),
        f"{name} is a FeatureEncoder, and of_features(features(x)) must be what it says of x; it is not.",
    )
    must(encoder.trunk is encoder.trunk, f"{name} must name one trunk; it makes a new one each time it is asked.")


def _check_copies(encoder: Encoder, x: NDArray[Any], states: NDArray[Any], oracle: Oracle, name: str) -> None:
    if isinstance(encoder, Savable):
        again = must_answer(
            lambda: _restored(encoder, oracle), f"{name} is Savable and must be restored from its parts"
        )
        must(np.array_equal(again(x), states), f"{name} must say the same after saved and restored; it does not.")
    if can_be_pickled(oracle):
        data = must_answer(lambda: pickle.dumps(encoder), f"{name} must be pickled, as its oracle can be")
        again = pickle.loads(data)
        must(np.array_equal(again(x), states), f"{name} must say the same after a pickle round trip; it does not.")


def _restored(value: Any, given: Oracle) -> Any:
    """The value made again from its parts, all the way down."""
    if not isinstance(value, Savable) or isinstance(value, Oracle):
        return value
    return type(value).restored({name: _restored(part, given) for name, part in value.saved().items()}, given)


def can_be_pickled(value: Any) -> bool:
    """Whether pickle takes it: not where it holds functions without a name of their own."""
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True
