"""`craftrl reproduce STUDY`: the paper's table, and every study of a clone.

Table 1 comes with the package. A study of a clone is a module `studies/NAME/run.py` that defines `STUDY`, an object
that adds its options to a parser and runs with them. Only the study that was asked for is imported; the others are
listed by the first lines of their modules.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

from cyclopts import Parameter

from craftrl.arguments import positive
from craftrl.errors import InvalidParameterError

SOURCE = Path(__file__).parents[2]  # `src` of a clone, or where pip installs packages
TABLE_1 = "table1"
HELP = """\
examples:
  craftrl reproduce table1 --seeds 12 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1

Stopped at any point, the same command goes on. The paper's table comes with the package; all other studies are in the
folder studies/ of a clone of craftrl, and are found there."""


class Study(Protocol):
    """What can be run again."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def main(self, args: argparse.Namespace) -> None: ...


class Table1:
    """The paper's table."""

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
    study: Study = Table1()
    for name, summary in available_studies().items():
        command = commands.add_parser(name, help=summary, description=summary)
        if words and words[0] == name:
            if name != TABLE_1:
                study = import_module(f"studies.{name.replace('-', '_')}.run").STUDY
            study.add_arguments(command)
    return study, parser.parse_args(words)


def available_studies() -> dict[str, str]:
    """What each study shows that can be run here, by its name; the paper's table first."""
    found = {TABLE_1: "The paper's Table 1 beside ours: CRAFT and its two shortcuts"}
    for root in (*([SOURCE.parent] if SOURCE.name == "src" else []), Path.cwd()):
        modules = {path.parent.name: path.read_text() for path in sorted(root.glob("studies/*/run.py"))}
        if studies := {name: text for name, text in modules.items() if "\nSTUDY = " in text}:
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))  # workers start with a copy of this list
            return found | {name.replace("_", "-"): _summary(text) for name, text in studies.items()}
    return found


def _summary(module: str) -> str:
    """The first line of its docstring."""
    return (ast.get_docstring(ast.parse(module)) or "").partition("\n")[0].rstrip(".")


class _Parser(argparse.ArgumentParser):
    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **given)

    def error(self, message: str) -> NoReturn:
        short = " ".join(f"{word[:77]}..." if len(word) > 80 else word for word in message.split())
        raise InvalidParameterError(f"{self.prog}: {short}; see {self.prog} --help.")
