"""What observations tell of two agents, by boosted trees: for feature vectors and images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.diagnostics.agent_pairs.held_out import Told
from craftrl.diagnostics.agent_pairs.sample import Group

__all__ = ["tell_by_trees"]

COMPONENTS = 24  # of longer vectors, the directions in which they vary most
EXAMPLES = 12_000  # pairs of observations to learn from
FRAMES = 4000  # frames to find those directions in
TREES: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "max_bins": 64, "early_stopping": False}

Floats = NDArray[np.floating[Any]]


def tell_by_trees(a: Group, b: Group, test: Group, pairs: tuple[int, ...], seed: int) -> Told:
    """Train on the trajectories of agents a and b; tell whose the held-out ones are."""
    rng = np.random.default_rng(seed)
    known, label = Group.join([a, b]), np.repeat([0, 1], [len(a), len(b)])
    project = _projection(known, rng)
    row, column = np.nonzero(known.there[:, np.asarray(pairs) + 1])
    some = np.concatenate([_some(np.flatnonzero(label[row] == side), EXAMPLES // 2, rng) for side in (0, 1)])
    row, column = row[some], np.asarray(pairs)[column[some]]
    y = label[row]
    here, after = project(known.x[row, column]), project(known.x[row, column + 1])
    frames = _Trees(np.column_stack([column, here]), y, seed)
    moves = _Trees(np.column_stack([column, here, after, after - here]), y, seed)
    place, moved = np.zeros((2, len(test), len(pairs)))
    for p, c in enumerate(pairs):
        here, after = project(test.x[:, c]), project(test.x[:, c + 1])
        at = np.full(len(here), c)
        place[:, p] = frames.log_odds(np.column_stack([at, here]))
        moved[:, p] = moves.log_odds(np.column_stack([at, here, after, after - here]))
    return Told(place, place, moved)


def _some(numbers: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.choice(numbers, most, replace=False) if len(numbers) > most else numbers


class _Trees:
    """Boosted trees that give log-odds, whatever the shares of the two agents in the examples."""

    def __init__(self, features: Floats, y: NDArray[np.int64], seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        self.trees = HistGradientBoostingClassifier(**TREES, random_state=seed).fit(features, y)
        self.prior = float(np.log(max(y.sum(), 1)) - np.log(max((1 - y).sum(), 1)))

    def log_odds(self, features: Floats) -> Floats:
        return np.asarray(self.trees.decision_function(features) - self.prior)


def _projection(known: Group, rng: np.random.Generator) -> Any:
    """A function from observations (m, entries) to at most `COMPONENTS` numbers each."""
    if known.x.shape[2] <= COMPONENTS:
        return lambda x: x
    from sklearn.decomposition import PCA

    some = known.x[known.there][_some(np.arange(known.there.sum()), FRAMES, rng)]
    pca = PCA(min(COMPONENTS, len(some)), svd_solver="randomized", random_state=0).fit(some)
    return pca.transform
