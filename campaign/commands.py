"""The command line with odd texts: every option of every command, read from its parser."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from campaign.bench import Bench
from campaign.odd import ODD_TEXTS
from campaign.processes import Case
from campaign.studies import STUDIES, Enough, a_few_runs, study_words
from craftrl.cli import app, main

__all__ = ["COMMANDS", "arguments_of", "options_of", "run_command"]

Words = dict[str, list[str]]

# A working line for each command: by argument or option, what follows it.
COMMANDS: dict[str, Callable[[Bench], Words]] = {
    "collect": lambda b: {
        "--world": ["bits"],
        "--horizon": ["3"],
        "--features": ["4"],
        "--n": ["5"],
        "--out": [str(b.new())],
    },
    "import": lambda b: {"agents": [*map(str, b.recordings)], "--out": [str(b.new())]},
    "inspect": lambda b: {"data": [str(b.imported)], "--sheet": [str(b.new(".png"))]},
    "fit": lambda b: {
        "data": [str(b.stored)],
        "--oracle": ["coordinates"],
        "--alpha": ["1"],
        "--eta": ["1/5"],
        "--nu": ["1/10"],
        "--out": [str(b.new())],
    },
    "evaluate": lambda b: {"model": [str(b.saved)], "data": [str(b.truth)], "--truth": []},
    "encode": lambda b: {"model": [str(b.saved)], "data": [str(b.stored)], "--out": [str(b.new(".csv"))]},
    "render": lambda b: {
        "model": [str(b.saved_network)],
        "data": [str(b.stored_frames)],
        "--out": [str(b.new(".gif"))],
    },
    "actions": lambda b: {"model": [str(b.saved)], "data": [str(b.stored)], "--out": [str(b.new(".csv"))]},
    "plan": lambda b: {
        "model": [str(b.saved)],
        "data": [str(b.stored)],
        "--labels": [str(b.truth)],
        "--goal": ["2:1"],
        "--world": ["bits"],
        "--horizon": ["4"],
        "--features": ["6"],
    },
    "export": lambda b: {"model": [str(b.saved_network)], "--h": ["2"], "--out": [str(b.new(".onnx"))]},
    "report": lambda b: {
        "model": [str(b.saved)],
        "data": [str(b.stored)],
        "--diagnose": ["0"],
        "--out": [str(b.new(".html"))],
    },
    "fit --ray local": lambda b: {
        "data": [str(b.shards)],
        "--alpha": ["1"],
        "--eta": ["1/5"],
        "--nu": ["1/10"],
        "--out": [str(b.new())],
    },
    "theory assumptions": lambda b: {"--world": ["bits"], "--horizon": ["3"], "--features": ["4"]},
    "theory sample-size": lambda b: {"--world": ["bits"], "--horizon": ["3"], "--features": ["4"]},
    **{f"reproduce {name}": partial(study_words, name) for name in STUDIES},
}


# What means something else where a cluster works; each case that is not refused starts a Ray.
ON_A_CLUSTER = ("data", "--out")


@cache
def arguments_of(command: str) -> dict[str, bool]:
    """The arguments and options of a command, and whether each takes a text."""
    group, *rest = command.removesuffix(" --ray local").split()
    if group == "reproduce":
        parser = argparse.ArgumentParser()
        STUDIES[rest[0]].add_arguments(parser)
        return {(action.option_strings or [action.dest])[0]: action.nargs != 0 for action in parser._actions}
    found = app()[group]
    for name in rest:
        found = found[name]
    shown = [argument for argument in found.assemble_argument_collection() if argument.show]
    return {a.name if a.name[0] == "-" else a.name.lower(): "bool" not in str(a.hint) for a in shown}


@cache
def options_of(command: str) -> tuple[str, ...]:
    """The arguments and options of a command that take a text."""
    on_ray = command.endswith("--ray local")
    texts = [name for name, takes_text in arguments_of(command).items() if takes_text]
    return tuple(name for name in texts if name in ON_A_CLUSTER or not on_ray)


def run_command(case: Case, bench: Bench) -> Case:
    """Run a line in this process: nothing may be raised, and what is refused gets exit code 2 and one sentence, and
    leaves nothing behind."""
    words = COMMANDS[case["call"]](bench)
    if case["parameter"] is not None:
        words[case["parameter"]] = [ODD_TEXTS[case["odd"]]]
    line = case["call"].split()
    for name, values in words.items():
        line += [name, *values] if name.startswith("-") else values
    out, err = _stream(), _stream()
    there = _files(bench.folder)
    code: Any
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), a_few_runs(case["call"].split()[-1]):
            code = main(line)
    except Enough:
        code = 0
    except SystemExit as exit:
        code = exit.code
    except BaseException as error:
        return {"outcome": "foreign", "said": f"{type(error).__name__}: {error}"[:300]}
    said = _text(err)
    if code not in (0, 2) or "Traceback" in said or (code == 2 and not _one_sentence(said)):
        return {"outcome": "foreign", "said": f"exit {code}: {said[-300:]}"}
    if code == 2 and case["parameter"] is None:
        return {"outcome": "foreign", "said": said[-300:]}
    if code == 2 and _files(bench.folder) != there:
        return {"outcome": "foreign", "said": f"left {sorted(_files(bench.folder) ^ there)[:3]} after: {said[-200:]}"}
    return {"outcome": "refused" if code else "fine", "said": said[-300:]}


def _files(folder: Path) -> set[str]:
    """All that lies there."""
    return {str(path) for path in folder.rglob("*")}


def _one_sentence(said: str) -> bool:
    """One line, beside those on stores that are asked again."""
    return len([line for line in said.splitlines() if not re.search(r"; try \d of \d$", line)]) == 1


def _stream() -> io.TextIOWrapper:
    """Standard output as it is in a UTF-8 terminal: text that is no Unicode cannot be written to it."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer: Any = stream.buffer
    return str(buffer.getvalue().decode(errors="replace"))
