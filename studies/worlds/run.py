"""Trajectories needed in the combination lock and the multi-maze."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from craftrl import CRAFT
from craftrl.core.encoders import encode_dataset
from craftrl.envs import collect
from craftrl.evaluation import accuracy_by_step, state_accuracies_by_step, state_summary
from craftrl.paper import chance_accuracy
from craftrl.paper.sweep import Row, seed_of
from studies.exact import class_of, true_bounds
from studies.study import Study
from studies.tables import grouped, mean, percent, table, worst
from studies.worlds.graphs import recovery
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

SIZES = {
    "lock": (500, 1000, 2000, 4000, 8000, 16_000),
    "multimaze": (5000, 10_000, 20_000, 40_000),
}
HORIZON = {"lock": 10, "multimaze": 8}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")


@dataclass(frozen=True)
class Run:
    """One fit of exact CRAFT in one world, on `size` trajectories per agent, at the agents' population bounds."""

    world: str
    coupling: Literal["independent", "chain"]
    size: int
    seed: int
    horizon: int
    alpha: float = 1.0


def runs(args: argparse.Namespace) -> list[Run]:
    """Both couplings at all sizes of each world, seed by seed."""
    return [
        Run(world, coupling, size, seed, HORIZON[world])
        for seed in range(args.seeds)
        for world, sizes in SIZES.items()
        for size in sizes
        for coupling in COUPLINGS
    ]


WORLDS = {"lock": LockExBMDP, "multimaze": MultiMazeExBMDP}
RECOVERED = ("accuracy", "steps_with_right_state_count", "graph_precision", "graph_recall")
HELD_OUT = 2000  # fresh trajectories per agent, for the encoders' accuracy
MIN_OBSERVATIONS = 10  # held-out observations of a state, of the 4000 at its step, for it to count by itself


def run_one(run: Run) -> dict[str, Any]:
    """Held-out accuracy, that of single states, states found, and the graph, as the encoders and as the labels make it.

    The world depends on the seed alone, the trajectories on seed and size, so both couplings see the same data.
    An edge counts as found if it has at least nu/2 of the transitions at its step: by assumption, true ones
    have nu or more.
    """
    world = WORLDS[run.world](run.horizon, seed=run.seed)
    policies = world.policies(run.alpha)
    bounds = true_bounds(world, policies)
    data = collect(world, policies, run.size, seed=_seed(run, run.size))
    model = CRAFT(class_of(world), **bounds, coupling=run.coupling, relabel=False).fit(data.tau)
    fresh = collect(world, policies, HELD_OUT, seed=_seed(run, "held out"))
    encoded, read = (encode_dataset(model.encoders_, of.tau) for of in (data, fresh))
    by_encoders, by_labels = (
        recovery(labels, data.truth.states, world.reachable_pairs(), min_share=bounds["nu"] / 2)
        for labels in (encoded, model.labels_)
    )
    found = np.array([model.n_states_[h] for h in range(1, world.H + 1)])
    true = np.array([world.n_states(h) for h in range(1, world.H + 1)])
    return {
        "accuracy": float(accuracy_by_step(read, fresh.truth.states).mean()),
        **state_summary(state_accuracies_by_step(read, fresh.truth.states, MIN_OBSERVATIONS)),
        "chance": float(chance_accuracy(world, policies).mean()),
        "steps_with_right_state_count": float((found == true).mean()),
        "graph_precision": by_encoders[0],
        "graph_recall": by_encoders[1],
        "label_graph_precision": by_labels[0],
        "label_graph_recall": by_labels[1],
        "assigned_at_end": model.trace_.steps[-1].assigned,
        "eta": bounds["eta"],
        "nu": bounds["nu"],
    }


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("worlds", run.world, run.horizon, str(run.alpha), run.seed, part)


def report(rows: list[Row]) -> str:
    """One line for each world, size and coupling."""

    def cell(mine: Sequence[Row]) -> str:
        graph = " / ".join(f"{mean(mine, name):.3f}" for name in RECOVERED[2:])
        return f"{recovered(mine)} | {mean(mine, RECOVERED[1]):.0%} | {graph} | {mean(mine, 'assigned_at_end'):.0%}"

    measures = ("accuracy / worst state (its mean over seeds), %", "recovered", "steps with all states")
    cells = table(rows, "world size coupling", "", cell, (*measures, "graph: precision / recall", "with a state at H"))
    chance = ", ".join(f"{world} {percent(mean(mine, 'chance'))}" for (world,), mine in grouped(rows, "world").items())
    return f"{cells}\n\nOne state named at every step scores: {chance}."


def recovered(rows: Sequence[Row]) -> str:
    """Accuracy, and how many runs have no held-out error, all numbers of states right and the true graph."""
    return f"{worst(rows)} | {sum(all(row[name] == 1 for name in RECOVERED) for row in rows)} of {len(rows)}"


STUDY = Study("worlds", runs, run_one, report, 3, 10)
