"""Clusters between valleys: for log-odds that are spread about their value, as a network's are.

The paper's scan needs an empty bin between two successors and takes every heavy bin for one. That suits an f_h
from a finite class, which has few values. A network's f_h scatters about each of them: a few stray pairs bridge
two successors where little is asked of a heavy bin (small h), and a dent splits one successor in two. Here a
cluster is a hill of the spectrum instead. On a grid as coarse as the paper's (alpha/4) no smoothing is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import neighbourhood
from craftrl.core.saved import Savable

__all__ = ["Valleys"]


@dataclass(frozen=True)
class Valleys(Savable):
    """Cluster every bin with the hill that it lies on; a stand-in for `find_clusters`.

    depth      two hills are one unless the pass between them is lower than this share of the lower summit
    min_share  a hill with less than this share of the predecessor's pairs is no cluster
    """

    depth: float = 0.6
    min_share: float = 0.03

    def __call__(
        self, spectrum: NDArray[np.integer], threshold: float, n_pairs: int | None = None
    ) -> NDArray[np.int64]:
        """The cluster of every bin, -1 for none, numbered in the order of the bins; as in `find_clusters`.

        `n_pairs` is the number of the predecessor's pairs; None takes those in the spectrum.
        """
        hill = self._merged(_summits(spectrum), spectrum)
        cluster = np.full(spectrum.shape, -1, dtype=np.int64)
        share = self.min_share * float(spectrum.sum() if n_pairs is None else n_pairs)
        least = max(threshold, share, 1.0)
        kept = [s for s in np.unique(hill[hill >= 0]) if spectrum[hill == s].sum() >= least]
        order = sorted(kept, key=lambda s: int(np.argmax((hill == s).ravel())))
        for c, s in enumerate(order):
            cluster[hill == s] = c
        return cluster

    def _merged(self, hill: NDArray[np.int64], height: NDArray[np.integer]) -> NDArray[np.int64]:
        """Join hills, highest pass first, whose pass is not a valley."""
        while True:
            passes = _passes(hill, height)
            peak = {s: int(height[hill == s].max()) for s in np.unique(hill[hill >= 0])}
            shallow = [(level, a, b) for (a, b), level in passes.items() if level >= self.depth * min(peak[a], peak[b])]
            if not shallow:
                return hill
            _, a, b = max(shallow)
            hill = np.where(hill == b, a, hill)


def _summits(height: NDArray[np.integer]) -> NDArray[np.int64]:
    """The summit that steepest ascent reaches from each bin that is not empty, as a flat index; -1 for empty ones."""
    hill = np.full(height.shape, -1, dtype=np.int64)
    flat = np.arange(height.size).reshape(height.shape)
    order = sorted(map(tuple, np.argwhere(height > 0)), key=lambda b: (-height[b], flat[b]))
    for bin_ in order:
        higher = [near for near in neighbourhood(bin_, height.shape) if hill[near] >= 0]
        best = max(higher, key=lambda b: (height[b], -flat[b]), default=None)
        hill[bin_] = flat[bin_] if best is None else hill[best]
    return hill


def _passes(hill: NDArray[np.int64], height: NDArray[np.integer]) -> dict[tuple[int, int], int]:
    """For each two hills that touch, the height of the highest pass between them."""
    passes: dict[tuple[int, int], int] = {}
    if hill.ndim == 1:
        for i in np.flatnonzero((hill[1:] != hill[:-1]) & (hill[1:] >= 0) & (hill[:-1] >= 0)):
            a, b = sorted((int(hill[i]), int(hill[i + 1])))
            passes[a, b] = max(int(min(height[i], height[i + 1])), passes.get((a, b), 0))
        return passes
    for bin_ in map(tuple, np.argwhere(hill >= 0)):
        for near in neighbourhood(bin_, hill.shape):
            a, b = int(hill[bin_]), int(hill[near])
            if b >= 0 and a < b:
                level = int(min(height[bin_], height[near]))
                passes[a, b] = max(level, passes.get((a, b), 0))
    return passes
