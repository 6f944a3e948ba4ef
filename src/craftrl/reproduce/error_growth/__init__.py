"""`craftrl reproduce error-growth`: do mistakes multiply with h? For recursive DRAFT they can, for CRAFT they add up.

Paper: Section 3.1.1
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments, positive
from craftrl.reproduce.error_growth.spec import sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce error-growth --seeds 5
  craftrl reproduce error-growth --seeds 20 --size 5000 --workers 2 --out results/error-growth

writes rows/ (one file per run), curves.json and error_growth.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "error-growth", seeds=20)
    parser.add_argument(
        "--size", type=positive, default=5000, metavar="N", help="trajectories per agent (default: %(default)s)"
    )
    parser.add_argument("--horizon", type=positive, default=20, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=16, metavar="M", help="default: %(default)s")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.error_growth.analysis import curves, curves_json, format_curves
    from craftrl.reproduce.error_growth.picture import draw_curves
    from craftrl.reproduce.error_growth.run import run_one
    from craftrl.reproduce.runner import run_sweep

    runs = sweep(args.seeds, args.size, args.horizon, args.features)
    rows = run_sweep("error-growth", runs, run_one, args.out, args.workers, progress=not args.quiet)
    found = curves(rows)
    out = Path(args.out)
    write_json(out / "curves.json", curves_json(found))
    print(format_curves(found))
    draw_curves(found, out / "error_growth.png")
    print(f"\nWritten to {out}: curves.json, error_growth.png and one row per run.")
