"""A study: a sweep of runs, a row on disk for each, and a report on the rows.

A folder `studies/NAME` has two modules:

    spec.py  which runs there are, frozen dataclasses of plain values, and STUDY; light, since `--help` imports it
    run.py   run_one(run) -> results of one run; report(rows) -> Markdown; for some studies draw(rows, folder)

A row has the settings and the results of one run and the commit that made it. It depends on its settings alone: a sweep
that was killed goes on where it stopped, and any number of workers ends with the same file.

    python -m studies.study

writes report.md of every study anew from its committed rows, and names the commit in rows that name none. Pictures are
drawn by the command of the study with `--out studies/NAME`, which runs nothing that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl.arguments import check_target, positive
from craftrl.data.files import check_writable, plain_os_errors, plain_value, write_text
from craftrl.errors import AssumptionWarning, InvalidParameterError
from craftrl.progress import progress_bar

Row = dict[str, Any]
STUDIES = Path(__file__).parent


@dataclass(frozen=True)
class Study:
    """A command of `craftrl reproduce`.

    name        on the command line, of the default results folder, and with _ for - of the folder here
    summary     what the study shows, in a few words
    runs        from the parsed arguments to the settings of all runs
    seeds       how many seeds are run unless --seeds says otherwise
    full_seeds  the same with --full; 0 where there is no --full
    full_adds   what else --full adds, for its help text
    options     adds the study's own arguments to a parser
    examples    arguments worth trying
    """

    name: str
    summary: str
    runs: Callable[[argparse.Namespace], Sequence[Any]]
    seeds: int
    full_seeds: int = 0
    full_adds: str = ""
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    examples: tuple[str, ...] = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        with_full = f", {self.full_seeds} with --full" if self.full_seeds else ""
        seeds = f"seeds 0..N-1 (default: {self.seeds}{with_full})"
        parser.add_argument("--seeds", type=positive, metavar="N", help=seeds)
        parser.add_argument("--workers", type=positive, default=1, metavar="W", help="runs at a time (default: 1)")
        out = "results; a rerun continues (default: %(default)s)"
        parser.add_argument("--out", default=f"results/{self.name}", metavar="DIR", help=out)
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        if self.full_seeds:
            parser.add_argument("--full", action="store_true", help=f"{self.full_seeds} seeds{self.full_adds}")
        self.options(parser)
        full = [f"--full --workers 2 --out results/{self.name}-full"] if self.full_seeds else []
        lines = self.examples or ("--workers 2", *full)
        examples = "".join(f"  craftrl reproduce {self.name} {example}\n" for example in lines)
        parser.epilog = f"examples:\n{examples}\nwrites one row per run (rows.jsonl), report.md and pictures to DIR"

    def main(self, args: argparse.Namespace) -> None:
        """Run the sweep; print and write the report, which is there even where pictures cannot be drawn."""
        if args.seeds is None:
            args.seeds = self.full_seeds if self.full_seeds and args.full else self.seeds
        settings, out = self.runs(args), Path(args.out)
        module = import_module(f"studies.{self.name.replace('-', '_')}.run")
        rows = run_sweep(self.name, settings, module.run_one, out, args.workers, not args.quiet)
        text = module.report(rows)
        write_text(out / "report.md", text + "\n")
        print(text)
        if hasattr(module, "draw"):
            module.draw(rows, out)
        print(f"\nWritten to {out}: {', '.join(sorted(path.name for path in out.iterdir() if path.is_file()))}.")


def commit() -> str:
    """The commit of the code that runs; with a + where it was changed since."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=STUDIES, capture_output=True, text=True)

    try:
        name = git("rev-parse", "--short=8", "HEAD").stdout.strip()
        return name + ("+" if name and git("diff", "--quiet", "HEAD", "--", ":/*.py").returncode else "")
    except OSError:
        return ""


def run_sweep(
    name: str,
    settings_list: Sequence[Any],
    run_one: Callable[[Any], Row],
    out: str | os.PathLike[str],
    workers: int = 1,
    progress: bool = True,
) -> list[Row]:
    """Run what is not yet in `rows.jsonl` of the folder `out`; return the rows of `settings_list`, in its order.

    `workers` runs are done at a time, in processes of one thread each.
    """
    from joblib import Parallel, delayed, parallel_config

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
    todo = [settings for settings, key in zip(settings_list, keys) if key not in rows]
    if todo:
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows.values()))  # without a line that was cut short
        start, made_by = len(keys) - len(todo), commit()
        with (
            progress_bar(total=len(keys), initial=start, desc=name, unit="run", disable=not progress) as bar,
            # Idle workers soon leave, so that a killed sweep does not leave them behind for long.
            parallel_config(backend="loky", n_jobs=workers, inner_max_num_threads=1, idle_worker_timeout=20),
        ):
            # One run each at a time: a worker that is done takes the next, and none waits behind a long one.
            parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
            for row in parallel(delayed(_row)(run_one, settings, made_by) for settings in todo):
                with plain_os_errors(path), path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                rows[_key({field: row[field] for field in asdict(todo[0])})] = row
                bar.update()
        asked = {key: rows[key] for key in keys}
        write_text(path, "".join(json.dumps(row) + "\n" for row in (asked | rows).values()))
    return [rows[key] for key in keys]


def _rows_in(path: Path, fields: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """The rows that were written before by their settings; a line that a kill cut short is no row."""
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError):
            row = dict(json.loads(line))
            yield _key({field: row[field] for field in fields}), row


def _key(settings: Row) -> str:
    return json.dumps(settings, sort_keys=True, default=plain_value)


def _row(run_one: Callable[[Any], Row], settings: Any, made_by: str) -> Row:
    """One run, on one thread as in all workers. A failed assumption is a result here, and no warning."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        row = {**asdict(settings), **run_one(settings), "commit": made_by}
    return dict(json.loads(json.dumps(row, default=plain_value)))


# -- what is committed ---------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reports() -> dict[Path, str]:
    """The text of report.md in each folder of this one that has a `run.py`: a report on every file of rows."""
    found = {}
    for folder in sorted(run.parent for run in STUDIES.glob("*/run.py")):
        report = import_module(f"studies.{folder.name}.run").report
        texts = {path.name: report(read_rows(path)) for path in sorted(folder.glob("*.jsonl"))}
        blocks = [text if len(texts) == 1 else f"# {name}\n\n{text}" for name, text in texts.items()]
        found[folder / "report.md"] = "\n\n".join(blocks) + "\n"
    return found


def stamp(path: Path) -> None:
    """Name the present commit in rows that name none, as those of table1, which comes with the package."""
    rows = read_rows(path)
    if any("commit" not in row for row in rows):
        write_text(path, "".join(json.dumps({"commit": commit(), **row}) + "\n" for row in rows))


if __name__ == "__main__":
    for path in STUDIES.glob("*/*.jsonl"):
        stamp(path)
    for path, text in reports().items():
        write_text(path, text)
