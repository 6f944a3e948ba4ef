"""How a check fails, in one sentence of what must hold and what was found; and what all parameters must hold to."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.base import BaseEstimator, clone

__all__ = ["about", "can_be_pickled", "check_parameters", "must", "refused", "snapshot"]


def must(holds: object, sentence: str) -> None:
    """Fail with this sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


@contextmanager
def about(what: str) -> Iterator[None]:
    """Whatever is raised in here, fail with a sentence on what was asked for. Decorates functions as well."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"{what} must come without an error; {type(error).__name__} was raised: {error}"
        ) from error


@contextmanager
def refused(kind: type[Exception], what: str) -> Iterator[None]:
    """Fail unless an error of this kind is raised in here, with a message."""
    try:
        yield
    except kind as error:
        must(str(error), f"{what} must be refused with a sentence; the {kind.__name__} has no message.")
    except Exception as error:
        raise AssertionError(
            f"{what} must be refused with {kind.__name__}; {type(error).__name__} was raised: {error}"
        ) from error
    else:
        raise AssertionError(f"{what} must be refused with {kind.__name__}; nothing was raised.")


@about("The parameters")
def check_parameters(given: BaseEstimator) -> None:
    """scikit-learn's contract: a constructor that stores what it is given, and nothing else; `clone` and `repr`."""
    name = type(given).__name__
    must(isinstance(given, BaseEstimator), f"{name} must be a scikit-learn BaseEstimator.")
    parameters = given.get_params(deep=False)
    kept = vars(type(given)(**parameters))
    must(
        kept.keys() == parameters.keys() and all(kept[key] is value for key, value in parameters.items()),
        f"{name}.__init__ must store {sorted(parameters)} as given, and nothing else; it stores {sorted(kept)}, or not "
        "as given; leave checks and conversions to later.",
    )
    must(repr(clone(given)) == repr(given), f"clone({name}) must print as the original; it prints {clone(given)!r}.")


def snapshot(value: object) -> object:
    """Everything that parameters consist of, for comparison: nested estimators, weights of modules, arrays, lists."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return [snapshot(item) for item in value]
    if isinstance(value, dict):
        return {key: snapshot(item) for key, item in value.items()}
    if isinstance(value, BaseEstimator):
        return type(value).__name__, snapshot(vars(value))
    if callable(weights := getattr(value, "state_dict", None)):
        return {key: weight.detach().cpu().numpy().tobytes() for key, weight in weights().items()}
    return repr(value)


def can_be_pickled(value: object) -> bool:
    """Whether pickle takes it: not where it holds functions without a name of their own."""
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True
