"""Which runs the study of planning makes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError, require
from studies.study import Study
from studies.techniques import RIVALS

__all__ = ["DEFAULT", "ENCODERS", "LEARNERS", "NAMES", "STUDY", "WORLDS", "Run", "World", "sweep"]

ENCODERS = {"craft": "CRAFT", "true": "true states", **RIVALS}
LEARNERS = {
    "cloning": "behaviour cloning from pixels",
    "ppo": "PPO from pixels, one goal",
    "dqn": "Q-learning from pixels, one goal",
}
NAMES = {**ENCODERS, **LEARNERS}
DEFAULT = ("craft", "true", "ac-state", "paired", "autoencoder", "cloning")
EXACT = ("craft", "true")  # of the default, what is run where CRAFT's classes are exact
LABELS = (0, 1, 2, 5, 10, 20, 50, 100)
MORE_LABELS = (*LABELS, 200, 500, 1000)
GAMES = ("minigrid", "freeway")


@dataclass(frozen=True)
class World:
    """A world of the study: how large it is, how many videos of each agent there are, and how many labels are tried."""

    n: int
    labels: tuple[int, ...]
    horizon: int = 0  # 0 for the world's own
    size: int = 0
    walkers: int = 0


WORLDS = {
    "small": {
        "pixels": World(n=1000, labels=LABELS, horizon=6, size=3, walkers=2),
        "multimaze": World(n=10_000, labels=(*LABELS[2:], 200), horizon=8, walkers=8),
    },
    "full": {
        "pixels": World(n=5000, labels=MORE_LABELS, horizon=10, size=4, walkers=4),
        "rooms": World(n=20_000, labels=MORE_LABELS, horizon=20, size=9, walkers=4),
        "multimaze": World(n=10_000, labels=MORE_LABELS, horizon=8, walkers=8),
        "minigrid": World(n=6000, labels=MORE_LABELS, walkers=4),
        "freeway": World(n=6000, labels=MORE_LABELS),
    },
}


@dataclass(frozen=True)
class Run:
    """One technique in one world with one seed: fitted once, then scored with every number of labels.

    n       videos of each agent
    labels  numbers of labelled transitions, or of environment steps, after which success is measured
    goals   how many goals are tried after each
    steps   environment steps that learners from rewards get at most; 0 for all others
    rates   learning rates that a rival is trained with, the best by its own held-out loss counts
    data    the folder with the recordings of games (`studies.games.data`)
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


def sweep(
    worlds: dict[str, World],
    techniques: Sequence[str] | None = None,
    *,
    seeds: int = 1,
    walkers: Sequence[int] | None = None,
    n: int | None = None,
    labels: Sequence[int] | None = None,
    goals: int = 50,
    steps: int = 100_000,
    rates: Sequence[float] = (1e-3,),
    data: str = Run.data,
    device: str = "auto",
) -> list[Run]:
    """All techniques in each world before the next one; without `techniques` those of the default."""
    return [
        Run(
            name,
            technique,
            seed,
            n or world.n,
            tuple(sorted(set(labels or world.labels))),
            world.horizon,
            world.size,
            w,
            goals,
            steps if technique in ("ppo", "dqn") else 0,
            tuple(rates) if technique in RIVALS else (),
            data,
            device,
        )
        for seed in range(seeds)
        for name, world in worlds.items()
        for w in (walkers if walkers and name in ("pixels", "rooms") else [world.walkers])
        for technique in techniques or (EXACT if name == "multimaze" else DEFAULT)
    ]


def _options(parser: argparse.ArgumentParser) -> None:
    names = list(WORLDS["full"])
    parser.add_argument(
        "--worlds", nargs="+", choices=names, metavar="W", help="default: pixels multimaze; with --full all of them"
    )
    parser.add_argument(
        "--techniques", nargs="+", choices=list(NAMES), metavar="T", help=f"default: {' '.join(DEFAULT)}"
    )
    parser.add_argument("--walkers", type=natural, nargs="+", metavar="W", help="figures that nobody controls")
    parser.add_argument("--n", type=positive, metavar="N", help="videos per agent")
    parser.add_argument("--labels", type=natural, nargs="+", metavar="K", help="numbers of labels, and of steps")
    parser.add_argument("--goals", type=positive, default=50, metavar="G", help="per seed (default: %(default)s)")
    parser.add_argument(
        "--steps", type=positive, default=100_000, help="environment steps of PPO and DQN (default: %(default)s)"
    )
    parser.add_argument(
        "--rates",
        nargs="+",
        type=float,
        default=[1e-3],
        metavar="LR",
        help="learning rates that each rival is tried with (default: %(default)s)",
    )
    parser.add_argument("--data", default=Run.data, metavar="DIR", help="recordings of games (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def _runs(args: argparse.Namespace) -> list[Run]:
    require("torch", "neural")
    require("gymnasium", "envs")
    known = WORLDS["full" if args.full else "small"]
    chosen = args.worlds or list(known)
    missing = [name for name in chosen if name not in known]
    if missing:
        raise InvalidParameterError(
            f"Without --full the worlds are {', '.join(known)}; {', '.join(missing)} was given; add --full."
        )
    if any(technique in ("ppo", "dqn") for technique in args.techniques or ()):
        require("stable_baselines3", "policies")
    games = [name for name in chosen if name in GAMES]
    if games:
        from studies.games.data import collect_missing

        collect_missing(args.data, games, args.workers, not args.quiet)
    given = {
        name: getattr(args, name)
        for name in ("seeds", "walkers", "n", "labels", "goals", "steps", "rates", "data", "device")
    }
    return sweep({name: known[name] for name in chosen}, args.techniques, **given)


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
