"""Success against labels: after each number of labels, goals are tried in closed loop.

Labels come from one of two sources. *Offline* they are random transitions of the videos whose action is given. *Online*
they are environment steps that `explore` chose. Each episode starts from these labels: what it sees itself it may use,
and the next one does not know of it. A planner that stops goes on at random to the end of the episode, so that resting
costs nothing and luck helps all techniques alike. A goal is reached if the true state was the goal's at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import encode_dataset
from craftrl.planning import Grounding, Planner, StateGraph, explore
from studies.planning.arenas import Arena, Goal, Watched

Scores = dict[str, list[float]]  # by name, one value for each number of labels
DRAWS = 5  # sets of labels in a cell


def moves_of(model: Any, arena: Arena) -> tuple[StateGraph, NDArray[np.int64]]:
    """The moves that the videos show, and the node of every frame, (n, H)."""
    tau = arena.data.train.tau
    states = encode_dataset([partial(model.encode, h=h) for h in range(1, tau.H + 1)], tau)
    moves = StateGraph.from_model(model, tau, states=states)
    return moves, moves.nodes(states)


def curves(
    model: Any,
    arena: Arena,
    new_grounding: Callable[[], Grounding],
    at: NDArray[np.int64],
    goals: Sequence[Goal],
    labels: Sequence[int],
    seed: int,
) -> dict[str, Scores]:
    """Success, and what came with it, for each number of labels from either source.

    Labels are drawn `DRAWS` times, and each draw is tried with a share of the goals.
    """

    def online(grounding: Grounding, seed: int) -> Iterator[Grounding]:
        """The grounding after each number of environment steps; exploring may end sooner, when nothing is left."""
        env = arena.make()
        for i, (done, k) in enumerate(zip((0, *labels), labels)):
            explore(env, model, grounding, steps=k - done, seed=seed + i)
            yield grounding

    def offline(grounding: Grounding, seed: int) -> Iterator[Grounding]:
        """The grounding after each number of labels; fewer are among the more."""
        actions, (rows, steps) = arena.data.train.truth.actions, drawn_labels(arena, max(labels), seed)
        for done, k in zip((0, *labels), labels):
            for row, h in zip(rows[done:k], steps[done:k]):
                s, a, t = int(at[row, h]), int(actions[row, h]), int(at[row, h + 1])
                if min(s, a, t) >= 0:
                    grounding.add(s, a, t)
            yield grounding

    env, parts = arena.make(), [part for i in range(DRAWS) if (part := goals[i::DRAWS])]
    found = {}
    for source, learn in (("offline", offline), ("online", online)):
        draws = [
            [score(model, env, grounding, part) for grounding in learn(new_grounding(), seed + i)]
            for i, part in enumerate(parts)
        ]
        found[source] = {
            name: np.average(
                [[row[name] for row in draw] for draw in draws], axis=0, weights=[len(part) for part in parts]
            ).tolist()
            for name in draws[0][0]
        }
    return found


def drawn_labels(arena: Arena, n: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """n transitions of the videos, drawn at random: their trajectories, and their steps, 0 for h = 1."""
    actions = arena.data.train.truth.actions
    drawn = np.random.default_rng(seed).permutation(actions.size)[:n]
    rows, steps = np.divmod(drawn, actions.shape[1])
    return rows, steps


def score(model: Any, env: Watched, grounding: Grounding, goals: Sequence[Goal]) -> dict[str, float]:
    """`success`: the share of goals reached; `stopped_there`: of those in which the planner said so, and was right."""
    reached, stopped_there, graph = [], [], grounding.graph
    for state, x, seed in goals:
        kept = deepcopy(grounding, {id(graph): graph})
        steps = range(1, len(graph.sizes) + 1)  # what the observation means at whatever step it is seen, if anything
        nodes = {graph.node(int(model.encode(x[None], h)[0]), h) for h in steps} - {-1}
        said = bool(nodes) and Planner(model, kept).run(env, nodes, seed=seed, max_steps=env.world.H - 1).reached
        if not nodes:
            env.reset(seed=seed)
        stopped_there.append(said and env.state == state)
        if state not in env.visited:
            go_on_at_random(env, seed)
        reached.append(state in env.visited)
    shares = {"success": reached, "stopped_there": stopped_there}
    return {name: float(np.mean(share)) for name, share in shares.items()} | {"labels": float(grounding.n_labels)}


def go_on_at_random(env: Watched, seed: int) -> None:
    """Random actions to the end of the episode."""
    rng = np.random.default_rng(seed)
    while not env.over:
        env.step(int(rng.integers(env.action_space.n)))


def random_success(env: Watched, goals: Sequence[Goal]) -> float:
    """What random actions reach."""
    reached = []
    for state, _, seed in goals:
        env.reset(seed=seed)
        go_on_at_random(env, seed)
        reached.append(state in env.visited)
    return float(np.mean(reached))
