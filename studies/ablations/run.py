"""What each part of the way from video to states buys.

Each part is changed by one setting; worlds and data are those of the study of pixels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from craftrl import CRAFT, NeuralOracle, Partition, Training
from craftrl.arguments import positive
from craftrl.errors import require
from craftrl.paper.sweep import Row
from studies.pixels.run import Run as Pixels
from studies.pixels.run import data_of
from studies.rivals import fit_craft, scores
from studies.study import Study
from studies.tables import brief, mean, table

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
    "starts": ("partition", {"starts": False}),
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


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, states found and true, losses of the log-odds and seconds, as in the pixel study."""
    data = data_of(Pixels("craft", run.walkers, run.n, run.seed, size=run.size, horizon=run.horizon, cut=run.cut))
    return scores(fit_craft(model_of(run), data), data)


def model_of(run: Run) -> CRAFT:
    """CRAFT as it comes, but for one field of one of its settings objects."""
    where, what = PARTS[run.part]
    changed: dict[str, dict[str, Any]] = {"oracle": {}, "training": {}, "partition": {}, where: what}
    training = Training(seed=run.seed, device=run.device, **changed["training"])
    return CRAFT(NeuralOracle(training=training, **changed["oracle"]), partition=Partition(**changed["partition"]))


def report(rows: list[Row]) -> str:
    """Accuracy and states, how far the log-odds are from those of the true states, and seconds."""

    def cell(mine: Sequence[Row]) -> str:
        apart = mean(mine, "loss") - mean(mine, "table_loss")
        return f"{brief(mine)} | {apart:.4f} | {mean(mine, 'seconds'):.0f}"

    return table(rows, "part", "cut", cell, ("right / worst state, states", "nats above the true log-odds", "seconds"))


STUDY = Study(
    "ablations",
    runs,
    run_one,
    report,
    3,
    options=options,
    examples=("--device cpu --workers 16", "--parts default smooth drives --cuts clips --seeds 1"),
)
