"""A working line of every command, the folder that it runs in, and the command line with odd texts.

A line must give a result, or exit code 2, one sentence and no new file.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from campaign.bench import Bench
from campaign.calls import PATHS, make_odd_paths
from campaign.cases import Case
from craftrl.cli import app, main
from craftrl.cli.reproduce import parsed

__all__ = ["LINES", "TEXTS", "cases", "contents", "finish", "options", "run_case", "stage", "start", "unlisted"]

ROOT = Path(__file__).parents[1]
PATIENCE = 600.0  # seconds for one command on a busy machine
MODEL, NETWORK = "model.safetensors data", "network.safetensors frames"
PIXELS = "--world pixels --size 2 --walkers 0 --horizon 3"
# What follows `craftrl`: positional arguments first. All that is written begins with "new".
LINES: dict[str, str] = {
    "collect": "collect --world bits --horizon 5 --features 12 --n 400 --out new",
    "import": "import one two --out new",
    "inspect": "inspect data --sheet new.png",
    "fit": "fit data --alpha 1 --eta 1/5 --nu 1/10 --out new.safetensors",
    "fit, recordings": "fit one two --store new --out new.safetensors",
    "fit, network": "fit frames --oracle network --epochs 1 --out new.safetensors",
    "evaluate": f"evaluate {MODEL} --truth",
    "encode": f"encode {MODEL} --out new.npz",
    "encode, CSV": f"encode {MODEL} --out new.csv",
    "encode, Parquet": f"encode {MODEL} --out new.parquet",
    "render": f"render {NETWORK} --out new.gif",
    "render, video": f"render {NETWORK} --out new.mp4",
    "actions": f"actions {MODEL} --out new.csv",
    "plan": f"plan {NETWORK} {PIXELS} --goal 0 --explore 30 --out new.gif",
    "plan, grounding": f"plan {NETWORK} {PIXELS} --goal 0 --explore 30 --grounding new.npz",
    "export": "export network.safetensors --out new.onnx",
    "report": f"report {MODEL} --diagnose 0 --out new.html",
    "theory assumptions": "theory assumptions --world bits --horizon 3 --features 4",
    "theory sample-size": "theory sample-size --world bits --horizon 3 --features 4",
    "reproduce table1": "reproduce table1 --seeds 1 --sizes 60 --horizon 4 --features 8 --quiet --out new",
}
WRITTEN = ("--out", "--sheet", "--store", "--grounding")  # options that name what is written
TEXTS: dict[str, str] = {
    **{text: text for text in ("", " ", "x", "\0", "-1", "0", "2", "1.5", "nan", "inf", "1e999", "1/0", "9" * 20, "²")},
    **{text: text for text in ("%s %(x)s", "--", "--nonsense", "127.0.0.1:1", "no-such-host.invalid:6379", ":6379")},
    "5000 digits": "9" * 5000,
    **{name: str(path) for name, path in PATHS.items()},
}


def stage(folder: Path) -> None:
    """What the lines read, in a folder."""
    bench = Bench(folder)
    made = {"data": bench.stored, "frames": bench.stored_frames, "model.safetensors": bench.saved}
    for name, path in {**made, "network.safetensors": bench.saved_network}.items():
        path.rename(folder / name)
    for k, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        for i, episode in enumerate(bench.x[bench.tau.agent == k]):
            np.save(folder / name / f"{i}.npy", episode)


@cache
def options(name: str) -> dict[str, bool]:
    """The arguments and options of a line's command, and whether each takes a text."""
    group, *rest = LINES[name].split()
    if group == "reproduce":
        parser = argparse.ArgumentParser()
        parsed(rest[:1])[0].add_arguments(parser)
        return {action.option_strings[0]: action.nargs != 0 for action in parser._actions}
    command = app()[group][rest[0]] if group == "theory" else app()[group]
    return {a.name: "bool" not in str(a.hint) for a in command.assemble_argument_collection() if a.show}


def unlisted() -> list[str]:
    """Commands, and options that name what is written, that no line has."""
    lines = [line.split() for line in LINES.values()]
    words = {line[0]: [word for other in lines if other[0] == line[0] for word in other] for line in lines}
    missing = [name for name in app() if name[0] != "-" and name not in words]
    return missing + [
        f"{n} {o}" for n in LINES for o in options(n) if o in WRITTEN and o not in words[LINES[n].split()[0]]
    ]


# -- odd texts -----------------------------------------------------------------------------------------------------


def cases() -> list[Case]:
    """Every option and argument of every command with every odd text; each line once as it is."""
    found: list[Case] = []
    for name in (name for name in LINES if "," not in name):
        found.append({"call": name, "parameter": None, "odd": None})
        named = [option for option, text in options(name).items() if text]
        found += [{"call": name, "parameter": option, "odd": odd} for option in named for odd in TEXTS]
    return found


def line_of(case: Case) -> list[str]:
    """The words of a line, with the odd text in the place of what an option or argument has."""
    words, option = LINES[case["call"]].split(), case["parameter"]
    if option is None:
        return words
    if option.startswith("-"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
        return [*words, option, TEXTS[case["odd"]]]
    place = [name for name in options(case["call"]) if not name.startswith("-")].index(option)
    words[place + (2 if words[0] in ("theory", "reproduce") else 1)] = TEXTS[case["odd"]]
    return words


def run_case(case: Case, folder: Path) -> Case:
    """One line in this process."""
    _staged(folder)
    os.chdir(folder)
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    there: set[Path] = set(folder.rglob("*"))
    code: Any
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = main(line_of(case))
    except SystemExit as error:
        code = error.code
    except BaseException as error:
        return {"outcome": "foreign", "said": f"{type(error).__name__}: {error}"[:300]}
    new = set(folder.rglob("*")) - there
    for path in sorted(new, reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    said = streams[1].buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]
    wrong = code not in (0, 2) or "Traceback" in said or (code == 2 and (not one_sentence(said) or bool(new)))
    if wrong or (code and case["parameter"] is None):
        left = f", and left {sorted(map(str, new))[:3]}" if new else ""
        return {"outcome": "foreign", "said": f"exit {code}{left}: {said[-300:]}"}
    return {"outcome": "refused" if code else "fine", "said": said[-300:]}


@cache
def _staged(folder: Path) -> None:
    stage(folder)
    make_odd_paths(folder)


def one_sentence(said: str) -> bool:
    """One line, beside those on stores that are asked again."""
    return len([line for line in said.splitlines() if not re.search(r"; try \d of \d$", line)]) == 1


# -- as processes --------------------------------------------------------------------------------------------------


def start(line: Sequence[str], folder: Path, before: Sequence[str] = (), **given: Any) -> subprocess.Popen[str]:
    """`craftrl LINE` in a folder, in a session of its own; `given` goes to `Popen`."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*before, sys.executable, "-m", "craftrl", *line],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **given.pop("env", {})},
        stdout=given.pop("stdout", subprocess.DEVNULL),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **given,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code, and what it said on standard error."""
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def contents(folder: Path) -> dict[str, str]:
    """The checksum of all that was written in a folder, by name; of models without how long something took."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    new = [path for path in files if path.relative_to(folder).parts[0].lstrip(".").startswith("new")]
    return {str(path.relative_to(folder)): hashlib.sha256(_untimed(path)).hexdigest() for path in new}


def _untimed(path: Path) -> bytes:
    data = path.read_bytes()
    tensors = 8 + int.from_bytes(data[:8], "little")
    try:
        content = json.loads(json.loads(data[8:tensors])["__metadata__"]["craftrl"])
    except (ValueError, KeyError, TypeError):
        return data

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(part) for name, part in value.items() if name not in ("seconds", "sha256")}
        return [without(part) for part in value] if isinstance(value, list) else value

    return json.dumps(without(content)).encode() + data[tensors:]


def clear(folder: Path) -> None:
    """Remove what was written."""
    for path in [path for path in folder.iterdir() if path.name.lstrip(".").startswith("new")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
