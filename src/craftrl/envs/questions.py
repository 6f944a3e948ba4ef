"""What a world is asked, checked before it answers: a negative step or a state that is not there would index silently.

A subclass of `ExBMDP` says how its world answers. What its public methods are given is checked here, for all worlds
alike and by the name of the parameter, so that nobody who writes a world has to think of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction, signature
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_room_in_memory, check_whole
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidDataError

__all__ = ["check_questions", "checked"]

BETWEEN = ("T", "step")  # what leads from h to h+1, and so has no answer at H
ENTRIES = 8  # bytes of one entry of noise, at most


def check_questions(cls: type) -> None:
    """Have the public methods that a class defines itself check what they are given."""
    for name, method in list(vars(cls).items()):
        abstract = getattr(method, "__isabstractmethod__", False)
        if isfunction(method) and not name.startswith("_") and not abstract:
            setattr(cls, name, checked(method))


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with every parameter checked whose name is known here; arrays may be given as lists."""
    names = tuple(signature(method).parameters)[1:]
    if not CHECKS.keys() & set(names):
        return method

    @wraps(method)
    def asked(world: Any, *args: Any, **named: Any) -> Any:
        given = dict(zip(names, args)) | named
        if len(args) <= len(names):
            for name, check in CHECKS.items():
                if name in given:
                    given[name] = check(world, method.__name__, given)
            return method(world, **given)
        return method(world, *args, **named)

    return asked


def _step(world: Any, method: str, given: dict[str, Any]) -> int:
    check_whole("h", given["h"], 1, world.H - (method in BETWEEN), "h counts from 1")
    return int(given["h"])


def _count(world: Any, method: str, given: dict[str, Any]) -> int:
    n = given["n"]
    check_whole("n", n)
    if n > 1:  # the noise of one tells its shape
        check_room_in_memory(f"The noise of {n} trajectories", ENTRIES * n * prod(world.noise_shape), "take fewer")
    return int(n)


def _generator(world: Any, method: str, given: dict[str, Any]) -> np.random.Generator:
    check_kind("rng", given["rng"], np.random.Generator, "a generator, such as numpy.random.default_rng(0)")
    return given["rng"]


def _states(world: Any, method: str, given: dict[str, Any]) -> NDArray[np.int64]:
    h = given.get("h", 1)
    known = world.n_states(h)
    if h == 1:  # worlds with several starts, broken on purpose, begin in states of the second step
        known = max(known, world.n_states(2))
    return _numbers("s_h", given["s_h"], known, f"the states of h = {h}")


def _actions(world: Any, method: str, given: dict[str, Any]) -> NDArray[np.int64]:
    actions = _numbers("a_h", given["a_h"], world.n_actions, "the actions of this world")
    return _as_many("a_h", actions, given)


def _noise(world: Any, method: str, given: dict[str, Any]) -> NDArray[Any]:
    e_h, shape = as_array("e_h", given["e_h"]), world.noise_shape
    if e_h.ndim == 0 or e_h.shape[1:] != shape:
        raise InvalidDataError(f"e_h must be noise of this world, (n, *{shape}); shape {e_h.shape} was given.")
    high = world.noise_high
    if high is not None and e_h.size and (e_h.dtype.kind not in "biu" or (e_h < 0).any() or (e_h > high).any()):
        raise InvalidDataError(
            f"e_h must be noise of this world, whole numbers from 0 to {np.max(high)} at most; {e_h.dtype} from "
            f"{e_h.min()} to {e_h.max()} was given; take what sample_noise and step_noise give."
        )
    return _as_many("e_h", e_h, given)


def _observations(world: Any, method: str, given: dict[str, Any]) -> NDArray[Any]:
    """Those of n trajectories; `render` takes a single one."""
    x = as_array("x_h", given["x_h"])
    batch = 0 if method == "render" else 1
    shape = ("n",) * batch + tuple(map(str, world.obs_shape))
    if x.ndim < batch or x.shape[batch:] != world.obs_shape:
        raise InvalidDataError(f"x_h must have shape ({', '.join(shape)}); shape {x.shape} was given.")
    if x.size and not (x.min() >= 0 and x.max() <= world.obs_high and (x.astype(world.obs_dtype) == x).all()):
        raise InvalidDataError(
            f"x_h must be of this world, {world.obs_dtype} from 0 to {world.obs_high:g}; {x.dtype} from {x.min()} to "
            f"{x.max()} was given."
        )
    return x.astype(world.obs_dtype, copy=False)


def _numbers(name: str, value: Any, known: int, what: str) -> NDArray[np.int64]:
    labels = as_labels(name, value, 1)
    if labels.size and not (labels.min() >= 0 and labels.max() < known):
        raise InvalidDataError(
            f"{name} must number {what}, 0..{known - 1}; {labels.min()} to {labels.max()} were given."
        )
    return labels


def _as_many(name: str, value: NDArray[Any], given: dict[str, Any]) -> NDArray[Any]:
    """One for each state, where states are given as well."""
    if "s_h" in given and len(value) != len(given["s_h"]):
        raise InvalidDataError(
            f"There must be one of {name} for each of s_h; {len(value)} were given for {len(given['s_h'])}."
        )
    return value


# In this order: some look at what was checked before.
CHECKS: dict[str, Callable[[Any, str, dict[str, Any]], Any]] = {
    "h": _step,
    "n": _count,
    "rng": _generator,
    "s_h": _states,
    "a_h": _actions,
    "e_h": _noise,
    "x_h": _observations,
}
