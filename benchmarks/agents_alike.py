"""Three agents of whom two act alike: how right is the model, and what does `diagnose` say of it?

    PYTHONPATH=. python benchmarks/agents_alike.py     # about ten minutes on one core; rows are kept as they come

The same trajectories are fitted twice: with three names, and with the two agents that act alike joined into one.
Log-odds are taken against the first agent; in the lock both orders of the three are tried. Every model chooses its
bounds from the data, and has ten refits. It is right if every state that 1% of the trajectories visit is found and read
right in 95% of its observations.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import RESULTS

from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, FiniteOracle
from craftrl.envs import BitsExBMDP, ExBMDP, MarkovPolicy, collect
from craftrl.oracles.finite import CountingOracle
from studies.loud.run import worst_state
from studies.loud.world import TabularExBMDP, random_agents
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

ROWS = RESULTS / "agents_alike.jsonl"
RIGHT = 0.95
FRESH = 1500  # trajectories of each kind of agent on which states are compared with the truth
REFITS = 10

# Of each world the seeds, the trajectories per agent, and who acts: A, B and a second B, in this order.
PLAN: dict[str, tuple[range, tuple[int, ...], tuple[str, ...]]] = {
    "lock": (range(4), (150, 500), ("ABB", "BAB", "joined")),
    "control": (range(10), (150, 500), ("ABB", "joined")),
    "paper": (range(6), (120, 300), ("ABB", "joined")),
    "random": (range(10), (150, 500), ("ABB", "joined")),
    "multi-maze": (range(3), (4000,), ("ABB", "joined")),
}


def main() -> None:
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    known = {(row["world"], row["seed"], row["n"], row["agents"]) for row in rows}
    with ROWS.open("a") as file:
        for run in runs():
            if run not in known:
                rows.append(run_one(*run))
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    for name in ("ABB", "BAB", "joined"):
        print(name, dict(Counter((kind(row), row["verdict"]) for row in rows if row["agents"] == name)))


def runs() -> Iterator[tuple[str, int, int, str]]:
    for world, (seeds, sizes, kinds) in PLAN.items():
        yield from ((world, seed, n, agents) for seed in seeds for n in sizes for agents in kinds)


def run_one(name: str, seed: int, n: int, agents: str) -> dict[str, Any]:
    """worst_state, worst_named: the least share of a state that is read right; the latter by states that were found."""
    world, first, second, oracle = setting(name, seed)
    acting = [second, first, second] if agents == "BAB" else [first, second, second]
    tau = collect(world, acting, [n] * 3, seed=seed).tau
    if agents == "joined":
        tau = tau.select(np.arange(tau.n), np.minimum(tau.agent, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = CRAFT(oracle).fit(tau)
    found = model.diagnose(tau, n_resamples=REFITS, seed=seed)
    fresh = collect(world, [first, second], FRESH, seed=seed + 1_000_003)
    return {
        "world": name,
        "seed": seed,
        "n": n,
        "agents": agents,
        "worst_state": worst_state(model, fresh, named=False),
        "worst_named": worst_state(model, fresh, named=True),
        "verdict": found.verdict,
        "score": found.score,
        "warned": any(issubclass(w.category, AssumptionWarning) for w in caught),
    }


def setting(name: str, seed: int) -> tuple[ExBMDP, MarkovPolicy, MarkovPolicy, CountingOracle]:
    """A world, its two kinds of agents, and the class of encoders."""
    if name == "lock":
        lock = LockExBMDP(6, 10, seed=seed)
        return lock, *lock.policies(), FiniteOracle(lock.encoders, n_values=4)
    if name == "multi-maze":
        maze = MultiMazeExBMDP(horizon=5, seed=seed)
        return maze, *maze.policies(), FiniteOracle(maze.encoders, n_values=68)
    if name in ("control", "paper"):
        bits = BitsExBMDP(*((6, 16) if name == "control" else (5, 12)), seed, entangled=name == "paper")
        return bits, *bits.paper_policies(), CoordinateOracle(2, n_threads=1)
    rng = np.random.default_rng([seed, 7])
    states, actions = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    alpha, H, features = float(rng.choice([0.4, 0.7, 1.0, 1.5])), int(rng.integers(5, 9)), int(rng.integers(10, 21))
    world = TabularExBMDP(H, states, min(actions, states), features, seed)
    first, second = random_agents(world, 2, alpha, seed)
    return world, first, second, CoordinateOracle(states, n_threads=1)


def kind(row: dict[str, Any]) -> str:
    if row["worst_named"] >= RIGHT:
        return "right"
    return "too few states" if row["worst_state"] >= RIGHT else "wrong"


if __name__ == "__main__":
    main()
