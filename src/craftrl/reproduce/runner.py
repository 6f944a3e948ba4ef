"""Runs a sweep: one small row on disk for every run, so that a killed sweep goes on where it stopped.

A study lists its runs as frozen settings and gives one function from settings to results. What is on disk:

    DIR/settings.json      which study, which settings: a folder never mixes two sweeps
    DIR/rows/<key>.json    one row per finished run: its settings and its results
    DIR/rows.jsonl         all of them, one a line, once all are done; instead of rows/ it serves as well

Rows are written whole or not at all. They depend on the settings alone, so that any number of workers writes the same
files; reports read rows and never run anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

from craftrl.data.files import json_text, write_text
from craftrl.data.places import Place, place
from craftrl.errors import AssumptionWarning, CraftError, InvalidParameterError
from craftrl.progress import COMPILING, BarOfWords, progress_bar, watched, watched_by
from craftrl.reproduce.folder import Row, check_folder, finished_rows, forget_folder, prepare_folder, row_key
from craftrl.reproduce.workers import Carry, Workers

__all__ = ["RunOne", "run_sweep", "seed_of"]

RunOne = Callable[[Any], Mapping[str, Any]]


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: RunOne,
    out: str | os.PathLike[str],
    workers: int | None = None,
    progress: bool = True,
    *,
    backend: str = "loky",
    address: str | None = None,
) -> list[Row]:
    """Run what is not yet in `out`, and return all rows in the order of `settings_list`.

    name           of the study; part of the folder's identity
    settings_list  frozen dataclasses of plain values, one per run, all different
    run_one        from one of them to its results, plain values too; takes all randomness from its settings
                   (`seed_of`). Importable or not: workers get it by value.
    out            the folder; created where missing
    workers        how many runs are done at a time, each on one thread, so that they do not fight for the cores; by
                   default 1, and all that a cluster has where an `address` is given
    backend        where: "loky" in processes of this machine, "ray" or "dask" in a cluster of theirs
    address        of a cluster that runs already; without it, one is started here

    A row is its settings and its results in one flat dictionary.
    """
    crew = Workers(workers, backend, address)
    crew.check()
    folder = place(out)
    keys = [row_key(settings) for settings in settings_list]
    if not keys or len(set(keys)) < len(keys):
        raise InvalidParameterError(
            "A sweep needs at least one run, each with settings of its own; none, or two that are the same, were given."
        )
    new = not folder.exists()
    check_folder(folder, name, settings_list)
    done = finished_rows(folder, settings_list)
    todo = [settings for settings, key in zip(settings_list, keys) if key not in done]
    with crew.carry() if todo else nullcontext() as carry:  # a cluster that is not there leaves no folder behind
        prepare_folder(folder, name, settings_list)
        if carry is not None:
            try:
                with _progress(name, len(keys), len(done), progress) as count_one:
                    _run_all(todo, run_one, folder / "rows", carry, count_one, progress)
            except CraftError:
                if new and not finished_rows(folder, settings_list):
                    forget_folder(folder)  # settings that no run can take would be in the way of better ones
                raise
            done = finished_rows(folder, settings_list)
    rows = [done[key] for key in keys]
    write_text(folder / "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return rows


def seed_of(*parts: int | str) -> Any:
    """A `numpy.random.SeedSequence` made from these parts alone: the same on every machine and in every worker."""
    import numpy as np

    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))


def _run_all(
    todo: Sequence[Any], run_one: RunOne, rows: Place, carry: Carry, count_one: Callable[[], Any], progress: bool
) -> None:
    """Every row is written here, as soon as it is known: workers may be on machines that do not see this disk.

    With `progress`, whoever has the first run says so if something must be compiled for it.
    """
    for key, row in carry(partial(_row, run_one, row_key(todo[0]) if progress else ""), todo):
        write_text(rows / f"{key}.json", row)
        count_one()


@contextmanager
def _progress(name: str, total: int, done: int, shown: bool) -> Iterator[Callable[[], Any]]:
    """A function to call after every run; with a bar, where one is shown."""
    if not shown:
        yield lambda: None
        return
    with progress_bar(total=total, initial=done, desc=name, unit="run") as bar:
        words = BarOfWords(lambda text, drawn: bar.set_postfix_str(text, refresh=drawn), every=1.0)

        def count_one() -> None:
            bar.set_postfix_str("", refresh=False)
            bar.update()

        with watched_by(lambda what, h: words.tell(what, what if h is None else f"{what} at h = {h}")):
            yield count_one


def _row(run_one: RunOne, speaker: str, settings: Any) -> tuple[str, str]:
    """One run in one worker: its key, and its row as the text of a file.

    A failed assumption is a result here, and in the row: no warning for each. The run with the key `speaker` says when
    something is compiled, if it is in a process of its own, where nobody watches.
    """
    key = row_key(settings)
    aloud = watched_by(_compiling_said) if key == speaker and not watched() else nullcontext()
    with warnings.catch_warnings(), aloud:
        warnings.simplefilter("ignore", AssumptionWarning)
        result = run_one(settings)
    given = asdict(settings)
    if given.keys() & result.keys():
        raise InvalidParameterError(f"A result may not bear a setting's name; {given.keys() & result.keys()} do.")
    return key, json_text({**given, **result})


_said: set[str] = set()


def _compiling_said(what: str, h: int | None) -> None:
    """One line on standard error, the first time that a process compiles."""
    if what == COMPILING and what not in _said:
        _said.add(what)
        print(f"craftrl: {what} ...", file=sys.stderr, flush=True)
