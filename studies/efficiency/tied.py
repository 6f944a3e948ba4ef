"""Tables of moves tied over time, against tables for every step: the codes of both on the same data.

    python -m studies.efficiency.tied

runs what `tied.jsonl` does not hold yet, one after the other. Nothing was chosen on these seeds in these worlds.
Agents' habits do not change over time in the first four worlds; in the others one agent's or both's do at every step.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from craftrl import CoordinateOracle
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.paper import chance_accuracy, population_assumptions
from craftrl.paper.sweep import estimate, seed_of
from studies.efficiency.population import Agents, sticky_agents
from studies.statistics import half_of

__all__ = ["ROWS", "WORLDS", "restless_agents", "run_one", "runs", "table_lines", "wavering_agents"]

ROWS = Path(__file__).with_name("tied.jsonl")
H, M = 30, 128


def steady_agents(world: BitsExBMDP, seed: int) -> Agents:
    """Habits drawn once for each state: nothing about them is symmetric."""
    first, second = _habits(np.random.default_rng(seed))
    return _policy(world, [first] * (world.H - 1)), _policy(world, [second] * (world.H - 1))


def wavering_agents(world: BitsExBMDP, seed: int, spread: float = 0.6) -> Agents:
    """The paper's agents, but for the second one's log-odds of staying: scattered about ln 3, step by step."""
    rng = np.random.default_rng(seed)
    stays = expit(rng.normal(math.log(3), spread, size=(world.H - 1, 2)))
    return world.persistence_policy(0.5), _policy(world, [_moves(p, 1 - q) for p, q in stays])


def restless_agents(world: BitsExBMDP, seed: int) -> Agents:
    """Both agents' habits drawn anew at every step."""
    rng = np.random.default_rng(seed)
    first, second = zip(*(_habits(rng) for _ in range(world.H - 1)))
    return _policy(world, first), _policy(world, second)


def _habits(rng: np.random.Generator) -> tuple[Any, Any]:
    """Tables of two agents whose log-odds of moving to state 0 differ by ln 3 in either state."""
    to_0 = rng.uniform(0.3, 0.7, size=2)
    other = expit(logit(to_0) + math.log(3) * rng.choice([-1, 1], size=2))
    return _moves(*to_0), _moves(*other)


def _moves(from_0: float, from_1: float) -> Any:
    """A table from the chances of moving to state 0."""
    return np.array([[from_0, 1 - from_0], [from_1, 1 - from_1]])


def _policy(world: BitsExBMDP, tables: Sequence[Any]) -> MarkovPolicy:
    return MarkovPolicy([table[: world.n_states(h)] for h, table in enumerate(tables, start=1)])


# Name: agents, whether all features are XORed with the state, and seeds for each number of trajectories per agent.
WORLDS: Mapping[str, tuple[Callable[[BitsExBMDP, int], Agents], bool, Mapping[int, range]]] = {
    "control": (
        lambda world, seed: world.paper_policies(),
        False,
        {100: range(40, 110), 200: range(40, 44), 500: range(40, 43)},
    ),
    "control, habits drawn once": (steady_agents, False, {100: range(40, 48)}),
    "sticky": (lambda world, seed: sticky_agents(world), False, {100: range(40, 56), 200: range(40, 43)}),
    "paper": (lambda world, seed: world.paper_policies(), True, {100: range(40, 46), 200: range(40, 43)}),
    "control, wavering": (wavering_agents, False, {100: range(40, 78), 200: range(40, 43)}),
    "control, restless": (restless_agents, False, {100: range(40, 48), 200: range(40, 43)}),
}


def runs() -> Iterator[tuple[str, int, int]]:
    """World, trajectories per agent and seed."""
    for name, (_, _, sizes) in WORLDS.items():
        yield from ((name, size, seed) for size, seeds in sizes.items() for seed in seeds)


def run_one(name: str, size: int, seed: int, horizon: int = H, n_features: int = M) -> dict[str, Any]:
    """The accuracy of the codes of both couplings, averaged over h = 1..H as in Table 1.

    worst   that of the worst state at the worst step
    chance  that of a feature drawn at random at every step, h = 1 counting as right
    """
    make_agents, entangled, _ = WORLDS[name]
    world = BitsExBMDP(horizon, n_features, seed, entangled=entangled)
    agents = make_agents(world, seed)
    rng = np.random.default_rng(seed_of("table1", horizon, n_features, size, seed))
    prepared = CoordinateOracle(n_threads=1).prepare(collect(world, agents, size, seed=rng).tau)
    known = population_assumptions(world, agents)
    grid = Grid.from_bounds(known.alpha.value, known.eta.value)
    codes = {name: [f.j for f in prepared.log_odds(grid, name).models] for name in ("markov", "tied")}
    return {
        "world": name,
        "size": size,
        "seed": seed,
        "accuracy": {name: _accuracy(world, found) for name, found in codes.items()},
        "worst": {name: _worst(world, found) for name, found in codes.items()},
        "chance": float(chance_accuracy(world, agents).mean()),
        "same": codes["markov"] == codes["tied"],
    }


def _accuracy(world: BitsExBMDP, codes: Sequence[int]) -> float:
    right = (world.feature_accuracy(h)[code] for h, code in enumerate(codes, start=2))
    return float((1 + sum(right)) / world.H)


def _worst(world: BitsExBMDP, codes: Sequence[int]) -> float:
    return float(min(world.feature_state_accuracy(h)[:, code].min() for h, code in enumerate(codes, start=2)))


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of docs/markov.md: means in percent, and the difference on the same data with its 95% interval.

    In brackets the worst state of each run, averaged over runs.
    """
    lines = []
    for name, (_, _, sizes) in WORLDS.items():
        for size in sizes:
            mine = [row for row in rows if (row["world"], row["size"]) == (name, size)]
            means = [(_percent(mine, "accuracy", key), _percent(mine, "worst", key)) for key in ("markov", "tied")]
            gain = estimate([row["accuracy"]["tied"] - row["accuracy"]["markov"] for row in mine], least=-1.0)
            chance = 100 * float(np.mean([row["chance"] for row in mine]))
            cells = [f"{mean:.1f} ({worst:.0f})" for mean, worst in means]
            interval = f" ± {100 * half_of(gain):.1f}" if gain.interval else ""
            cells += [f"{100 * gain.mean:+.1f}{interval}", f"{chance:.1f}"]
            lines.append(f"| {' | '.join([name, str(size), str(len(mine)), *cells])} |")
    return lines


def _percent(rows: Sequence[Mapping[str, Any]], measure: str, coupling: str) -> float:
    return 100 * float(np.mean([row[measure][coupling] for row in rows]))


def main() -> None:
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    known = {(row["world"], row["size"], row["seed"]) for row in rows}
    with ROWS.open("a") as file:
        for run in runs():
            if run not in known:
                rows.append(run_one(*run))
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    sys.stdout.write("\n".join([*table_lines(rows), ""]))


if __name__ == "__main__":
    main()
