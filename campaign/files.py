"""Damaged files: every format, many seeds, each in a process that may crash or hang without taking others along."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["FAULTS", "Case", "damage", "table"]

Case = dict[str, Any]
ROOT = Path(__file__).parents[1]
FAULTS = ("foreign", "changed", "hang", "crash")
PATIENCE = 300.0  # seconds for one file, of which most are for the first: packages are imported, whole files made


def damage(formats: Sequence[str], seeds: Sequence[int], workers: int = 2) -> list[Case]:
    """Read every format once for each seed, damaged as the seed says."""
    cases = [(name, seed) for name in formats for seed in seeds]
    parts = [cases[len(cases) * k // workers : len(cases) * (k + 1) // workers] for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return [case for found in pool.map(lambda part: list(_cases(part)), parts) for case in found]


def _cases(asked: Sequence[tuple[str, int]]) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        left = list(asked)
        while left:
            with _worker(folder) as worker:
                while left:
                    name, seed = left.pop(0)
                    answer = _ask(worker, name, seed)
                    yield {"format": name, "seed": seed, **answer}
                    if answer["outcome"] in ("hang", "crash"):
                        break


@contextmanager
def _worker(folder: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "campaign.worker", folder]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, bufsize=1, cwd=ROOT) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def _ask(worker: subprocess.Popen[str], name: str, seed: int) -> Case:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        print(seed, name, file=worker.stdin, flush=True)
    answer = _line(worker, PATIENCE)
    if answer is None:
        return {"outcome": "hang" if worker.poll() is None else "crash", "file": "", "done": "", "said": ""}
    return dict(json.loads(answer))


def _line(worker: subprocess.Popen[str], seconds: float) -> str | None:
    """The next line that a worker prints; None if none comes in time, or ever."""
    assert worker.stdout is not None
    ready, _, _ = select.select([worker.stdout], [], [], seconds)
    line = worker.stdout.readline() if ready else ""
    if not line and worker.poll() is None and ready:
        worker.wait(5)
    return line or None


def table(cases: Sequence[Case]) -> str:
    """One line per format: how many files, and what became of them."""
    columns = ("same", "read", "refused", *FAULTS)
    counts = Counter((case["format"], case["outcome"]) for case in cases)
    names = list(dict.fromkeys(case["format"] for case in cases))
    lines = ["| format | files | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name in names:
        row = [counts[name, column] for column in columns]
        lines.append(f"| {name} | {sum(row)} | " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)
