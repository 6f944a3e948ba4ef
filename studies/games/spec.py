"""Which runs the study of games makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from craftrl.arguments import positive
from craftrl.errors import require
from studies.study import Study
from studies.techniques import NAMES, RATES, RIVALS, add_training, check_cut

WORLDS = ("freeway", "seaquest", "minigrid", "doom")


@dataclass(frozen=True)
class Run:
    """One technique in one world. All are trained as the library trains by default.

    n       trajectories per agent to learn from, the first of the world's file
    rates   learning rates that a rival is trained with; none for CRAFT, which takes the default
    data    the folder with one file for each world (`studies.games.data`)
    cut     what is learned from: "whole" episodes, "clips" from anywhere, "unequal" lengths
    """

    world: str
    technique: str
    n: int = 6000
    seed: int = 0
    rates: tuple[float, ...] = ()
    data: str = "results/games-data"
    device: str = "auto"
    cut: str = "whole"


def sweep(
    worlds: Sequence[str],
    techniques: Sequence[str],
    n: int,
    seeds: int,
    rates: Sequence[float] = RATES,
    data: str = Run.data,
    device: str = Run.device,
    cut: str = Run.cut,
) -> list[Run]:
    """All techniques in each world before the next one, so that a single process reads a file once."""
    return [
        Run(world, technique, n, seed, tuple(rates) if technique in RIVALS else (), data, device, cut)
        for seed in range(seeds)
        for world in worlds
        for technique in techniques
    ]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="W", help="default: all")
    names = list(NAMES)
    parser.add_argument("--techniques", nargs="+", choices=names, default=names, metavar="T", help="the same")
    parser.add_argument("--n", type=positive, default=6000, help="trajectories per agent (default: %(default)s)")
    recordings = (
        "recordings, one file for each world; what is missing is collected first, which needs the extra studies"
    )
    parser.add_argument("--data", default=Run.data, metavar="DIR", help=f"{recordings} (default: %(default)s)")
    add_training(parser)


def runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    check_cut(args.cut, args.techniques)
    from studies.games.data import collect_missing

    collect_missing(args.data, args.worlds, args.workers, not args.quiet)
    return sweep(args.worlds, args.techniques, args.n, args.seeds, args.rates, args.data, args.device, args.cut)


STUDY = Study(
    name="games",
    summary="CRAFT and its rivals in worlds that others made: Atari, MiniGrid, ViZDoom",
    module="studies.games.run",
    runs=runs,
    seeds=1,
    options=options,
    examples=(
        "--worlds freeway --techniques craft ac-state --device cuda",
        "--data recordings --workers 12 --device cuda",
    ),
)
