"""Labels of trajectories: integer arrays (n,), the state or cluster of each trajectory at one step, -1 for none."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints

Labels = Ints


def renamed(label: Labels, names: Labels) -> NDArray[np.int64]:
    """Label v becomes names[v]; -1 stays -1."""
    return np.append(names, -1)[label]


def paired(first: Labels, second: Labels, n_second: int) -> NDArray[np.int64]:
    """One label for each pair of labels, first * n_second + second; -1 where either is."""
    return np.where((first >= 0) & (second >= 0), first.astype(np.int64) * n_second + second, -1)


def crossed(*labels: Labels, sizes: tuple[int, ...] | None = None) -> NDArray[np.int64]:
    """How many trajectories have each combination of labels, in an array with an axis for each kind of label; those
    with a -1 count nowhere. Without sizes, each axis goes up to the largest label."""
    shape = tuple(map(n_labels, labels)) if sizes is None else sizes
    known = np.logical_and.reduce([label >= 0 for label in labels])
    index = np.ravel_multi_index([label[known] for label in labels], shape) if known.any() else np.zeros(0, np.int64)
    return np.bincount(index, minlength=prod(shape)).reshape(shape)


def n_labels(label: Labels) -> int:
    """One more than the largest label."""
    return int(label.max(initial=-1)) + 1


def tally(label: Labels, n: int | None = None) -> NDArray[np.int64]:
    """How many trajectories have each of the labels 0..n-1; up to the largest one if n is left out."""
    return np.bincount(label.astype(np.int64) + 1, minlength=(n_labels(label) if n is None else n) + 1)[1:]
