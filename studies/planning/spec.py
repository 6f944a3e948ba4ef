"""Which runs the study of planning makes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError, require
from studies.games.data import DATA, collect_missing
from studies.techniques import RIVALS

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
    technique: str = ""
    seed: int = 0
    n: int = 0
    labels: tuple[int, ...] = ()
    horizon: int = 0
    size: int = 0
    walkers: int = 0
    goals: int = 50
    steps: int = 0
    rates: tuple[float, ...] = ()
    data: str = "results/games-data"
    device: str = "auto"


# Without --full, and with it.
SMALL = {
    "pixels": Run("pixels", n=1000, labels=LABELS, horizon=6, size=3, walkers=2),
    "multimaze": Run("multimaze", n=10_000, labels=(*LABELS[2:], 200), horizon=8, walkers=8),
}
FULL = {
    "pixels": Run("pixels", n=5000, labels=MORE_LABELS, horizon=10, size=4, walkers=4),
    "rooms": Run("rooms", n=20_000, labels=MORE_LABELS, horizon=20, size=9, walkers=4),
    "multimaze": Run("multimaze", n=10_000, labels=MORE_LABELS, horizon=8, walkers=8),
    "minigrid": Run("minigrid", n=6000, labels=MORE_LABELS, walkers=4),
    "freeway": Run("freeway", n=6000, labels=MORE_LABELS),
}


def options(parser: argparse.ArgumentParser) -> None:
    add, default = parser.add_argument, " (default: %(default)s)"
    add("--worlds", nargs="+", choices=list(FULL), metavar="W", help="default: pixels multimaze; with --full all")
    add("--techniques", nargs="+", choices=list(NAMES), metavar="T", help=f"default: {' '.join(DEFAULT)}")
    add("--walkers", type=natural, nargs="+", metavar="W", help="figures that nobody controls")
    add("--n", type=positive, metavar="N", help="videos per agent")
    add("--labels", type=natural, nargs="+", metavar="K", help="numbers of labels, and of steps")
    add("--goals", type=positive, default=Run.goals, metavar="G", help=f"per seed{default}")
    add("--steps", type=positive, default=100_000, help=f"environment steps of PPO and DQN{default}")
    add("--rates", nargs="+", type=float, default=[1e-3], metavar="LR", help=f"learning rates of each rival{default}")
    add("--data", default=Run.data, metavar="DIR", help=DATA)
    add("--device", default=Run.device, help=f"cpu, cuda or auto{default}")


def runs(args: argparse.Namespace) -> list[Run]:
    """All techniques in each world before the next one."""
    require("torch", "neural")
    require("gymnasium", "envs")
    known = FULL if args.full else SMALL
    chosen = args.worlds or list(known)
    if missing := [name for name in chosen if name not in known]:
        raise InvalidParameterError(
            f"Without --full the worlds are {', '.join(known)}; {', '.join(missing)} was given; add --full."
        )
    if set(REWARDS) & set(args.techniques or ()):
        require("stable_baselines3", "policies")
    if games := [name for name in chosen if name in GAMES]:
        collect_missing(args.data, games, args.workers, not args.quiet)
    return [
        replace(
            world,
            technique=technique,
            seed=seed,
            n=args.n or world.n,
            labels=tuple(sorted(set(args.labels or world.labels))),
            walkers=walkers,
            steps=args.steps if technique in REWARDS else 0,
            rates=tuple(args.rates) if technique in RIVALS else (),
            goals=args.goals,
            data=args.data,
            device=args.device,
        )
        for seed in range(args.seeds)
        for world in (known[name] for name in chosen)
        for walkers in (args.walkers if args.walkers and world.world in ("pixels", "rooms") else [world.walkers])
        for technique in args.techniques or (EXACT if world.world == "multimaze" else DEFAULT)
    ]
