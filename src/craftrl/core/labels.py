"""Labels of trajectories: integer arrays (n,), the state or cluster of each trajectory at one step, -1 for none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints

__all__ = ["Labels", "n_labels", "paired", "renamed", "tally"]

Labels = Ints


def renamed(label: Labels, names: Labels) -> NDArray[np.int64]:
    """Label v becomes names[v]; -1 stays -1."""
    return np.append(names, -1)[label]


def paired(first: Labels, second: Labels, n_second: int) -> NDArray[np.int64]:
    """One label for each pair of labels, first * n_second + second; -1 where either is."""
    return np.where((first >= 0) & (second >= 0), first.astype(np.int64) * n_second + second, -1)


def n_labels(label: Labels) -> int:
    """One more than the largest label."""
    return int(label.max(initial=-1)) + 1


def tally(label: Labels, n: int | None = None) -> NDArray[np.int64]:
    """How many trajectories have each of the labels 0..n-1; up to the largest one if n is left out."""
    return np.bincount(label.astype(np.int64) + 1, minlength=(n_labels(label) if n is None else n) + 1)[1:]
