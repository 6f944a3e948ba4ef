"""Every command that writes: a line of it that takes seconds, what it reads, and what it leaves behind.

Which commands write is read from the command line itself: those with an option of `WRITTEN`. A command with such an
option and without a line in `COMMANDS` is a fault of its own, so that a new one is disturbed as soon as it is there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from campaign.commands import COMMANDS as ALL
from campaign.commands import arguments_of
from craftrl.data import TrajectoryDataset

__all__ = ["COMMANDS", "ON_RAY", "PATIENCE", "Command", "Stage", "contents", "finish", "start", "unlisted"]

ROOT = Path(__file__).parents[1]
PATIENCE = 600.0  # seconds for one command on a busy machine
WRITTEN = ("--out", "--sheet", "--store", "--grounding", "--models")  # options that name what is written


@dataclass(frozen=True)
class Command:
    """words    what follows `craftrl`; `{out}` stands before the name of whatever is written
    target   the name that is written
    reads    inputs of `Stage` that it needs
    goes_on  whether a part of the target may lie there, since the same command goes on from it
    """

    words: str
    target: str
    reads: tuple[str, ...] = ()
    goes_on: bool = False

    def line(self, out: str = "") -> list[str]:
        return self.words.format(out=out).split()

    @property
    def replaces(self) -> bool:
        """Whether it takes --force, and then replaces what is there."""
        name = self.words.split()[0]
        return name != "reproduce" and "--force" in arguments_of(name)


BITS = "collect --world bits --horizon 5 --features 12 --n 400"
PIXELS = "--world pixels --size 2 --walkers 0 --horizon 3"
NETWORK = "fit frames --oracle network --epochs 1"
COMMANDS: dict[str, Command] = {
    "collect": Command(f"{BITS} --out {{out}}new", "new"),
    "collect, shards": Command(f"{BITS} --out {{out}}new", "new"),
    "import": Command("import one two --out {out}new", "new", ("one", "two")),
    "inspect": Command("inspect frames --sheet {out}new.png", "new.png", ("frames",)),
    "fit": Command("fit data --out {out}new", "new", ("data",)),
    "fit, shards": Command("fit shards --out {out}new", "new", ("shards",)),
    "fit, recordings": Command("fit one two --store {out}store --out {out}new", "new", ("one", "two")),
    "fit, network": Command(f"{NETWORK} --out {{out}}new", "new", ("frames",)),
    "encode": Command("encode model data --out {out}new.npz", "new.npz", ("model", "data")),
    "encode, CSV": Command("encode model data --out {out}new.csv", "new.csv", ("model", "data")),
    "encode, Parquet": Command("encode model data --out {out}new.parquet", "new.parquet", ("model", "data")),
    "render": Command("render network frames --out {out}new.gif", "new.gif", ("network", "frames")),
    "render, video": Command("render network frames --out {out}new.mp4", "new.mp4", ("network", "frames")),
    "actions": Command("actions model data --out {out}new.csv", "new.csv", ("model", "data")),
    "plan": Command(
        f"plan network frames {PIXELS} --goal 0 --explore 30 --out {{out}}new.gif",
        "new.gif",
        ("network", "frames"),
    ),
    "plan, grounding": Command(
        f"plan network frames {PIXELS} --goal 0 --explore 30 --grounding {{out}}new.npz",
        "new.npz",
        ("network", "frames"),
    ),
    "export": Command("export network --out {out}new.onnx", "new.onnx", ("network",)),
    "report": Command("report model data --diagnose 0 --out {out}new.html", "new.html", ("model", "data")),
    "reproduce STUDY": Command(
        "reproduce table1 --seeds 1 --horizon 4 --features 8 --out {out}new", "new", goes_on=True
    ),
    "reproduce STUDY, workers": Command(
        "reproduce table1 --seeds 1 --horizon 4 --features 8 --workers 2 --out {out}new", "new", goes_on=True
    ),
    "reproduce figures": Command("reproduce figures --out {out}new", "new", goes_on=True),
}
ON_RAY = {
    "fit, on Ray": Command("fit shards --ray local --out {out}new", "new", ("shards",)),
}
LEFT_OUT = ("reproduce STUDY --models",)  # of the games, which take minutes: it saves models, as `fit` does


def unlisted() -> list[str]:
    """Commands with an option that writes, and without a line above."""
    return [
        f"{command} {option}"
        for command, option in _writing()
        if not any(name.split(",")[0] == command and option in line.words for name, line in COMMANDS.items())
        and f"{command} {option}" not in LEFT_OUT
    ]


def _writing() -> Iterator[tuple[str, str]]:
    """Every command and each of its options that writes; studies write in one way, and count as one."""
    names = {name.removesuffix(" --ray local") for name in ALL}
    for command in sorted(names):
        study = command.startswith("reproduce") and command != "reproduce figures"
        for option in arguments_of(command):
            if option in WRITTEN:
                yield "reproduce STUDY" if study else command, option


# -- running them --------------------------------------------------------------------------------------------------


class Stage:
    """A folder in which commands find what they read; each input is made once, when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.inputs = folder / "inputs"
        self.inputs.mkdir()

    def copy(self, command: Command, to: Path) -> None:
        """What the command reads, in a new folder."""
        to.mkdir()
        for name in command.reads:
            made = self._recordings / name if name in ("one", "two") else getattr(self, f"_{name.split('.')[0]}")
            shutil.copytree(made, to / name) if made.is_dir() else shutil.copy(made, to / name)

    @cached_property
    def _data(self) -> Path:
        return self._made(f"{BITS} --out data", "data")

    @cached_property
    def _shards(self) -> Path:
        return self._made(f"{BITS} --out shards", "shards")

    @cached_property
    def _frames(self) -> Path:
        return self._made(f"collect {PIXELS} --n 60 --out frames", "frames")

    @cached_property
    def _model(self) -> Path:
        return self._data and self._made("fit data --out model", "model")

    @cached_property
    def _network(self) -> Path:
        return self._frames and self._made(f"{NETWORK} --out network", "network")

    @cached_property
    def _recordings(self) -> Path:
        """The trajectories of each agent as NumPy files in a folder of its own."""
        tau = TrajectoryDataset.open(self._data)
        x = np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
        for k, name in enumerate(("one", "two")):
            (self.inputs / name).mkdir()
            for i, episode in enumerate(x[tau.agent == k][:150]):
                np.save(self.inputs / name / f"{i}.npy", episode)
        return self.inputs

    def _made(self, words: str, name: str) -> Path:
        code, said = finish(start(words.split(), self.inputs))
        if code:
            raise RuntimeError(f"craftrl {words} failed without being disturbed: {said}")
        return self.inputs / name


def start(line: Sequence[str], folder: Path, **given: Any) -> subprocess.Popen[str]:
    """`craftrl LINE` in a folder, in a session of its own; `given` goes to `Popen`."""
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    before = given.pop("before", ())
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


def contents(folder: Path, but: Sequence[str] = ()) -> dict[str, str]:
    """The checksum of every file in a folder, by name; files of ours that say how long something took, without that."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] not in but and path.is_file():
            found[str(name)] = hashlib.sha256(_untimed(path)).hexdigest()
    return found


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
