"""Every public callable, found in the code: functions, classes, and the methods of the objects that users hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_origin

from campaign.bench import Bench
from campaign.recipes import HELD, INNER, OF_WORLD, RECORDS, SPECIAL, USES, VALUES
from craftrl.envs import ExBMDP
from craftrl.estimators.base import Learner

__all__ = ["Call", "public_calls"]

MODULES = (
    "craftrl",
    "craftrl.core.grid",
    "craftrl.oracles",
    "craftrl.data",
    "craftrl.data.ranks",
    "craftrl.estimators",
    "craftrl.paper",
    "craftrl.diagnostics",
    "craftrl.envs",
    "craftrl.envs.gym",
    "craftrl.importing",
    "craftrl.deploy",
    "craftrl.report",
    "craftrl.planning",
    "craftrl.evaluation",
)


@dataclass(frozen=True)
class Call:
    """A public callable by its full name.

    parameters  those that can be given, by name; `*args` among them
    path        the names of those that are paths
    missing     parameters that need a value and have no recipe
    of_world    whether it is a method of a world, which has values of its own
    """

    name: str
    target: Callable[..., Any]
    parameters: tuple[str, ...]
    paths: frozenset[str]
    missing: tuple[str, ...]
    method: str | None = None
    of_world: bool = False

    def run(self, bench: Bench, **odd: Any) -> Any:
        """Call it with the values of its recipe, but for `odd`; what was made is then used."""
        if self.method is None:
            made = self._made(bench, odd)
        else:
            holder = _held(self.name.removesuffix(f".{self.method}"), bench)
            given = self._recipe(bench) if not self.of_world else self._asked(holder)
            made = _call(getattr(holder, self.method), {**given, **odd})
        use = USES.get(self.name)
        if use is not None:
            return use(bench, made)
        return list(made) if inspect.isgenerator(made) else made

    def _made(self, bench: Bench, odd: dict[str, Any]) -> Any:
        return _call(self.target, {**self._recipe(bench), **odd})

    def _asked(self, world: Any) -> dict[str, Any]:
        return {name: _of_world(self.method, name)(world) for name in self.parameters if _needed(self, name)}

    def _recipe(self, bench: Bench) -> dict[str, Any]:
        return {name: _value(self.name, name)(bench) for name in self.parameters if _needed(self, name)}


@cache
def public_calls() -> dict[str, Call]:
    """All of them by name; what no caller calls (RECORDS, exceptions, abstract classes) is left out."""
    return {call.name: call for call in _calls()}


def _calls() -> Iterator[Call]:
    seen: set[int] = set()
    tried: set[Any] = set()  # methods, which classes inherit from one another
    for module in map(import_module, MODULES):
        for name in module.__all__:
            thing, full = getattr(module, name), f"{module.__name__}.{name}"
            if id(thing) in seen or not callable(thing) or _is_no_call(thing):
                continue
            seen.add(id(thing))
            if full not in RECORDS:
                yield _of(full, thing)
            if isinstance(thing, type) and (full in HELD or full not in RECORDS):
                yield from _methods(full, thing, tried)


def _is_no_call(thing: Any) -> bool:
    if not isinstance(thing, type):
        return get_origin(thing) is not None  # the name of a type, such as Callable[[int], int]
    return issubclass(thing, BaseException) or inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)


def _asked_by_collect(name: str, method: Any) -> bool:
    """Methods of worlds that the library calls, once for every step: they take what they are given."""
    return hasattr(ExBMDP, name) or bool({"h", "x_h"} & set(inspect.signature(method).parameters))


def _methods(full: str, cls: type, tried: set[Any]) -> Iterator[Call]:
    """The methods of a class that callers call; where HELD has none of it, without those that a class before it has."""
    for name in dir(cls) if f"{full}.*" not in RECORDS else ():
        method = getattr(cls, name)
        ours = getattr(method, "__module__", "") or ""
        called = not name.startswith("_") and name not in INNER and f"{full}.{name}" not in RECORDS
        function = getattr(method, "__func__", method)
        if (
            called
            and inspect.isroutine(method)
            and ours.startswith("craftrl")
            and (full in HELD or function not in tried)
            and not (issubclass(cls, ExBMDP) and _asked_by_collect(name, method))
        ):
            tried.add(function)
            yield _of(f"{full}.{name}", method, name, issubclass(cls, ExBMDP))


def _held(name: str, bench: Bench) -> Any:
    """An object of this class: what HELD has, or what is built as its recipe says, fitted if it is a learner."""
    if name in HELD:
        return HELD[name](bench)
    made = public_calls()[name]._made(bench, {})
    return USES[name](bench, made) if isinstance(made, Learner) else made


def _of(full: str, thing: Any, method: str | None = None, of_world: bool = False) -> Call:
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(thing).parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }
    paths = frozenset(name for name, parameter in parameters.items() if "Path" in str(parameter.annotation))
    missing = tuple(
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and not (_of_world(method, name) if of_world else _value(full, name))
    )
    return Call(full, thing, tuple(parameters), paths, missing, method, of_world)


def _needed(call: Call, name: str) -> bool:
    """Whether a call must say something about this parameter: it has no default, or one that does not suit."""
    parameter = inspect.signature(call.target).parameters[name]
    return parameter.default is parameter.empty or (call.name, name) in SPECIAL


def _value(call: str, name: str) -> Callable[[Bench], Any] | None:
    return SPECIAL.get((call, name)) or VALUES.get(name)


def _of_world(method: str | None, name: str) -> Callable[[Any], Any] | None:
    return OF_WORLD.get((str(method), name)) or OF_WORLD.get(name)


def _call(target: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call as most callers do, by place where that can be; `*args` is given one value."""
    signature = inspect.signature(target)
    bound = signature.bind_partial()
    for name, value in given.items():
        several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        bound.arguments[name] = (value,) if several else value
    ordered = {name: bound.arguments[name] for name in signature.parameters if name in bound.arguments}
    complete = inspect.BoundArguments(signature, ordered)  # type: ignore[arg-type]
    return target(*complete.args, **complete.kwargs)
