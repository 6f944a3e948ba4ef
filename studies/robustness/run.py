"""Broken assumptions, and whether label-free diagnostics notice."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from craftrl import CRAFT
from craftrl.arrays import Ints
from craftrl.core.encoders import encode_dataset
from craftrl.diagnostics import Diagnosis
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import (
    accuracy_by_step,
    population_accuracy,
    population_state_accuracies,
    state_accuracies_by_step,
    state_summary,
)
from craftrl.paper import chance_accuracy
from craftrl.paper.sweep import Row, seed_of
from studies.exact import class_of, fitted_aloud, true_bounds
from studies.study import Study
from studies.tables import draw_curves, grouped, mean, percent, pick, table, worst
from studies.worlds.lock import LockExBMDP
from studies.worlds.violations import VIOLATIONS

CLEAN = "none"
RESAMPLES = 5  # refits for a diagnosis
# How CRAFT is built; "default" chooses its bounds from the data, the others are given those of the unbroken world.
LEARNERS: Mapping[str, dict[str, Any]] = {
    "paper": {"coupling": "independent", "relabel": False},
    "markov": {"coupling": "markov", "relabel": True},
    "default": {},
}
# The sizes of each violation, by world; 0 is in `DATA_SIZES`.
VIOLATION_SIZES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "toy": {
        "slips": (0.1, 0.2, 0.4, 0.6),
        "leaks": (0.01, 0.02, 0.05, 0.1, 0.3, 1.0),
        "agreement": (0.05, 0.1, 0.3, 0.5),
        "mislabelled": (0.1, 0.2, 0.3, 0.4),
        "corrupted": (0.1, 0.2, 0.3, 0.5),
        "hidden": (0.1, 0.4, 0.7, 1.0),
        "starts": (0.1, 0.2, 0.3, 0.5),
        "noise": (0.1, 0.3, 0.6, 1.0),
        "alike": (0.1, 0.3, 0.5),
        "alike, sticky": (0.1, 0.3, 0.5),
    },
    "control": {
        "starts": (0.1, 0.2, 0.3, 0.5),
        "noise": (0.02, 0.05, 0.1, 0.3),
        "alike": (0.1, 0.3, 0.5),
        "alike, sticky": (0.1, 0.3, 0.5),
    },
    "lock": {"slips": (0.03, 0.1, 0.2, 0.4), "starts": (0.1, 0.3, 0.5), "noise": (0.3, 1.0)},
}
# Trajectories per agent without any violation; the first is the size at which violations are studied.
DATA_SIZES: Mapping[str, tuple[int, ...]] = {
    "toy": (1000, 100, 200, 500, 2000),
    "control": (1000,),
    "lock": (2000, 500, 1000),
}
WORLD_SIZE = {"toy": (15, 64), "control": (15, 64), "lock": (6, 10)}  # horizon, and bits per observation


@dataclass(frozen=True)
class Run:
    """One fit of one learner, with or without diagnosis.

    world, horizon, n_features  where
    violation, size             what is broken, and by how much
    n                           trajectories per agent
    n_resamples                 refits for the diagnosis; 0 for none
    """

    world: str
    violation: str
    size: float
    learner: str
    n: int
    seed: int
    horizon: int
    n_features: int
    n_resamples: int


def runs(args: argparse.Namespace) -> list[Run]:
    """All learners on every dataset, seed by seed, so that an unfinished sweep has seen every cell."""
    datasets = [
        (world, *dataset)
        for world, counts in DATA_SIZES.items()
        for dataset in (
            *((CLEAN, 0.0, n) for n in counts),
            *((kind, size, counts[0]) for kind, sizes in VIOLATION_SIZES[world].items() for size in sizes),
        )
    ]
    return [
        Run(world, violation, size, name, n, seed, *WORLD_SIZE[world], 0 if name == "markov" else RESAMPLES)
        for seed in range(args.seeds)
        for world, violation, size, n in datasets
        for name in LEARNERS
    ]


World = BitsExBMDP | LockExBMDP
HELD_OUT = 2000  # fresh trajectories per agent of the unbroken world, for the encoders' accuracy
MIN_OBSERVATIONS = 10  # of them, observations of a state for it to count by itself
NOTICED = (" models", ", warned", ", trusted")
GOOD = 0.95  # a model is right if every state of every step is read right this often


class HiddenBitsExBMDP(BitsExBMDP):
    """The toy world, but at a random share `hidden` of the steps h >= 2 a fair coin stands where s*_h should.

    The class of coordinates then holds no right encoder, and what comes closest may be a distractor.

    Paper: Section 2.2 (the block assumption), Section 2.5 (realizability)
    """

    def __init__(self, horizon: int, n_features: int, seed: int, hidden: float) -> None:
        super().__init__(horizon, n_features, seed)
        self.hidden = np.random.default_rng([seed, 1]).random(self.H) < hidden
        self.hidden[0] = False

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        x = super().emit(s_h, e_h, h, rng)
        if self.hidden[h - 1]:
            x[:, self.controllable_feature(h)] = rng.integers(0, 2, len(x))
        return x

    def feature_state_accuracy(self, h: int) -> NDArray[np.floating]:
        by_state = super().feature_state_accuracy(h)
        if self.hidden[h - 1]:
            by_state[:, self.controllable_feature(h)] = 0.5
        return by_state


def run_one(run: Run) -> dict[str, Any]:
    """True accuracy of encoders and labels, what `fit` warned of, and what each diagnostic says.

    The world depends on the seed alone and the data on all but the learner. Bounds that are not chosen from the data
    are the population values of the unbroken world: the user believes in it.
    """

    def seed(part: int | str) -> Any:
        return seed_of("robustness", run.world, run.horizon, run.n_features, run.seed, part)

    world = _world(run)
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    if run.violation in (CLEAN, "hidden"):
        data = collect(world, policies, run.n, seed(run.n))
    else:
        data = VIOLATIONS[run.violation](world, policies, run.n, run.size, seed(run.n))
    bounds = true_bounds(world, policies) if run.learner != "default" else {}
    model = CRAFT(class_of(world), **LEARNERS[run.learner], **bounds)
    told = fitted_aloud(model, data.tau)
    accuracy, summary = _accuracy(model, world, policies, seed("held out"))
    found = np.array([model.n_states_[h] == world.n_states(h) for h in range(2, world.H + 1)])
    code_accuracy = None
    if isinstance(world, BitsExBMDP):
        right = [world.feature_accuracy(h)[f.j] for h, f in enumerate(model.trace_.models, start=2)]
        code_accuracy = float(np.mean(right))
    result = {
        "accuracy": float(accuracy[1:].mean()),
        **summary,
        "chance": float(chance_accuracy(world, policies)[1:].mean()),
        "code_accuracy": code_accuracy,
        "label_accuracy": float(accuracy_by_step(model.labels_, data.truth.states)[1:].mean()),
        "right_counts": float(found.mean()),
        **told,
    }
    if not run.n_resamples:
        return result
    diagnosis = model.diagnose(data.tau, n_resamples=run.n_resamples, seed=run.seed)
    by_step = {"accuracy_by_step": accuracy, "trust_by_step": diagnosis.trust}
    return {**result, **_findings(diagnosis), **{name: values.round(4).tolist() for name, values in by_step.items()}}


def _findings(found: Diagnosis) -> dict[str, Any]:
    """One number for each diagnostic: means over h = 2..H, and the worst step where that says more."""
    assert found.stability is not None
    assert found.tests is not None
    return {
        "verdict": found.verdict,
        "score": found.score,
        "stability": float(found.stable[1:].mean()),
        "same_count": float(found.same_count[1:].mean()),
        "explained": float(found.explained[1:].mean()),
        "explained_so_far": float(np.minimum.accumulate(found.explained)[1:].mean()),
        "least_p_value": float(found.tests.p_residual.min()),
        "least_closure_p_value": float(found.tests.p_closure.min()),
        "assigned": float(found.assigned[-1]),
    }


def _world(run: Run) -> World:
    if run.violation == "hidden":
        return HiddenBitsExBMDP(run.horizon, run.n_features, run.seed, run.size)
    if run.world == "lock":
        return LockExBMDP(run.horizon, run.n_features, seed=run.seed)
    return BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=run.world == "toy")


def _accuracy(model: CRAFT, world: World, policies: Any, seed: Any) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Of the encoders on the unbroken world: at each step, and of single states over all steps."""
    if isinstance(world, BitsExBMDP):
        of = model.encoders_
        by_state = population_state_accuracies(lambda h: [of[h]], world)
        return population_accuracy(lambda h: [of[h]], world), state_summary(by_state)
    fresh = collect(world, policies, HELD_OUT, seed)
    read, true = encode_dataset(model.encoders_, fresh.tau), fresh.truth.states
    return accuracy_by_step(read, true), state_summary(state_accuracies_by_step(read, true, MIN_OBSERVATIONS))


# -- all runs ------------------------------------------------------------------------------------------------------


def report(rows: list[Row]) -> str:
    """What violations cost each learner, who notices, and how the diagnostics' numbers follow accuracy."""
    in_order = sorted(rows, key=lambda r: (r["violation"] != CLEAN, r["violation"], r["size"], r["n"]))
    judged = [row for row in rows if "score" in row]
    names = ("score", "stability", "explained_so_far", "least_p_value", "least_closure_p_value", "assigned")
    numbers = [
        {**row, "world": world, "number": name, "value": row[name]}
        for name in names
        for row in judged
        for world in ("all", row["world"])
    ]
    chance = ", ".join(f"{world} {percent(mean(mine, 'chance'))}" for (world,), mine in grouped(rows, "world").items())
    default, follows = pick(rows, learner="default"), sorted(numbers, key=lambda row: row["world"] != "all")
    return "\n\n".join(
        [
            f"Encoder accuracy / worst state (its mean over seeds), %. Chance: {chance}.",
            table(in_order, "world violation size n", "learner", worst),
            f"Who notices: models of the default learner; right: every state read right in {GOOD:.0%}.",
            table(
                default, "world violation", "", _noticed, tuple(f"{w}{m}" for w in ("wrong", "right") for m in NOTICED)
            ),
            "Rank correlation with true accuracy, by world.",
            table(follows, "number", "world", _rank_correlation),
        ]
    )


def _noticed(rows: Sequence[Row]) -> str:
    parts = [[row for row in rows if (row["state_worst"] >= GOOD) == right] for right in (False, True)]
    counts = ((len(of), sum(row["warned"] for row in of), len(pick(of, verdict="trust"))) for of in parts)
    return " | ".join(str(n) for of in counts for n in of)


def _rank_correlation(rows: Sequence[Row]) -> str:
    return f"{spearmanr([row['value'] for row in rows], [row['accuracy'] for row in rows]).statistic:.2f}"


def draw(rows: list[Row], out: Path) -> None:
    """Accuracy against the size of each violation, which begins with the unbroken world."""
    base = {"toy": 1000, "control": 1000, "lock": 2000}
    broken = [row for row in rows if row["violation"] != CLEAN]
    kinds = dict.fromkeys((row["world"], row["violation"]) for row in broken)
    unbroken = [
        {**row, "violation": violation}
        for world, violation in kinds
        for row in rows
        if (row["world"], row["violation"], row["n"]) == (world, CLEAN, base[world])
    ]
    draw_curves(
        [{**row, "size": round(100 * row["size"])} for row in [*broken, *unbroken]],
        out / "robustness.png",
        lambda r: f"{r['world']}: {r['violation']}",
        lambda r: r["learner"],
        "size",
        "size of the violation (%)",
        {f"{w}: {v}": mean([r for r in broken if (r["world"], r["violation"]) == (w, v)], "chance") for w, v in kinds},
    )


STUDY = Study("robustness", runs, run_one, report, 2, 10, draw=draw)
