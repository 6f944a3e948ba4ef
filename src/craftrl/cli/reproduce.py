"""`craftrl reproduce STUDY`: the paper's table, and every study of a clone.

Table 1 comes with the package. A study of a clone is a folder `studies/NAME` whose `spec.py` defines `STUDY`, an object
with a name and a summary that adds its options to a parser and runs with them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

from cyclopts import Parameter

from craftrl.arguments import positive
from craftrl.errors import InvalidParameterError

SOURCE = Path(__file__).parents[2]  # `src` of a clone, or where pip installs packages
HELP = """\
examples:
  craftrl reproduce table1 --seeds 12 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1

Stopped at any point, the same command goes on. The paper's table comes with the package; all other studies are in the
folder studies/ of a clone of craftrl, and are found there."""


class Study(Protocol):
    """What can be run again."""

    name: str
    summary: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def main(self, args: argparse.Namespace) -> None: ...


class Table1:
    """The paper's table."""

    name = "table1"
    summary = "the paper's Table 1 beside ours: CRAFT and its two shortcuts"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        sizes = "trajectories per agent (default: 500 1000 5000)"
        parser.add_argument("--sizes", type=positive, nargs="+", default=[500, 1000, 5000], metavar="N", help=sizes)
        numbers = {"seeds": 20, "horizon": 30, "features": 128, "workers": 1}
        for name, default in numbers.items():
            parser.add_argument(f"--{name}", type=positive, default=default, metavar="N", help=f"default: {default}")
        parser.add_argument("--out", default="results/table1", metavar="DIR", help="default: %(default)s")
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        parser.epilog = HELP

    def main(self, args: argparse.Namespace) -> None:
        from craftrl.paper.table1 import reproduce_table1

        reproduce_table1(args.seeds, args.sizes, args.horizon, args.features, args.workers, args.out, args.quiet)


def reproduce(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Run a study again: the paper's table, its figures, and more."""
    study, args = parsed(words)
    study.main(args)


def parsed(words: Sequence[str]) -> tuple[Study, argparse.Namespace]:
    """The study that was asked for, and its options."""
    parser = _Parser(prog="craftrl reproduce", description="Run a study again.", epilog=HELP)
    commands = parser.add_subparsers(dest="study", metavar="STUDY", required=True, parser_class=_Parser)
    studies = available_studies()
    for name, study in studies.items():
        study.add_arguments(commands.add_parser(name, help=study.summary, description=study.summary))
    args = parser.parse_args(words)
    return studies[args.study], args


def available_studies() -> dict[str, Study]:
    """The studies that can be run here by name, the paper's table first."""
    clone = [SOURCE.parent] if SOURCE.name == "src" else []
    for root in (*clone, Path.cwd()):
        specs = [spec for spec in sorted(root.glob("studies/*/spec.py")) if "\nSTUDY = " in spec.read_text()]
        if specs:
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))  # workers start with a copy of this list
            studies = [Table1(), *(import_module(f"studies.{spec.parent.name}.spec").STUDY for spec in specs)]
            return {study.name: study for study in studies}
    return {Table1.name: Table1()}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **given)

    def error(self, message: str) -> NoReturn:
        short = " ".join(f"{word[:77]}..." if len(word) > 80 else word for word in message.split())
        raise InvalidParameterError(f"{self.prog}: {short}; see {self.prog} --help.")
