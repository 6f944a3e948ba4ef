"""Which models of videos are trusted, right ones and wrong ones."""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl import CRAFT, NeuralOracle, TrajectoryDataset
from craftrl.arrays import Bools, Floats, Ints, Observations
from craftrl.core.encoders import encode_dataset
from craftrl.envs import Collection, PixelsExBMDP, collect
from craftrl.errors import require
from craftrl.estimators.base import ByStep
from craftrl.evaluation import accuracy, state_accuracies
from craftrl.paper.sweep import Row, seed_of
from studies.exact import fitted_aloud
from studies.rivals import cut, training_of
from studies.study import Study
from studies.tables import pick, table, unfolded
from studies.worlds.violations import VIOLATIONS

CLEAN = "none"
TOO_FEW = 50  # trajectories per agent
# Cells a side and trajectories per agent, and how these are cut.
DATA_SIZES = {3: (TOO_FEW, 400, 1000), 4: (600, 1200)}
CUTS = {3: ("whole", "clips", "unequal"), 4: ("whole", "clips")}
# What is broken in 400 trajectories of 3x3 cells, and by how much: agents recorded under other light, or one of
# `studies.worlds.violations`.
BROKEN = {
    "light": (15, 60),
    "mislabelled": (0.1, 0.35),
    "slips": (0.2,),
    "leaks": (0.3, 1.0),
    "agreement": (0.5,),
    "alike": (0.5, 1.0),
    "noise": (0.5,),
    "corrupted": (0.2,),
}


@dataclass(frozen=True)
class Run:
    """One fit, and its verdict.

    size       cells a side
    n          trajectories per agent
    violation  what is broken in the data, and by how much (`extent`)
    planted    the number of the first of two faults that are planted in the model, where it is right; -1 for none
    """

    size: int
    n: int
    cut: str
    violation: str
    extent: float
    planted: int
    seed: int
    device: str


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def runs(args: argparse.Namespace) -> list[Run]:
    """Seed by seed, so that an unfinished sweep has seen all kinds; faults take turns, data is broken at even seeds."""
    require("torch", "neural")
    clean = [(size, n, how) for size, sizes in DATA_SIZES.items() for how in CUTS[size] for n in sizes]
    broken = [(violation, extent) for violation, extents in BROKEN.items() for extent in extents]
    found = []
    for seed in range(args.seeds):
        for i, (size, n, how) in enumerate(clean):
            planted = -1 if n == TOO_FEW else 2 * (seed + i)
            found.append(Run(size, n, how, CLEAN, 0.0, planted, seed, args.device))
        if seed % 2 == 0:
            found += [Run(3, 400, "whole", *what, -1, seed, args.device) for what in broken]
    return found


Fault = Callable[[Ints, Observations], Ints]
HORIZON = 10
HELD_OUT = 500  # trajectories per agent on which states are compared with the truth
RIGHT, COUNTED = 0.95, 0.01  # of a state's observations; states of so many of all observations
VERDICTS = ("trust", "check", "do not trust")
MEASURES = ("verdict", "accuracy", "state_worst", "found", "findings")


def run_one(run: Run) -> dict[str, Any]:
    """{fault: value} for each measure, "" for the model as it was fitted.

    state_worst  of states with 1% of the held-out observations, the least share that is read right; states found and
                 true are matched once for all observations
    findings     what speaks against the states
    """
    world = PixelsExBMDP(HORIZON, run.size, 2 * (run.size - 2), seed=run.seed)
    train, test = _collected(world, run)
    model = CRAFT(NeuralOracle(training=training_of(run.seed, run.device)))
    told = fitted_aloud(model, train.tau)
    rows = {"": _judged(model, train.tau, test)}
    if run.planted >= 0 and rows[""]["state_worst"] >= RIGHT:
        known = list(faults(model.labels_, world).items())
        for name, fault in (known[i % len(known)] for i in (run.planted, run.planted + 1)):
            rows[name] = _judged(planted(model, fault, train.tau), train.tau, test)
    return {**{name: {fault: row[name] for fault, row in rows.items()} for name in MEASURES}, **told}


def _collected(world: PixelsExBMDP, run: Run) -> tuple[Collection, Collection]:
    """What is learned from, and what is held out: of the unbroken world, but under the same light."""
    policies = world.policies(seed=run.seed)
    seeds = seed_of("verdicts", run.size, run.n, run.cut, run.violation, str(run.extent), run.seed)
    train_seed, test_seed = seeds.spawn(2)
    test = collect(world, policies, HELD_OUT, test_seed)
    if run.violation in VIOLATIONS:
        return VIOLATIONS[run.violation](world, policies, run.n, run.extent, train_seed), test
    train = cut(collect(world, policies, run.n, train_seed), run.cut, run.seed)
    return (train, test) if run.violation == CLEAN else (_lit(train, run.extent), _lit(test, run.extent))


def _lit(data: Collection, extent: float) -> Collection:
    """The same with all of agent 1's frames so much brighter."""
    frames = np.split(data.tau.rows(np.arange(data.tau.n)), np.cumsum(data.tau.counts)[:-1])
    frames[1] = np.clip(frames[1].astype(np.int64) + int(extent), 0, 255).astype(np.uint8)
    return Collection(TrajectoryDataset.from_arrays(frames), data.truth)


def _judged(model: CRAFT, tau: TrajectoryDataset, test: Collection) -> Row:
    """What is said of a model, and how right it is."""
    said = model.diagnose(tau, n_resamples=0)
    x, states = test.tau.rows(np.arange(test.tau.n)), test.truth.states.ravel()
    codes = model.encoder_(x.reshape(-1, *x.shape[2:]))
    return {
        "verdict": said.verdict,
        "accuracy": round(accuracy(codes, states), 5),
        "state_worst": round(float(state_accuracies(codes, states, round(COUNTED * len(states))).min()), 5),
        "found": len(np.unique(model.labels_[model.labels_ >= 0])),
        "findings": [finding.kind for finding in said.warnings],
    }


# -- faults --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Faulty:
    """An encoder whose states a fault changes; its embedding stays."""

    fault: Fault
    encoder: Any

    def __call__(self, x: Observations) -> Ints:
        return np.asarray(self.fault(self.encoder(x), x), dtype=np.int64)

    def embed(self, x: Observations) -> Floats:
        return np.asarray(self.encoder.embed(x))


def planted(model: CRAFT, fault: Fault, tau: TrajectoryDataset) -> CRAFT:
    """The model as if `fit` had found these states."""
    other, H = copy(model), len(model.encoders_)  # of unequal lengths, the steps that enough trajectories reach
    other.encoder_ = _Faulty(fault, model.encoder_)
    other.encoders_ = ByStep([other.encoder_] * H)
    other.labels_ = encode_dataset([other.encoder_] * H, tau.first_steps(H)).astype(np.int64)
    other.n_states_ = ByStep(len(np.unique(column[column >= 0])) for column in other.labels_.T)
    return other


def faults(labels: Ints, world: PixelsExBMDP) -> dict[str, Fault]:
    """What reads states (m,) wrongly, of observations x (m, *obs), where these are the labels found."""
    visits = np.bincount(labels[labels >= 0])
    first, second, *_, rare = np.argsort(-visits)
    pair, new = (first, second), len(visits)

    def noise(x: Observations, of: int) -> Ints:
        return world.phi_e(x, 1)[:, of]

    def odd(x: Observations) -> Bools:
        """Where the first walker is."""
        return noise(x, 0) % 2 == 1

    def drawn(x: Observations) -> Ints:
        """At random, but the same for the same observation."""
        return np.array([zlib.crc32(one.tobytes()) for one in x], dtype=np.int64)

    return {
        "two states joined": lambda s, x: np.where(s == second, first, s),
        "a rare state joined": lambda s, x: np.where(s == rare, first, s),
        "a state split at random": lambda s, x: np.where((s == first) & (drawn(x) % 2 == 0), new, s),
        "a state split by a walker": lambda s, x: np.where((s == first) & odd(x), new, s),
        "states swapped by a walker": lambda s, x: np.where(odd(x) & np.isin(s, pair), sum(pair) - s, s),
        "a walker in place of states": lambda s, x: noise(x, 0),
        "light in place of states": lambda s, x: noise(x, -2),
        "a tenth drawn at random": lambda s, x: np.where(drawn(x) % 10 == 0, drawn(x) // 10 % new, s),
    }


# -- all runs ------------------------------------------------------------------------------------------------------


def models(rows: Sequence[Row]) -> list[Row]:
    """A row for each model, fitted or with a planted fault, and its groups, the right ones first."""
    found = []
    for row in unfolded(rows, "fault", *MEASURES):
        right, broken = row["state_worst"] >= RIGHT, ", data broken" * (row["violation"] != CLEAN)
        group = f"planted: {row['fault']}" if row["fault"] else f"{'right' if right else 'wrong'}{broken}"
        found += [{**row, "group": of} for of in (group, *(["wrong, all"] if not right else []))]
    order = ("right", "right, data broken", "wrong, all", "wrong", "wrong, data broken")
    return sorted(found, key=lambda row: order.index(row["group"]) if row["group"] in order else len(order))


def verdicts(rows: Sequence[Row]) -> str:
    return " | ".join(str(n) for n in (len(rows), *(len(pick(rows, verdict=verdict)) for verdict in VERDICTS)))


def report(rows: list[Row]) -> str:
    """How often each verdict was given, by what the models are, and by the data; and which right ones were doubted."""
    every, measures = models(rows), ("models", *VERDICTS)
    fitted = [row for row in every if not row["fault"] and row["group"] != "wrong, all"]
    fitted.sort(key=lambda row: (row["size"], row["violation"] != CLEAN))
    doubted = [
        {**row, "finding": kind} for row in every if row["group"].startswith("right") for kind in row["findings"]
    ]
    return "\n\n".join(
        [
            table(every, "group", "", verdicts, measures),
            table(fitted, "size cut n violation extent group", "", verdicts, measures),
            "What speaks against right models.",
            table(doubted, "finding", "group", lambda rows: str(len(rows))),
        ]
    )


STUDY = Study(
    "verdicts",
    runs,
    run_one,
    report,
    8,
    options=options,
    examples=("--seeds 1 --workers 2", "--device cuda --workers 12"),
)
