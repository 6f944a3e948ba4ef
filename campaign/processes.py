"""Cases run in processes of their own: one that crashes, hangs or asks for too much memory takes no other along."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["Case", "answers", "table"]

Case = dict[str, Any]
ROOT = Path(__file__).parents[1]
START = 300.0  # seconds until a process is ready: packages are imported


def answers(kind: str, cases: Sequence[Case], workers: int, patience: Callable[[Case], float]) -> list[Case]:
    """Every case with its outcome, in the order given; `kind` names the function of `campaign.worker` that runs it.

    A case that has no answer after its `patience`, in seconds, is a hang.
    """
    parts = [cases[len(cases) * k // workers : len(cases) * (k + 1) // workers] for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda part: list(_answers(kind, part, patience)), parts)
        return [case for part in found for case in part]


def _answers(kind: str, asked: Sequence[Case], patience: Callable[[Case], float]) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        left = list(asked)
        while left:
            with _worker(kind, folder) as worker:
                if _line(worker, START) is None:
                    raise RuntimeError(f"A worker must start; campaign.worker {kind} did not.")
                while left:
                    case = left.pop(0)
                    answer = _ask(worker, case, patience(case))
                    yield {**case, **answer}
                    if answer["outcome"] in ("hang", "crash"):
                        break


@contextmanager
def _worker(kind: str, folder: str) -> Iterator[subprocess.Popen[str]]:
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable, "-m", "campaign.worker", kind, folder]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, bufsize=1, cwd=ROOT) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def _ask(worker: subprocess.Popen[str], case: Case, patience: float) -> Case:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        print(json.dumps(case), file=worker.stdin, flush=True)
    answer = _line(worker, patience)
    if answer is None:
        return {"outcome": "hang" if worker.poll() is None else "crash", "said": ""}
    return dict(json.loads(answer))


def _line(worker: subprocess.Popen[str], seconds: float) -> str | None:
    """The next line that a worker prints; None if none comes in time, or ever."""
    assert worker.stdout is not None
    ready, _, _ = select.select([worker.stdout], [], [], seconds)
    line = worker.stdout.readline() if ready else ""
    if not line and worker.poll() is None and ready:
        worker.wait(5)
    return line or None


def table(cases: Sequence[Case], by: str, columns: Sequence[str]) -> str:
    """One line for each value of `by`: how many cases, and how many had each outcome."""
    counts = Counter((case[by], case["outcome"]) for case in cases)
    names = list(dict.fromkeys(case[by] for case in cases))
    lines = [f"| {by} | cases | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name in names:
        row = [counts[name, column] for column in columns]
        lines.append(f"| {name} | {sum(row)} | " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)
