"""CRAFT on images, beside what people use on videos today."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from craftrl.arguments import natural, positive
from craftrl.envs import PixelsExBMDP, collect
from craftrl.paper.sweep import Row, seed_of
from studies.rivals import Data, cut, scored
from studies.study import Study
from studies.tables import video_report
from studies.techniques import add_techniques, techniques_of


@dataclass(frozen=True)
class Run:
    """One technique on one dataset. All are trained as the library trains by default.

    n      trajectories per agent
    rates  learning rates that a rival is trained with; none for CRAFT, which takes the default
    cut    what is learned from: "whole" trajectories, "clips" from anywhere, "unequal" lengths
    """

    technique: str
    walkers: int
    n: int
    seed: int
    size: int = 4
    horizon: int = 10
    layout: str = "open"
    rates: tuple[float, ...] = ()
    device: str = "auto"
    cut: str = "whole"


# A world, and how much data there is unless --walkers and --n say otherwise.
PRESETS: dict[str, dict[str, Any]] = {
    "small": {"size": 3, "horizon": 6, "walkers": [2], "n": [3000]},
    "long": {"size": 3, "horizon": 10, "walkers": [4], "n": [1000]},
    "full": {"size": 4, "horizon": 10, "walkers": [0, 2, 4, 8], "n": [20_000]},
    "rooms": {"size": 9, "horizon": 20, "walkers": [4], "n": [20_000], "layout": "rooms"},
    "rooms13": {"size": 13, "horizon": 26, "walkers": [8], "n": [20_000], "layout": "rooms"},
}


def options(parser: argparse.ArgumentParser) -> None:
    presets = "world and amount of data (default: %(default)s)"
    parser.add_argument("--preset", choices=list(PRESETS), default="small", help=presets)
    parser.add_argument("--walkers", type=natural, nargs="+", metavar="W", help="figures that walk by themselves")
    parser.add_argument("--n", type=positive, nargs="+", metavar="N", help="trajectories per agent")
    add_techniques(parser)


def runs(args: argparse.Namespace) -> list[Run]:
    """All techniques on each dataset before the next one, so that a single process renders a dataset once."""
    world, techniques = dict(PRESETS[args.preset]), techniques_of(args)
    sizes, walkers = world.pop("n"), world.pop("walkers")
    return [
        Run(technique, w, n, seed, **world, rates=rates, device=args.device, cut=args.cut)
        for seed in range(args.seeds)
        for n in args.n or sizes
        for w in args.walkers or walkers
        for technique, rates in techniques
    ]


HELD_OUT = 1000  # trajectories per agent that no technique is trained on


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique.

    The world and the trajectories depend on size, walkers, n and seed alone: all techniques see the same data.
    """
    return scored(run.technique, data_of(run), run.rates, run.seed, run.device)


def data_of(run: Run) -> Data:
    """The dataset of a run; the last one is kept."""
    return _data(replace(run, technique="", rates=(), device=""))


@lru_cache(maxsize=1)
def _data(run: Run) -> Data:
    world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=run.layout, seed=run.seed)  # type: ignore[arg-type]
    policies = world.policies(seed=run.seed)
    identity = ("pixels", run.size, run.horizon, run.layout, run.walkers, run.n, run.seed)
    train_seed, test_seed = seed_of(*identity).spawn(2)
    whole = collect(world, policies, run.n, np.random.default_rng(train_seed))
    test = collect(world, policies, min(run.n, HELD_OUT), np.random.default_rng(test_seed))
    return Data(cut(whole, run.cut, run.seed), test, whole)


def report(rows: list[Row]) -> str:
    return video_report(rows, "size walkers cut n")


STUDY = Study(
    "pixels",
    runs,
    run_one,
    report,
    1,
    options=options,
    examples=(
        "--workers 2",
        "--preset full --techniques craft ac-state --walkers 0 4 8 --device cuda",
        "--preset rooms --techniques craft --device cuda",
    ),
)
