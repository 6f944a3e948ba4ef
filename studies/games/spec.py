"""Which runs the study of games makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from craftrl.arguments import check_target, positive
from craftrl.errors import require
from studies.study import Later, Study
from studies.techniques import CUTS, RATES, RIVALS, check_cut

__all__ = ["NAMES", "STUDY", "WORLDS", "Run", "sweep"]

WORLDS = ("freeway", "seaquest", "minigrid", "doom")
NAMES = {"craft": "CRAFT", **RIVALS}


@dataclass(frozen=True)
class Run:
    """One technique in one world. All are trained as the library trains by default.

    n       trajectories per agent to learn from, the first of the world's file
    rates   learning rates that a rival is trained with; none for CRAFT, which takes the default
    data    the folder with one file for each world (`studies.games.data`)
    cut     what is learned from: "whole" episodes, "clips" from anywhere, "unequal" lengths
    models  a folder in which CRAFT's models are kept, with some frames to draw; "" for none
    """

    world: str
    technique: str
    n: int = 6000
    seed: int = 0
    rates: tuple[float, ...] = ()
    data: str = "results/games-data"
    models: str = ""
    device: str = "auto"
    cut: str = "whole"


def sweep(
    worlds: Sequence[str],
    techniques: Sequence[str],
    n: int = 6000,
    seeds: int = 1,
    *,
    rates: Sequence[float] = RATES,
    cut: str = "whole",
    data: str = Run.data,
    models: str = "",
    device: str = "auto",
) -> list[Run]:
    """All techniques in each world before the next one, so that a single process reads a file once."""
    folders = {"data": data, "models": models, "device": device, "cut": cut}
    return [
        Run(world, technique, n, seed, tuple(rates) if technique in RIVALS else (), **folders)
        for seed in range(seeds)
        for world in worlds
        for technique in techniques
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="W", help="default: all")
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), default=list(NAMES), metavar="T", help="the same"
    )
    parser.add_argument("--n", type=positive, default=6000, help="trajectories per agent (default: %(default)s)")
    parser.add_argument(
        "--data",
        default=Run.data,
        metavar="DIR",
        help="recordings, one file for each world; what is missing is collected first, which needs the extra studies "
        "(default: %(default)s)",
    )
    parser.add_argument("--models", default="", metavar="DIR", help="keep CRAFT's models and some frames, to be drawn")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=list(RATES),
        metavar="LR",
        help="learning rates that each rival is tried with (default: %(default)s)",
    )
    parser.add_argument("--cut", choices=CUTS, default="whole", help="of what is learned from (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    check_cut(args.cut, args.techniques)
    if args.models:
        check_target("The folder of the models", args.models)
        import_module("safetensors")  # what models are kept with: better missed now than after the first fit
    Later("studies.games.data", "collect_missing")(args.data, args.worlds, args.workers or 1, not args.quiet)
    given = {name: getattr(args, name) for name in ("rates", "data", "models", "device", "cut")}
    return sweep(args.worlds, args.techniques, args.n, args.seeds, **given)


STUDY = Study(
    name="games",
    summary="CRAFT and its rivals in worlds that others made: Atari, MiniGrid, ViZDoom",
    seeds=1,
    runs=_runs,
    run_one=Later("studies.games.run", "run_one"),
    report=Later("studies.games.report", "report"),
    writes=("table.json",),
    options=_options,
    examples=(
        "--worlds freeway --techniques craft ac-state --device cuda",
        "--data recordings --models results/games/models --workers 12 --device cuda",
    ),
)
