"""Long recordings as windows: short stretches of neighbouring frames that are learned from like trajectories.

With one recording per agent there is one trajectory of thousands of steps, and step h means nothing. What is learned
with one encoder for all steps needs neither: it compares neighbouring frames, wherever they lie. So recordings that are
longer than they are many are cut into windows of some 20 frames. A window is a place in the recording: nothing is
copied. No window crosses a cut, a step at which the whole picture changes as it otherwise never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.data.dataset import BLOCK_BYTES, TrajectoryDataset
from craftrl.errors import InvalidDataError

Window = int | Literal["auto"] | None
LENGTH = 20  # frames of a window: of its pairs of neighbours one in twenty is lost, and there are many windows
REGULAR = 0.01  # of the steps at which something changes: what is as frequent as this belongs to the world
SUDDEN = 2.0  # how many times as much as at all other steps the picture changes at a cut
READ_BYTES = 8 * 2**20  # of frames that are compared at a time


@dataclass(frozen=True)
class Windows:
    """Windows of a dataset's trajectories.

    tau     the windows, a dataset that is not `aligned`
    of      int (m,): the trajectory that each is of
    begin   int (m,): where it begins there, counted from 0
    n_cuts  how many cuts were found in all
    why     what was done and why, in a sentence
    """

    tau: TrajectoryDataset
    of: Ints
    begin: Ints
    n_cuts: int = 0
    why: str = ""

    def put_back(
        self,
        labels: Ints,
        given: TrajectoryDataset,
        encode: Callable[[NDArray[Any]], NDArray[np.integer]] | None = None,
    ) -> Ints:
        """Labels (m, L) of windows as labels (n, H) of the trajectories that they were cut from; -1 where one is over.

        `encode` labels frames that no window holds, such as a single one between two cuts; without it they have -1.
        """
        out = np.full((given.n, given.H), -1, dtype=np.int64)
        missing = np.arange(given.H) < given.lengths[:, None]
        step = np.arange(self.tau.H)
        there = step < self.tau.lengths[:, None]
        place = np.repeat(self.of, self.tau.lengths), (self.begin[:, None] + step)[there]
        out[place], missing[place] = labels[there], False
        if encode is not None and missing.any():
            row, h = np.nonzero(missing)
            out[row, h] = encode(given.pick(row, h))
        return out


def cut(tau: TrajectoryDataset, window: Window = "auto") -> Windows | None:
    """The windows to learn from; None where trajectories are learned from as they are.

    window  how many frames a window has at most; None for none. "auto" cuts where some agent's trajectories are longer
            than they are many, and each makes two windows at least

    Windows are not cut again. Frames are read once, a few at a time.
    """
    if window is None or not tau.aligned:
        return None
    if window == "auto":
        if not (long := longer_than_many(tau)):
            return None
        k = min(long, key=tau.counts.__getitem__)
        n, steps = int(tau.counts[k]), tau.lengths[tau.agent_slice(k)].mean()
        reason = f"agent {tau.names[k]} has {n} {'trajectory' if n == 1 else 'trajectories'} of {steps:.0f} steps"
    else:
        reason = "as asked for"
    cuts = [cuts_in(tau, i).tolist() for i in range(tau.n)]
    ends = ((i, [0, *own, n]) for i, (own, n) in enumerate(zip(cuts, tau.lengths.tolist())))
    stretches = [(i, start, stop) for i, own in ends for start, stop in pairwise(own) if stop - start > 1]
    if not stretches:
        return None
    found = _divided(tau, stretches, LENGTH if window == "auto" else int(window))
    counts = " + ".join(map(str, found.tau.counts))
    why = f"{reason}, so that {counts} windows of neighbouring frames, from anywhere, are learned from."
    return Windows(found.tau.checked(), found.of, found.begin, sum(map(len, cuts)), why)


def longer_than_many(tau: TrajectoryDataset) -> list[int]:
    """The agents whose trajectories have more steps, in the mean, than there are of them: two windows at least."""
    steps = np.bincount(tau.agent, tau.lengths) / tau.counts
    return np.flatnonzero((steps > tau.counts) & (steps >= 2 * LENGTH)).tolist()


def cuts_in(tau: TrajectoryDataset, i: int) -> Ints:
    """The frames of trajectory i, counted from 0, that begin something new: a cut lies before each.

    How much the picture changes is the mean, over its entries, of the root of the difference, so that many entries that
    change a little count more than a few that change much. A cut changes it twice as much as 99 of 100 steps at which
    anything changes: what jumps more often than that is a habit of this recording, and is learned from.
    """
    n, file, first = int(tau.lengths[i]), int(tau.file[i]), int(tau.first[i])
    size = max(1, READ_BYTES // tau.frame_bytes)
    change = np.zeros(max(n - 1, 0), dtype=np.float32)
    for start in range(0, n - 1, size):
        x = tau.frames.part(file, first + start, min(size, n - 1 - start) + 1)
        a, b = x[:-1].reshape(len(x) - 1, -1), x[1:].reshape(len(x) - 1, -1)
        if x.dtype.kind == "u":  # as bytes, which have no differences below 0
            root = np.sqrt(np.maximum(a, b) - np.minimum(a, b), dtype=np.float32)
        else:
            root = np.sqrt(np.abs(b.astype(np.float32) - a.astype(np.float32)))
        change[start : start + len(a)] = root.mean(axis=1)
    some = change[change > 0]
    usual = np.quantile(some, 1 - REGULAR, method="higher") if len(some) else 0.0
    return np.flatnonzero(change > SUDDEN * usual) + 1 if usual else np.empty(0, dtype=np.int64)


def pieces(tau: TrajectoryDataset) -> Windows:
    """All frames in pieces of trajectories, 64 of which are read at a time (`blocks`) without filling the memory."""
    most = max(2, BLOCK_BYTES // (64 * tau.frame_bytes))
    if most >= tau.H:
        return Windows(tau, np.arange(tau.n), np.zeros(tau.n, dtype=np.int64))
    return _divided(tau, [(i, 0, n) for i, n in enumerate(tau.lengths.tolist())], most)


def _divided(tau: TrajectoryDataset, stretches: Sequence[tuple[int, int, int]], most: int) -> Windows:
    """Stretches (trajectory, start, stop) in equal windows of at most so many frames, and of two at least."""
    parts = [min(-(-(stop - start) // most), max(1, (stop - start) // 2)) for _, start, stop in stretches]
    ends = [np.linspace(start, stop, n + 1).round().astype(np.int64) for (_, start, stop), n in zip(stretches, parts)]
    of = np.repeat([i for i, _, _ in stretches], parts)
    begin, length = np.concatenate([own[:-1] for own in ends]), np.concatenate([np.diff(own) for own in ends])
    return Windows(tau.like(of, tau.agent[of], length, tau.names, begin), of, begin)


def windows_again(tau: TrajectoryDataset, row: Ints, windows: Ints, sizes: tuple[int, ...]) -> TrajectoryDataset:
    """The windows (m, 3) of a model, cut from the data that it was fitted to: of `sizes` (n, H) or longer.

    row  int (n,): the trajectory of tau that each of the caller's rows is
    """
    if tau.n != sizes[0] or sizes[1] > tau.H or (windows[:, 1:].sum(axis=1) > tau.lengths[row[windows[:, 0]]]).any():
        raise InvalidDataError(
            f"The data must be that which the model was fitted to, {sizes[0]} trajectories of {sizes[1]} steps; {tau} "
            "was given."
        )
    of = row[windows[:, 0]]
    return tau.like(of, tau.agent[of], windows[:, 2], tau.names, windows[:, 1])


def taken(labels: Ints, windows: Ints, H: int) -> Ints:
    """Labels (n, H) of trajectories as those (m, H) of windows (m, 3)."""
    step = np.arange(H)
    found = labels[windows[:, :1], np.minimum(windows[:, 1:2] + step, labels.shape[1] - 1)]
    return np.where(step < windows[:, 2:], found, -1)
