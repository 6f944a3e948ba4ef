"""Commands that are killed, interrupted, given twice at once, without room on the disk or in memory.

What must hold: what lies under the target's name is whole or not there, and no parts stay behind but those that the
same command goes on from; the same command given again ends with the bytes of one that was never disturbed; whoever can
still speak says one sentence, with exit code 2, or 130 and 143 where a signal came.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from campaign.cases import Case
from campaign.commands import LINES, WRITTEN, clear, contents, finish, options, stage, start

__all__ = ["KINDS", "LIMITS", "bits", "disturb"]

WRITING = [name for name, line in LINES.items() if set(WRITTEN) & set(line.split())]
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
CODES = {"interrupt": (130, -signal.SIGINT), "terminate": (143, -signal.SIGTERM)}
LIMITS = ("CRAFTRL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Folder:
    """A command, the folder that it runs in, and what it leaves there undisturbed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.line, self.folder = name, LINES[name].split(), folder
        clear(folder)
        begun = time.monotonic()
        code, said = finish(start(self.line, folder))
        if code:
            raise RuntimeError(f"craftrl {LINES[name]} failed without being disturbed: {said[-300:]}")
        self.seconds, self.whole = time.monotonic() - begun, contents(folder)
        self.largest = max((folder / file).stat().st_size for file in self.whole)

    def differs(self) -> str:
        """How what lies there differs from what an undisturbed command leaves, in any byte."""
        now = contents(self.folder)
        other = sorted(name for name in {**now, **self.whole} if now.get(name) != self.whole.get(name))
        return f"missing, left behind or different: {', '.join(other)}" if other else ""

    def parts(self) -> str:
        left = [name for name in contents(self.folder) if any(piece.endswith(".tmp") for piece in Path(name).parts)]
        return f"half-written: {', '.join(left)}" if left else ""

    def again(self) -> str:
        """Given again, undisturbed; nothing where it was done and so is refused."""
        code, said = finish(start(self.line, self.folder))
        if code and self.differs():
            return f"given again, it ended with {code}: {said[-300:]}"
        return self.differs()


def disturb(kinds: Sequence[str], names: Sequence[str] = (), rounds: int = 1, seed: int = 0) -> Iterator[Case]:
    """Every command that writes, or those of these names, `rounds` times in each way at a random moment or size."""
    with tempfile.TemporaryDirectory() as place:
        stage(Path(place))
        for name in names or WRITING:
            command, rng = Folder(name, Path(place)), random.Random(f"{seed} {name}")
            for _ in range(rounds):
                for kind in kinds:
                    clear(command.folder)
                    said = KINDS[kind](command, rng.random())
                    yield {"command": name, "kind": kind, "outcome": "fault" if said else "fine", "said": said}


def stopped(command: Folder, at: float, kind: str) -> str:
    """A signal at a random moment, to all processes of the command as Ctrl-C sends it."""
    process = start(command.line, command.folder)
    if kind != "kill":
        _await_handler(process)
    try:
        process.wait(at * command.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, SIGNALS[kind]) if kind != "terminate" else process.send_signal(SIGNALS[kind])
    code, said = finish(process)
    if kind != "kill":
        sentences = [line for line in said.splitlines() if "nothing is half-written" in line]
        polite = code in CODES[kind] and (len(sentences) == 1 or not command.differs())  # done, and leaving
        if "Traceback" in said or not (polite or code == 0):
            return f"exit {code}: {said[-600:]}"
        if parts := command.parts():
            return parts
    return command.again()


def _await_handler(process: subprocess.Popen[str]) -> None:
    """Until our code answers signals, which Linux shows: what comes before that, Python answers itself."""
    status, caught = Path(f"/proc/{process.pid}/status"), 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        mask = next((line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt")), "0")
        if int(mask, 16) & caught:
            return
        time.sleep(0.005)


def pair(command: Folder, at: float) -> str:
    """Two equal commands, the second a little later: one succeeds, the other too or says that the target is there."""
    first = start(command.line, command.folder)
    time.sleep(at * command.seconds / 4)
    ends = [finish(process) for process in (first, start(command.line, command.folder))]
    foreign = [said for code, said in ends if code not in (0, 2) or "Traceback" in said]
    if foreign or all(code for code, _ in ends):
        return [*foreign, ends[0][1]][0][-600:]
    return command.differs()


def no_room(command: Folder, share: float) -> str:
    """Files that may not grow beyond a share of the largest (RLIMIT_FSIZE), which the kernel refuses as a full disk is;
    every second time over an older result, which must stay whole."""
    over = share > 0.5 and "--force" in options(command.name)
    if over:
        finish(start(command.line, command.folder))
    limit = int((share if not over else share - 0.5) * command.largest)
    line = [*command.line, "--force"] if over else command.line
    code, said = finish(start(line, command.folder, preexec_fn=_limited(resource.RLIMIT_FSIZE, limit)))
    if code not in (0, 2) or "Traceback" in said or (code == 2 and not said.strip()):
        return f"exit {code}: {said[-600:]}"
    if over or code == 0:
        return command.differs()
    return command.parts() or command.again()


def _limited(what: int, n: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (n, n))


def little_memory(command: Folder, share: float) -> str:
    """A limit on the address space: the right result, or one sentence that speaks of memory."""
    limit = int((1.0 + 3.0 * share) * 2**30)
    code, said = finish(start(command.line, command.folder, preexec_fn=_limited(resource.RLIMIT_AS, limit)))
    if code == 0:
        return command.differs()
    if code == 2 and "memory" in said and "Traceback" not in said:
        return command.parts() or command.again()
    return f"exit {code} with {limit >> 20} MiB: {said[-600:]}"


KINDS: dict[str, Callable[[Folder, float], str]] = {
    **{kind: partial(stopped, kind=kind) for kind in SIGNALS},
    "pair": pair,
    "no room": no_room,
    "memory": little_memory,
}


def bits(names: Sequence[str] = (), threads: Sequence[int] = (1, 2, 4)) -> Iterator[Case]:
    """The same bytes with any number of threads, and with two workers where the command has some."""
    with tempfile.TemporaryDirectory() as place:
        stage(folder := Path(place))
        for name in names or WRITING:
            first: dict[str, str] = {}
            workers = [(1, ["--workers", "2"])] if name.startswith("reproduce") else []
            for n, words in [*((n, []) for n in threads), *workers]:
                clear(folder)
                code, said = finish(start([*LINES[name].split(), *words], folder, env=dict.fromkeys(LIMITS, str(n))))
                now = contents(folder)
                first = first or now
                outcome = "fault" if code or now != first else "fine"
                yield {"command": name, "kind": f"{n} {' '.join(words)}", "outcome": outcome, "said": said}
