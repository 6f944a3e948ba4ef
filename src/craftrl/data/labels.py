"""Numbers and labels that callers give in arrays, checked where they enter the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import quoted
from craftrl.errors import InvalidDataError


def plain_array(value: Any) -> NDArray[Any] | None:
    """What a caller gives as an array; None where NumPy makes none of it, or parts of it are masked."""
    try:
        return None if np.ma.is_masked(value) else np.asarray(value)
    except (ValueError, TypeError, RuntimeError, OverflowError):  # rows of unequal length, tensors with gradients, ...
        return None


def as_array(name: str, value: Any, kinds: str = "biuf") -> NDArray[Any]:
    """A value as an array of numbers of these NumPy kinds, none of them masked, NaN or infinite."""
    array = plain_array(value)
    if array is None or array.dtype.kind not in kinds or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        what = "finite numbers" if "f" in kinds else "whole numbers"
        given = quoted(value) if array is None else f"{quoted(value)}, of dtype {array.dtype},"
        raise InvalidDataError(f"{name} must be {what} in an array; {given} was given.")
    return array


def as_labels(name: str, value: Any, axes: int | None = None) -> NDArray[np.int64]:
    """Labels: integers, of which those below 0 are unknown; with so many axes."""
    array = np.asarray(value) if isinstance(value, (list, tuple)) and not len(value) else as_array(name, value, "biu")
    if axes is not None and array.ndim != axes:
        wanted = "(n,)" if axes == 1 else "(n, H)"
        raise InvalidDataError(f"{name} must have shape {wanted}; shape {array.shape} was given.")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise InvalidDataError(f"{name} must lie below 2**63; {array.max()} was given; number them from 0.")
    return array.astype(np.int64)


def as_labels_by_step(labels: Any, states: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Learned labels and true states, both (n, H)."""
    learned, true = as_labels("labels", labels, 2), as_labels("states", states, 2)
    if learned.shape != true.shape:
        raise InvalidDataError(
            f"There must be one true state per label; labels of shape {learned.shape} and states of shape "
            f"{true.shape} were given."
        )
    return learned, true
