"""What each part of the way from video to states buys: which parts are changed, each by one setting."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from craftrl.arguments import positive
from craftrl.errors import require
from studies.study import Study

# What is changed: the settings object that it belongs to, and the change. Defaults: embedding=8, gaps=(1,),
# one network.
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("oracle", {}),
    "networks": ("oracle", {"networks": 4}),
    "calibrate": ("training", {"calibrate": False}),
    "noise": ("training", {"noise": 0.0}),
    "gaps-2": ("oracle", {"gaps": (1, 2)}),
    "gaps-4": ("oracle", {"gaps": (1, 2, 4)}),
    "embedding-4": ("oracle", {"embedding": 4}),
    "embedding-16": ("oracle", {"embedding": 16}),
    "smooth": ("partition", {"smooth": False}),
    "drives": ("partition", {"drives": False}),
}
CUTS = ("whole", "clips")


@dataclass(frozen=True)
class Run:
    """CRAFT with one part changed, in the pixel world of `size` x `size` cells.

    n    trajectories per agent
    cut  what is learned from: "whole" trajectories with one start, or "clips" from anywhere in them
    """

    part: str
    cut: str
    seed: int
    n: int = 500
    size: int = 4
    horizon: int = 10
    walkers: int = 4
    device: str = "auto"


def options(parser: argparse.ArgumentParser) -> None:
    parts = list(PARTS)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, metavar="P", help=f"of {', '.join(parts)}")
    parser.add_argument("--cuts", nargs="+", choices=CUTS, default=list(CUTS), help="default: both")
    parser.add_argument("--n", type=positive, default=500, help="trajectories per agent (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def runs(args: argparse.Namespace) -> list[Run]:
    """All parts on each dataset before the next one, so that a single process renders a dataset once."""
    require("torch", "neural")
    return [
        Run(part, cut, seed, args.n, device=args.device)
        for seed in range(args.seeds)
        for cut in args.cuts
        for part in args.parts
    ]


STUDY = Study(
    "ablations",
    "what each part of the way from video to states buys",
    runs,
    3,
    options=options,
    examples=("--device cpu --workers 16", "--parts default smooth drives --cuts clips --seeds 1"),
)
