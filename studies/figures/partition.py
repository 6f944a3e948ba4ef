"""How states appear: one embedding cut into more and more states, and the score of each number of them.

    python -m studies.figures.partition docs/img/partition.png

takes half a minute on one core. docs/how-it-works.md shows the picture.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import MiniBatchKMeans

from craftrl import CRAFT
from craftrl.core.partition import count_moves, score, tidy, with_start
from craftrl.envs import PixelsExBMDP, collect
from craftrl.figures import BLUE, GREY, INK, ORANGE, RED, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SIDE, WALKERS, HORIZON, N = 3, 2, 6, 500
CELLS = 100  # of the embedding, of which the tree is built
MAX_STATES = 16  # states, up to which the score is drawn
SHOWN = (3, 6, 9, 12)  # numbers of states of which the embedding is drawn


def cut_and_score(z: NDArray[np.float64], agent: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cuts of one Ward tree into 1..M states: the state (M, n, H) of each embedding, and scores (M, 2).

    z (n, H, d) are embeddings, agent (n,). The scores are what moves between states tell of the agents, and what it
    costs that moves are not closed, both in nats.
    """
    cells = MiniBatchKMeans(CELLS, n_init=1, random_state=0, batch_size=4096).fit_predict(z.reshape(-1, z.shape[-1]))
    code = tidy(cells).reshape(z.shape[:2])
    places = np.stack([z[code == c].mean(axis=0) for c in range(code.max() + 1)])
    moves, tree = count_moves(code, agent, len(places), places), linkage(places, "ward")
    cuts = [tidy(fcluster(tree, k, "maxclust")) for k in range(1, MAX_STATES + 1)]
    scores = [score(moves, with_start(cut), int(cut.max()) + 2).sum(axis=1) for cut in cuts]
    return np.array([cut[code] for cut in cuts]), np.array(scores)


def draw_partition(path: Path, seed: int = 0) -> None:
    """Fit a small world with nothing told, and draw its embedding, cut into several numbers of states."""
    world = PixelsExBMDP(horizon=HORIZON, size=SIDE, n_walkers=WALKERS, seed=seed)
    data = collect(world, world.policies(), n=N, seed=seed)
    model = CRAFT().fit(data.tau)
    z = model.embed(np.stack([data.tau.at(h) for h in range(1, HORIZON + 1)], axis=1))
    states, scores = cut_and_score(z, data.tau.agent)
    totals = scores[:, 0] - scores[:, 1]
    flat = z.reshape(-1, z.shape[-1]) - z.reshape(-1, z.shape[-1]).mean(axis=0)
    plane = flat @ np.linalg.svd(flat, full_matrices=False)[2][:2].T
    with picture(path, 8, 4.4) as figure:
        frame, *panels, curve = figure.subplots(2, 3).ravel()
        frame.imshow(data.tau.at(4)[0])
        frame.set(title="one frame", xticks=[], yticks=[], xlabel="agents move one")
        for axes, k in zip(panels, SHOWN):
            _draw_embedding(axes, plane, states[k - 1].ravel(), states[-1].ravel())
            axes.set_title(f"{k} states: {totals[k - 1]:.0f} nats", color=RED if k == totals.argmax() + 1 else INK)
        panels[0].set(xlabel="embedding, first axis", ylabel="second axis")
        _draw_scores(curve, scores)


def _draw_embedding(
    axes: Axes, plane: NDArray[np.float64], states: NDArray[np.int64], finest: NDArray[np.int64]
) -> None:
    """Embeddings in the plane of their two main axes, each state in the colour of the commonest of its finest parts."""
    commonest = np.array([np.bincount(finest[states == state]).argmax() for state in range(states.max() + 1)])
    some = slice(None, None, max(1, len(plane) // 2400))
    x, y = plane[some].T
    axes.scatter(x, y, s=3, c=commonest[states[some]], cmap="tab20", vmin=0, vmax=19, lw=0)
    axes.set(xticks=[], yticks=[])


def _draw_scores(axes: Axes, scores: NDArray[np.float64]) -> None:
    """The two parts of the score, and the score, by the number of states."""
    gained, lost = scores.T
    k = np.arange(1, len(scores) + 1)
    best = int(np.argmax(gained - lost))
    axes.axhline(0, color=GREY, lw=0.6)
    axes.plot(k, gained, color=BLUE, lw=1.2, marker=".", ms=4, label="gain: agents are told apart")
    axes.plot(k, -lost, color=ORANGE, lw=1.2, marker=".", ms=4, label="cost: moves are not closed")
    axes.plot(k, gained - lost, color=RED, lw=1.8, marker=".", ms=5, label="score")
    axes.plot(k[best], (gained - lost)[best], "o", ms=9, mfc="none", mec=RED)
    axes.set(title="score of each number of states", xlabel="states", ylabel="nats", xticks=k[::3])
    axes.set_ylim(2.4 * (gained - lost).min() - 200, 1.35 * gained.max())
    axes.legend(fontsize=7, loc="lower right")


if __name__ == "__main__":
    draw_partition(Path(sys.argv[1]))
