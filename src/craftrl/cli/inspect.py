"""`craftrl inspect`: what a store holds, what may be wrong with it, a picture of it, and which agents to compare."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import natural

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl inspect data.h5
  craftrl inspect data.h5 --sheet look.png
  craftrl inspect data.h5 --pairs --no-sheet

prints agents, episodes, lengths, shapes and warnings, and draws frames of every agent into a contact sheet: data.h5
goes with data.sheet.png. With --pairs it also says how different the agents' data are, which pairs are worth comparing,
and where data is too little; that takes seconds, and with images and many agents about a minute."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="as craftrl import or craftrl collect writes it")
    parser.add_argument("--sheet", type=Path, metavar="PNG", help="the contact sheet (default: beside DATA)")
    parser.add_argument("--force", action="store_true", help="replace a file of that name that is there already")
    parser.add_argument("--no-sheet", action="store_true", help="draw nothing")
    parser.add_argument("--pairs", action="store_true", help="compare the agents, two at a time, before any learning")
    parser.add_argument("--seed", type=natural, default=0, help="which trajectories --pairs holds out (default: 0)")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.importing import inspect

    sheet = None if args.no_sheet else args.sheet or _beside(args.data)
    ours = args.sheet is None  # beside DATA lies the sheet of an earlier look
    print(inspect(args.data, sheet, overwrite=args.force or ours))
    if sheet is not None:
        print(f"contact sheet: {sheet}")
    if args.pairs:
        from craftrl.diagnostics import compare_agents

        print(compare_agents(args.data, seed=args.seed, progress=True))


def _beside(data: Path) -> Path:
    """The contact sheet's name; of data in a store, in the present folder."""
    name = f"{data.stem}.sheet.png"
    return data.with_name(name) if isinstance(data, Path) else Path(name)
