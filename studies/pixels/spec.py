"""Which runs the pixel study makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from craftrl.errors import InvalidParameterError, require
from craftrl.reproduce.arguments import natural, positive
from craftrl.reproduce.study import Later, Study

__all__ = ["ABLATIONS", "BASELINES", "NAMES", "PRESETS", "STUDY", "Preset", "Run", "sweep"]

ABLATIONS = {
    "craft": "CRAFT, states shared over time",
    "craft-agents": "the same, with the agents' likelihood in the last training",
    "craft-steps": "CRAFT step by step, relabelled by each encoder",
    "craft-no-relabel": "CRAFT step by step, labels from the clusters alone",
    "craft-scan": "CRAFT step by step, relabelled, with the paper's scan over heavy bins",
    "craft-crossfit": "CRAFT, states shared over time, log-odds cross-fitted in two folds",
}
BASELINES = {
    "autoencoder": "autoencoder",
    "contrastive": "temporal contrastive",
    "forward": "forward prediction",
    "latent-action": "latent actions (LAPO)",
    "single": "agent classifier, one frame",
    "paired": "agent classifier, two frames",
    "ac-state": "AC-State, with actions",
}
NAMES = {**ABLATIONS, **BASELINES}


@dataclass(frozen=True)
class Run:
    """One technique on one dataset.

    n           trajectories per agent
    style       of the agents' policies, see `craftrl.envs.pixels_policies`
    steps       gradient steps of a training run, early stopping aside; epochs follow from it and n
    batch       observations in a minibatch
    """

    technique: str
    walkers: int
    n: int
    seed: int
    size: int = 4
    horizon: int = 10
    layout: str = "open"
    steps: int = 2400
    batch: int = 1024
    dim: int = 128
    alpha: float = 1.0
    style: str = "cells"
    device: str = "auto"


@dataclass(frozen=True)
class Preset:
    """Settings that belong together: a world, data and a budget."""

    size: int
    horizon: int
    walkers: tuple[int, ...]
    n: tuple[int, ...]
    steps: int
    batch: int
    dim: int
    layout: str = "open"


SMALL = Preset(size=3, horizon=6, walkers=(2,), n=(3000,), steps=900, batch=512, dim=64)
FULL = Preset(size=4, horizon=10, walkers=(0, 2, 4, 8), n=(20_000,), steps=2400, batch=1024, dim=128)
ROOMS = Preset(size=9, horizon=20, walkers=(4,), n=(20_000,), steps=6000, batch=2048, dim=128, layout="rooms")
PRESETS = {"small": SMALL, "full": FULL, "rooms": ROOMS}


def sweep(
    preset: Preset,
    techniques: Sequence[str],
    *,
    walkers: Sequence[int] | None = None,
    n: Sequence[int] | None = None,
    seeds: int = 1,
    style: str = "cells",
    device: str = "auto",
) -> list[Run]:
    """All techniques on each dataset before the next one, so that a dataset is rendered once."""
    world = {"size": preset.size, "horizon": preset.horizon, "layout": preset.layout, "style": style}
    budget = {"steps": preset.steps, "batch": preset.batch, "dim": preset.dim, "device": device}
    return [
        Run(technique, w, m, seed, **world, **budget)  # type: ignore[arg-type]
        for seed in range(seeds)
        for m in n or preset.n
        for w in walkers or preset.walkers
        for technique in techniques
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", choices=list(PRESETS), default="small", help="world and budget (default: %(default)s)"
    )
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), metavar="T", help="default: craft and all baselines"
    )
    parser.add_argument("--walkers", type=natural, nargs="+", metavar="W", help="figures that walk by themselves")
    parser.add_argument("--n", type=positive, nargs="+", metavar="N", help="trajectories per agent")
    parser.add_argument(
        "--style", choices=["cells", "compass"], default="cells", help="how the agents differ (default: %(default)s)"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")
    parser.add_argument("--example", action="store_true", help="also draw what CRAFT saw: example.png")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    techniques = args.techniques or ["craft", *BASELINES]
    if args.example and "craft" not in techniques:
        raise InvalidParameterError(
            f"--example needs the technique craft; only {', '.join(techniques)} was given; add craft to --techniques."
        )
    given = {"walkers": args.walkers, "n": args.n, "style": args.style, "device": args.device}
    return sweep(PRESETS[args.preset], techniques, seeds=args.seeds, **given)


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
    ),
)
