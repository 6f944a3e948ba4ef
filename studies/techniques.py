"""What the studies of videos compare with CRAFT, by name. Nothing heavy is imported here: `--help` reads it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from craftrl.errors import InvalidParameterError

__all__ = ["CUTS", "NAMES", "RATES", "RIVALS", "add_training", "check_cut"]

RIVALS = {
    "ac-state": "AC-State, with actions",
    "paired": "agent classifier, two frames",
    "single": "agent classifier, one frame",
    "autoencoder": "autoencoder",
    "contrastive": "temporal contrastive",
    "forward": "forward prediction",
    "latent-action": "latent actions (LAPO)",
}
NAMES = {"craft": "CRAFT", **RIVALS}
RATES = (3e-4, 1e-3, 3e-3)  # learning rates that each rival is trained with; the best by its own held-out loss counts
CUTS = ("whole", "clips", "unequal")  # of what is learned from


def check_cut(cut: str, techniques: Sequence[str]) -> None:
    """Raise where a rival would learn from trajectories that are cut: its states are those of each step."""
    if rivals := [technique for technique in techniques if cut != "whole" and technique in RIVALS]:
        raise InvalidParameterError(
            f"--cut {cut} is for craft alone; {', '.join(rivals)} was given as well; add --techniques craft."
        )


def add_training(parser: argparse.ArgumentParser) -> None:
    """Options that studies of videos share."""
    rates = "learning rates that each rival is tried with (default: %(default)s)"
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES), metavar="LR", help=rates)
    parser.add_argument("--cut", choices=CUTS, default="whole", help="of what is learned from (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
