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
from pathlib import Path
from typing import Any

__all__ = ["FAULTS", "Case", "damage", "table"]

Case = dict[str, Any]
FAULTS = ("foreign", "changed", "hang", "crash")
PATIENCE = 60.0  # seconds for one file; reading a whole one takes hundredths
START = 180.0  # seconds until a worker has imported everything and made its files


def damage(formats: Sequence[str], seeds: Sequence[int], workers: int = 2) -> list[Case]:
    """Read every format once for each seed, damaged as the seed says."""
    jobs = [(name, list(seeds)[part::workers]) for name in formats for part in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return [case for cases in pool.map(lambda job: list(_cases(*job)), jobs) for case in cases]


def _cases(name: str, seeds: Sequence[int]) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        left = list(seeds)
        while left:
            worker = _start(name, Path(folder))
            try:
                while left:
                    answer = _ask(worker, left[0])
                    yield {"format": name, "seed": left.pop(0), **answer}
                    if answer["outcome"] in ("hang", "crash"):
                        break
            finally:
                worker.kill()
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    if pipe is not None:
                        pipe.close()


def _start(name: str, folder: Path) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-m", "campaign.worker", name, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    if _line(worker, START) is None:
        worker.kill()
        raise RuntimeError(f"The worker for {name} did not start; run python -m campaign.worker {name!r} FOLDER.")
    return worker


def _ask(worker: subprocess.Popen[str], seed: int) -> Case:
    assert worker.stdin is not None
    worker.stdin.write(f"{seed}\n")
    worker.stdin.flush()
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
