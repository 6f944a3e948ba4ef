"""scikit-learn's contract on parameters: stored as given, readable, settable, and never changed by what uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from craftrl.testing.claims import about, must, must_answer

__all__ = ["check_parameters", "check_unchanged", "snapshot"]


@about("Parameters")
def check_parameters(given: Any) -> None:
    """`get_params`, `set_params`, `clone`, `repr`, and a constructor that only stores."""
    name = type(given).__name__
    must(isinstance(given, BaseEstimator), f"{name} must be a scikit-learn BaseEstimator.")
    parameters = must_answer(lambda: given.get_params(deep=False), f"{name}.get_params must work")
    tokens = {key: object() for key in parameters}
    kept = vars(
        must_answer(lambda: type(given)(**tokens), f"{name}.__init__ must take anything, and leave checks to later")
    )
    must(
        kept.keys() == parameters.keys(),
        f"{name}.__init__ must set its parameters {sorted(parameters)} and nothing else; it sets {sorted(kept)}.",
    )
    for key, token in tokens.items():
        must(kept[key] is token, f"{name}.__init__ must store `{key}` as given; it stores something else.")
    fresh = type(given)(**parameters)
    must(fresh.set_params(**parameters) is fresh, f"{name}.set_params must return the object itself.")
    must(repr(fresh).startswith(f"{name}("), f"repr must begin with '{name}('; it is {repr(fresh)[:60]!r}.")
    copy = must_answer(lambda: clone(given), f"clone({name}) must work")
    must(repr(copy) == repr(given), f"clone({name}) must print as the original; it prints {repr(copy)[:100]!r}.")


def snapshot(value: Any) -> Any:
    """Everything that parameters consist of, for comparison: nested estimators, weights of modules, arrays, lists."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (list, tuple)):
        return [snapshot(item) for item in value]
    if isinstance(value, dict):
        return {key: snapshot(item) for key, item in value.items()}
    if isinstance(value, BaseEstimator):
        return type(value).__name__, snapshot(vars(value))
    if callable(getattr(value, "state_dict", None)):
        return {key: weight.detach().cpu().numpy().tobytes() for key, weight in value.state_dict().items()}
    return repr(value)


def check_unchanged(before: dict[str, Any], given: Any, by: str) -> None:
    """Fail where a parameter differs from its `snapshot` of before."""
    for name, value in given.get_params(deep=False).items():
        must(
            snapshot(value) == before[name],
            f"{type(given).__name__}.{by} must change no parameter; it changed `{name}`; work on a clone of it.",
        )
