"""What a model was fitted to, in a few words: enough to tell two datasets apart, without keeping either."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import ArraySteps, Steps, TrajectoryDataset

__all__ = ["described", "fingerprint", "in_words", "streamed_fingerprint", "whole_digest"]

BLOCKS, ROWS = 16, 8  # runs of neighbouring trajectories that are read, evenly spaced, and how many each has
_WHOLE: WeakKeyDictionary[TrajectoryDataset, str] = WeakKeyDictionary()


def described(tau: TrajectoryDataset) -> dict[str, Any]:
    """Sizes, shape, type and fingerprint of a dataset, as plain values."""
    return in_words(tau.counts, tau.H, tau.obs_shape, tau.dtype, fingerprint(tau))


def in_words(
    counts: NDArray[np.integer], H: int, obs_shape: tuple[int, ...], dtype: np.dtype[Any], fingerprint: str
) -> dict[str, Any]:
    """The same of a dataset whose fingerprint is known."""
    return {
        "trajectories": counts.tolist(),
        "steps": H,
        "observation": list(obs_shape),
        "dtype": str(dtype),
        "fingerprint": fingerprint,
    }


def fingerprint(tau: TrajectoryDataset) -> str:
    """A number (hexadecimal) that changes if the data does.

    It is made from the agents, the lengths and the type of the observations, and from all observations of 128
    trajectories (or of all, if there are fewer): datasets that differ elsewhere alone have the same one.
    """
    return streamed_fingerprint(tau.steps, [tau.agent], [tau.lengths])


def streamed_fingerprint(
    steps: Steps, agents: Iterable[NDArray[np.integer]], lengths: Iterable[NDArray[np.integer]]
) -> str:
    """The same for agents and lengths that come part by part, in the order of the trajectories."""
    H, n = steps.shape[:2]
    digest = hashlib.sha256(repr((H, n, tuple(steps.shape[2:]), str(steps.dtype))).encode())
    for part in agents:
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    size = min(ROWS, n)
    starts = np.unique(np.linspace(0, n - size, BLOCKS).astype(int))
    length_of = np.zeros((len(starts), size), dtype=np.int64)  # of the trajectories that are read below
    first = 0
    for part in lengths:
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
        row = starts[:, None] + np.arange(size) - first
        here = (row >= 0) & (row < len(part))
        length_of[here] = part[row[here]]
        first += len(part)
    # Step by step, as a store holds them; the digest takes them run by run.
    x = [[steps.read(step, start, start + size) for start in starts.tolist()] for step in range(H)]
    for i, length in enumerate(length_of):
        for step in range(H):
            there = length > step  # what fills up a trajectory that is over does not count
            digest.update(np.ascontiguousarray(x[step][i][there]).tobytes())
    return digest.hexdigest()[:16]


def whole_digest(tau: TrajectoryDataset) -> str:
    """The same from every observation: for what may be reused with this very data alone, such as checkpoints.

    All of the data is read once. Of a dataset on disk the number is remembered; one in memory may be changed by its
    owner.
    """
    if tau in _WHOLE:
        return _WHOLE[tau]
    digest = hashlib.blake2b(repr((tau.H, tau.n, tau.obs_shape, str(tau.dtype))).encode(), digest_size=8)
    for labels in (tau.agent, tau.lengths):
        digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
    for h in range(1, tau.H + 1):
        there = tau.present(h)
        for rows, x in tau.blocks(h):
            digest.update(np.ascontiguousarray(x[there[rows]]).data)
    if not isinstance(tau.steps, ArraySteps):
        _WHOLE[tau] = digest.hexdigest()
    return digest.hexdigest()
