"""Limits on memory: commands whose data does not fit.

What must hold under any limit: the right result, or one sentence that speaks of memory, with exit code 2; never a
crash, another error, another result, or a part of one.

The limit is one on the address space (RLIMIT_AS), so that no swapping begins. Imports alone take much of it, and fail
in ways of their own below that: so limits lie between what a command takes for a little data and what it takes for all.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from campaign.processes import Case
from campaign.writers import ROOT, contents, finish, start

__all__ = ["COLUMNS", "FAULTS", "LINES", "starve"]

FAULTS = ("fault",)
COLUMNS = ("fits", "refused", "fault")
LITTLE, MUCH = 40, 40_000  # trajectories of each agent: kilobytes, and a hundred megabytes

BITS = "collect --world bits --horizon 20 --features 64"
GIVEN = "--alpha 1 --eta 1/5 --nu 1/10 --coupling independent"
DATA = f"{BITS} --n {{n}} --out data"
SMALL_MODEL = (f"{BITS} --n {LITTLE * 10} --out few", f"fit few {GIVEN} --out model")
# By name: commands that make what is read, and last the one that is tried; {n} stands for the number of trajectories.
LINES: dict[str, tuple[str, ...]] = {
    "collect": (f"{BITS} --n {{n}} --out new",),
    "collect, shards": (f"{BITS} --n {{n}} --out new",),
    "inspect": (DATA, "inspect data --pairs --no-sheet"),
    "fit": (DATA, f"fit data {GIVEN} --out new"),
    "fit, shards": (f"{BITS} --n {{n}} --out data", f"fit data {GIVEN} --out new"),
    "encode": (DATA, *SMALL_MODEL, "encode model data --out new.npz"),
    "actions": (DATA, *SMALL_MODEL, "actions model data --out new.csv"),
    "report": (DATA, f"fit data {GIVEN} --out model", "report model data --diagnose 0 --out new.html"),
}

# Runs a command, and prints the most address space that it had.
PEAK = """
import sys
from craftrl.cli import main
code = main(sys.argv[1:])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmPeak"))
print("peak", int(peak) * 1024, file=sys.stderr)
sys.exit(code)
"""


def starve(names: Sequence[str] | None = None, steps: int = 5, much: int = MUCH) -> Iterator[Case]:
    """Every command on `much` data under `steps` limits on its memory, evenly spaced."""
    with tempfile.TemporaryDirectory() as place:
        for name in names or LINES:
            *before, line = LINES[name]
            sizes = (LITTLE, much)
            folders = [Path(place) / str(n) for n in sizes]
            for folder, n in zip(folders, sizes):
                _prepare(folder, [words.format(n=n) for words in before])
            lines = [line.format(n=n).split() for n in sizes]
            least, most = (_peak(words, folder) for words, folder in zip(lines, folders))
            whole = contents(folders[1])
            for k in range(steps):
                limit = least + (most - least) * (2 * k + 1) // (2 * steps)
                yield {"command": name, "mib": limit >> 20, **_starved(lines[1], folders[1], limit, whole)}
            for folder in folders:
                shutil.rmtree(folder)


def _prepare(folder: Path, lines: Sequence[str]) -> None:
    """What the command reads."""
    folder.mkdir()
    for words in lines:
        code, said = finish(start(words.split(), folder))
        if code:
            raise RuntimeError(f"craftrl {words} failed without a limit: {said[-300:]}")


def _peak(line: Sequence[str], folder: Path) -> int:
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PEAK, *line], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"craftrl {' '.join(line)} failed without a limit: {done.stderr[-300:]}")
    return int(done.stderr.split()[-1])


def _starved(line: Sequence[str], folder: Path, limit: int, whole: dict[str, str]) -> Case:
    new = [path for path in folder.iterdir() if path.name.startswith(("new", "."))]
    for path in new:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = contents(folder)
    code, said = finish(start(line, folder, preexec_fn=_limited(limit)))
    now = contents(folder)
    if code == 0:
        return _case("fits" if now == whole else "fault", f"another result: {said[-300:]}" if now != whole else "")
    if code != 2 or "Traceback" in said or "memory" not in said:
        return _case("fault", f"exit {code}: {said[-600:]}")
    # Truth that `collect` writes first stays, and the same command goes on from it.
    left = [name for name in now if name not in before and now[name] != whole.get(name)]
    return _case("fault", f"left behind: {', '.join(left)}") if left else _case("refused", said[-300:])


def _case(outcome: str, said: str) -> Case:
    return {"outcome": outcome, "said": said}


def _limited(n_bytes: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
