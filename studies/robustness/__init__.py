"""`craftrl reproduce robustness`: what broken assumptions cost, and whether label-free diagnostics notice."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.reproduce.arguments import add_sweep_arguments
from studies.robustness.spec import DATA_SIZES, FULL_SEEDS, SEEDS, VIOLATION_SIZES, WORLD_SIZE, sweep

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl reproduce robustness --workers 2
  craftrl reproduce robustness --full --workers 2 --out results/robustness-full

writes rows/ (one file per model), tables.json, robustness.png and trust.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "robustness", seeds=SEEDS)
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.robustness.analysis import (
        cells,
        format_cells,
        format_predictions,
        format_verdicts,
        predictions,
        study_json,
        verdicts,
    )
    from studies.robustness.distractor import SIZES, format_planted, planted_distractors
    from studies.robustness.picture import draw_robustness, draw_trust
    from studies.robustness.run import run_one

    n_seeds = FULL_SEEDS if args.full else args.seeds
    runs = sweep(n_seeds, DATA_SIZES, VIOLATION_SIZES, WORLD_SIZE)
    rows = run_sweep("robustness", runs, run_one, args.out, args.workers, progress=not args.quiet)
    diagnosed = [row for row in rows if "score" in row]
    table, foretold, planted = cells(rows), predictions(rows), planted_distractors(SIZES, n_seeds)
    out = Path(args.out)
    write_json(out / "tables.json", {**study_json(rows), "planted": planted})
    draw_robustness(table, out / "robustness.png")
    draw_trust(diagnosed, foretold, out / "trust.png")
    print(f"Encoder accuracy in percent, mean over h = 2..H, 95% interval over {table[0].accuracy.n} seeds\n")
    print(format_cells(table))
    print(f"\nWhat the diagnostics foretell, over {len(diagnosed):,} models\n")
    print(format_predictions(foretold))
    print(f"\n{format_verdicts(verdicts(rows))}")
    print("\nStates that follow the frozen distractor, planted: can the residual test see them?\n")
    print(format_planted(planted))
    print(f"\nWritten to {out}: tables.json, robustness.png, trust.png and one row per model.")
