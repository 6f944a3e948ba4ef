"""Which runs the pixel study makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from craftrl.arguments import natural, positive
from craftrl.errors import require
from studies.study import Study
from studies.techniques import NAMES, RATES, RIVALS, add_training, check_cut


@dataclass(frozen=True)
class Run:
    """One technique on one dataset. All are trained as the library trains by default.

    n           trajectories per agent
    rates       learning rates that a rival is trained with; none for CRAFT, which takes the default
    cut         what is learned from: "whole" trajectories, "clips" from anywhere, "unequal" lengths
    style       of the agents' policies, see `PixelsExBMDP.policies`
    """

    technique: str
    walkers: int
    n: int
    seed: int
    size: int = 4
    horizon: int = 10
    layout: str = "open"
    alpha: float = 1.0
    style: str = "cells"
    rates: tuple[float, ...] = ()
    device: str = "auto"
    cut: str = "whole"


class Preset(NamedTuple):
    """Settings that belong together: a world, and how much data there is."""

    size: int
    horizon: int
    walkers: Sequence[int]
    n: Sequence[int]
    layout: str = "open"


PRESETS = {
    "small": Preset(size=3, horizon=6, walkers=(2,), n=(3000,)),
    "long": Preset(size=3, horizon=10, walkers=(4,), n=(1000,)),
    "full": Preset(size=4, horizon=10, walkers=(0, 2, 4, 8), n=(20_000,)),
    "rooms": Preset(size=9, horizon=20, walkers=(4,), n=(20_000,), layout="rooms"),
    "rooms13": Preset(size=13, horizon=26, walkers=(8,), n=(20_000,), layout="rooms"),
}


def sweep(
    preset: Preset,
    techniques: Sequence[str],
    *,
    walkers: Sequence[int] | None = None,
    n: Sequence[int] | None = None,
    seeds: int = 1,
    style: str = "cells",
    rates: Sequence[float] = RATES,
    cut: str = "whole",
    device: str = "auto",
) -> list[Run]:
    """All techniques on each dataset before the next one, so that a single process renders a dataset once."""
    world = (preset.size, preset.horizon, preset.layout, Run.alpha, style)
    return [
        Run(technique, w, m, seed, *world, tuple(rates) if technique in RIVALS else (), device, cut)
        for seed in range(seeds)
        for m in n or preset.n
        for w in walkers or preset.walkers
        for technique in techniques
    ]


def options(parser: argparse.ArgumentParser) -> None:
    presets = "world and amount of data (default: %(default)s)"
    parser.add_argument("--preset", choices=list(PRESETS), default="small", help=presets)
    techniques = "default: craft and all its rivals"
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), default=list(NAMES), metavar="T", help=techniques
    )
    parser.add_argument("--walkers", type=natural, nargs="+", metavar="W", help="figures that walk by themselves")
    parser.add_argument("--n", type=positive, nargs="+", metavar="N", help="trajectories per agent")
    styles = "how the agents differ (default: %(default)s)"
    parser.add_argument("--style", choices=["cells", "compass"], default="cells", help=styles)
    add_training(parser)


def runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    check_cut(args.cut, args.techniques)
    given = {name: getattr(args, name) for name in ("walkers", "n", "seeds", "style", "rates", "device", "cut")}
    return sweep(PRESETS[args.preset], args.techniques, **given)


STUDY = Study(
    name="pixels",
    summary="CRAFT on images, beside what people use on videos today",
    module="studies.pixels.run",
    runs=runs,
    seeds=1,
    options=options,
    examples=(
        "--workers 2",
        "--preset full --techniques craft ac-state --walkers 0 4 8 --device cuda",
        "--preset full --techniques craft paired --walkers 4 --n 1000 5000 20000",
        "--preset rooms --techniques craft --device cuda",
    ),
)
