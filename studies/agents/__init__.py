"""`craftrl reproduce agents`: two to six agents at a fixed total number of trajectories.

Paper: Section 2.3 ("straightforwardly generalized to support more agents")
"""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments
from studies.agents.spec import FULL_SEEDS, FULL_TOTALS, SEEDS, TOTALS, sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce agents --workers 2
  craftrl reproduce agents --full --workers 2 --out results/agents-full

writes rows/ (one file per run), rows.jsonl, table.json and agents.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "agents", seeds=SEEDS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds and all totals")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.agents.analysis import cells, cells_json, format_cells
    from studies.agents.picture import draw_cells
    from studies.agents.run import run_one

    totals, seeds = (FULL_TOTALS, FULL_SEEDS) if args.full else (TOTALS, args.seeds)
    rows = run_sweep("agents", sweep(totals, seeds), run_one, args.out, args.workers, progress=not args.quiet)
    table = cells(rows)
    out = Path(args.out)
    write_json(out / "table.json", cells_json(table))
    draw_cells(table, out / "agents.png")
    print(f"Accuracy in percent, 95% interval over {seeds} seeds, toy world\n\n{format_cells(table)}")
    print(f"\nWritten to {out}: table.json, agents.png and one row per run.")
