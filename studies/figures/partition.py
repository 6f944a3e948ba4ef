"""How states appear: a frame, its embedding coloured by found states and by true cells, and the score by their number.

    python -m studies.figures.partition docs/img/partition.png

takes half a minute on one core. docs/how-it-works.md shows the picture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import MiniBatchKMeans

from craftrl import CRAFT
from craftrl.core.partition import count_moves, score, tidy, with_start
from craftrl.core.relabelling import best_matching
from craftrl.envs import PixelsExBMDP, collect
from craftrl.figures import BLUE, GREY, INK, ORANGE, RED, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_partition", "scores_of_cuts"]

SIDE, WALKERS, HORIZON, N = 3, 2, 6, 500
CELLS = 100  # of the embedding, from which the tree of the last panel is built
MOST = 16  # states, up to which its score is drawn
SHADES = ("#0072B2", "#56B4E9", "#8AD1C2", "#009E73", "#B5A300", "#E69F00", "#D55E00", "#CC79A7", "#6B4C9A")


def scores_of_cuts(z: NDArray[np.float64], agent: NDArray[np.int64]) -> NDArray[np.float64]:
    """(MOST, 2): what the agents' moves tell, and by how much moves are not closed, for each cut of one Ward tree.

    z (n, H, d) are embeddings, agent (n,); row k - 1 is the cut into k states.
    """
    cells = MiniBatchKMeans(CELLS, n_init=1, random_state=0, batch_size=4096).fit_predict(z.reshape(-1, z.shape[-1]))
    code = tidy(cells).reshape(z.shape[:2])
    places = np.stack([z[code == c].mean(axis=0) for c in range(code.max() + 1)])
    moves, tree = count_moves(code, agent, len(places), places), linkage(places, "ward")
    cuts = [tidy(fcluster(tree, k, "maxclust")) for k in range(1, MOST + 1)]
    return np.array([score(moves, with_start(cut), int(cut.max()) + 2).sum(axis=1) for cut in cuts])


def draw_partition(path: Path, seed: int = 0) -> None:
    """Fit a small world with nothing told, and draw what was found."""
    world = PixelsExBMDP(horizon=HORIZON, size=SIDE, n_walkers=WALKERS, seed=seed)
    data = collect(world, world.policies(), n=N, seed=seed)
    frames = np.stack([data.tau.at(h) for h in range(1, HORIZON + 1)], axis=1)
    model = CRAFT().fit(data.tau)
    z, found, true = model.embed(frames), model.labels_, np.asarray(data.truth.states)
    true_of = _true_of(found.ravel(), true.ravel())
    right = float((true_of[found] == true).mean())
    flat = z.reshape(-1, z.shape[-1]) - z.reshape(-1, z.shape[-1]).mean(axis=0)
    plane = flat @ np.linalg.svd(flat, full_matrices=False)[2][:2].T
    with picture(path, 10.6, 2.7) as figure:
        from matplotlib.colors import ListedColormap

        one, two, three, four = figure.subplots(1, 4, width_ratios=(0.75, 1, 1, 1.15))
        one.imshow(frames[0, 3])
        one.set(title="one frame", xticks=[], yticks=[], xlabel="the agents move one figure")
        _scatter(two, plane, found.ravel(), [SHADES[t] for t in true_of], named=True)
        two.set_title(rf"$\varphi$, by the {model.n_states_total_} states found")
        _scatter(three, plane, true.ravel(), SHADES)
        three.set_title(f"by true cell: {100 * right:.1f}% agree")
        key = three.inset_axes((0.68, 0.6, 0.3, 0.3))
        key.pcolormesh(np.arange(SIDE**2).reshape(SIDE, SIDE), cmap=ListedColormap(SHADES), edgecolors="white", lw=1.5)
        key.set(xticks=[], yticks=[], title="cells of the world", aspect="equal")
        key.invert_yaxis()
        key.title.set_fontsize(7)
        key.spines[:].set_visible(False)
        _draw_scores(four, scores_of_cuts(z, data.tau.agent))


def _true_of(found: NDArray[Any], true: NDArray[Any]) -> NDArray[np.int64]:
    """The true cell of each state found; those left over have the cell that they are most often in."""
    counts = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(counts, (found, true), 1)
    out = counts.argmax(axis=1)
    for state, cell in best_matching(counts).items():
        out[state] = cell
    return out


def _scatter(
    axes: Axes, plane: NDArray[Any], labels: NDArray[Any], colours: Sequence[str], named: bool = False
) -> None:
    """Embeddings in the plane of their two main axes, each group with its number where `named`."""
    for label in np.unique(labels):
        mine = plane[labels == label]
        some = mine[:: max(1, len(mine) // 150)]
        axes.scatter(some[:, 0], some[:, 1], s=3, color=colours[label], lw=0)
        if named:
            box = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.75}
            centre = np.median(mine, axis=0)
            axes.annotate(str(label), centre, ha="center", va="center", fontsize=7, color=INK, bbox=box)
    axes.set(xticks=[], yticks=[], xlabel="first principal axis", ylabel="second")


def _draw_scores(axes: Axes, scores: NDArray[np.float64]) -> None:
    """The two parts of the score, and the score, by the number of states."""
    told, open_ = scores.T
    k = np.arange(1, len(scores) + 1)
    best = int(np.argmax(told - open_))
    axes.axhline(0, color=GREY, lw=0.6)
    axes.plot(k, told, color=BLUE, lw=1.2, marker=".", ms=4, label="sufficient: told of the agents")
    axes.plot(k, -open_, color=ORANGE, lw=1.2, marker=".", ms=4, label="not closed (costs)")
    axes.plot(k, told - open_, color=RED, lw=1.8, marker=".", ms=5, label="score")
    axes.plot(k[best], (told - open_)[best], "o", ms=9, mfc="none", mec=RED)
    axes.annotate(f"{k[best]} states", (k[best], (told - open_)[best]), (8, 6), textcoords="offset points", color=RED)
    axes.set(title="score of each number of states", xlabel="states (cuts of one tree)", ylabel="nats")
    axes.set_ylim(top=1.35 * told.max())
    axes.set_xticks(k[::3])
    axes.legend(fontsize=7, loc="lower right")


if __name__ == "__main__":
    draw_partition(Path(sys.argv[1]))
