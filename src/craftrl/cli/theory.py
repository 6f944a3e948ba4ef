"""`craftrl theory`: the paper's quantities, for a world or for data whose states are known."""

from __future__ import annotations

import argparse

from craftrl.cli.parser import add_commands

__all__ = ["add_arguments"]

COMMANDS = {
    "assumptions": ("craftrl.cli.theory_assumptions", "alpha, eta, nu and nu', and where each is attained"),
    "sample-size": ("craftrl.cli.theory_sample_size", "how much data the theorem asks for, or what it promises"),
}

EXAMPLES = """\
examples:
  craftrl theory assumptions --world bits
  craftrl theory assumptions --data data.h5 --truth data.truth.npz
  craftrl theory sample-size --world bits --epsilon-0 0.05 --delta 0.05"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_commands(parser, COMMANDS)
    parser.epilog = EXAMPLES
