"""The arguments that all sweeps share."""

from __future__ import annotations

import argparse

from craftrl.reproduce.workers import BACKENDS

__all__ = ["add_sweep_arguments", "natural", "positive"]

DIGITS = 18  # which 64 bits hold


def natural(text: str) -> int:
    """A whole number of at least 0: seeds, and counts of what may be absent."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    digits = text.isascii() and text.isdigit()  # of which int reads 4300 at most
    if not digits or len(text) > DIGITS or int(text) < least:
        limit = f", below 10**{DIGITS}" if digits and len(text) > DIGITS else ""
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}{limit}; {text!r} was given")
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
