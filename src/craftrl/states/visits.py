"""Counting: how often each agent was in each state, and in each pair of states.

The sets D_k(s_h, s_{h+1}) of the paper enter every estimate as their sizes alone. All of those sizes come from here.

Paper: Section 2.3 (D_k and its subsets)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import shown
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidDataError

__all__ = ["count_visits", "pair_labels"]

MOST_COUNTS = 2**28  # entries of a table of counts, 2 GiB: labels that ask for more do not count from 0


def count_visits(
    *labels: ArrayLike, sizes: Sequence[int] | None = None, times: ArrayLike | None = None
) -> NDArray[Any]:
    """How many trajectories have each combination of labels: `count_visits(agent, s_h, s_next)[k, s, t]`.

    labels  integers (n,) each, one per trajectory: agents, states at h, states at h+1, or any other numbers. A label
            below 0 is unknown, and its trajectory counts nowhere
    sizes   how many values each kind of label has, which is the shape returned; by default up to the largest that
            occurs
    times   (n,) how often each trajectory counts; by default once, and the counts are integers. With weights
            they are floats
    """
    given = _columns(labels)
    shape = [int(label.max(initial=-1)) + 1 for label in given] if sizes is None else _sizes(sizes, len(given))
    if prod(shape) > MOST_COUNTS:
        raise InvalidDataError(
            f"Labels must count from 0 without large gaps; up to {max(shape) - 1} was given, which asks for "
            f"{prod(shape):.3g} counts; number them again."
        )
    known = np.logical_and.reduce([label >= 0 for label in given])
    index = np.zeros(int(known.sum()), dtype=np.int64)
    for label, size in zip(given, shape, strict=True):
        chosen = label[known].astype(np.int64)
        if chosen.max(initial=-1) >= size:
            raise InvalidDataError(f"Labels must lie below {size}, their number; {chosen.max()} was given; count more.")
        index = index * size + chosen
    weights = None if times is None else _weights(times, len(known))[known]
    return np.bincount(index, weights, minlength=prod(shape)).reshape(shape)


def pair_labels(s_h: ArrayLike, s_next: ArrayLike) -> NDArray[np.int64]:
    """One number for each trajectory's pair (s_h, s_{h+1}), in the order of the pairs; -1 where a state is unknown.

    Whatever depends on the pair alone is then a table over one axis: `count_visits(pair_labels(s_h, s_next), agent)`.
    """
    s, s_after = _columns((s_h, s_next))
    if (int(s.max(initial=0)) + 1) * (int(s_after.max(initial=0)) + 1) >= 2**63:
        raise InvalidDataError(
            f"Labels must count from 0 without large gaps; up to {max(s.max(), s_after.max())} was given; number them "
            "again."
        )
    return np.where((s >= 0) & (s_after >= 0), s * (s_after.max(initial=0) + 1) + s_after, -1)


def _columns(labels: Sequence[ArrayLike]) -> list[NDArray[np.int64]]:
    """Labels of several kinds, one of each per trajectory."""
    columns = [as_labels("labels", label, 1) for label in labels]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns) or "none"
        raise InvalidDataError(f"There must be one label of each kind per trajectory; {lengths} were given.")
    return columns


def _sizes(sizes: Sequence[int], n: int) -> list[int]:
    given = as_labels("sizes", sizes, 1)
    if len(given) != n or (given < 0).any():
        raise InvalidDataError(f"sizes must hold one number of values per kind of label; {sizes} was given for {n}.")
    return [int(size) for size in given]


def _weights(times: ArrayLike, n: int) -> NDArray[np.float64]:
    weights = as_array("times", times)
    if weights.shape != (n,) or (weights < 0).any():
        raise InvalidDataError(
            f"times must hold {n} numbers, none below 0, one per trajectory; {shown(times)} was given."
        )
    return weights.astype(float)
