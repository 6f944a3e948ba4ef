"""`craftrl import`: recordings of several agents, in whatever format, as one store."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.cli.sources import add_import_options, import_options

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl import alice/ bob/ --out data.h5
  craftrl import alice/ bob/ --resize 64 --grey --stride 4 --out data.h5
  craftrl import games/ --boundaries episodes.csv --out data.h5
  craftrl import steps.csv --out data.h5

One file or folder per agent: NPZ or NPY files, CSV or Parquet tables, videos, folders of frames, Minari and LeRobot v3
datasets, or craftrl's own stores. Tables with a column `agent` hold several agents. Actions are kept aside, in
data.actions.npz. Killed at any point, it goes on when the same command is given again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="one file or folder per agent, or minari:NAME")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the store, NAME.h5")
    add_import_options(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.importing import import_data, inspect

    import_data(args.agents, args.out, **import_options(args), progress=True)
    print(inspect(args.out))
