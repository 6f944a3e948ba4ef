"""`craftrl reproduce pixels`: CRAFT on images beside what people use today, on the same data and trunk."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.reproduce.arguments import add_sweep_arguments
from studies.pixels.spec import NAMES, PRESETS, RIVALS, sweep

__all__ = ["add_arguments", "main", "reproduce"]

EXAMPLES = """\
examples:
  craftrl reproduce pixels
  craftrl reproduce pixels --preset full --techniques craft ac-state --walkers 0 4 8 --device cuda
  craftrl reproduce pixels --preset full --techniques craft paired --walkers 4 --n 1000 5000 20000

writes rows/ (one file per run), table.json and pixels.png to DIR"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sweep_arguments(parser, "pixels", seeds=1)
    parser.add_argument(
        "--preset", choices=list(PRESETS), default="small", help="world and budget (default: %(default)s)"
    )
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), metavar="T", help="default: craft and all rivals"
    )
    parser.add_argument("--walkers", type=int, nargs="+", metavar="W", help="figures that walk by themselves")
    parser.add_argument("--n", type=int, nargs="+", metavar="N", help="trajectories per agent")
    parser.add_argument(
        "--style", choices=["cells", "compass"], default="cells", help="how the agents differ (default: %(default)s)"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--example", action="store_true", help="also draw what CRAFT saw: example.png")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from studies.pixels.analysis import format_table

    rows = reproduce(
        args.out,
        preset=args.preset,
        techniques=args.techniques,
        walkers=args.walkers,
        n=args.n,
        seeds=args.seeds,
        style=args.style,
        workers=args.workers,
        device=args.device,
        example=args.example,
        progress=not args.quiet,
    )
    print(format_table(rows))
    print(f"\nWritten to {args.out}: table.json, pixels.png and one row per run.")


def reproduce(
    out: str | Path,
    *,
    preset: str = "small",
    techniques: Sequence[str] | None = None,
    walkers: Sequence[int] | None = None,
    n: Sequence[int] | None = None,
    seeds: int = 1,
    style: str = "cells",
    workers: int = 1,
    device: str = "auto",
    example: bool = False,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run what is not yet in `out`, write table and picture, and return all rows.

    `example` adds a picture of one trajectory, the encoder's saliency and the recovered grid, by the first "craft" run.
    """
    from craftrl.errors import require

    require("torch", "neural")
    from craftrl.data.files import write_json
    from craftrl.reproduce.runner import run_sweep
    from studies.pixels.analysis import table_json
    from studies.pixels.picture import draw_study
    from studies.pixels.run import run_one

    chosen = PRESETS[preset]
    names = list(techniques or ["craft", *RIVALS])
    runs = sweep(chosen, names, walkers=walkers, n=n, seeds=seeds, style=style, device=device)
    rows = run_sweep("pixels", runs, run_one, out, workers, progress)
    write_json(Path(out) / "table.json", table_json(rows))
    draw_study(rows, Path(out) / "pixels.png")
    if example:
        from studies.pixels.example import draw_example

        draw_example(next(r for r in runs if r.technique == "craft"), Path(out) / "example.png")
    return rows
