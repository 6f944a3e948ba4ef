"""Are latent actions right? Exact states of small worlds, scored with the true actions, for docs/acting.md.

    OMP_NUM_THREADS=1 PYTHONPATH=. python benchmarks/latent_actions.py    # less than a minute on one core

Three questions, a table of rows each:

worlds  how many transitions have the right name in deterministic worlds, of which some say how names of different
        states belong together and some do not
grids   where names are claimed to agree, are they right? Grids with random walls, seeds from 10,000 on, which no rule
        or threshold of the method was chosen on
slips   how far effects and names are right where actions slip, with few and with many agents

Every agent walks `WALKS` times, `STEPS` steps from a state drawn at random. Its habits, how likely it takes each action
in a state, are drawn from a Dirichlet distribution for every state anew, or once for all states (`same_habits`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from measuring import write_rows
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from craftrl.envs.pixels import grid_moves
from craftrl.evaluation import count_visits
from craftrl.planning import LatentActions, find_latent_actions
from studies.agreement import accuracy_by_group, agreement
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import NEXT_CELL

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STEPS, WALKS = 19, 1000  # transitions of a walk, walks of an agent
SLIP, SLIP_WALKS, SCATTERED = 0.2, 1053, 0.25  # 20,000 transitions; habits that nearly leave out some actions
FIRST_GRID = 10_000  # the first seed of the grids with random walls
MOST_WALLS = 0.3


@dataclass(frozen=True)
class Played:
    """Transitions s, a, t of all agents, and how often each agent made each move: (K, N, N)."""

    s: Ints
    a: Ints
    t: Ints
    counts: NDArray[Any]


def play(
    moves: Ints,
    seed: int,
    n_agents: int = 2,
    same_habits: bool = False,
    slip: float = 0.0,
    concentration: float = 1.0,
    walks: int = WALKS,
) -> Played:
    """Walks of all agents in a world where action a leads from s to moves[s, a]; with `slip`, a random one does.

    Where moves[s] is -1 a walk ends, and another begins.
    """
    rng = np.random.default_rng(seed)
    N, n = moves.shape
    habits = rng.dirichlet(np.full(n, concentration), (n_agents, 1 if same_habits else N))
    limits = np.broadcast_to(habits, (n_agents, N, n)).cumsum(axis=-1)[..., :-1]
    agent, starts = np.repeat(np.arange(n_agents), walks), np.flatnonzero(moves[:, 0] >= 0)
    now, steps = rng.choice(starts, len(agent)), []
    for _ in range(STEPS):
        action = (rng.random((len(agent), 1)) > limits[agent, now]).sum(axis=-1)
        slipped = rng.random(len(agent)) < slip
        then = moves[now, np.where(slipped, rng.integers(n, size=len(agent)), action)]
        steps.append((now, action, then))
        now = np.where(moves[then, 0] < 0, rng.choice(starts, len(agent)), then)
    s, a, t = (np.concatenate(column) for column in zip(*steps))
    return Played(s, a, t, count_visits(np.tile(agent, STEPS), s, t, sizes=(n_agents, N, N)))


def open_grid(size: int) -> Ints:
    return grid_moves(np.argwhere(np.ones((size, size))))


def torus(size: int) -> Ints:
    row, column = np.divmod(np.arange(size**2), size)
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    return np.stack([(row + i) % size * size + (column + j) % size for i, j in steps], axis=1)


def turn_and_walk(size: int) -> Ints:
    """Turn left, turn right, walk on, in a grid: a state is a cell and a direction."""
    ahead = open_grid(size)[:, [3, 1, 2, 0]]
    cell, way = np.divmod(np.arange(4 * size**2), 4)
    return np.stack([4 * cell + (way - 1) % 4, 4 * cell + (way + 1) % 4, 4 * ahead[cell, way] + way], axis=1)


def random_graph(n_states: int, n_actions: int, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(n_states, n_actions, replace=False) for _ in range(n_states)])


def road(n_states: int, staying: bool) -> Ints:
    place = np.arange(n_states)
    back, on = np.maximum(place - 1, 0), np.minimum(place + 1, n_states - 1)
    return np.stack([back, place, on] if staying else [back, on], axis=1)


def lock(seed: int, after: int) -> Ints:
    """The combination lock, with states of their own for every step; what comes `after` the last one, -1: nothing."""
    world = LockExBMDP(horizon=8, seed=seed)
    layers, first = [], 0
    for h in range(1, world.H):
        first += world.n_states(h)
        layers.append(first + world.T(h))
    return np.concatenate([*layers, np.full((world.n_states(world.H), world.n_actions), after)])


@dataclass(frozen=True)
class World:
    """A row of the first table: a world for each seed, how it is played in, and what the method is told."""

    name: str
    moves: Callable[[int], Ints]
    played: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)


ALIKE = {"same_habits": True}
WORLDS = (
    World("3 x 3 grid", lambda seed: open_grid(3)),
    World("4 x 4 grid", lambda seed: open_grid(4)),
    World("4 x 4 grid, three agents", lambda seed: open_grid(4), {"n_agents": 3}),
    World("four rooms", lambda seed: NEXT_CELL),
    World("5 x 5 torus", lambda seed: torus(5)),
    World("turn and walk", lambda seed: turn_and_walk(5)),
    World("turn and walk, same habits", lambda seed: turn_and_walk(5), ALIKE, ALIKE),
    World("random graph", lambda seed: random_graph(30, 3, seed)),
    World("random graph, same habits", lambda seed: random_graph(30, 3, seed), ALIKE, ALIKE),
    World("road with staying", lambda seed: road(12, staying=True)),
    World("road with staying, told so", lambda seed: road(12, staying=True), {}, {"staying": True}),
    World("combination lock", lambda seed: lock(seed, after=-1)),
    World("combination lock that begins anew", lambda seed: lock(seed, after=0)),
)


def n_groups(latent: LatentActions) -> int:
    return int(latent.consistent.max()) + 1


def in_worlds(n_seeds: int) -> list[dict[str, Any]]:
    """One row for each world: means over seeds, and the groups of each seed."""
    rows = []
    for world in WORLDS:
        began, groups, scores = time.process_time(), [], []
        for seed in range(n_seeds):
            data = play(world.moves(seed), seed, **world.played)
            latent = find_latent_actions(list(data.counts), seed=seed, **world.told)
            groups.append(n_groups(latent))
            scores.append(vars(agreement(latent, data.s, data.t, data.a)))
        means = {name: float(np.mean([score[name] for score in scores])) for name in scores[0]}
        row = {"table": "worlds", "world": world.name, "states": len(world.moves(0)), "seeds": n_seeds, **world.told}
        rows.append(_shown({**row, "groups": groups, **means, "seconds": (time.process_time() - began) / n_seeds}))
    return rows


def in_grids(n_grids: int) -> list[dict[str, Any]]:
    """One row over all grids: moves whose names are claimed to agree with other states', and how many are wrong."""
    claimed, right, moves, wrong_seeds = 0, 0, 0, []
    for seed in range(FIRST_GRID, FIRST_GRID + n_grids):
        rng = np.random.default_rng(seed)
        size, walls = rng.integers(3, 8), rng.uniform(0, MOST_WALLS)
        cells = np.argwhere(rng.random((size, size)) > walls)
        found, correct, all_of_them = _claims(grid_moves(cells), seed)
        claimed, right, moves = claimed + found, right + correct, moves + all_of_them
        wrong_seeds += [seed] if correct < found else []
    row = {"table": "grids", "grids": n_grids, "first seed": FIRST_GRID, "moves": moves, "claimed": claimed}
    return [_shown({**row, "right": right, "grids with a wrong one": len(wrong_seeds), "their seeds": wrong_seeds})]


def _claims(moves: Ints, seed: int) -> tuple[int, int, int]:
    """Moves to another state in groups of two states or more, those of them with the right name, and all moves."""
    data = play(moves, seed)
    latent = find_latent_actions(list(data.counts))
    s, t = latent.edges[latent.edges[:, 0] != latent.edges[:, 1]].T
    claimed = np.bincount(latent.consistent)[latent.consistent[s]] > 1
    true = (moves[s] == t[:, None]).argmax(axis=1)
    code, group = latent.of_moves(s, t), latent.consistent[s]
    share = accuracy_by_group(code[claimed], true[claimed], group[claimed])
    return int(claimed.sum()), round(share * int(claimed.sum())), len(s)


def where_actions_slip(n_seeds: int) -> list[dict[str, Any]]:
    """One row for each world and number of agents: names and effects, factored and read as deterministic."""
    rows = []
    for name, moves in {"road": road(12, staying=False), "4 x 4 grid": open_grid(4)}.items():
        for n_agents in (4, 8, 16):
            began = time.process_time()
            of_seeds = [_slipping(moves, n_agents, seed) for seed in range(n_seeds)]
            row = {"table": "slips", "world": name, "agents": n_agents, "seeds": n_seeds}
            row["groups"] = [found.pop("groups") for found in of_seeds]
            means = {key: float(np.mean([found[key] for found in of_seeds])) for key in of_seeds[0]}
            rows.append(_shown({**row, **means, "seconds": (time.process_time() - began) / n_seeds}))
    return rows


def _slipping(moves: Ints, n_agents: int, seed: int) -> dict[str, Any]:
    data = play(moves, seed, n_agents, slip=SLIP, concentration=SCATTERED, walks=SLIP_WALKS)
    N, n = moves.shape
    counts = list(data.counts)
    found = find_latent_actions(counts, n=n, deterministic=False, seed=seed)
    read = find_latent_actions(counts, n=n, deterministic=True)
    right, plain = (agreement(latent, data.s, data.t, data.a) for latent in (found, read))
    return {
        "groups": n_groups(found),
        "overall": right.overall,
        "by_state": right.by_state,
        "ceiling": right.ceiling,
        "error": _error(moves, [_effects(found, s) for s in range(N)]),
        "overall, read as deterministic": plain.overall,
        "error, read as deterministic": _error(moves, [_effects(read, s) for s in range(N)]),
    }


def _effects(latent: LatentActions, s: int) -> Floats:
    """Pr(successor | s, latent action), (n, N)."""
    mine = latent.edges[:, 0] == s
    effects = np.zeros((latent.n, latent.n_states))
    effects[:, latent.edges[mine, 1]] = latent.share[mine].T
    return effects


def _error(moves: Ints, found: list[Floats]) -> float:
    """Mean total variation between true effects and those found, under the best relabelling in each state.

    An action without an effect of its own is 1 away.
    """
    N, n = moves.shape
    total = 0.0
    for s, effects in enumerate(found):
        intended = np.eye(N)[moves[s]]
        true = (1 - SLIP) * intended + SLIP * intended.mean(axis=0)
        apart = np.ones((n, n))
        known = effects.sum(axis=1) > 0
        apart[:, : known.sum()] = np.abs(true[:, None] - effects[known]).sum(axis=-1) / 2
        total += apart[linear_sum_assignment(apart)].sum()
    return total / (N * n)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="of each deterministic world")
    parser.add_argument("--grids", type=int, default=300, help="with random walls")
    parser.add_argument("--slip-seeds", type=int, default=3, help="of each world whose actions slip")
    args = parser.parse_args()
    write_rows("latent_actions", in_worlds(args.seeds) + in_grids(args.grids) + where_actions_slip(args.slip_seeds))


if __name__ == "__main__":
    main()
