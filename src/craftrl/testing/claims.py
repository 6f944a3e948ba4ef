"""How a check fails, in one sentence of what must hold and what was found; and what all parameters must hold to."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import joblib
import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, clone

from craftrl.arguments import quoted

LARGEST = float(np.finfo(np.float64).max)  # of what is finite


def must(holds: object, sentence: str) -> None:
    """Fail with this sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def check_array(
    what: str, value: object, shape: tuple[int, ...], kind: DTypeLike, low: float = -LARGEST, high: float = LARGEST
) -> None:
    """An array of this shape and kind of numbers, all of them from `low` to `high`."""
    array, name = np.asarray(value), getattr(kind, "__name__", kind)
    right = isinstance(value, np.ndarray) and array.shape == shape and np.issubdtype(array.dtype, kind)
    right = right and bool(((array >= low) & (array <= high)).all())
    found = f"{array.dtype} of shape {array.shape} ({quoted(value)})"
    must(right, f"{what} must be an array of {name} of shape {shape} in {low:g}..{high:g}; it is {found}.")


@contextmanager
def about(what: str, refused: type[Exception] | None = None) -> Iterator[None]:
    """Whatever is raised in here, fail with a sentence on what was asked for; with `refused`, unless an error of that
    kind is raised, with a message."""
    must_be = "come without an error" if refused is None else f"be refused with {refused.__name__}"
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        if refused is not None and isinstance(error, refused) and str(error):
            return
        raise AssertionError(f"{what} must {must_be}; {type(error).__name__} was raised: {error}") from error
    must(refused is None, f"{what} must {must_be}; nothing was raised.")


def check_parameters(given: BaseEstimator) -> None:
    """scikit-learn's contract: a constructor that stores what it is given, and nothing else; `clone` and `repr`."""
    name = type(given).__name__
    must(isinstance(given, BaseEstimator), f"{name} must be a scikit-learn BaseEstimator.")
    with about("The parameters"):
        parameters, copy = sorted(given.get_params(deep=False)), clone(given)  # which refuses constructors that convert
        must(sorted(vars(copy)) == parameters, f"{name}.__init__ must store {parameters} alone; not {[*vars(copy)]}.")
        must(repr(copy) == repr(given), f"clone({name}) must print as the original; it is {copy!r}.")


def content(given: BaseEstimator) -> dict[str, str]:
    """What its parameters hold, all the way down, for comparison: a hash of each, or its text where it has none."""
    parameters = given.get_params(deep=False)
    return {name: joblib.hash(value) if pickled(value) else repr(value) for name, value in parameters.items()}


def pickled(value: object) -> bytes | None:
    """None where pickle does not take it, such as functions without a name of their own."""
    try:
        return pickle.dumps(value)
    except Exception:
        return None
