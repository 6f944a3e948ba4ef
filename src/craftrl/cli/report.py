"""`craftrl report`: one HTML page on a model, and on its data where it is given."""

from __future__ import annotations

import argparse
from pathlib import Path

from craftrl.arguments import natural
from craftrl.errors import InvalidParameterError

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl report model.safetensors --out report.html
  craftrl report model.safetensors data.h5 --out report.html
  craftrl report model.safetensors data.h5 --diagnose 10 --out report.html

With DATA, which must be what the model was fitted to, the report also shows what each state looks like, how each agent
moves, and a diagnosis. The page needs no network."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="as craftrl fit writes it")
    parser.add_argument("data", type=Path, nargs="?", metavar="DATA", help="the trajectories that it was fitted to")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="NAME.html")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.add_argument(
        "--diagnose",
        type=natural,
        metavar="N",
        help="refits on resampled trajectories for the verdict, each about as dear as a fit (default: 10 where they "
        "are quick, 3 for classifiers, 0 for networks, which are checked without)",
    )
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    from craftrl import load
    from craftrl.report import check_report, write_report

    check_report(args.out, args.force)
    if args.diagnose is not None and args.data is None:
        raise InvalidParameterError("--diagnose needs the data that the model was fitted to; give DATA too.")
    model = load(args.model)
    title = args.model.resolve().name
    write_report(model, args.out, args.data, title=title, n_resamples=args.diagnose, overwrite=args.force)
    print(f"Written to {args.out}")
