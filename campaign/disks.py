"""Disks that fill up while a command writes, and standard outputs that are full, left or closed.

What must hold where there is no room: one sentence and exit code 2, or the right result; what lay under the name before
is still whole; no parts are left; and the same command with room ends with the bytes of one that always had it.

A disk of a chosen size is a tmpfs that only the command sees (`unshare`, which needs no rights where the kernel lets
users have namespaces of their own). Where that cannot be had, and in the tests, a limit on the size of files
(RLIMIT_FSIZE) does: the kernel refuses to write beyond it, as it does on a full disk, file by file.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from campaign.processes import Case
from campaign.writers import COMMANDS, ON_RAY, Command, Stage, contents, finish, start, unlisted

__all__ = ["COLUMNS", "FAULTS", "fill", "small_disks"]

FAULTS = ("fault",)
COLUMNS = ("fits", "refused", "fault")
PAGE = 4096
DISK = "disk"  # the folder that is small, within the one in which a command runs

# Mounts a disk of so many bytes, puts there what lies in `old`, runs the rest, and keeps what is there afterwards.
SMALL = """
import os, shutil, subprocess, sys
size, disk, old, kept = sys.argv[1:5]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
shutil.copytree(old, disk, dirs_exist_ok=True)
code = subprocess.run(sys.argv[5:]).returncode
shutil.copytree(disk, kept, dirs_exist_ok=True)
sys.exit(code)
"""


def small_disks() -> bool:
    """Whether this machine lets us have disks of a chosen size."""
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as place:
        line = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]
        return subprocess.run(line, capture_output=True).returncode == 0


def fill(
    names: Sequence[str], rounds: int, seed: int = 0, ways: Sequence[str] = ("disk", "file size", "outputs")
) -> Iterator[Case]:
    """Every command on `rounds` disks that are too small, half of them over a result that is there already, and with
    as many limits on the size of files; then, once each, with a standard output that is full, left and closed."""
    for name in unlisted():
        yield {"command": name, "how": "", "outcome": "fault", "said": "it is not in campaign/writers.py"}
    full = [way for way in ways if way == "file size" or (way == "disk" and small_disks())]
    with tempfile.TemporaryDirectory() as place:
        stage = Stage(Path(place))
        for name in names:
            bench = _Bench({**COMMANDS, **ON_RAY}[name], stage, Path(place) / "here")
            rng = random.Random(f"{seed} {name}")
            for i in range(rounds):
                for how in full:
                    share = rng.random()
                    yield {"command": name, "how": how, "share": share, **bench.full(how, share, i % 2 == 1)}
            for how, run in OUTPUTS.items() if "outputs" in ways else ():
                yield {"command": name, "how": how, **bench.unheard(how, run)}


class _Bench:
    """A command, what it leaves undisturbed, and a folder to run it in."""

    def __init__(self, command: Command, stage: Stage, folder: Path) -> None:
        self.command, self.stage, self.folder = command, stage, folder
        self.line = command.line(f"{DISK}/")
        self._fresh()
        code, said = finish(start(self.line, folder))
        if code:
            raise RuntimeError(f"craftrl {' '.join(self.line)} failed without being disturbed: {said[-300:]}")
        self.whole = contents(folder / DISK)
        self.sizes = {name: (folder / DISK / name).stat().st_size for name in self.whole}
        self.old = folder.with_name("old")
        shutil.rmtree(self.old, ignore_errors=True)
        shutil.copytree(folder / DISK, self.old)

    def _fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.stage.copy(self.command, self.folder)
        (self.folder / DISK).mkdir()

    def full(self, how: str, share: float, over: bool) -> Case:
        """Room for a share of what is written; with `over`, where the command can, in place of the same result."""
        over = over and self.command.replaces
        self._fresh()
        line = [*self.line, "--force"] if over else self.line
        before = self.whole if over else {}
        if how == "disk":
            code, said = self._on_small_disk(line, share, over)
        else:
            if over:
                shutil.copytree(self.old, self.folder / DISK, dirs_exist_ok=True)
            limit = int(share * max(self.sizes.values()))
            code, said = finish(start(line, self.folder, preexec_fn=_limited(limit)))
        fault = self._fault(code, said, before)
        if fault:
            return {"outcome": "fault", "said": fault, "over": over}
        return {"outcome": "refused" if code else "fits", "said": said[-300:], "over": over}

    def _on_small_disk(self, line: Sequence[str], share: float, over: bool) -> tuple[int, str]:
        room = share * sum(self.sizes.values()) + (_pages(self.sizes.values()) if over else 0)
        kept, old = self.folder / "kept", self.old if over else self.folder / "nothing"
        old.mkdir(exist_ok=True)
        size = max(PAGE, int(room) // PAGE * PAGE)
        before = ["unshare", "-rm", sys.executable, "-c", SMALL, str(size), DISK, str(old), str(kept)]
        code, said = finish(start(line, self.folder, before=before))
        (self.folder / DISK).rmdir()
        kept.rename(self.folder / DISK)
        return code, said

    def _fault(self, code: int, said: str, before: dict[str, str]) -> str:
        if code not in (0, 2) or "Traceback" in said or (code == 2 and not said.strip()):
            return f"exit {code}: {said[-600:]}"
        now = contents(self.folder / DISK)
        if code == 0:
            return "" if now == self.whole else f"exit 0, and what was written differs: {said[-300:]}"
        parts = [name for name in now if any(piece.endswith(".tmp") for piece in Path(name).parts)]
        if parts:
            return f"left behind: {', '.join(parts)}"
        lost = [name for name, digest in before.items() if now.get(name) != digest]
        if lost:
            return f"what lay there is lost: {', '.join(lost)}"
        again, said = finish(start([*self.line, "--force"] if before else self.line, self.folder))
        if again or contents(self.folder / DISK) != self.whole:
            return f"given again with room, it ended with {again} and another result: {said[-300:]}"
        return ""

    def unheard(self, how: str, run: Callable[[Sequence[str], Path], tuple[int, str]]) -> Case:
        """A standard output that nothing can be written to: a sentence where it is full, silence where nobody reads."""
        self._fresh()
        code, said = run(self.line, self.folder)
        now = contents(self.folder / DISK)
        told = code == 2 and said.strip() if how == "output full" else code in (0, 1)
        if not told or "Traceback" in said or "Exception ignored" in said:
            return {"outcome": "fault", "said": f"exit {code}: {said[-600:]}"}
        lost = sorted(name for name in now if now[name] != self.whole.get(name))  # what came before it stopped is whole
        if lost:
            return {"outcome": "fault", "said": f"half-written: {', '.join(lost)}"}
        return {"outcome": "refused" if code else "fits", "said": said[-300:]}


def _pages(sizes: Any) -> int:
    return sum(-(-size // PAGE) * PAGE for size in sizes)


def _limited(n_bytes: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


# -- standard outputs ----------------------------------------------------------------------------------------------


def _to_full(line: Sequence[str], folder: Path) -> tuple[int, str]:
    with open("/dev/full", "w") as full:
        return finish(start(line, folder, stdout=full))


def _to_nobody(line: Sequence[str], folder: Path) -> tuple[int, str]:
    """As `| head -0`: whoever should read has left before anything is printed."""
    read, write = os.pipe()
    os.close(read)
    try:
        process = start(line, folder, stdout=write)
    finally:
        os.close(write)
    return finish(process)


def _to_nothing(line: Sequence[str], folder: Path) -> tuple[int, str]:
    """As `>&-`: there is no standard output."""
    return finish(start(line, folder, before=["sh", "-c", 'exec "$@" >&-', "sh"]))


OUTPUTS: dict[str, Callable[[Sequence[str], Path], tuple[int, str]]] = {
    "output full": _to_full,
    "output left": _to_nobody,
    "output closed": _to_nothing,
}
