"""The ranges in which the paper's letters mean something, checked once at the border of each lemma.

A letter means the same in every lemma, so its range is looked up by its name.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from craftrl.arguments import check_kind, check_number, is_number, shown
from craftrl.core.grid import Grid, check_alpha, check_eta, check_nu
from craftrl.data.labels import as_array
from craftrl.errors import InvalidParameterError

__all__ = ["check_count", "finite_array", "in_range"]

P = ParamSpec("P")
R = TypeVar("R")
ROUNDING = 1e-12


def in_range(formula: Callable[P, R]) -> Callable[P, R]:
    """A formula that checks every letter it is given, and says so where the numbers are beyond what floats hold."""
    signature = inspect.signature(formula)

    @wraps(formula)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        for name, value in given.items():
            if name in RANGES:
                RANGES[name](name, value)
        try:
            result = formula(*args, **kwargs)
        except (OverflowError, ZeroDivisionError) as error:
            raise _beyond_floats(formula.__name__, given) from error
        if isinstance(result, float) and not math.isfinite(result):
            raise _beyond_floats(formula.__name__, given)
        return result

    return checked


def check_count(name: str, value: float, least: int = 1) -> None:
    """Numbers of samples, of hypotheses, of states, of steps."""
    if not (is_number(value) and least <= value < math.inf and value == math.floor(value)):
        raise InvalidParameterError(
            f"{name} must be a whole number of at least {shown(least)}; {name} = {shown(value)} was given."
        )


def finite_array(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Finite numbers, of which there is at least one."""
    array = as_array(name, value)
    if not array.size:
        raise InvalidParameterError(f"{name} must have at least one entry; shape {array.shape} was given.")
    return array.astype(float)


def _share(name: str, value: float) -> None:
    """epsilon, epsilon_0, ...: a share in (0, 1]."""
    if not (is_number(value) and 0 < value <= 1):
        raise InvalidParameterError(
            f"{name} must lie in (0, 1]; {name} = {shown(value)} was given; it is a share of samples or of errors."
        )


def _failure(name: str, value: float) -> None:
    """delta: a probability of failure in (0, 1)."""
    if not (is_number(value) and 0 < value < 1):
        raise InvalidParameterError(
            f"{name} must lie in (0, 1); {name} = {shown(value)} was given; it is the probability with which the "
            "guarantee may fail, 0.05 for example."
        )


def _part(name: str, value: float) -> None:
    """A share; sums of probabilities may pass 1 by rounding."""
    check_number(name, value, "a number from 0 to 1", lambda v: 0 <= v <= 1 + ROUNDING)


def _alpha(name: str, value: float) -> None:
    """An infinite alpha (no state has two successors) is as good as 1: Line 1 takes no more."""
    if not (is_number(value) and value == math.inf):
        check_alpha(value)


def _grid(name: str, value: Grid) -> None:
    check_kind(name, value, Grid, "a Grid, such as Grid.from_bounds(alpha=1, eta=0.2)")


RANGES: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("epsilon", "epsilon_0", "gap"), _share),
    **dict.fromkeys(("beta", "gamma_A", "gamma_B", "epsilon_bad", "accuracy", "accuracy_prime"), _part),
    **dict.fromkeys(("n", "N", "N_s", "class_size", "size", "h"), check_count),
    **dict.fromkeys(("m", "changed"), lambda name, value: check_count(name, value, least=0)),
    "H": lambda name, value: check_count(name, value, least=2),
    "delta": _failure,
    "alpha": _alpha,
    "eta": lambda name, value: check_eta(value),
    "nu": lambda name, value: check_nu(value),
    "nu_prime": _share,
    "grid": _grid,
}


def _beyond_floats(name: str, given: dict[str, Any]) -> InvalidParameterError:
    letters = ", ".join(f"{letter} = {shown(value)}" for letter, value in given.items())
    return InvalidParameterError(
        f"{name} must stay within what floats hold, about 1e308; {letters} were given; no data is that large: take "
        "less extreme numbers."
    )
