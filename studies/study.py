"""A study: a sweep of runs, a row on disk for each, and a report on the rows.

    python -m studies.study

writes report.md of every study anew from its committed rows, and names the commit in rows that name none. Pictures are
drawn by the command of the study with `--out studies/NAME`, which runs nothing that is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl.arguments import positive
from craftrl.data.files import write_text
from craftrl.errors import AssumptionWarning
from craftrl.paper.sweep import Row, run_sweep

STUDIES = Path(__file__).parent


@dataclass(frozen=True)
class Study:
    """A command of `craftrl reproduce`, which `studies/NAME/run.py` defines as STUDY; README.md here says how.

    name        on the command line, of the default results folder, and with _ for - of the folder here
    runs        from the parsed arguments to the settings of all runs
    run_one     from the settings of one run to its results
    report      from rows to Markdown
    draw        from rows to pictures in a folder, where there are any
    seeds       how many seeds are run unless --seeds says otherwise
    full_seeds  the same with --full; 0 where there is no --full
    full_adds   what else --full adds, for its help text
    options     adds the study's own arguments to a parser
    examples    arguments worth trying
    """

    name: str
    runs: Callable[[argparse.Namespace], Sequence[Any]]
    run_one: Callable[[Any], Row]
    report: Callable[[list[Row]], str]
    seeds: int
    full_seeds: int = 0
    full_adds: str = ""
    draw: Callable[[list[Row], Path], None] | None = None
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
        run, out = partial(_in_peace, self.run_one), Path(args.out)
        rows = run_sweep(self.name, self.runs(args), run, out, args.workers, not args.quiet, commit=commit())
        text = self.report(rows)
        write_text(out / "report.md", text + "\n")
        print(text)
        if self.draw is not None:
            self.draw(rows, out)
        print(f"\nWritten to {out}: {', '.join(sorted(path.name for path in out.iterdir() if path.is_file()))}.")


def _in_peace(run_one: Callable[[Any], Row], settings: Any) -> Row:
    """One run, on one thread as in all workers. A failed assumption is a result here, and no warning."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return run_one(settings)


def commit() -> str:
    """The commit of the code that runs; with a + where it was changed since."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=STUDIES, capture_output=True, text=True)

    try:
        name = git("rev-parse", "--short=8", "HEAD").stdout.strip()
        return name + ("+" if name and git("diff", "--quiet", "HEAD", "--", ":/*.py").returncode else "")
    except OSError:
        return ""


# -- what is committed ---------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reports() -> dict[Path, str]:
    """The text of report.md in each folder of this one that has a study: a report on every file of rows."""
    found = {}
    for folder in sorted({rows.parent for rows in STUDIES.glob("*/*.jsonl")}):
        if (folder / "run.py").exists():
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
