"""Accuracy against data: the paper's ERM, the chain, their limits.

The genie, the hub and the conditional chain are no learners: encoders are read straight off the pairwise losses.

Paper: Section 4 (the world and its scoring); the chain is ours
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder, Encoder, encode_dataset
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.evaluation import accuracy_by_step, confusion, population_summary, state_accuracies_by_step, state_summary
from craftrl.paper import chance_accuracy
from craftrl.paper.sweep import Row, seed_of
from studies.efficiency.population import balanced_agents, sticky_agents
from studies.exact import class_of, true_bounds
from studies.study import Study
from studies.tables import draw_curves, grouped, percent, pick, table, unfolded, worst
from studies.worlds.lock import LockExBMDP
from studies.worlds.turn_taking import turn_taking_policies
from studies.worlds.violations import collect_leaky

# What CRAFT is given in each, beside the true alpha, eta and nu.
LEARNERS: Mapping[str, dict[str, Any]] = {
    f"{coupling}{', relabelled' if relabel else ''}": {"coupling": coupling, "relabel": relabel}
    for coupling in ("independent", "chain", "markov")
    for relabel in (False, True)
}
WORLDS = {
    "paper": "the paper's world",
    "control": "control: noise bits not XORed with the state",
    "sticky": "control, agents that part at the first step and then hardly move",
}
FRESH = {f"{name}, fresh seeds": name for name in WORLDS}  # seeds that no method was chosen on
OTHERS = {
    "lock": "combination lock: three states a step",
    "three agents": "control, three agents that take turns in being different",
    "guided by noise": "control, the noise decides one move in twenty",
}
# Classes of four values, all bits and all ordered pairs of bits, at these steps (None: all); elsewhere all bits.
EXCESS: Mapping[str, int | None] = {"excess at h = 2": 2, "excess at every h": None}

SIZES: Mapping[str, tuple[int, ...]] = {
    "paper": (50, 100, 200, 500, 1000),
    "control": (50, 100, 200, 500),
    "sticky": (200, 500),
    **dict.fromkeys(EXCESS, (2000,)),
}
FULL_SIZES: Mapping[str, tuple[int, ...]] = {
    "paper": (50, 100, 200, 500, 1000, 2000, 5000),
    "control": (50, 100, 200, 500, 1000, 2000, 5000),
    "sticky": (100, 200, 500, 2000),
    **dict.fromkeys(EXCESS, (500, 2000, 8000, 20_000)),
    **dict.fromkeys(FRESH, (100, 200, 500)),
    "lock": (250, 500, 1000),
    "three agents": (50, 100, 200),
    "guided by noise": (100, 200, 1000),
}
# Horizon and features.
SHAPES = {
    **dict.fromkeys([*WORLDS, *FRESH], (30, 128)),
    **dict.fromkeys(EXCESS, (10, 8)),
    **dict.fromkeys(OTHERS, (15, 64)),
    "lock": (6, 10),
}
FULL_SEEDS = 20


@dataclass(frozen=True)
class Run:
    """All methods on one dataset: which world, how many trajectories per agent, which seed."""

    world: str
    size: int
    seed: int
    horizon: int
    n_features: int


def runs(args: argparse.Namespace) -> list[Run]:
    """Every world at every size, seed by seed; fresh seeds begin where those that anything was chosen on end."""
    sizes = FULL_SIZES if args.full else SIZES
    return [
        Run(world, size, seed + (FULL_SEEDS if world in FRESH else 0), *SHAPES[world])
        for seed in range(args.seeds)
        for world in sizes
        for size in sizes[world]
    ]


Scores = dict[str, float]
World = BitsExBMDP | LockExBMDP
MEASURES = ("accuracy", "state_mean", "state_worst", "right_counts", "assigned")
# The toy world's population values (Appendix D); the control world has the same latent dynamics and agents.
TOY: dict[str, Any] = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}
HELD_OUT = 2000  # fresh trajectories per agent, on which encoders of other worlds are scored
LEAK = 0.05  # share of the moves that noise decides


def run_one(run: Run) -> dict[str, Any]:
    """What every method scored, and what CRAFT met on the way: by measure, then by method.

    accuracy      averaged over h = 1..H as in Table 1
    state_mean    of single states: averaged over the states of a step, then over h = 2..H
    state_worst   the least of all states at all steps
    right_counts  share of steps at which the learner found as many states as there are
    assigned      share of trajectories that still have a state at H
    """
    world, agents = world_of(run)
    score = _in_excess if run.world in EXCESS else _in_others if run.world in OTHERS else _in_bits
    scores = score(run, world, agents)
    return {measure: {name: of[measure] for name, of in scores.items() if measure in of} for measure in MEASURES}


def world_of(run: Run) -> tuple[Any, Sequence[MarkovPolicy]]:
    """World and agents, from the settings alone; only the paper's own and those of excess capacity are entangled."""
    if run.world == "lock":
        lock = LockExBMDP(run.horizon, run.n_features, seed=run.seed)
        return lock, lock.policies()
    of = FRESH.get(run.world, run.world)
    world = BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=of == "paper" or run.world in EXCESS)
    if run.world in EXCESS:
        return world, balanced_agents(world)
    if run.world == "three agents":
        return world, turn_taking_policies(world, 3)
    return world, sticky_agents(world) if of == "sticky" else world.paper_policies()


def _of_fit(model: CRAFT, world: World) -> Scores:
    right = [step.n_states == world.n_states(h) for h, step in enumerate(model.trace_.steps, start=2)]
    return {"right_counts": float(np.mean(right)), "assigned": model.trace_.steps[-1].assigned}


def _of_samples(labels: NDArray[np.integer], states: NDArray[np.integer]) -> Scores:
    """Of states (n, H) that were read off fresh data."""
    overall = float(accuracy_by_step(labels, states).mean())
    return {"accuracy": overall, **state_summary(state_accuracies_by_step(labels, states))}


def _of_features(features: Sequence[int], world: BitsExBMDP) -> Scores:
    """Of encoders that read these features at steps 2..H; the first is constant and always right."""
    encoders: list[Encoder] = [ConstantEncoder(), *(CoordinateEncoder(feature, np.arange(2)) for feature in features)]
    return population_summary(lambda h: [encoders[h - 1]], world)


def _in_bits(run: Run, world: BitsExBMDP, agents: Sequence[MarkovPolicy]) -> dict[str, Scores]:
    bounds = true_bounds(world, agents) if FRESH.get(run.world, run.world) == "sticky" else TOY
    # The data of Table 1; in the control world the same states and the same noise, shown in another way.
    rng = np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))
    tau = collect(world, agents, run.size, seed=rng).tau
    scores: dict[str, Scores] = {}
    for name, options in LEARNERS.items():
        model = CRAFT(CoordinateOracle(), **bounds, **options).fit(tau)
        encoders = model.encoders_
        found = population_summary(lambda h, of=encoders: [of[h]], world)  # type: ignore[misc]
        scores[name] = {**found, **_of_fit(model, world)}
        if options["coupling"] != "independent":  # two independent f_h need not agree on a feature
            scores[f"{options['coupling']}, raw"] = _of_features([f.j for f in model.trace_.models], world)
    losses = PairLosses(tau, Grid.from_bounds(bounds["alpha"], bounds["eta"]))
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    chosen = {"genie": losses.genie(truth), "hub": losses.hub(), "conditional, raw": losses.conditional_chain()}
    return scores | {name: _of_features(features, world) for name, features in chosen.items()}


def _in_others(run: Run, world: World, agents: Sequence[MarkovPolicy]) -> dict[str, Scores]:
    """So that nothing rests on bits and two agents: on fresh data without a leak. Bounds are those without a leak."""

    def seed(part: int | str) -> Any:
        return seed_of("efficiency", run.world, run.horizon, run.n_features, run.seed, part)

    if run.world == "guided by noise":
        data = collect_leaky(world, agents, run.size, LEAK, seed(run.size))
    else:
        data = collect(world, agents, run.size, seed=seed(run.size))
    fresh, scores = collect(world, agents, HELD_OUT, seed=seed("held out")), {}
    for name, options in LEARNERS.items():
        model = CRAFT(class_of(world), **true_bounds(world, agents), **options).fit(data.tau)
        read = encode_dataset(model.encoders_, fresh.tau)
        scores[name] = {**_of_samples(read, fresh.truth.states), **_of_fit(model, world)}
    return scores


# -- a class of four values where two states are -------------------------------------------------------------------


def _in_excess(run: Run, world: BitsExBMDP, agents: Sequence[MarkovPolicy]) -> dict[str, Scores]:
    """What CRAFT scored on fresh data, and the codes that its f_h are made of.

    Phi_h, or Phi_2 alone, holds all bits and all ordered pairs of bits, 2 x_i + x_j. The chain that starts with
    (s_2, e) and goes on with s_3 XOR e, s_4 XOR e, ... attains the least loss of every pair: from the first code both
    s_2 and e can be read, so the second pair loses nothing, and later pairs are mimicked as the paper's adversary does.

    The codes are read as kindly as can be: each stands for the state that it meets most often, so that (s, e)
    counts as right. The encoders get the one-to-one relabelling of all our tables.
    """

    def seed(n: int, part: int) -> Any:
        return seed_of("excess capacity", run.horizon, run.n_features, run.seed, n, part)

    data, fresh = (collect(world, agents, n, seed=seed(n, part)) for part, n in enumerate((run.size, HELD_OUT)))
    states = fresh.truth.states
    scores: dict[str, Scores] = {}
    for coupling in ("independent", "chain", "markov"):
        oracle = FiniteOracle(partial(_class, run), n_values=4)
        model = CRAFT(oracle, **true_bounds(world, agents), coupling=coupling, relabel=False).fit(data.tau)
        scores[coupling] = {**_of_samples(encode_dataset(model.encoders_, fresh.tau), states), **_of_fit(model, world)}
        meant = np.zeros_like(states)  # at h = 1 there is one state
        for h in range(2, world.H + 1):
            code = _class(run, h)[model.trace_.models[h - 2].j](fresh.tau.at(h))
            meant[:, h - 1] = confusion(code, states[:, h - 1]).argmax(axis=1)[code]
        scores[f"{coupling}, raw"] = _of_samples(meant, states)
    return scores


def _class(run: Run, h: int) -> list[Any]:
    """All bits; at the steps of excess capacity also all ordered pairs of bits, as numbers 0..3."""
    M = range(run.n_features)
    bits = [partial(_number, i=i) for i in M]
    return bits + (
        [partial(_number, i=i, j=j) for i in M for j in M if i != j] if EXCESS[run.world] in (h, None) else []
    )


def _number(x: NDArray[Any], i: int, j: int | None = None) -> NDArray[np.int64]:
    return x[:, i].astype(np.int64) if j is None else 2 * x[:, i].astype(np.int64) + x[:, j]


# -- yardsticks, and a way not taken -------------------------------------------------------------------------------


class PairLosses:
    """The losses of all pairs of features at all steps of one dataset of bits, in fixed point.

    Encoder 0 of step 1 is the constant one; `losses[h-1]` is (|Phi_h|, |Phi_{h+1}|). Every method returns the features
    of steps 2..H.
    """

    def __init__(self, tau: TrajectoryDataset, grid: Grid) -> None:
        constant = np.zeros((tau.n, 1))
        self.bits = [tau.at(h).astype(np.float64) for h in range(2, tau.H + 1)]
        self.losses = [_losses(p, q, tau, grid) for p, q in zip([constant, *self.bits], self.bits)]
        self.alone = [_losses(constant, bits, tau, grid)[0] for bits in self.bits]

    def genie(self, truth: Sequence[int]) -> list[int]:
        """At each step the feature with the least loss between the true features on both sides.

        `truth` are the true features of steps 2..H. No chain can know its neighbours better.
        """
        after = [*(loss[:, feature] for loss, feature in zip(self.losses[1:], truth[1:])), 0]
        return [int(np.argmin(loss[f] + rest)) for loss, f, rest in zip(self.losses, [0, *truth], after)]

    def hub(self) -> list[int]:
        """At each step the feature that agrees most with all others, up to relabelling; agents are not looked at."""
        agree = [bits.T @ bits + (1 - bits).T @ (1 - bits) for bits in self.bits]
        return [int(np.argmax(np.maximum(a, len(bits) - a).sum(axis=1))) for a, bits in zip(agree, self.bits)]

    def conditional_chain(self) -> list[int]:
        """The shortest chain when each pair is charged only for what phi_{h+1} adds to phi_h.

        That is the loss of the pair less the loss of phi_h alone: I(agent; phi_{h+1} | phi_h) in place of
        I(agent; phi_h, phi_{h+1}). Inconsistent, as a test shows with infinite data.
        """
        charged = [self.losses[0], *(loss - less[:, None] for loss, less in zip(self.losses[1:], self.alone))]
        to_go = [np.zeros(charged[-1].shape[1], dtype=np.int64)]
        for loss in reversed(charged):
            to_go.insert(0, (loss + to_go[0]).min(axis=1))
        path = [0]
        for loss, rest in zip(charged, to_go[1:]):
            path.append(int(np.argmin(loss[path[-1]] + rest)))
        return path[1:]


def _losses(p: NDArray[Any], q: NDArray[Any], tau: TrajectoryDataset, grid: Grid) -> NDArray[np.int64]:
    """The least loss of every feature of one step with every feature of the next: (|Phi_h|, |Phi_{h+1}|)."""
    counts = np.empty((2, 2, p.shape[1], q.shape[1], tau.K), dtype=np.int64)
    for k in range(tau.K):
        mine = tau.agent == k
        for u, v in np.ndindex(2, 2):
            counts[u, v, ..., k] = np.rint((p[mine] == u).T.astype(float) @ (q[mine] == v).astype(float))
    return best_bins(counts, grid)[1].sum(axis=(0, 1))


# -- all runs ------------------------------------------------------------------------------------------------------


def report(rows: list[Row]) -> str:
    """Accuracy of every method in every world against the number of trajectories."""
    cells = unfolded(sorted(rows, key=lambda r: r["size"]), "method", "accuracy", "state_worst")
    blocks = ["Accuracy / worst state of a run, %; means of both over seeds, accuracy with its 95% interval."]
    for (world,), mine in grouped(rows, "world").items():
        blocks.append(f"**{world}.** One state or a random feature: {percent(chance(mine))}.")
        blocks.append(table(pick(cells, world=world), "method", "size", worst))
    return "\n\n".join(blocks)


def chance(rows: Sequence[Row]) -> float:
    """What chance scores in the worlds of these rows, averaged over h = 1..H and over seeds."""
    names = [field.name for field in fields(Run) if field.name != "size"]
    runs = dict.fromkeys(Run(size=0, **{name: row[name] for name in names}) for row in rows)
    return float(np.mean([chance_accuracy(*world_of(run)).mean() for run in runs]))


def draw(rows: list[Row], out: Path) -> None:
    shown = ("independent", "chain", "markov, relabelled", "genie", "hub")
    mine = [row for row in unfolded(rows, "method", "accuracy") if row["world"] in WORLDS and row["method"] in shown]
    draw_curves(
        sorted(mine, key=lambda r: shown.index(r["method"])),
        out / "efficiency.png",
        lambda r: r["world"],
        lambda r: r["method"],
        "size",
        "trajectories per agent",
        {world: chance(of) for (world,), of in grouped(mine, "world").items()},
    )


STUDY = Study("efficiency", runs, run_one, report, 4, FULL_SEEDS, " and all sizes", draw)
