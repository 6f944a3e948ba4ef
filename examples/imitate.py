"""Imitation with a handful of action labels: the better of two agents, read off videos that show no actions.

Agent 0 walks at random, agent 1 tends towards a corner. From their videos CRAFT learns the states,
the graph of states says who is better, and k labelled transitions say which action makes which move.

    python examples/imitate.py --labels 0 10 20 40 80 --seeds 3
"""

import argparse
from functools import partial

import numpy as np

from craftrl import CRAFT, FiniteOracle
from craftrl.envs import MarkovPolicy, PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, Imitator, StateGraph, agent_scores, read_policy

world = PixelsExBMDP(horizon=8, size=3, n_walkers=2)
cells, corner = world.plan.cells, world.plan.n_cells - 1
figures = [partial(world.find_figure, figure=i) for i in range(3)]  # one of them is the agents', and CRAFT finds which


def agents() -> list[MarkovPolicy]:
    """No two moves out of a cell are as likely as each other for agent 1: that is how CRAFT tells cells apart."""
    away = np.abs(cells - cells[corner]).sum(axis=1)
    nearer = away[world.plan.moves] < away[:, None]  # which actions lead towards the corner
    liked = np.exp(1.5 * nearer + 0.5 * np.arange(4))
    tables = [np.full(liked.shape, 0.25), liked / liked.sum(axis=1, keepdims=True)]
    return [MarkovPolicy([table[: world.n_states(h)] for h in range(1, world.H)]) for table in tables]


def main(argv: list[str] | None = None) -> dict[int, list[float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[0, 10, 20, 40, 80])
    for name, default in {"videos": 2000, "episodes": 200, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args(argv)
    recorded = collect(world, agents(), args.videos, seed=0)
    tau, truth, frames = recorded.tau, recorded.truth, recorded.tau.at
    model = CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)
    moves = StateGraph.from_model(model, tau)
    start, goal = (int(model.encode(frames(world.H)[truth.states[:, -1] == s][:1])[0]) for s in (0, corner))
    scores = agent_scores(moves, goal, start=start, horizon=world.H - 1)
    print(f"reach the corner, by the videos: agent 0 {100 * scores[0]:.0f}%, agent 1 {100 * scores[1]:.0f}%")
    reached: dict[int, list[float]] = {k: [] for k in args.labels}  # for each number of labels, one share per seed
    for seed in range(args.seeds):
        drawn = np.random.default_rng(seed).permutation(truth.actions.size)
        for k in args.labels:
            grounding = Grounding(moves, world.n_actions)
            for row, h in zip(*np.divmod(drawn[:k], world.H - 1)):  # trajectory and step of each label
                pair = np.stack([frames(h + 1)[row], frames(h + 2)[row]])
                grounding.add_labels(model, pair[None], truth.actions[row, h, None], h=int(h) + 1)
            imitator = Imitator(model, grounding, read_policy(moves, int(scores.argmax())), seed=seed)
            runs = (imitator.run(ExBMDPEnv(world), {goal}, seed=i) for i in range(args.episodes))
            reached[k].append(float(np.mean([episode.reached for episode in runs])))
    for k, shares in reached.items():
        print(f"imitated with {k:3d} labels, %, by seed:", *(f"{100 * share:4.0f}" for share in shares))
    return reached


if __name__ == "__main__":
    main()
