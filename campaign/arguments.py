"""Odd arguments: every parameter of every public callable, and every option of every command, given odd values.

What must come is an answer or one of our errors. The parameters are read from the code, so that a new one is covered
as soon as it is there; a public callable without a recipe is a fault of its own.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from campaign.bench import Bench
from campaign.calls import public_calls
from campaign.commands import COMMANDS, options_of, run_command
from campaign.odd import ODD, ODD_ADDRESSES, ODD_PATHS, ODD_TEXTS, OwnError, make_odd_paths
from campaign.processes import Case, answers, table
from craftrl.errors import CraftError

__all__ = [
    "FAULTS",
    "argument_cases",
    "command_cases",
    "run_case",
    "some",
    "starts_ray",
    "summary",
    "try_arguments",
]

FAULTS = ("foreign", "nonsense", "no recipe", "hang", "crash")
COLUMNS = ("fine", "refused", "own", *FAULTS)
PATIENCE = 20.0  # seconds for one case
RAY_PATIENCE = 300.0  # where a Ray may be started first, perhaps on a busy machine


def argument_cases() -> list[Case]:
    """Every parameter of every public callable with every odd value, and each callable once as its recipe says."""
    cases: list[Case] = []
    for call in public_calls().values():
        part = call.name.rsplit(".", 2 if call.method else 1)[0]
        if call.missing:
            said = f"no value for {', '.join(call.missing)} in campaign/recipes"
            cases.append({"part": part, "call": call.name, "outcome": "no recipe", "said": said})
            continue
        cases.append({"part": part, "call": call.name, "parameter": None, "odd": None})
        for name in call.parameters:
            odd = [*ODD, *(ODD_PATHS if name in call.paths else ODD_ADDRESSES if name == "address" else ())]
            cases += [{"part": part, "call": call.name, "parameter": name, "odd": value} for value in odd]
    return cases


def command_cases() -> list[Case]:
    """Every option and argument of every command with every odd text."""
    return [
        {"part": f"craftrl {command}", "call": command, "parameter": option, "odd": odd}
        for command in COMMANDS
        for option in (None, *options_of(command))
        for odd in (ODD_TEXTS if option else (None,))
    ]


def try_arguments(cases: Sequence[Case], workers: int = 2, patience: float = PATIENCE) -> list[Case]:
    """Run cases, each in a process that may crash, or hang for `patience` seconds."""
    known = [case for case in cases if "outcome" in case]
    asked = [case for case in cases if "outcome" not in case]
    return known + answers("arguments", asked, workers, lambda case: RAY_PATIENCE if starts_ray(case) else patience)


def starts_ray(case: Case) -> bool:
    """Whether the call that it changes runs on a Ray of its own."""
    return any(name in case["call"] for name in ("RayExecutor", "on_ray", "--backend ray"))


def some(cases: Sequence[Case], n: int, seed: int) -> list[Case]:
    """n of the cases, drawn with a seed; in their order, which keeps calls of a kind together."""
    chosen = random.Random(seed).sample(range(len(cases)), min(n, len(cases)))
    return [cases[i] for i in sorted(chosen)]


def summary(cases: Sequence[Case]) -> str:
    """One line per part of the library."""
    return table(cases, "part", COLUMNS)


def run_case(case: Case, folder: Path) -> Case:
    """One call with one odd value."""
    bench = _bench(folder)
    os.chdir(bench.folder)
    try:
        if case["part"].startswith("craftrl "):
            return run_command(case, bench)
        return _called(case, bench)
    finally:
        os.chdir(bench.folder)
        make_odd_paths(bench.folder)


@cache
def _bench(folder: Path) -> Bench:
    place = folder / f"bench{os.getpid()}"
    place.mkdir()
    make_odd_paths(place)
    return Bench(place)


def _called(case: Case, bench: Bench) -> Case:
    """fine: a result; refused: one of our errors; own: the error of a function that the caller gave; foreign: any
    other error; nonsense: NaN where the working call has none."""
    call, name = public_calls()[case["call"]], case["parameter"]
    odd = {} if name is None else {name: _odd(case["odd"])}
    try:
        result = call.run(bench, **odd)
    except OwnError:
        return {"outcome": "own", "said": ""}
    except CraftError as error:
        outcome = "foreign" if name is None else "refused"  # the recipe itself must work
        return {"outcome": outcome, "said": str(error)[:300]}
    except BaseException as error:
        return {"outcome": "foreign", "said": f"{type(error).__name__}: {error}"[:300]}
    if _has_nan(result) and not (name is None or _has_nan(call.run(bench))):
        return {"outcome": "nonsense", "said": repr(result)[:300]}
    return {"outcome": "fine", "said": repr(result)[:100]}


def _odd(name: str) -> Any:
    texts = ODD_PATHS | ODD_ADDRESSES
    return texts[name] if name in texts else ODD[name]()


def _has_nan(result: Any) -> bool:
    return isinstance(result, (float, np.floating, np.ndarray)) and bool(
        np.asarray(result).dtype.kind == "f" and np.isnan(result).any()
    )
