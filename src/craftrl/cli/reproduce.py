"""`craftrl reproduce STUDY`: the paper's table, and every study of a clone.

Table 1 comes with the package. A study of a clone is a folder `studies/NAME` whose `spec.py` defines `STUDY`, a
`craftrl.paper.sweep.Study` or a command of its own.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl.arguments import positive
from craftrl.cli.parser import add_commands
from craftrl.errors import InvalidParameterError
from craftrl.paper.sweep import Study, run_sweep
from craftrl.paper.table1 import STUDY as TABLE1

__all__ = ["StudyCommand", "add_arguments", "available_studies"]

SOURCE = Path(__file__).parents[2]  # `src` of a clone, or where pip installs packages
EXAMPLES = """\
examples:
  craftrl reproduce table1 --seeds 12 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1
  craftrl reproduce figures --out results/figures

A study killed at any point goes on where it stopped when the same command is given again. The paper's table comes with
the package; all other studies are found when the command runs in a clone of craftrl."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, available_studies(), _refuse_unknown)
    parser.epilog = EXAMPLES


def available_studies() -> dict[str, tuple[Any, str]]:
    """By name the command of each study that can be run here, and what it shows: the paper's table first."""
    studies = [TABLE1]
    folder = _studies_folder()
    if folder is not None:
        if str(folder.parent) not in sys.path:
            sys.path.insert(0, str(folder.parent))  # workers start with a copy of this list
        studies += [import_module(f"studies.{name}.spec").STUDY for name in _study_names(folder)]
    found: dict[str, tuple[Any, str]] = {}
    for study in studies:  # the paper's name is taken
        command = StudyCommand(study) if isinstance(study, Study) else study
        found.setdefault(study.name, (command, study.summary))
    return found


@dataclass(frozen=True)
class StudyCommand:
    """The command of a study: runs what is not yet in the results folder, prints the report, draws the pictures."""

    study: Study

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """What all sweeps take, what this study takes, and examples."""
        study = self.study
        with_full = "" if study.full_seeds is None else f", {study.full_seeds} with --full"
        seeds = f"seeds 0..N-1 (default: {study.seeds}{with_full})"
        parser.add_argument("--seeds", type=positive, metavar="N", help=seeds)
        parser.add_argument("--workers", type=positive, default=1, metavar="W", help="runs at a time (default: 1)")
        out = "results; a rerun continues (default: %(default)s)"
        parser.add_argument("--out", default=f"results/{study.name}", metavar="DIR", help=out)
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        if study.full_seeds is not None:
            parser.add_argument("--full", action="store_true", help=f"{study.full_seeds} seeds{study.full_adds}")
        if study.options is not None:
            study.options(parser)
        examples = "".join(f"  craftrl reproduce {study.name} {example}\n" for example in study.examples)
        writes = f"writes {', '.join(study.writes)} and one row per run (rows.jsonl) to DIR"
        parser.epilog = f"examples:\n{examples}\n{writes}"

    def main(self, args: argparse.Namespace) -> None:
        """The report is printed before anything is drawn: without Matplotlib it is there all the same."""
        study, out = self.study, Path(args.out)
        if args.seeds is None:
            seeds = study.full_seeds if study.full_seeds is not None and args.full else study.seeds
            args = argparse.Namespace(**{**vars(args), "seeds": seeds})
        rows = run_sweep(study.name, study.runs(args), study.run_one, args.out, args.workers, not args.quiet)
        print(study.report(rows, out, args))
        if study.draw is not None:
            study.draw(rows, out, args)
        print(f"\nWritten to {out}: {', '.join(study.writes)} and one row per run.")


def _refuse_unknown(name: str) -> None:
    """Say in one sentence why there is no study of this name here."""
    advice = "craftrl reproduce --help says what each shows."
    if _studies_folder() is None:
        advice = "all others are in the folder studies/ of a clone of craftrl: change into one and try again."
    names = ", ".join(available_studies())
    raise InvalidParameterError(f"The study must be one of {names}; {name!r} was given; {advice}")


def _studies_folder() -> Path | None:
    """`studies` beside the `src` that this package runs from, or else in the current directory."""
    clone = [SOURCE.parent] if SOURCE.name == "src" else []
    folders = [root / "studies" for root in (*clone, Path.cwd())]
    return next((folder for folder in folders if _study_names(folder)), None)


def _study_names(folder: Path) -> list[str]:
    specs = sorted(folder.glob("*/spec.py"))
    return [spec.parent.name for spec in specs if "\nSTUDY = " in spec.read_text()]
