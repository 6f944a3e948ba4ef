"""Every public callable, found in the code: functions, classes, and the methods of the objects that users hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from campaign.bench import Bench
from campaign.recipes import HELD, RECORDS, SPECIAL, USES, VALUES

__all__ = ["Call", "public_calls"]

MODULES = (
    "craftrl",
    "craftrl.core.grid",
    "craftrl.oracles",
    "craftrl.data",
    "craftrl.data.places",
    "craftrl.data.ranks",
    "craftrl.data.remote",
    "craftrl.data.truth",
    "craftrl.estimators",
    "craftrl.baselines",
    "craftrl.theory",
    "craftrl.diagnostics",
    "craftrl.distributed",
    "craftrl.distributed.cost",
    "craftrl.distributed.job",
    "craftrl.distributed.forecast",
    "craftrl.distributed.train_on_ray",
    "craftrl.envs",
    "craftrl.importing",
    "craftrl.deploy",
    "craftrl.report",
    "craftrl.planning",
    "craftrl.plots.spectra",
    "craftrl.states.accuracy",
    "craftrl.states.agreement",
    "craftrl.states.graph",
    "craftrl.states.latent_actions",
    "craftrl.states.visits",
)


@dataclass(frozen=True)
class Call:
    """A public callable by its full name.

    parameters  those that can be given, by name; `*args` among them
    path        the names of those that are paths
    missing     parameters that need a value and have no recipe
    """

    name: str
    target: Callable[..., Any]
    parameters: tuple[str, ...]
    paths: frozenset[str]
    missing: tuple[str, ...]
    method: str | None = None

    def run(self, bench: Bench, **odd: Any) -> Any:
        """Call it with the values of its recipe, but for `odd`; what was made is then used."""
        if self.method is None:
            called = self.target
        else:
            called = getattr(HELD[self.name.removesuffix(f".{self.method}")](bench), self.method)
        made, use = _call(called, {**self._recipe(bench), **odd}), USES.get(self.name)
        if use is not None:
            return use(bench, made)
        return list(made) if inspect.isgenerator(made) else made

    def _recipe(self, bench: Bench) -> dict[str, Any]:
        return {name: _value(self.name, name)(bench) for name in self.parameters if _needed(self, name)}


@cache
def public_calls() -> dict[str, Call]:
    """All of them by name; what no caller calls (RECORDS, exceptions, abstract classes) is left out."""
    return {call.name: call for call in _calls()}


def _calls() -> Iterator[Call]:
    seen: set[int] = set()
    for module in map(import_module, MODULES):
        for name in module.__all__:
            thing, full = getattr(module, name), f"{module.__name__}.{name}"
            if id(thing) in seen or not callable(thing) or _is_no_call(thing):
                continue
            seen.add(id(thing))
            if full not in RECORDS:
                yield _of(full, thing)
            if full in HELD:
                yield from _methods(full, thing)


def _is_no_call(thing: Any) -> bool:
    if not isinstance(thing, type):
        return False
    return issubclass(thing, BaseException) or inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)


def _methods(full: str, cls: type) -> Iterator[Call]:
    for name in dir(cls):
        method = getattr(cls, name)
        ours = getattr(method, "__module__", "") or ""
        called = not name.startswith("_") and f"{full}.{name}" not in RECORDS
        if called and inspect.isroutine(method) and ours.startswith("craftrl"):
            yield _of(f"{full}.{name}", method, name)


def _of(full: str, thing: Any, method: str | None = None) -> Call:
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(thing).parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }
    paths = frozenset(name for name, parameter in parameters.items() if "Path" in str(parameter.annotation))
    missing = tuple(
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and (full, name) not in SPECIAL and name not in VALUES
    )
    return Call(full, thing, tuple(parameters), paths, missing, method)


def _needed(call: Call, name: str) -> bool:
    """Whether a call must say something about this parameter: it has no default, or one that does not suit."""
    parameter = inspect.signature(call.target).parameters[name]
    return parameter.default is parameter.empty or (call.name, name) in SPECIAL


def _value(call: str, name: str) -> Callable[[Bench], Any]:
    return SPECIAL.get((call, name)) or VALUES[name]


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
