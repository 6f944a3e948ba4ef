"""`craftrl reproduce STUDY`: one subcommand for every entry of `craftrl.reproduce.STUDIES`."""

from __future__ import annotations

import argparse

from craftrl.cli.parser import add_commands
from craftrl.reproduce import STUDIES

__all__ = ["add_arguments"]

EXAMPLES = """\
examples:
  craftrl reproduce table1 --seeds 4 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1
  craftrl reproduce figures --out results/figures

A study killed at any point goes on where it stopped when the same command is given again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, STUDIES)
    parser.epilog = EXAMPLES
