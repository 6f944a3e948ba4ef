"""`craftrl reproduce worlds`: how many trajectories exact CRAFT needs in the lock and in the multi-maze."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments
from studies.worlds.spec import FULL_SEEDS, HORIZON, SEEDS, SIZES, sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce worlds --workers 2
  craftrl reproduce worlds --full --workers 2 --out results/worlds-full

writes rows/ (one file per run) and table.json to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "worlds", seeds=SEEDS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.worlds.analysis import cells, enough, format_table
    from studies.worlds.run import run_one

    runs = sweep(SIZES, FULL_SEEDS if args.full else args.seeds, HORIZON)
    rows = run_sweep("worlds", runs, run_one, args.out, args.workers, progress=not args.quiet)
    table = cells(rows)
    write_json(Path(args.out) / "table.json", {"cells": table})
    print(format_table(table))
    for (world, coupling), size in enough(table).items():
        found = "not reached" if size is None else f"from {size:,} trajectories per agent on"
        print(f"{world}, {coupling}: states and graph recovered in every seed: {found}")
    print(f"Written to {args.out}: table.json and one row per run.")
