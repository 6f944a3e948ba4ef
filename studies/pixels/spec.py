"""Which runs the pixel study makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError, require
from studies.study import Later, Study
from studies.techniques import RATES, RIVALS

__all__ = ["ABLATIONS", "BOUNDS", "NAMES", "PRESETS", "STUDY", "Preset", "Run", "sweep"]

ABLATIONS = {
    "craft": "CRAFT, states shared over time",
    "craft-agents": "the same, with the agents' likelihood in the last training",
    "craft-steps": "CRAFT step by step, relabelled by each encoder",
    "craft-no-relabel": "CRAFT step by step, labels from the clusters alone",
    "craft-scan": "CRAFT step by step, relabelled, with the paper's scan over heavy bins",
    "craft-crossfit": "CRAFT, states shared over time, log-odds cross-fitted in two folds",
}
NAMES = {**ABLATIONS, **RIVALS}
BOUNDS = ("true", "auto")


@dataclass(frozen=True)
class Run:
    """One technique on one dataset. All are trained as the library trains by default.

    n           trajectories per agent
    bounds      CRAFT's alpha, eta and nu: "true", those of the world's population, or "auto", chosen from the data;
                "none" for its rivals
    rates       learning rates that a rival is trained with; none for CRAFT, which takes the default
    style       of the agents' policies, see `craftrl.envs.pixels_policies`
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
    bounds: str = "true"
    rates: tuple[float, ...] = ()
    device: str = "auto"


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
    bounds: Sequence[str] = BOUNDS[:1],
    rates: Sequence[float] = RATES,
    device: str = "auto",
) -> list[Run]:
    """All techniques on each dataset before the next one, so that a single process renders a dataset once."""
    world = {"size": preset.size, "horizon": preset.horizon, "layout": preset.layout, "style": style, "device": device}
    kinds = [
        (technique, {"bounds": b, "rates": r})
        for technique in techniques
        for b, r in ([("none", tuple(rates))] if technique in RIVALS else [(b, ()) for b in bounds])
    ]
    return [
        Run(technique, w, m, seed, **world, **kind)  # type: ignore[arg-type]
        for seed in range(seeds)
        for m in n or preset.n
        for w in walkers or preset.walkers
        for technique, kind in kinds
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
        "--bounds",
        nargs="+",
        choices=BOUNDS,
        default=["true"],
        help="alpha, eta and nu of CRAFT: the world's, or chosen from the data; both one after the other if both are "
        "given (default: true)",
    )
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
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--example", action="store_true", help="also draw what CRAFT saw: example.png")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    techniques = args.techniques or ["craft", *RIVALS]
    if args.example and "craft" not in techniques:
        raise InvalidParameterError(
            f"--example needs the technique craft; only {', '.join(techniques)} was given; add craft to --techniques."
        )
    given = {name: getattr(args, name) for name in ("walkers", "n", "seeds", "style", "bounds", "rates", "device")}
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
        "--preset rooms --techniques craft --bounds true auto --device cuda",
    ),
)
