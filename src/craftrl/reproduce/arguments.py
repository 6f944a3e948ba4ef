"""The arguments that all sweeps share."""

from __future__ import annotations

import argparse

from craftrl.reproduce.workers import BACKENDS

__all__ = ["add_sweep_arguments", "natural", "positive"]


def natural(text: str) -> int:
    """A whole number of at least 0: seeds, and counts of what may be absent."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0; {text!r} was given")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; {text!r} was given")
    return int(text)


def add_sweep_arguments(parser: argparse.ArgumentParser, name: str, default_seeds: str) -> None:
    """--seeds, --workers, --backend, --address, --out and --quiet, as every sweep has them; seeds None if left out."""
    parser.add_argument("--seeds", type=positive, metavar="N", help=f"seeds 0..N-1 (default: {default_seeds})")
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="W",
        help="runs at a time (default: 1; with --address, as many as the cluster has cores)",
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="loky",
        help="where: in processes of this machine (loky, the default), or in a cluster of Ray or Dask",
    )
    parser.add_argument("--address", metavar="A", help="of a cluster that runs already; without it one is started here")
    parser.add_argument(
        "--out", default=f"results/{name}", metavar="DIR", help="results; a rerun continues (default: %(default)s)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
