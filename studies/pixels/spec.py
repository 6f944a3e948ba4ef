"""Which runs the pixel study makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError, require
from studies.study import Later, Study
from studies.techniques import CUTS, RATES, RIVALS, check_cut

__all__ = ["NAMES", "PRESETS", "STUDY", "Preset", "Run", "sweep"]

NAMES = {"craft": "CRAFT", **RIVALS}


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


@dataclass(frozen=True)
class Preset:
    """Settings that belong together: a world, and how much data there is."""

    size: int
    horizon: int
    walkers: tuple[int, ...]
    n: tuple[int, ...]
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
    world = {
        "size": preset.size,
        "horizon": preset.horizon,
        "layout": preset.layout,
        "style": style,
        "device": device,
        "cut": cut,
    }
    return [
        Run(technique, w, m, seed, **world, rates=tuple(rates) if technique in RIVALS else ())  # type: ignore[arg-type]
        for seed in range(seeds)
        for m in n or preset.n
        for w in walkers or preset.walkers
        for technique in techniques
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", choices=list(PRESETS), default="small", help="world and amount of data (default: %(default)s)"
    )
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), metavar="T", help="default: craft and all its rivals"
    )
    parser.add_argument("--walkers", type=natural, nargs="+", metavar="W", help="figures that walk by themselves")
    parser.add_argument("--n", type=positive, nargs="+", metavar="N", help="trajectories per agent")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=list(RATES),
        metavar="LR",
        help="learning rates that each rival is tried with (default: %(default)s)",
    )
    parser.add_argument(
        "--style", choices=["cells", "compass"], default="cells", help="how the agents differ (default: %(default)s)"
    )
    parser.add_argument("--cut", choices=CUTS, default="whole", help="of what is learned from (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--example", action="store_true", help="also draw what CRAFT saw: example.png")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    techniques = args.techniques or ["craft", *RIVALS]
    if args.example and "craft" not in techniques:
        raise InvalidParameterError(
            f"--example needs the technique craft; only {', '.join(techniques)} was given; add craft to --techniques."
        )
    check_cut(args.cut, techniques)
    given = {name: getattr(args, name) for name in ("walkers", "n", "seeds", "style", "rates", "device", "cut")}
    return sweep(PRESETS[args.preset], techniques, **given)


STUDY = Study(
    name="pixels",
    summary="CRAFT on images, beside what people use on videos today",
    seeds=1,
    runs=_runs,
    run_one=Later("studies.pixels.run", "run_one"),
    report=Later("studies.pixels.report", "report"),
    draw=Later("studies.pixels.picture", "draw"),
    writes=("table.json", "pixels.png"),
    options=_options,
    examples=(
        "--workers 2",
        "--preset full --techniques craft ac-state --walkers 0 4 8 --device cuda",
        "--preset full --techniques craft paired --walkers 4 --n 1000 5000 20000",
        "--preset rooms --techniques craft --device cuda",
    ),
)
