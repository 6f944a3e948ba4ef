"""Commands that are killed or interrupted at a random moment and given again, and equal commands that run at once.

What must hold: a kill (SIGKILL) leaves the target whole or not there; the same command given again ends with the bytes
of one that was never disturbed; nothing stays behind. A command that is interrupted (SIGINT, as Ctrl-C sends it to all
processes of a command) or terminated (SIGTERM) also says so in one sentence, with exit code 130 or 143, and leaves no
parts. Of two equal commands at once, one succeeds, and the other one does too or says in one sentence (exit code 2)
that the target is there.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.writers import COMMANDS, ON_RAY, Command, Stage, contents, finish, start, unlisted

__all__ = ["KINDS", "disturb", "table"]

KINDS = ("kill", "interrupt", "terminate", "pair")
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
# Python ends by the signal itself where an interruption came through an `exec`; to a shell that is 130 as well.
CODES = {"interrupt": (130, -signal.SIGINT), "terminate": (143,)}


@dataclass(frozen=True)
class Whole:
    """A command that was not disturbed: what it leaves in its folder, and how long it takes."""

    left: dict[str, str]
    seconds: float


def disturb(names: Sequence[str], rounds: int, seed: int = 0, kinds: Sequence[str] = KINDS) -> Iterator[dict[str, Any]]:
    """For every command, `rounds` disturbances of each kind, each at a random moment; each as soon as it is over."""
    for name in unlisted():
        said = "it is not in campaign/writers.py"
        yield {"command": name, "kind": "no recipe", "outcome": "fault", "said": said}
    with tempfile.TemporaryDirectory() as place:
        stage = Stage(Path(place))
        for name in names:
            command = {**COMMANDS, **ON_RAY}[name]
            whole = _undisturbed(command, stage, Path(place) / "here")
            rng = random.Random(f"{seed} {name}")
            for _ in range(rounds):
                for kind in kinds:
                    moment = rng.random() * whole.seconds
                    said = _disturbed(kind, command, stage, Path(place) / "here", moment, whole)
                    outcome = "fault" if said else "fine"
                    yield {"command": name, "kind": kind, "moment": moment, "outcome": outcome, "said": said}


def _undisturbed(command: Command, stage: Stage, folder: Path) -> Whole:
    stage.copy(command, folder)
    begun = time.monotonic()
    code, said = finish(start(command.line(), folder))
    if code:
        raise RuntimeError(f"craftrl {' '.join(command.line())} failed without being disturbed: {said[-300:]}")
    whole = Whole(contents(folder), time.monotonic() - begun)
    shutil.rmtree(folder)
    return whole


def _disturbed(kind: str, command: Command, stage: Stage, folder: Path, moment: float, whole: Whole) -> str:
    """What went wrong; "" where nothing did."""
    stage.copy(command, folder)
    try:
        fault = _paired(command, folder, moment) if kind == "pair" else _stopped(kind, command, folder, moment, whole)
        return fault or _differs(folder, whole)
    finally:
        shutil.rmtree(folder)


def _stopped(kind: str, command: Command, folder: Path, moment: float, whole: Whole) -> str:
    """Stop it at that moment, look at what is there, and give it again."""
    before = set(contents(folder))
    process = start(command.line(), folder)
    if kind != "kill":
        _await_handler(process)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        if kind == "terminate":
            process.send_signal(SIGNALS[kind])
        else:
            os.killpg(process.pid, SIGNALS[kind])
    code, said = finish(process)
    if kind != "kill":
        fault = _impolite(kind, code, said, not _differs(folder, whole)) or _half_written(folder, before)
        if fault:
            return fault
    if (folder / command.target).exists() and not command.goes_on:
        return ""  # it was done, or its last move was: either way the target must be whole
    code, said = finish(start(command.line(), folder))
    return f"given again, it ended with {code}: {said[-300:]}" if code else ""


def _await_handler(process: subprocess.Popen[str]) -> None:
    """Until our code answers signals, which Linux shows: what comes before that, Python answers itself."""
    caught = 1 << (signal.SIGTERM - 1)
    status = Path(f"/proc/{process.pid}/status")
    while status.exists() and process.poll() is None:
        mask = next((line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt")), "0")
        if int(mask, 16) & caught:
            return
        time.sleep(0.005)


def _impolite(kind: str, code: int, said: str, done: bool) -> str:
    """One sentence and the exit code of its signal; of a command that is done, Python may end by the signal."""
    sentences = [line for line in said.splitlines() if "nothing is half-written" in line]
    polite = code in CODES[kind] and len(sentences) == 1
    leaving = done and code in (-SIGNALS[kind], *CODES[kind])
    if "Traceback" not in said and (code == 0 or polite or leaving):
        return ""
    return f"exit {code}: {said[-600:]}"


def _half_written(folder: Path, before: set[str]) -> str:
    """Parts under temporary names; what the same command goes on from has a name that stays."""
    new = [name for name in contents(folder) if name not in before]
    parts = [name for name in new if any(piece.endswith(".tmp") for piece in Path(name).parts)]
    return f"half-written: {', '.join(parts)}" if parts else ""


def _paired(command: Command, folder: Path, moment: float) -> str:
    """Two at once, the second a little later."""
    first = start(command.line(), folder)
    time.sleep(moment / 4)
    ends = [finish(process) for process in (first, start(command.line(), folder))]
    foreign = [said for code, said in ends if code not in (0, 2) or "Traceback" in said]
    if foreign:
        return foreign[0][-600:]
    return "" if any(code == 0 for code, _ in ends) else f"both failed: {ends[0][1][-300:]}"


def _differs(folder: Path, whole: Whole) -> str:
    """How what lies there differs from what an undisturbed command leaves, in any byte."""
    now = contents(folder)
    if now == whole.left:
        return ""
    more, less = sorted(now.keys() - whole.left.keys()), sorted(whole.left.keys() - now.keys())
    other = [name for name in now if name in whole.left and now[name] != whole.left[name]]
    words = (("left behind", more), ("missing", less), ("different", other))
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in words if names)


def table(found: Sequence[dict[str, Any]]) -> str:
    """One line per command: how often it was disturbed in each way, and how many of these went wrong."""
    counts = Counter((case["command"], case["kind"], case["outcome"] == "fault") for case in found)
    kinds = [kind for kind in (*KINDS, "no recipe") if any(case["kind"] == kind for case in found)]
    lines = ["| command | " + " | ".join(f"{kind}s | faults" for kind in kinds) + " |"]
    lines.append("|---" * (1 + 2 * len(kinds)) + "|")
    for name in [*dict.fromkeys(case["command"] for case in found), "all"]:
        cells = []
        for kind in kinds:
            bad, fine = (
                sum(n for (c, k, b), n in counts.items() if k == kind and b == fault and name in (c, "all"))
                for fault in (True, False)
            )
            cells += [bad + fine, bad]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
