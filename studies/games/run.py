"""CRAFT and its rivals in worlds that others made: Atari, MiniGrid, ViZDoom."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from craftrl.arguments import positive
from craftrl.paper.sweep import Row
from studies.games.data import DATA, WORLDS, collect_missing, read
from studies.rivals import Data, cut, scored
from studies.study import Study
from studies.tables import video_report
from studies.techniques import add_techniques, techniques_of


@dataclass(frozen=True)
class Run:
    """One technique in one world. All are trained as the library trains by default.

    n      trajectories per agent to learn from, the first of the world's recording
    rates  learning rates that a rival is trained with; none for CRAFT, which takes the default
    data   the folder with one recording for each world (`studies.games.data`)
    cut    what is learned from: "whole" episodes, "clips" from anywhere, "unequal" lengths
    """

    world: str
    technique: str
    n: int = 6000
    seed: int = 0
    rates: tuple[float, ...] = ()
    data: str = "results/games-data"
    device: str = "auto"
    cut: str = "whole"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="W", help="default: all")
    parser.add_argument("--n", type=positive, default=Run.n, help="trajectories per agent (default: %(default)s)")
    parser.add_argument("--data", default=Run.data, metavar="DIR", help=DATA)
    add_techniques(parser)


def runs(args: argparse.Namespace) -> list[Run]:
    """All techniques in each world before the next one, so that a single process reads a recording once."""
    techniques = techniques_of(args)
    collect_missing(args.data, args.worlds, args.workers, not args.quiet)
    return [
        Run(world, technique, args.n, seed, rates, args.data, args.device, args.cut)
        for seed in range(args.seeds)
        for world in args.worlds
        for technique, rates in techniques
    ]


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique."""
    return scored(run.technique, data_of(run.data, run.world, run.n, run.cut), run.rates, run.seed, run.device)


@lru_cache(maxsize=1)
def data_of(folder: str, world: str, n: int, how: str) -> Data:
    """What is learned from and what is scored on; the last recording is kept."""
    train, test = read(folder, world, n)
    return Data(cut(train, how, 0), test, train)


def report(rows: list[Row]) -> str:
    return video_report(rows, "world cut")


STUDY = Study(
    "games",
    runs,
    run_one,
    report,
    1,
    options=options,
    examples=(
        "--worlds freeway --techniques craft ac-state --device cuda",
        "--data recordings --workers 12 --device cuda",
    ),
)
