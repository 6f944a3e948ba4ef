"""`craftrl reproduce bounds`: alpha, eta and nu known, off by a factor of 2 either way, or chosen from the data."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments

__all__ = ["add_arguments", "main"]

SEEDS, FULL_SEEDS = 2, 20
EXAMPLES = """\
examples:
  craftrl reproduce bounds --workers 2
  craftrl reproduce bounds --full --workers 2 --out results/bounds-full

writes rows/ (one file per dataset), rows.jsonl, table.json and bounds.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "bounds", seeds=SEEDS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.bounds.analysis import cells, cells_json, format_grid, format_summary
    from studies.bounds.picture import draw_cells
    from studies.bounds.run import run_one
    from studies.bounds.spec import SIZES, sweep

    runs = sweep(SIZES, FULL_SEEDS if args.full else args.seeds)
    rows = run_sweep("bounds", runs, run_one, args.out, args.workers, progress=not args.quiet)
    table = cells(rows)
    out = Path(args.out)
    write_json(out / "table.json", cells_json(table))
    draw_cells(table, out / "bounds.png")
    print(f"Accuracy in percent with 95% intervals over seeds\n\n{format_summary(table)}\n")
    print("\n\n".join(format_grid(table, size, "independent") for size in dict.fromkeys(cell.size for cell in table)))
    print(f"\nWritten to {out}: table.json, bounds.png and one row per dataset.")
