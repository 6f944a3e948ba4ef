"""Commands that are killed at a random moment and given again, and equal commands that run at once.

What must hold: a kill leaves the target whole or not there; the same command given again ends with the result of one
that was never disturbed; nothing stays behind. Of two equal commands at once, one succeeds, and the other one does too
or says in one sentence (exit code 2) that the target is there.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import craftrl
from craftrl.data import TrajectoryDataset

__all__ = ["COMMANDS", "Command", "disturb", "table"]

ROOT = Path(__file__).parents[1]
PATIENCE = 600.0  # seconds for one command on a busy machine


@dataclass(frozen=True)
class Command:
    """A command that writes `target`; `before` are commands that make what it reads."""

    words: str
    target: str
    before: tuple[str, ...] = ()


COLLECT = "collect --world bits --horizon 5 --features 12 --n 400 --out data.h5"
FIT = "fit data.h5 --out model"
COMMANDS: dict[str, Command] = {
    "collect": Command(COLLECT, "data.h5"),
    "import": Command("import one two --out imported.h5", "imported.h5", (COLLECT,)),
    "fit": Command(FIT, "model", (COLLECT,)),
    "encode": Command("encode model data.h5 --out states.npz", "states.npz", (COLLECT, FIT)),
    "report": Command("report model data.h5 --diagnose 0 --out report.html", "report.html", (COLLECT, FIT)),
    "reproduce": Command("reproduce table1 --seeds 1 --horizon 4 --features 8 --out sweep", "sweep"),
}


def disturb(names: Sequence[str], rounds: int, seed: int = 0) -> list[dict[str, Any]]:
    """For every command: `rounds` kills, each at a random moment, and as many pairs at once."""
    found = []
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            whole, seconds = _undisturbed(COMMANDS[name], Path(place) / "whole")
            rng = random.Random(f"{seed} {name}")
            for i in range(rounds):
                moment = rng.random() * seconds
                for kind, disturbed in (("kill", _killed), ("pair", _paired)):
                    folder = Path(place) / f"{kind}{i}"
                    shutil.copytree(Path(place) / "inputs", folder)
                    fault = disturbed(COMMANDS[name], folder, moment) or _differs(COMMANDS[name], folder, whole)
                    outcome = "fault" if fault else "fine"
                    found.append({"command": name, "kind": kind, "moment": moment, "outcome": outcome, "said": fault})
                    shutil.rmtree(folder)
    return found


def _undisturbed(command: Command, folder: Path) -> tuple[str, float]:
    """The result of the command, and how long it takes; what it reads is kept in `inputs` beside the folder."""
    folder.mkdir()
    for words in command.before:
        _finish(_start(words, folder))
    if "one two" in command.words:
        _split(folder)
    shutil.copytree(folder, folder.parent / "inputs")
    begun = time.monotonic()
    code, said = _finish(_start(command.words, folder))
    if code:
        raise RuntimeError(f"craftrl {command.words} failed without being disturbed: {said}")
    return _digest(folder / command.target), time.monotonic() - begun


def _killed(command: Command, folder: Path, moment: float) -> str:
    """Kill it at that moment, look at what is there, and give it again."""
    process = _start(command.words, folder)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    _finish(process)
    if (folder / command.target).exists() and command.target != "sweep":
        return ""  # it was done, or its last move was: either way the target must be whole
    code, said = _finish(_start(command.words, folder))
    return f"given again, it ended with {code}: {said}" if code else ""


def _paired(command: Command, folder: Path, moment: float) -> str:
    """Two at once, the second a little later."""
    first = _start(command.words, folder)
    time.sleep(moment / 4)
    ends = [_finish(process) for process in (first, _start(command.words, folder))]
    foreign = [said for code, said in ends if code not in (0, 2) or "Traceback" in said]
    if foreign:
        return foreign[0]
    return "" if any(code == 0 for code, _ in ends) else f"both failed: {ends[0][1]}"


def _differs(command: Command, folder: Path, whole: str) -> str:
    try:
        if _digest(folder / command.target) != whole:
            return "the result differs"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    left = [path.name for path in folder.iterdir() if path.name.endswith(".tmp") and command.target != path.name]
    return "" if not left else f"left behind: {', '.join(left)}"


def _start(words: str, folder: Path) -> subprocess.Popen[str]:
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-m", "craftrl", *words.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said[-300:]


def _split(folder: Path) -> None:
    """The trajectories of each agent as NumPy files in a folder of its own."""
    tau = TrajectoryDataset.open(folder / "data.h5")
    x = np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    for k, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        for i, episode in enumerate(x[tau.agent == k][:150]):
            np.save(folder / name / f"{i}.npy", episode)


def _digest(path: Path) -> str:
    """What a user reads from it; files that hold times are compared without them."""
    if path.suffix == ".h5":
        tau = TrajectoryDataset.open(path)
        parts = [tau.agent.tobytes(), *(tau.at(h).tobytes() for h in range(1, tau.H + 1))]
    elif path.suffix == ".npz":
        parts = [array.tobytes() for array in np.load(path).values()]
    elif path.name == "model":
        model = craftrl.load(path)
        parts = [model.labels_.tobytes(), repr(list(model.n_states_)).encode(), repr(model.bounds_).encode()]
    elif path.name == "sweep":
        parts = [(path / "table.json").read_bytes()]
    else:
        parts = [path.read_bytes()]
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def table(found: Sequence[dict[str, Any]]) -> str:
    """One line per command: kills and pairs, and how many of them went wrong."""
    counts = Counter((case["command"], case["kind"], case["outcome"] == "fault") for case in found)
    lines = ["| command | kills | faults | pairs at once | faults |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(case["command"] for case in found):
        cells = [n for kind in ("kill", "pair") for n in (_of(counts, name, kind), counts[name, kind, True])]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _of(counts: Counter[Any], name: str, kind: str) -> int:
    return counts[name, kind, True] + counts[name, kind, False]
