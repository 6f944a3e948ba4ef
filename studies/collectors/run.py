"""Agents with memory, that switch habits, that adapt.

Each stands beside its Markov twin, and a random agent. In the toy world an action is the next state.

Paper: Section 2.4 (data collection: neither Markovian nor i.i.d. policies are asked for)
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.arrays import Floats, Ints
from craftrl.envs import BitsExBMDP, MarkovPolicy, Policy, collect
from craftrl.envs.collection import sample_latent_paths
from craftrl.evaluation import count_visits, population_accuracy, population_state_accuracies, state_summary
from craftrl.paper import empirical_assumptions
from craftrl.paper.sweep import Row, seed_of
from studies.exact import fitted_aloud
from studies.study import Study
from studies.tables import mean, table, worst
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy, SwitchingPolicy

KINDS = ("markov", "memory", "switching", "adaptive", "two back")
COUPLINGS: tuple[Literal["independent", "markov"], ...] = ("independent", "markov")
SIZES = (200, 1000)


@dataclass(frozen=True)
class Run:
    """One fit: which collector, itself or the Markov policy that makes the same moves, how many trajectories."""

    kind: str
    twin: bool
    size: int
    coupling: Literal["independent", "markov"]
    seed: int
    horizon: int = 15
    n_features: int = 64


def runs(args: argparse.Namespace) -> list[Run]:
    """Every collector beside its twin; the Markov one is its own."""
    return [
        Run(kind, twin, size, coupling, seed)
        for seed in range(args.seeds)
        for size in SIZES
        for kind in KINDS
        for twin in ((False,) if kind == "markov" else (False, True))
        for coupling in COUPLINGS
    ]


EPISODES = 40_000  # from which a twin's tables are counted
BATCH = 50  # episodes between two changes of the adaptive collector


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy over h = 2..H and of single states, what `fit` warned of, and how far the agents differ in the data."""
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    agent = collector(run.kind, world, run.seed)
    if run.twin:
        agent = markov_twin(world, agent, run.size, run.seed)
    seed = seed_of("collectors", run.kind, run.size, run.horizon, run.n_features, run.seed, int(run.twin))
    data = collect(world, [world.persistence_policy(0.5), agent], run.size, seed)
    model = CRAFT(CoordinateOracle(n_threads=1), coupling=run.coupling)
    told = fitted_aloud(model, data.tau)
    known = empirical_assumptions(data.tau.agent, data.truth.states)
    return {
        "accuracy": float(population_accuracy(lambda h: [model.encoders_[h]], world)[1:].mean()),
        **state_summary(population_state_accuracies(lambda h: [model.encoders_[h]], world)),
        "alpha": known.alpha.value,
        "eta": known.eta.value,
        **told,
    }


def collector(kind: str, world: BitsExBMDP, seed: int) -> Policy:
    """The agent of a kind; see below what each does."""
    if kind == "markov":  # the paper's
        return world.persistence_policy(0.75)
    if kind == "switching":  # draws for each episode whether it repeats states with probability 0.9 or 0.6
        schedule = np.random.default_rng(seed).integers(2, size=EPISODES)
        return SwitchingPolicy([world.persistence_policy(0.9), world.persistence_policy(0.6)], schedule.tolist())
    if kind == "adaptive":
        return AdaptivePolicy(partial(evened_out, world), BATCH)
    return HistoryPolicy({"memory": memory, "two back": two_back}[kind])


def memory(history: Ints) -> Floats:
    """Remembers whether s_3 repeated s_2: if so it repeats every state with probability 0.9, else with 0.3.

    That is about 3/4 in the mean over episodes.
    """
    chance = np.where(history[:, 1] == history[:, 2], 0.9, 0.3) if history.shape[1] >= 3 else 0.75
    return _repeat(history, chance)


def two_back(history: Ints) -> Floats:
    """Repeats not the state but the one before it, with probability 3/4: no pair of neighbouring states shows it.

    All that pairs show is that it began in state 0, and that fades.
    """
    return _repeat(history[:, -2:-1] if history.shape[1] > 1 else history, 0.75)


def evened_out(world: BitsExBMDP, past: Ints) -> Policy:
    """Evens out its visits: after every batch it looks which state of each step was rarer so far, and stays there.

    It repeats the rarer state with probability 0.9, the other one with 0.6.
    """
    ones = past.mean(axis=0) if len(past) else np.full(world.H, 0.5)
    stay = [np.where(np.arange(2) == int(share < 0.5), 0.9, 0.6) for share in ones[: world.H - 1]]
    tables = (np.array([[p, 1 - p], [1 - q, q]])[: world.n_states(h)] for h, (p, q) in enumerate(stay, start=1))
    return MarkovPolicy(list(tables))


def markov_twin(world: BitsExBMDP, policy: Policy, size: int, seed: int) -> MarkovPolicy:
    """The Markov policy that moves from each state to each next one as often as the collector does in `size` episodes.

    So it has the same law of every pair of neighbouring observations, and no memory. Its chances are counted over many
    collections of that size, for a collector that adapts is another one in its last episode than in its first.
    """
    rng = np.random.default_rng(seed)
    states = np.concatenate([sample_latent_paths(world, policy, size, rng)[0] for _ in range(EPISODES // size)])
    visits = [count_visits(states[:, h - 1], states[:, h]) for h in range(1, world.H)]
    return MarkovPolicy([table / table.sum(axis=1, keepdims=True) for table in visits])


def _repeat(history: Ints, chance: Floats | float) -> Floats:
    """The action that repeats the last state of `history` with this chance, the other one with what is left."""
    last = history[:, -1]
    return np.stack([np.where(last == a, chance, 1 - chance) for a in (0, 1)], axis=1)


def report(rows: list[Row]) -> str:
    """Every collector beside its Markov twin."""
    rows = sorted(({**row, "who": "twin" if row["twin"] else "itself"} for row in rows), key=lambda r: r["size"])
    cells = table(rows, "kind size", "coupling who", lambda of: f"{worst(of)}, {mean(of, 'warned'):.0%}")
    return f"Accuracy / worst state (its mean over seeds), %; share of the fits that warned.\n\n{cells}"


STUDY = Study("collectors", runs, run_one, report, 2, 10)
