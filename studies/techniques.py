"""What the studies of videos compare with CRAFT, by name. Nothing heavy is imported here: `--help` reads it."""

from __future__ import annotations

import argparse

from craftrl.errors import InvalidParameterError, require

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
CUTS = ("whole", "clips", "unequal")  # of what is learned from


def add_techniques(parser: argparse.ArgumentParser) -> None:
    """Options that studies of videos share."""
    add, names, default = parser.add_argument, list(NAMES), " (default: %(default)s)"
    add("--techniques", nargs="+", choices=names, default=names, metavar="T", help=f"of {', '.join(names)}")
    rates = "learning rates of each rival; the best by its own held-out loss counts"
    add("--rates", nargs="+", type=float, default=[3e-4, 1e-3, 3e-3], metavar="LR", help=rates + default)
    add("--cut", choices=CUTS, default="whole", help=f"of what is learned from{default}")
    add("--device", default="auto", help=f"cpu, cuda or auto{default}")


def techniques_of(args: argparse.Namespace) -> list[tuple[str, tuple[float, ...]]]:
    """The techniques that were asked for, each with the learning rates that it is tried with; none for CRAFT."""
    require("torch", "neural")
    if rivals := [technique for technique in args.techniques if args.cut != "whole" and technique in RIVALS]:
        raise InvalidParameterError(  # a rival's states are those of each step
            f"--cut {args.cut} is for craft alone; {', '.join(rivals)} was given as well; add --techniques craft."
        )
    return [(technique, tuple(args.rates) if technique in RIVALS else ()) for technique in args.techniques]
