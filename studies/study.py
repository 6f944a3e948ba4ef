"""A study of this folder: a sweep of runs, a row on disk for each, and what `craftrl reproduce NAME` tells of them.

A study lists its runs as frozen settings and gives one function from settings to results. Its results folder holds

    settings.json   which study, and which version of the library
    rows.jsonl      one line for every finished run: its settings and its results

A row depends on its settings alone. So a sweep that was killed goes on where it stopped, further seeds or sizes are
added to the rows that are there, and any number of workers ends with the same file. Reports only read rows.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl._version import __version__
from craftrl.arguments import check_target, positive
from craftrl.data.files import check_writable, plain_value, told_plainly, write_json, write_text
from craftrl.errors import AssumptionWarning, InvalidParameterError
from craftrl.progress import progress_bar

__all__ = ["Later", "Study", "run_sweep"]

Row = dict[str, Any]
RunOne = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Later:
    """A function imported when it is called, `Later("studies.agents.run", "run_one")`: --help answers at once."""

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*args)


@dataclass(frozen=True)
class Study:
    """A sweep and what follows from its rows; a command, with `add_arguments(parser)` and `main(args)`.

    name        on the command line, and of the default results folder
    summary     what the study shows, in a few words
    seeds       how many seeds are run unless --seeds says otherwise
    runs        from the parsed arguments to the settings of all runs: frozen dataclasses of plain values
    run_one     from the settings of one run to its results, plain values too
    report      from all rows to the text that is printed; also writes its tables into the folder
    draw        draws the pictures into the folder; None where a study has none
    writes      the files that report and draw write
    options     adds the study's own arguments to a parser; None where it has none
    full_seeds  the same as seeds, with --full; None where there is no --full
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

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What all sweeps take, what this study takes, and examples."""
        with_full = "" if self.full_seeds is None else f", {self.full_seeds} with --full"
        seeds = f"seeds 0..N-1 (default: {self.seeds}{with_full})"
        parser.add_argument("--seeds", type=positive, metavar="N", help=seeds)
        parser.add_argument("--workers", type=positive, default=1, metavar="W", help="runs at a time (default: 1)")
        out = "results; a rerun continues (default: %(default)s)"
        parser.add_argument("--out", default=f"results/{self.name}", metavar="DIR", help=out)
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        if self.full_seeds is not None:
            parser.add_argument("--full", action="store_true", help=f"{self.full_seeds} seeds{self.full_adds}")
        if self.options is not None:
            self.options(parser)
        examples = "".join(f"  craftrl reproduce {self.name} {example}\n" for example in self.examples)
        writes = f"writes {', '.join(self.writes)} and one row per run (rows.jsonl) to DIR"
        parser.epilog = f"examples:\n{examples}\n{writes}"

    def main(self, args: argparse.Namespace) -> None:
        """The report is printed before anything is drawn: without Matplotlib it is there all the same."""
        out = Path(args.out)
        if args.seeds is None:
            seeds = self.full_seeds if self.full_seeds is not None and args.full else self.seeds
            args = argparse.Namespace(**{**vars(args), "seeds": seeds})
        rows = run_sweep(self.name, self.runs(args), self.run_one, args.out, args.workers, not args.quiet)
        print(self.report(rows, out, args))
        if self.draw is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)  # of models that are fitted for a picture
                self.draw(rows, out, args)
        print(f"\nWritten to {out}: {', '.join(self.writes)} and one row per run.")


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: RunOne,
    out: str | os.PathLike[str],
    workers: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Run what is not yet in the folder `out`, and return the rows of `settings_list`, in its order.

    `workers` runs are done at a time, in processes of one thread each. `run_one` takes all randomness from its settings
    (`seed_of`); workers get it by value, so that it need not be importable.
    """
    from joblib import Parallel, delayed, parallel_config

    folder = check_target("The results folder", out)
    path, wanted = folder / "rows.jsonl", {"study": name, "craftrl": __version__}
    there = sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.is_dir() else []
    found: Row = {}
    if "settings.json" in there:
        with suppress(OSError, ValueError, TypeError):
            found = dict(json.loads((folder / "settings.json").read_text()))
    if there and not all(found.get(label) == value for label, value in wanted.items()):
        raise InvalidParameterError(
            f"A results folder must be a new one, or hold rows of {name} made by craftrl {__version__}; {folder} holds "
            f"other files, such as {there[0]}; choose another folder with --out."
        )
    check_writable(folder)
    if not there:
        write_json(folder / "settings.json", wanted)

    keys, rows = [_key(asdict(settings)) for settings in settings_list], dict[str, Row]()
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, KeyError):  # a line that is no row: a kill cut it short
            row = dict(json.loads(line))
            rows[_key({field: row[field] for field in asdict(settings_list[0])})] = row
    todo = [settings for settings, key in zip(settings_list, keys) if key not in rows]
    if not todo:
        return [rows[key] for key in keys]
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows.values()))
    start = len(keys) - len(todo)
    with (
        progress_bar(total=len(keys), initial=start, desc=name, unit="run", disable=not progress) as bar,
        # Idle workers soon leave, so that a killed sweep does not leave them behind for long.
        parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1, idle_worker_timeout=20),
    ):
        # One run each at a time: a worker that is done takes the next, and none waits behind a long one.
        parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
        for key, line in parallel(delayed(_row)(run_one, settings) for settings in todo):
            with told_plainly(path), path.open("a") as file:
                file.write(line)
            rows[key] = json.loads(line)
            bar.update()
    asked = {key: rows[key] for key in keys}
    write_text(path, "".join(json.dumps(row) + "\n" for row in (asked | rows).values()))
    return list(asked.values())


def _key(given: Mapping[str, Any]) -> str:
    """What tells a run from all others: its settings, as text."""
    return json.dumps(given, sort_keys=True, default=plain_value)


def _row(run_one: RunOne, settings: Any) -> tuple[str, str]:
    """One run: its key, and its row as a line of text. A failed assumption is a result here, and no warning."""
    given = asdict(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        result = run_one(settings)
    return _key(given), json.dumps({**given, **result}, default=plain_value) + "\n"
