"""Which runs the study of planning makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError, require
from studies.study import Study
from studies.techniques import RIVALS

__all__ = ["DEFAULT", "ENCODERS", "EXACT", "GAMES", "NAMES", "STUDY", "WORLDS", "Run", "sweep"]

ENCODERS = {"craft": "CRAFT", "true": "true states", **RIVALS}
REWARDS = {"ppo": "PPO from pixels, one goal", "dqn": "Q-learning from pixels, one goal"}
NAMES = {**ENCODERS, "cloning": "behaviour cloning from pixels", **REWARDS}
DEFAULT = ("craft", "true", "ac-state", "paired", "autoencoder", "cloning")
EXACT = ("craft", "true")  # of the default, what is run where CRAFT's classes are exact
GAMES = ("minigrid", "freeway")
LABELS = (0, 1, 2, 5, 10, 20, 50, 100)
MORE_LABELS = (*LABELS, 200, 500, 1000)


@dataclass(frozen=True)
class Run:
    """One technique in one world with one seed: fitted once, then scored with every number of labels.

    n        videos of each agent
    labels   numbers of labelled transitions, or of environment steps, after which success is measured
    horizon  0 for the world's own
    walkers  figures that nobody controls
    goals    how many goals are tried after each number of labels
    steps    environment steps that learners from rewards get at most; 0 for all others
    rates    learning rates that a rival is trained with, the best by its own held-out loss counts
    data     the folder with the recordings of games (`studies.games.data`)
    """

    world: str
    technique: str
    seed: int
    n: int
    labels: tuple[int, ...]
    horizon: int = 0
    size: int = 0
    walkers: int = 0
    goals: int = 50
    steps: int = 0
    rates: tuple[float, ...] = ()
    data: str = "results/games-data"
    device: str = "auto"


def _world(name: str, n: int, labels: tuple[int, ...], **more: int) -> Run:
    return Run(name, "", 0, n, labels, **more)  # type: ignore[arg-type]


WORLDS = {
    "small": [
        _world("pixels", 1000, LABELS, horizon=6, size=3, walkers=2),
        _world("multimaze", 10_000, (*LABELS[2:], 200), horizon=8, walkers=8),
    ],
    "full": [
        _world("pixels", 5000, MORE_LABELS, horizon=10, size=4, walkers=4),
        _world("rooms", 20_000, MORE_LABELS, horizon=20, size=9, walkers=4),
        _world("multimaze", 10_000, MORE_LABELS, horizon=8, walkers=8),
        _world("minigrid", 6000, MORE_LABELS, walkers=4),
        _world("freeway", 6000, MORE_LABELS),
    ],
}


def sweep(
    worlds: Sequence[Run],
    techniques: Sequence[str] | None = None,
    *,
    seeds: int = 1,
    walkers: Sequence[int] | None = None,
    n: int | None = None,
    labels: Sequence[int] | None = None,
    steps: int = 100_000,
    rates: Sequence[float] = (1e-3,),
    goals: int = Run.goals,
    data: str = Run.data,
    device: str = Run.device,
) -> list[Run]:
    """All techniques in each world before the next one; without `techniques` those of the default."""
    return [
        replace(
            world,
            technique=technique,
            seed=seed,
            n=n or world.n,
            labels=tuple(sorted(set(labels or world.labels))),
            walkers=w,
            steps=steps if technique in REWARDS else 0,
            rates=tuple(rates) if technique in RIVALS else (),
            goals=goals,
            data=data,
            device=device,
        )
        for seed in range(seeds)
        for world in worlds
        for w in (walkers if walkers and world.world in ("pixels", "rooms") else [world.walkers])
        for technique in techniques or (EXACT if world.world == "multimaze" else DEFAULT)
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    add, default = parser.add_argument, " (default: %(default)s)"
    names = [world.world for world in WORLDS["full"]]
    add("--worlds", nargs="+", choices=names, metavar="W", help="default: pixels multimaze; with --full all of them")
    add("--techniques", nargs="+", choices=list(NAMES), metavar="T", help=f"default: {' '.join(DEFAULT)}")
    add("--walkers", type=natural, nargs="+", metavar="W", help="figures that nobody controls")
    add("--n", type=positive, metavar="N", help="videos per agent")
    add("--labels", type=natural, nargs="+", metavar="K", help="numbers of labels, and of steps")
    add("--goals", type=positive, default=Run.goals, metavar="G", help=f"per seed{default}")
    add("--steps", type=positive, default=100_000, help=f"environment steps of PPO and DQN{default}")
    add("--rates", nargs="+", type=float, default=[1e-3], metavar="LR", help=f"learning rates of each rival{default}")
    add("--data", default=Run.data, metavar="DIR", help=f"recordings of games{default}")
    add("--device", default=Run.device, help=f"cpu, cuda or auto{default}")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    require("gymnasium", "envs")
    known = {world.world: world for world in WORLDS["full" if args.full else "small"]}
    chosen = args.worlds or list(known)
    missing = [name for name in chosen if name not in known]
    if missing:
        raise InvalidParameterError(
            f"Without --full the worlds are {', '.join(known)}; {', '.join(missing)} was given; add --full."
        )
    if any(technique in REWARDS for technique in args.techniques or ()):
        require("stable_baselines3", "policies")
    games = [name for name in chosen if name in GAMES]
    if games:
        from studies.games.data import collect_missing

        collect_missing(args.data, games, args.workers, not args.quiet)
    names = ("seeds", "walkers", "n", "labels", "goals", "steps", "rates", "data", "device")
    return sweep([known[name] for name in chosen], args.techniques, **{name: getattr(args, name) for name in names})


STUDY = Study(
    name="planning",
    summary="labelled transitions needed to reach goals, with states learned from videos",
    module="studies.planning.run",
    runs=_runs,
    seeds=2,
    options=_options,
    full_seeds=3,
    full_adds=" in larger worlds: 4x4 cells, four rooms, MiniGrid, Freeway",
    examples=(
        "--workers 2",
        "--worlds pixels --techniques craft ppo dqn --seeds 3",
        "--worlds pixels --techniques craft latent-action --walkers 0 2 4 8",
        "--full --device cuda --out results/planning-full",
    ),
)
