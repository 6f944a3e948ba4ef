"""Does `craftrl inspect --pairs` say the right thing? Agents that differ, act alike, part, learn, or are hardly seen.

    PYTHONPATH=. python benchmarks/agent_pairs.py verdicts --seeds 5
    python benchmarks/agent_pairs.py ranking --seeds 10

`verdicts` counts, for each kind of agents in each world, how often each verdict was given; agents that act alike are
tried with eight times as many seeds, for the rate of false alarms. `ranking` takes five agents from random to expert,
ranks their ten pairs before any learning, fits CRAFT on each pair with the same trajectories, and gives Spearman's rank
correlation of the predicted order with the accuracy on 1000 fresh trajectories of each agent.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import RESULTS, machine
from numpy.typing import NDArray
from scipy.stats import spearmanr

from craftrl import CRAFT, TrajectoryDataset
from craftrl.data.files import write_json
from craftrl.diagnostics import compare_agents
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.evaluation import encoder_accuracy
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP
from studies.worlds.policies import SwitchingPolicy

OUT = RESULTS / "agent_pairs.json"
FRESH = 1000
Case = Callable[[int], TrajectoryDataset]


def bits(n: int, stay: tuple[float, float], horizon: int = 10, features: int = 32) -> Case:
    """Agents that repeat the state with these chances; the paper's are 0.5 and 0.75."""

    def case(seed: int) -> TrajectoryDataset:
        world = BitsExBMDP(horizon, features, seed=seed)
        return collect(world, [world.persistence_policy(p) for p in stay], n, seed=seed).tau

    return case


def of_world(make: Callable[[int], Any], n: int, alike: bool) -> Case:
    """The world's own agents, or the first of them twice."""

    def case(seed: int) -> TrajectoryDataset:
        world = make(seed)
        a, b = world.policies()
        return collect(world, [a, a if alike else b], n, seed=seed).tau

    return case


def walk(n: int, right: tuple[float, float], cells: int = 3, steps: int = 3, noise: float | None = 0.1) -> Case:
    """The README's feature vectors: cells in a row and a distraction, with noise, or as whole numbers without."""

    def case(seed: int) -> TrajectoryDataset:
        rng = np.random.default_rng(seed)
        return TrajectoryDataset.from_arrays([_walk(rng, n, p, cells, steps, noise) for p in right])

    return case


def _walk(rng: np.random.Generator, n: int, right: float, cells: int, steps: int, noise: float | None) -> NDArray[Any]:
    cell = np.full((n, steps), cells // 2)
    for h in range(1, steps):
        cell[:, h] = np.clip(cell[:, h - 1] + np.where(rng.random(n) < right, 1, -1), 0, cells - 1)
    x = np.stack([cell, rng.integers(3, size=cell.shape)], axis=-1)
    return x if noise is None else x + noise * rng.normal(size=x.shape)


def learning(n: int) -> Case:
    """One agent that is random first and persistent later, beside a random one."""

    def case(seed: int) -> TrajectoryDataset:
        world = BitsExBMDP(10, 32, seed=seed)
        policies = [world.persistence_policy(p) for p in (0.5, 0.9)]
        improving = SwitchingPolicy(policies, [0] * (n // 2) + [1] * (n - n // 2))
        return collect(world, [policies[0], improving], n, seed=seed).tau

    return case


def small_pixels(seed: int) -> PixelsExBMDP:
    return PixelsExBMDP(horizon=4, size=2, n_walkers=1, seed=seed)


CASES: dict[str, dict[str, Case]] = {
    "different": {
        "bits, 32 x 10 steps, n = 200": bits(200, (0.5, 0.75)),
        "bits, 128 x 30 steps, n = 200": bits(200, (0.5, 0.75), 30, 128),
        "lock, n = 1000": of_world(lambda seed: LockExBMDP(seed=seed), 1000, False),
        "mazes, n = 500": of_world(lambda seed: MultiMazeExBMDP(seed=seed), 500, False),
        "features, n = 200": walk(200, (0.2, 0.8)),
        "pixels, n = 300": of_world(small_pixels, 300, False),
    },
    "alike": {
        "bits, 32 x 10 steps, n = 200": bits(200, (0.75, 0.75)),
        "bits, 32 x 10 steps, n = 30": bits(30, (0.75, 0.75)),
        "lock, n = 1000": of_world(lambda seed: LockExBMDP(seed=seed), 1000, True),
        "features, n = 200": walk(200, (0.6, 0.6)),
        "pixels, n = 300": of_world(small_pixels, 300, True),
    },
    "other places": {
        "whole numbers, n = 200": walk(200, (0.02, 0.98), 13, 6, None),
        "features, n = 200": walk(200, (0.02, 0.98), 13, 6),
    },
    "hardly recorded": {
        "bits, 32 x 10 steps, n = 20": bits(20, (0.5, 0.75)),
        "bits, 32 x 10 steps, n = 40": bits(40, (0.5, 0.75)),
        "features, n = 20": walk(20, (0.4, 0.6)),
    },
    "one of them learns": {"bits, 32 x 10 steps, n = 200": learning(200)},
}


def verdicts(n_seeds: int) -> list[dict[str, Any]]:
    """One row for each case: how often each verdict was given, and how often a change over time was reported."""
    rows = []
    for kind, cases in CASES.items():
        tries = 8 * n_seeds if kind == "alike" else n_seeds
        for name, case in cases.items():
            began, found = time.process_time(), [compare_agents(case(seed), seed=seed) for seed in range(tries)]
            row = {
                "agents": kind,
                "data": name,
                "seeds": tries,
                "verdicts": dict(Counter(pairs.pairs[0].verdict for pairs in found)),
                "told apart": sum(pairs.pairs[0].p_value < 0.05 for pairs in found),
                "points": float(np.median([pairs.pairs[0].points for pairs in found])),
                "shared": float(np.median([pairs.pairs[0].shared for pairs in found])),
                "changed": [sum(pairs.drifts[k].told_apart for pairs in found) for k in (0, 1) if found[0].drifts],
                "seconds": (time.process_time() - began) / tries,
            }
            print(row, flush=True)
            rows.append(row)
    return rows


def ranking(n_seeds: int, n: int) -> list[dict[str, Any]]:
    """One row for each seed: the ten pairs, as predicted and as fitted, and the rank correlation."""
    rows = []
    for seed in range(n_seeds):
        world = BitsExBMDP(10, 32, seed=seed, entangled=False)
        stay = [world.persistence_policy(p) for p in (0.5, 0.6, 0.75, 0.9)]
        policies = [*stay, SwitchingPolicy([stay[0], stay[3]], [0] * (n // 2) + [1] * (n - n // 2))]
        tau = collect(world, policies, n, seed=seed).tau
        fresh = collect(world, policies, FRESH, seed=10_000 + seed)
        found = compare_agents(tau, names=["random", "beginner", "good", "expert", "improving"], seed=seed)
        right = [_accuracy(tau, fresh, pair.agents) for pair in found.pairs]
        evidence = [pair.evidence for pair in found.pairs]
        pairs = [
            {"agents": " ".join(p.names), "evidence": p.evidence, "verdict": p.verdict, "accuracy": a}
            for p, a in zip(found.pairs, right)
        ]
        row = {"seed": seed, "n": n, "spearman": float(spearmanr(evidence, right).statistic), "pairs": pairs}
        first, best = right[0], max(right)
        row |= {"accuracy of the first": first, "of the best": best, "of a pair on average": float(np.mean(right))}
        print({key: value for key, value in row.items() if key != "pairs"}, flush=True)
        rows.append(row)
    return rows


def _accuracy(tau: TrajectoryDataset, fresh: Any, agents: tuple[int, int]) -> float:
    """CRAFT's on fresh trajectories of these two agents, the mean over steps 2 to H."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = np.isin(tau.agent, agents)
        model = CRAFT().fit(tau.select(mine, np.searchsorted(agents, tau.agent[mine])))
    mine = np.isin(fresh.tau.agent, agents)
    return float(encoder_accuracy(model, lambda h: fresh.tau.at(h)[mine], fresh.truth.states[mine])[1:].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["verdicts", "ranking"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--n", type=int, nargs="+", default=[100, 200], help="ranking: trajectories of each agent")
    args = parser.parse_args()
    if args.what == "verdicts":
        rows = verdicts(args.seeds)
    else:
        rows = [row for n in args.n for row in ranking(args.seeds, n)]
    write_json(OUT.with_name(f"agent_pairs_{args.what}.json"), {"machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
