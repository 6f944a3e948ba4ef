"""What a model was fitted to, in a few words: enough to tell two datasets apart, without keeping either."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from craftrl.data.dataset import TrajectoryDataset

__all__ = ["described", "fingerprint"]

BLOCKS, ROWS = 16, 8  # runs of neighbouring trajectories that are read, evenly spaced, and how many each has


def described(tau: TrajectoryDataset) -> dict[str, Any]:
    """Sizes, shape, type and fingerprint of a dataset, as plain values."""
    return {
        "trajectories": tau.counts.tolist(),
        "steps": tau.H,
        "observation": list(tau.obs_shape),
        "dtype": str(tau.dtype),
        "fingerprint": fingerprint(tau),
    }


def fingerprint(tau: TrajectoryDataset) -> str:
    """A number (hexadecimal) that changes if the data does.

    It is made from the agents, the lengths and the type of the observations, and from all observations of 128
    trajectories (or of all, if there are fewer): datasets that differ elsewhere alone have the same one.
    """
    digest = hashlib.sha256(repr((tau.H, tau.n, tau.obs_shape, str(tau.dtype))).encode())
    digest.update(np.ascontiguousarray(tau.agent, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(tau.lengths, dtype="<i8").tobytes())
    size = min(ROWS, tau.n)
    starts = np.unique(np.linspace(0, tau.n - size, BLOCKS).astype(int))
    # Step by step, as a store holds them; the digest takes them run by run.
    x = [[tau.steps.read(step, start, start + size) for start in starts.tolist()] for step in range(tau.H)]
    for i, start in enumerate(starts.tolist()):
        for step in range(tau.H):
            there = tau.lengths[start : start + size] > step  # what fills up a trajectory that is over does not count
            digest.update(np.ascontiguousarray(x[step][i][there]).tobytes())
    return digest.hexdigest()[:16]
