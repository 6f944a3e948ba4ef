"""`craftrl reproduce efficiency`: accuracy against the number of trajectories, independent and chained.

Paper: Section 4 (the world and its scoring); the chain is ours
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments
from studies.efficiency.spec import FULL_SEEDS, FULL_SIZES, SEEDS, SHAPES, SIZES, sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce efficiency --workers 2
  craftrl reproduce efficiency --full --workers 2 --out results/efficiency-full

writes rows/ (one file per dataset), rows.jsonl, curves.json, efficiency.png and excess.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "efficiency", seeds=SEEDS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds and all sizes")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.efficiency.analysis import curves, curves_json, format_curves
    from studies.efficiency.picture import draw_curves, draw_excess
    from studies.efficiency.population import limits
    from studies.efficiency.run import run_one

    sizes, seeds = (FULL_SIZES, FULL_SEEDS) if args.full else (SIZES, args.seeds)
    runs = sweep(sizes, seeds, SHAPES)
    rows = run_sweep("efficiency", runs, run_one, args.out, args.workers, progress=not args.quiet)
    found, population = curves(rows), limits()
    out = Path(args.out)
    write_json(out / "curves.json", {"curves": curves_json(found), "population": population})
    draw_curves(found, out / "efficiency.png")
    draw_excess(found, out / "excess.png")
    print(f"Accuracy in percent, 95% interval over {found[0].accuracy[0].n} seeds; columns: trajectories per agent\n")
    print(format_curves(found))
    print("\nWith infinite data, total loss of the rival less that of the true chain, in nats per trajectory:")
    for title, row in population.items():
        print(f"  {title.ljust(30)} {row['rival_minus_true']:+.4f}")
    print(f"\nWritten to {out}: curves.json, efficiency.png, excess.png and one row per dataset.")
