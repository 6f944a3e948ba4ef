"""Argument parsers whose commands are imported only when asked for."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any, NoReturn

from craftrl.arguments import WIDTH

__all__ = ["CommandParser", "add_commands", "bound", "number"]


class CommandParser(argparse.ArgumentParser):
    """A parser that learns its arguments from its command, once that command is asked for.

    A command has `add_arguments(parser)` and, unless it only holds further commands, `main(args)`. A module is such a
    command; it is given by name and imported when it is needed.
    """

    def __init__(self, *, command: Any = None, **kwargs: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
        self.command = command
        self.check_name: Callable[[str], None] = lambda name: None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.command is not None:
            command = import_module(self.command) if isinstance(self.command, str) else self.command
            self.command = None
            command.add_arguments(self)
            if hasattr(command, "main"):
                self.set_defaults(main=command.main)
        if args and not args[0].startswith("-"):
            self.check_name(args[0])
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """One sentence, as for all other errors; --help says the rest, and no text is shown at length."""
        short = re.sub(rf"\S{{{WIDTH},}}", lambda word: f"{word[0][: WIDTH - 3]}...", message)
        self.exit(2, f"{self.prog}: error: {short}; see {self.prog} --help.\n")


def add_commands(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, tuple[Any, str]],
    refuse: Callable[[str], None] | None = None,
) -> None:
    """Subcommands by name: the command or the name of its module, and what it does in a few words.

    `refuse` raises an error about a name that is no command, where argparse's own words would not do.
    """
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, (command, summary) in commands.items():
        text = summary[0].upper() + summary[1:] + "."
        subparsers.add_parser(name, help=summary, description=text, command=command)
    if refuse is not None and isinstance(parser, CommandParser):
        parser.check_name = lambda name: None if name in commands else refuse(name)


def number(text: str) -> float:
    """A number, or a fraction such as 5/32."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"must be a number or a fraction such as 5/32; {text!r} was given") from error


def bound(text: str) -> float | str:
    """A number, or "auto"."""
    return text if text == "auto" else number(text)
