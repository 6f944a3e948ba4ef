"""Argument parsers whose commands are imported only when asked for."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

__all__ = ["CommandParser", "add_commands", "bound", "number"]


class CommandParser(argparse.ArgumentParser):
    """A parser that learns its arguments from the module of its command, once that command is asked for."""

    def __init__(self, *, module: str | None = None, **kwargs: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
        self.module = module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.module is not None:
            command = import_module(self.module)
            self.module = None
            command.add_arguments(self)
            if hasattr(command, "main"):
                self.set_defaults(main=command.main)
        return super().parse_known_args(args, namespace)


def add_commands(parser: argparse.ArgumentParser, commands: Mapping[str, tuple[str, str]]) -> None:
    """Subcommands by name: the module of each, and what it does in a few words."""
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, (module, summary) in commands.items():
        text = summary[0].upper() + summary[1:] + "."
        subparsers.add_parser(name, help=summary, description=text, module=module)


def number(text: str) -> float:
    """A number, or a fraction such as 5/32."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError) as error:
        raise argparse.ArgumentTypeError(f"must be a number or a fraction such as 5/32; {text!r} was given") from error


def bound(text: str) -> float | str:
    """A number, or "auto"."""
    return text if text == "auto" else number(text)
