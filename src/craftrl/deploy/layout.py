"""Where to draw states: positions in the plane that follow from the moves between them alone.

Distances on paper are to be what shortest ways are in the graph. That is a least-squares problem called stress, and
the step that lowers it (majorisation) is that of Gansner, Koren and North (2005). A grid of cells comes out as a grid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

__all__ = ["in_layers", "in_the_plane", "turned"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
ROUNDS, STILL = 300, 1e-6  # of majorisation: at most so many, and done once stress falls by less than this share
NEARBY = 4.0  # a distance d counts d**-NEARBY: what is near has to fit, what is far may be bent
SWEEPS = 8  # over the layers, to untangle them


def in_the_plane(edges: ArrayLike, n: int) -> Floats:
    """Positions (n, 2) of n nodes; `edges` (E, 2) are moves, in whatever direction.

    Lines lie along the axes as far as they can. What nothing connects is drawn apart.
    """
    d = _distances(np.asarray(edges, dtype=np.int64).reshape(-1, 2), n)
    if n <= 2:
        return np.column_stack([np.arange(n, dtype=float), np.zeros(n)])
    return _along_axes(_majorised(_scaled(d), d), np.argwhere(np.triu(d == 1)))


def turned(positions: Floats, anchors: Floats) -> Floats:
    """The positions, mirrored or turned by quarters, as they fit best to where the nodes should be: anchors (n, 2).

    Nodes without an anchor have NaN. A layout is as good mirrored; an anchor says which way its user looks at it.
    """
    known = np.isfinite(anchors).all(axis=1)
    if not known.any():
        return positions
    target = anchors[known] - anchors[known].mean(axis=0)
    centre = positions[known].mean(axis=0)
    flips = [np.diag([a, b]) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    ways = flips + [flip[::-1] for flip in flips]
    return (positions - centre) @ max(ways, key=lambda way: float((((positions[known] - centre) @ way) * target).sum()))


def in_layers(layer: ArrayLike, edges: ArrayLike) -> Floats:
    """Positions (n, 2) for moves from one layer to the next: layers from left to right, few lines crossing.

    Nodes of a layer are put in the order of the mean place of those they are connected with (Sugiyama's barycentres),
    to and fro until nothing changes.
    """
    x, pairs = np.asarray(layer, dtype=float), np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    y = np.zeros(len(x))
    steps = sorted(set(x.tolist()))
    for step in steps:
        _space(y, np.flatnonzero(x == step))
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        here, there = (pairs[:, 1], pairs[:, 0]) if forth else (pairs[:, 0], pairs[:, 1])
        for step in steps if forth else steps[::-1]:
            nodes = np.flatnonzero(x == step)
            pull = [y[there[here == node]].mean() if (here == node).any() else y[node] for node in nodes]
            _space(y, nodes[np.argsort(np.round(pull, 9), kind="stable")])
    return np.column_stack([x, y])


def _space(y: Floats, ordered: Ints) -> None:
    """Nodes of one layer, one below the other, around 0."""
    y[ordered] = np.arange(len(ordered)) - (len(ordered) - 1) / 2


def _distances(edges: Ints, n: int) -> Floats:
    """How many moves apart two nodes are, in either direction; parts of the graph that nothing connects: two more than
    the longest way."""
    ends = edges[edges[:, 0] != edges[:, 1]]
    graph = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    d = shortest_path(graph, directed=False, unweighted=True)
    finite = np.isfinite(d)
    return np.where(finite, d, (d[finite].max() if finite.any() else 0) + 2)


def _scaled(d: Floats) -> Floats:
    """Classical scaling: the two leading eigenvectors of the centred squared distances."""
    centred = d**2 - (d**2).mean(axis=0)
    gram = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return vectors[:, -1:-3:-1] * np.sqrt(np.maximum(values[-1:-3:-1], 1e-9))


def _majorised(x: Floats, d: Floats) -> Floats:
    """Positions of least weighted stress, from where x stands."""
    w = np.where(d > 0, np.maximum(d, 1e-9) ** -NEARBY, 0.0)
    inverse = np.linalg.pinv(np.diag(w.sum(axis=1)) - w)
    before = np.inf
    for _ in range(ROUNDS):
        apart = np.linalg.norm(x[:, None] - x, axis=-1)
        stress = float((w * (apart - d) ** 2).sum())
        if before - stress <= STILL * stress:
            break
        before = stress
        pull = w * d / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0.0)
        x = inverse @ (np.diag(pull.sum(axis=1)) - pull) @ x
    return x


def _along_axes(x: Floats, lines: Ints) -> Floats:
    """The positions, turned so that lines point right, left, up or down as far as they can."""
    along = (x[lines[:, 1]] - x[lines[:, 0]]) @ np.array([1, 1j])
    angle = np.angle((along**4).sum()) / 4 if len(along) else 0.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (x - x.mean(axis=0)) @ turn
