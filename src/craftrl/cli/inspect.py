"""`craftrl inspect`: what a store holds, what may be wrong with it, and a picture of it."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl inspect data.h5
  craftrl inspect data.h5 --sheet look.png

prints agents, episodes, lengths, shapes and warnings, and draws frames of every agent into a contact sheet: data.h5
goes with data.sheet.png."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="as craftrl import or craftrl collect writes it")
    parser.add_argument("--sheet", type=Path, metavar="PNG", help="the contact sheet (default: beside DATA)")
    parser.add_argument("--no-sheet", action="store_true", help="draw nothing")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.importing import inspect

    sheet = None if args.no_sheet else args.sheet or args.data.with_name(f"{args.data.stem}.sheet.png")
    print(inspect(args.data, sheet))
    if sheet is not None:
        print(f"contact sheet: {sheet}")
