"""`craftrl reproduce table1`: the paper's table, ours beside the published numbers.

Paper: Section 4, Table 1
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments, positive
from craftrl.reproduce.table1.spec import PAPER_SEEDS, PAPER_SIZES, Run, sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce table1 --seeds 4 --workers 2
  craftrl reproduce table1 --seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1

writes rows/ (one file per run), table.json and table1.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "table1", seeds=PAPER_SEEDS)
    parser.add_argument(
        "--sizes", type=positive, nargs="+", default=list(PAPER_SIZES), metavar="N", help="trajectories per agent"
    )
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from craftrl.reproduce.table1.analysis import READING, agreement, cells, format_table, table_json
    from craftrl.reproduce.table1.picture import draw_table
    from craftrl.reproduce.table1.run import run_one

    runs = sweep(args.sizes, args.seeds, args.horizon, args.features)
    rows = run_sweep("table1", runs, run_one, args.out, args.workers, progress=not args.quiet)
    table = cells(rows)
    out = Path(args.out)
    write_json(out / "table.json", table_json(table, _command(args)))
    print(f"Average encoder accuracy in percent, H = {args.horizon}, M = {args.features}, {args.seeds} seeds\n")
    print(f"{format_table(table)}\n\n{agreement(table)}\n{READING}")
    draw_table(table, out / "table1.png")
    print(f"Written to {out}: table.json, table1.png and one row per run.")


def _command(args: argparse.Namespace) -> str:
    """The command that makes this table, for whoever finds the file."""
    sizes = " ".join(map(str, args.sizes))
    world = f"--horizon {args.horizon} --features {args.features}"
    return f"craftrl reproduce table1 --seeds {args.seeds} --sizes {sizes} {world}"
