"""`craftrl reproduce STUDY`: the paper's table, and every study of a clone.

Table 1 comes with the package. A study of a clone is a folder `studies/NAME` whose `spec.py` defines `STUDY`, a command
with a name and a summary (`studies.study.Study`, mostly).
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl.arguments import positive
from craftrl.cli.parser import add_commands
from craftrl.errors import InvalidParameterError

__all__ = ["add_arguments", "available_studies"]

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
    studies: list[Any] = [Table1()]
    folder = _studies_folder()
    if folder is not None:
        if str(folder.parent) not in sys.path:
            sys.path.insert(0, str(folder.parent))  # workers start with a copy of this list
        studies += [import_module(f"studies.{name}.spec").STUDY for name in _study_names(folder)]
    return {study.name: (study, study.summary) for study in studies}


class Table1:
    """The paper's table, which comes with the package."""

    name = "table1"
    summary = "the paper's Table 1 beside ours: CRAFT and its two shortcuts"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--seeds", type=positive, default=20, metavar="N", help="seeds 0..N-1 (default: 20)")
        sizes = "trajectories per agent (default: 500 1000 5000)"
        parser.add_argument("--sizes", type=positive, nargs="+", default=[500, 1000, 5000], metavar="N", help=sizes)
        parser.add_argument("--horizon", type=positive, default=30, metavar="H", help="default: %(default)s")
        parser.add_argument("--features", type=positive, default=128, metavar="M", help="default: %(default)s")
        parser.add_argument("--workers", type=positive, default=1, metavar="W", help="runs at a time (default: 1)")
        out = "results; a rerun continues (default: %(default)s)"
        parser.add_argument("--out", default="results/table1", metavar="DIR", help=out)
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        parser.epilog = EXAMPLES

    def main(self, args: argparse.Namespace) -> None:
        from craftrl.paper.table1 import reproduce_table1

        names = ("seeds", "sizes", "horizon", "features", "workers", "out", "quiet")
        reproduce_table1(**{name: getattr(args, name) for name in names})


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
