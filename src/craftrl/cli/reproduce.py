"""`craftrl reproduce STUDY`: one subcommand for every study that is found."""

from __future__ import annotations

import argparse

from craftrl.cli.parser import add_commands
from craftrl.reproduce.catalogue import available_studies, refuse_unknown_study

__all__ = ["add_arguments"]

EXAMPLES = """\
examples:
  craftrl reproduce table1 --seeds 4 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1
  craftrl reproduce figures --out results/figures

A study killed at any point goes on where it stopped when the same command is given again. The paper's studies (table1,
error-growth, figures) come with the package; all others are found when the command runs in a clone of craftrl."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, available_studies(), refuse_unknown_study)
    parser.epilog = EXAMPLES
