"""Sweeps over seeds: a row on disk for each run, randomness that follows from settings, and means with intervals."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from traceback import format_exc
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.special import stdtrit  # Student's quantile; scipy.stats takes a second to import

from craftrl.arguments import check_target
from craftrl.data.files import check_writable, plain_os_errors, plain_value, write_text
from craftrl.errors import InvalidParameterError
from craftrl.progress import progress_bar

Row = dict[str, Any]  # the settings and the results of one run
MIN_SEEDS = 5  # seeds below which an interval would say more about the formula than about the data


def seed_of(*parts: int | str) -> np.random.SeedSequence:
    """Made from these parts alone: the same on every machine and in every worker."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: Callable[[Any], Row],
    out: str | os.PathLike[str],
    workers: int = 1,
    progress: bool = True,
    **more: Any,
) -> list[Row]:
    """Run what is not yet in `rows.jsonl` of the folder `out`; return the rows of `settings_list`, in its order.

    Settings are frozen dataclasses of plain values. A row has these, what `run_one` makes of them, and `more`. It
    depends on its settings alone: a sweep that was killed goes on where it stopped, and any number of `workers`, which
    are processes of one thread each, ends with the same file. A run that fails has no row; once all others are done,
    its exception is raised.
    """
    folder = check_target("The results folder", out)
    path, keys = folder / "rows.jsonl", [_key(asdict(settings)) for settings in settings_list]
    there = sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []
    try:
        if there and "rows.jsonl" not in there:
            raise KeyError
        rows = dict(_rows_in(path, list(asdict(settings_list[0]))))
    except KeyError:
        raise InvalidParameterError(
            f"A results folder must be a new one, or hold rows of {name}; {folder} holds other files, such as "
            f"{there[0]}; choose another folder with --out."
        ) from None
    check_writable(folder)
    if todo := [settings for settings, key in zip(settings_list, keys) if key not in rows]:
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows.values()))  # without a line that was cut short
        done = len(keys) - len(todo)
        with (
            progress_bar(total=len(keys), initial=done, desc=name, unit="run", disable=not progress) as bar,
            # Idle workers soon leave, so that a killed sweep does not leave them behind for long.
            parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1, idle_worker_timeout=20),
        ):
            # One run each at a time: a worker that is done takes the next, and none waits behind a long one.
            parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
            failed: list[Exception] = []
            for row in parallel(delayed(_row)(run_one, settings, more) for settings in todo):
                bar.update()
                if isinstance(row, Exception):
                    failed.append(row)
                    continue
                with plain_os_errors(path), path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                rows[_key({field: row[field] for field in asdict(todo[0])})] = row
        if failed:
            failed[0].add_note(
                f"{len(failed)} of {len(todo)} runs failed and have no row; {name} can go on from {path}."
            )
            raise failed[0]
    asked = {key: rows[key] for key in keys}
    write_text(path, "".join(json.dumps(row) + "\n" for row in (asked | rows).values()))
    return list(asked.values())


def _rows_in(path: Path, fields: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """The rows that were written before by their settings; a line that a kill cut short is no row."""
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            row = dict(json.loads(line))
            yield _key({field: row[field] for field in fields}), row


def _key(settings: Row) -> str:
    return json.dumps(settings, sort_keys=True, default=plain_value)


def _row(run_one: Callable[[Any], Row], settings: Any, more: Row) -> Row | Exception:
    try:
        return dict(json.loads(json.dumps({**asdict(settings), **run_one(settings), **more}, default=plain_value)))
    except Exception as error:
        error.add_note(f"{settings}\n{format_exc()}")  # which another process would not tell
        return error


@dataclass(frozen=True)
class Estimate:
    """A mean over n seeds with its 95% interval; None and None where seeds are too few for one."""

    mean: float
    low: float | None
    high: float | None
    deviation: float
    n: int

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def estimate(values: Sequence[float], least: float = 0.0, most: float = 1.0) -> Estimate:
    """Mean, 95% interval and standard deviation over seeds, of a measure that lies between `least` and `most`.

    The interval is Student's, cut to what is possible. On samples of the table's own 200 seeds it covered their mean
    more often than bootstrap intervals did: with 5 seeds 90% of the time (bootstrap: 78%), with 20 of them 93% (90%).
    """
    x = np.asarray(values, dtype=float)
    mean, n = float(x.mean()), len(x)
    deviation = float(x.std(ddof=1)) if n > 1 else 0.0
    if n < MIN_SEEDS:
        return Estimate(mean, None, None, deviation, n)
    half = float(stdtrit(n - 1, 0.975)) * deviation / math.sqrt(n)
    return Estimate(mean, max(least, mean - half), min(most, mean + half), deviation, n)
