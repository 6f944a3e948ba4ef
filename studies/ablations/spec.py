"""Which parts are changed, each by one setting, and on what data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from craftrl.arguments import positive
from craftrl.errors import require
from studies.study import Later, Study

__all__ = ["CUTS", "NAMES", "PARTS", "STUDY", "Run", "sweep"]

# The settings object that a part belongs to, and what is changed there. Defaults: embedding=8, gaps=(1,), one network.
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
NAMES = {
    "default": "as it comes",
    "networks": "log-odds of four networks, not one",
    "calibrate": "log-odds not calibrated",
    "noise": "no noise on inputs in training",
    "gaps-2": "pairs 1 and 2 steps apart",
    "gaps-4": "pairs 1, 2 and 4 steps apart",
    "embedding-4": "embedding of 4 numbers, not 8",
    "embedding-16": "embedding of 16 numbers",
    "smooth": "misread frames not corrected by moves",
    "drives": "what is driven does not count",
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


def sweep(
    parts: Sequence[str] = tuple(PARTS), cuts: Sequence[str] = CUTS, seeds: int = 3, n: int = 500, device: str = "auto"
) -> list[Run]:
    """All parts on each dataset before the next one, so that a single process renders a dataset once."""
    return [Run(part, cut, seed, n, device=device) for seed in range(seeds) for cut in cuts for part in parts]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parts", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="P", help=f"of {', '.join(PARTS)}"
    )
    parser.add_argument("--cuts", nargs="+", choices=CUTS, default=list(CUTS), help="default: both")
    parser.add_argument("--n", type=positive, default=500, help="trajectories per agent (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    return sweep(args.parts, args.cuts, args.seeds, args.n, args.device)


STUDY = Study(
    name="ablations",
    summary="what each part of the way from video to states buys",
    seeds=3,
    runs=_runs,
    run_one=Later("studies.ablations.run", "run_one"),
    report=Later("studies.ablations.report", "report"),
    writes=("table.json",),
    options=_options,
    examples=("--device cpu --workers 16", "--parts default smooth drives --cuts clips --seeds 1"),
)
