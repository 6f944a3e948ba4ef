"""A sweep of runs over settings and seeds, resumed where it was killed, and the means over its seeds.

A study lists its runs as frozen settings and gives one function from settings to results. What is on disk:

    DIR/settings.json   which study, which version, which settings: a folder never mixes two sweeps
    DIR/rows.jsonl      one line for every finished run: its settings and its results

A row depends on its settings alone, so that any number of workers ends with the same file; reports read rows and never
run anything.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from craftrl._version import __version__
from craftrl.arguments import check_target, check_whole
from craftrl.data.files import check_writable, plain_value, told_plainly, write_json, write_text
from craftrl.errors import AssumptionWarning, CraftError, InvalidParameterError
from craftrl.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Estimate", "Later", "Row", "Study", "estimate", "run_sweep", "seed_of"]

Row = dict[str, Any]
RunOne = Callable[[Any], Mapping[str, Any]]
FEWEST = 5  # seeds below which an interval would say more about the formula than about the data


@dataclass(frozen=True)
class Later:
    """A function that is imported only when it is called: `Later("studies.agents.run", "run_one")`.

    Records made of these load no numerical package, so that --help answers at once.
    """

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*args)


@dataclass(frozen=True)
class Study:
    """A sweep and what follows from its rows: what `craftrl reproduce NAME` runs, reports and draws.

    name        on the command line, and of the default results folder
    summary     what the study shows, in a few words
    seeds       how many seeds are run unless --seeds says otherwise
    runs        from the parsed arguments to the settings of all runs: frozen dataclasses of plain values
    run_one     from the settings of one run to its results, plain values too
    report      from all rows to the text that is printed; also writes its tables into the folder
    draw        draws the pictures into the folder; None where a study has none
    writes      the files that report and draw write
    options     adds the study's own arguments to a parser; None where it has none
    full_seeds  the same with --full; None where there is no --full
    full_adds   what else --full adds, for its help text
    examples    arguments worth trying, one string for each example of --help
    """

    name: str
    summary: str
    seeds: int
    runs: Callable[[argparse.Namespace], Sequence[Any]]
    run_one: RunOne
    report: Callable[[list[Row], Path, argparse.Namespace], str]
    draw: Callable[[list[Row], Path, argparse.Namespace], None] | None = None
    writes: tuple[str, ...] = ()
    options: Callable[[argparse.ArgumentParser], None] | None = None
    full_seeds: int | None = None
    full_adds: str = ""
    examples: tuple[str, ...] = ("--workers 2",)


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: RunOne,
    out: str | os.PathLike[str],
    workers: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Run what is not yet in `out`, and return all rows in the order of `settings_list`.

    name           of the study; part of the folder's identity
    settings_list  frozen dataclasses of plain values, one per run, all different
    run_one        from one of them to its results, plain values too; takes all randomness from its settings
                   (`seed_of`). Importable or not: workers get it by value.
    out            the folder; created where missing
    workers        how many runs are done at a time, in processes of one thread each

    A row is its settings and its results in one flat dictionary.
    """
    check_whole("workers", workers, 1)
    folder = check_target("The results folder", out)
    keys = [_key_of(asdict(settings)) for settings in settings_list]
    if not keys or len(set(keys)) < len(keys):
        raise InvalidParameterError(
            "A sweep needs at least one run, each with settings of its own; none, or two that are the same, were given."
        )
    new, path = not folder.exists(), folder / "rows.jsonl"
    done: dict[str, Row] = {}
    try:
        _claim(folder, _manifest(name, settings_list, keys))
        done = _finished_rows(path, settings_list[0])
        todo = [settings for settings, key in zip(settings_list, keys) if key not in done]
        if todo:
            _write_rows(path, [done[key] for key in keys if key in done])  # without a line that a kill cut short
            start = len(keys) - len(todo)
            with progress_bar(total=len(keys), initial=start, desc=name, unit="run", disable=not progress) as bar:
                for key, line in _carried_out(run_one, todo, workers):
                    with told_plainly(path), path.open("a") as file:
                        file.write(line)
                    done[key] = json.loads(line)
                    bar.update()
    except CraftError:
        if new and not done:  # settings that no run can take would be in the way of better ones
            with suppress(OSError):
                path.unlink(missing_ok=True)
                (folder / "settings.json").unlink(missing_ok=True)
                folder.rmdir()
        raise
    rows = [done[key] for key in keys]
    _write_rows(path, rows)
    return rows


def seed_of(*parts: int | str) -> np.random.SeedSequence:
    """Made from these parts alone: the same on every machine and in every worker."""
    import numpy as np

    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))


def _carried_out(run_one: RunOne, todo: Sequence[Any], workers: int) -> Iterator[tuple[str, str]]:
    """Key and row of every run, each as soon as it ended."""
    if workers == 1:
        yield from (_row(run_one, settings) for settings in todo)
        return
    from joblib import Parallel, delayed, parallel_config

    # Idle workers soon leave, so that a killed sweep does not leave them behind for long.
    with parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1, idle_worker_timeout=20):
        # One run each at a time: a worker that is done takes the next, and none waits behind a long one.
        parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
        yield from parallel(delayed(_row)(run_one, settings) for settings in todo)


def _row(run_one: RunOne, settings: Any) -> tuple[str, str]:
    """One run: its key, and its row as a line of text. A failed assumption is a result here, and no warning."""
    given = asdict(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        result = run_one(settings)
    if given.keys() & result.keys():
        raise InvalidParameterError(f"A result may not bear a setting's name; {given.keys() & result.keys()} do.")
    return _key_of(given), json.dumps({**given, **result}, default=plain_value) + "\n"


def _key_of(given: Mapping[str, Any]) -> str:
    """A short name of one run, made from its settings alone."""
    text = json.dumps(given, sort_keys=True, default=plain_value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _finished_rows(path: Path, settings: Any) -> dict[str, Row]:
    """The rows on disk by key; a line that is no row was not finished by us, and its run counts as not done."""
    fields = set(asdict(settings))
    found: dict[str, Row] = {}
    with suppress(FileNotFoundError):
        for line in path.read_text().splitlines():
            with suppress(ValueError, TypeError, KeyError):
                row = dict(json.loads(line))
                found[_key_of({field: row[field] for field in fields})] = row
    return found


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def _manifest(name: str, settings_list: Sequence[Any], keys: Sequence[str]) -> dict[str, Any]:
    """The study, the library's version, and of each setting all values that occur."""
    given = [asdict(settings) for settings in settings_list]
    texts = {field: dict.fromkeys(json.dumps(of[field], default=plain_value) for of in given) for field in given[0]}
    values = {field: [json.loads(text) for text in different] for field, different in texts.items()}
    key = hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()[:16]
    return {"study": name, "craftrl": __version__, "settings": values, "runs": len(keys), "key": key}


def _claim(folder: Path, wanted: dict[str, Any]) -> None:
    """Take a new folder for this sweep, or check that it is this sweep's: before any work is done."""
    path = folder / "settings.json"
    if not path.exists():
        others = sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []
        if others:
            raise InvalidParameterError(
                f"A results folder must be a new one, or that of the same sweep; {folder} holds other files, such as "
                f"{others[0]}; choose another folder with --out."
            )
        check_writable(folder)
        write_json(path, wanted)
        return
    try:
        found = json.loads(path.read_text())
        pairs = [(label, found[label], wanted[label]) for label in ("study", "craftrl")]
        pairs += [(field, found["settings"].get(field), value) for field, value in wanted["settings"].items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidParameterError(
            f"{path} must be the settings file of a study; it is not; choose another folder with --out."
        ) from error
    if found != wanted:
        what, old, new = next((p for p in pairs if p[1] != p[2]), ("combination of settings", "another", "this one"))
        raise InvalidParameterError(
            f"A results folder holds one sweep; {folder} has {what} = {_short(old)}, and {_short(new)} was asked for; "
            "choose another folder with --out, or delete this one."
        )
    check_writable(folder)


def _short(values: Any) -> str:
    """A list of values as text: 0, 1, 2, .., 19."""
    shown = [str(v) for v in (values if isinstance(values, list) else [values])]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "..", shown[-1]])


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

    @property
    def standard_error(self) -> float:
        return self.deviation / math.sqrt(self.n)


def estimate(values: Sequence[float], least: float = 0.0, most: float = 1.0) -> Estimate:
    """Mean, 95% interval and standard deviation over seeds, of a measure that lies between `least` and `most`.

    The interval is Student's, cut to what is possible: a mean of shares lies in [0, 1], so nothing is lost. On
    samples of the table's own 200 seeds it covered their mean more often than bootstrap intervals of the same seeds:
    with 5 of them 90% of the time (bootstrap: 78%), with 12 of them 93% (89%), with 20 of them 93% (90%).
    """
    import numpy as np
    from scipy.special import stdtrit  # the quantile of Student's distribution; scipy.stats takes a second to import

    x = np.asarray(values, dtype=float)
    mean, n = float(x.mean()), len(x)
    deviation = float(x.std(ddof=1)) if n > 1 else 0.0
    if n < FEWEST:
        return Estimate(mean, None, None, deviation, n)
    half = float(stdtrit(n - 1, 0.975)) * deviation / math.sqrt(n)
    return Estimate(mean, max(least, mean - half), min(most, mean + half), deviation, n)
