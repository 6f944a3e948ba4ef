"""Imitation with a handful of action labels: the better of two agents, read off videos that show no actions.

Agent 0 walks at random, agent 1 tends towards a corner. From their videos CRAFT learns the states, the graph of states
says who is better, and k labelled transitions say which action makes which move.

    python -m examples.imitate --labels 0 10 20 40 80 --seeds 3
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from craftrl import CRAFT, FiniteOracle
from craftrl.envs import MarkovPolicy, PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, StateGraph


def chances(graph: StateGraph, goal: int, start: int, horizon: int) -> list[float]:
    """How likely each agent gets to the goal in so many moves, by its own habits as the videos show them."""
    found = []
    for agent in range(len(graph.counts)):
        after, at, arrived = graph.policy(agent), np.eye(1, graph.n, start)[0], 0.0
        for _ in range(horizon):
            at[goal] = 0.0  # who is there has arrived
            at = after.T @ at
            arrived += at[goal]
        found.append(arrived)
    return found


class Imitator:
    """Acts as an agent of the videos did, as far as actions are known.

    In each state it draws a successor by the agent's habits and takes an action with the probability that it makes this
    move. Where the agent was never seen it does what the agents together did there.
    """

    def __init__(self, model: Any, grounding: Grounding, agent: int, seed: int = 0) -> None:
        self.model, self.grounding, self.rng = model, grounding, np.random.default_rng(seed)
        self.habits = [graph_rows(grounding.graph.counts[agent]), graph_rows(grounding.graph.total)]

    def act(self, state: int) -> int:
        """The action to take in a state."""
        row = next((rows[state] for rows in self.habits if state in rows), None)
        if row is None:
            return self.anything()
        successor = int(self.rng.choice(row[0], p=row[1]))
        known = self.grounding.known_moves()
        made = np.flatnonzero((known.s == state) & (known.t == successor))
        if len(made):
            return int(known.action[made[0]])
        here = self.grounding.outcomes(state)
        likely = here.chance[:, here.successors == successor].sum(axis=1)
        if not here.known.any() or not likely.any():
            return self.anything()
        return int(self.rng.choice(len(likely), p=likely / likely.sum()))

    def anything(self) -> int:
        return int(self.rng.integers(self.grounding.n_actions))

    def reaches(self, env: Any, goal: int, seed: int) -> bool:
        """Whether an episode gets to the goal."""
        x, over = env.reset(seed=seed)[0], False
        state = int(self.model.encode(x[None])[0])
        while not over and state != goal:
            x, _, terminated, truncated, _ = env.step(self.act(state))
            state, over = int(self.model.encode(x[None])[0]), terminated or truncated
        return state == goal


def graph_rows(counts: csr_array) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The successors of each state that was left, and how often each followed."""
    rows = ((s, counts[[s], :]) for s in np.flatnonzero(counts.sum(axis=1)))
    return {int(s): (row.indices, row.data / row.data.sum()) for s, row in rows}


def agents(world: PixelsExBMDP) -> list[MarkovPolicy]:
    """No two moves out of a cell are as likely as each other for agent 1: that is how CRAFT tells cells apart."""
    cells, moves = world.plan.cells, world.plan.moves
    away = np.abs(cells - cells[-1]).sum(axis=1)
    liked = np.exp(1.5 * (away[moves] < away[:, None]) + 0.5 * np.arange(4))
    tables = [np.full(liked.shape, 0.25), liked / liked.sum(axis=1, keepdims=True)]
    return [MarkovPolicy([table[: world.n_states(h)] for h in range(1, world.H)]) for table in tables]


def main(argv: list[str] | None = None) -> dict[int, list[float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[0, 10, 20, 40, 80])
    for name, default in {"videos": 2000, "episodes": 200, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args(argv)
    world = PixelsExBMDP(horizon=8, size=3, n_walkers=2)
    figures = [partial(world.find_figure, figure=i) for i in range(3)]  # one is the agents', and CRAFT finds which
    recorded = collect(world, agents(world), args.videos, seed=0)
    tau, truth = recorded.tau, recorded.truth
    model = CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)
    graph, last = StateGraph.from_model(model, tau), tau.at(world.H)
    start, goal = (int(model.encode(last[truth.states[:, -1] == s][:1])[0]) for s in (0, world.plan.n_cells - 1))
    scores = chances(graph, goal, start, world.H - 1)
    print(f"reach the corner, by the videos: agent 0 {100 * scores[0]:.0f}%, agent 1 {100 * scores[1]:.0f}%")
    reached: dict[int, list[float]] = {k: [] for k in args.labels}  # for each number of labels, one share per seed
    for seed in range(args.seeds):
        drawn = np.random.default_rng(seed).permutation(truth.actions.size)
        for k in args.labels:
            grounding = Grounding(graph, world.n_actions)
            for row, h in zip(*np.divmod(drawn[:k], world.H - 1)):  # trajectory and step of each label
                pair = np.stack([tau.at(h + 1)[row], tau.at(h + 2)[row]])
                grounding.add_labels(model, pair[None], truth.actions[row, h, None], h=int(h) + 1)
            imitator = Imitator(model, grounding, int(np.argmax(scores)), seed)
            runs = [imitator.reaches(ExBMDPEnv(world), goal, seed=i) for i in range(args.episodes)]
            reached[k].append(float(np.mean(runs)))
    for k, shares in reached.items():
        print(f"imitated with {k:3d} labels, %, by seed:", *(f"{100 * share:4.0f}" for share in shares))
    return reached


if __name__ == "__main__":
    main()
