"""Cases run in processes of their own: one that crashes, hangs or asks for too much memory takes no other along."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["Case", "answers", "table"]

Case = dict[str, Any]
Run = Callable[[Case, Path], Case]  # a case and a folder of its process, to what came of it: "outcome" and "said"
MEMORY = 16 * 2**30  # bytes of address space of a process
START = 300.0  # seconds until a process is ready: packages are imported


def answers(run: Run, cases: Sequence[Case], workers: int, patience: float) -> list[Case]:
    """Every case with its outcome, in order; no answer after `patience` seconds is a hang."""
    parts = [cases[len(cases) * k // workers : len(cases) * (k + 1) // workers] for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        return [case for part in pool.map(lambda mine: list(_answers(run, mine, patience)), parts) for case in part]


def _answers(run: Run, cases: Sequence[Case], patience: float) -> Iterator[Case]:
    spawn, left = multiprocessing.get_context("spawn"), list(cases)
    while left:
        ours, theirs = spawn.Pipe()
        with tempfile.TemporaryDirectory() as folder:
            process = spawn.Process(target=_serve, args=(run, theirs, folder), daemon=True)
            process.start()
            theirs.close()
            try:
                wait, ended = START, False
                while left and not ended:
                    ours.send(left[0])
                    answer = {"outcome": "hang", "said": ""}
                    try:
                        if ours.poll(wait):
                            answer = ours.recv()
                    except EOFError:
                        answer = {"outcome": "crash", "said": ""}
                    yield {**left.pop(0), **answer}
                    wait, ended = patience, answer["outcome"] in ("hang", "crash")
            finally:
                process.kill()
                process.join()


def _serve(run: Run, pipe: Any, folder: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while True:
        pipe.send(run(pipe.recv(), Path(folder)))


def table(cases: Sequence[Case], by: str) -> str:
    """One line for each value of `by`: how many cases, and how many had each outcome."""
    counts = Counter((case[by], case["outcome"]) for case in cases)
    columns = sorted({outcome for _, outcome in counts})
    lines = [f"| {by} | cases | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for name in dict.fromkeys(case[by] for case in cases):
        row = [counts[name, column] for column in columns]
        lines.append(f"| {name} | {sum(row)} | {' | '.join(map(str, row))} |")
    return "\n".join(lines)
