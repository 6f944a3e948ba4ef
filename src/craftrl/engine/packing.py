"""Bit planes: the values of all encoders at all steps on some trajectories, one bit each.

An encoder with values 0..N_s-1 is N_s - 1 planes: plane v holds a 1 where the value is v, and value 0 is what is
left. One observation of 128 bits then takes 16 bytes instead of 128, and counting is AND and popcount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels
from craftrl.data.dataset import BLOCK_BYTES, TrajectoryDataset
from craftrl.errors import InvalidDataError

__all__ = ["NOTHING", "Packed", "Share", "View", "Words", "pack_coordinates", "pack_functions"]

LANES = 8  # 64-bit words in one vector: each agent's trajectories start on a new vector
SPLIT = 2**16  # trajectories whose halves are drawn together

Words = NDArray[np.uint64]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Share:
    """Some trajectories of a dataset: of each agent a run of consecutive ones.

    tau      the dataset
    runs     for each agent where its trajectories begin and end among all
    lengths  int (n,): how many steps each of them has
    first    for each agent how many of its trajectories come before these in the whole dataset
    """

    tau: TrajectoryDataset
    runs: tuple[tuple[int, int], ...]
    lengths: NDArray[np.int64]
    first: tuple[int, ...]

    @classmethod
    def of(cls, tau: TrajectoryDataset, number: int = 0, out_of: int = 1) -> Share:
        """One of `out_of` equal parts of a dataset."""
        bounds = [(number * int(n) // out_of, (number + 1) * int(n) // out_of) for n in tau.counts]
        begin = [tau.agent_slice(k).start for k in range(tau.K)]
        runs = tuple((b + start, b + stop) for b, (start, stop) in zip(begin, bounds))
        lengths = np.concatenate([tau.lengths[slice(*run)] for run in runs])
        return cls(tau, runs, lengths, tuple(start for start, _ in bounds))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Trajectories of each agent, shape (K,)."""
        return np.array([stop - start for start, stop in self.runs])

    @cached_property
    def segments(self) -> NDArray[np.int64]:
        """Where each agent's words begin, in whole vectors, and where the last one's end: shape (K + 1,)."""
        return np.array([0, *accumulate(-(-int(n) // (64 * LANES)) * LANES for n in self.counts)])

    def blocks(self, h: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """The observations of step h in blocks that fit into memory, each with the word at which its bits begin."""
        row = max(1, int(np.prod(self.tau.obs_shape, dtype=np.int64)) * self.tau.dtype.itemsize)
        size = max(64, BLOCK_BYTES // row // 64 * 64)
        for word, (begin, end) in zip(self.segments, self.runs):
            for start in range(begin, end, size):
                yield int(word) + (start - begin) // 64, self.tau.at(h, slice(start, min(start + size, end)))

    def packed(self, group: Labels, n_groups: int) -> Words:
        """One plane for each group of trajectories: (n_groups, W); `group` (n,) is -1 for none."""
        from craftrl.engine.kernels import pack_labels

        planes = np.zeros((n_groups, self.segments[-1]), dtype=np.uint64)
        pack_labels(np.ascontiguousarray(group, dtype=np.int64), self.counts, self.segments, planes)
        return planes

    @cached_property
    def halves(self) -> Words:
        """Two halves (2, W) of each agent's trajectories, drawn at random: of every two neighbours one in each.

        Every SPLIT trajectories have a generator of their own, so that a part is split as it is in the whole.
        """
        halves = []
        for agent, (first, n) in enumerate(zip(self.first, self.counts)):
            blocks = range(first // SPLIT, -(-(first + int(n)) // SPLIT))
            drawn = [np.random.default_rng([0, agent, block]).integers(0, 2, SPLIT // 2) for block in blocks]
            half = np.repeat(np.concatenate([*drawn, np.empty(0, dtype=np.int64)]), 2)
            half[1::2] = 1 - half[1::2]
            halves.append(half[first - blocks.start * SPLIT :][: int(n)])
        return self.packed(np.concatenate(halves), 2)


NOTHING: Literal["nothing"] = "nothing"


@dataclass(frozen=True)
class View:
    """Some encoders of one step on some trajectories: what is counted is said in these.

    h         the step whose observations they read
    encoders  which of Phi_h, None for all; NOTHING for the encoder that is 0 everywhere
    until     a later step, of trajectories that have an observation there too; 0 for all that have one at h
    half      0 or 1: on one of two halves of the trajectories
    """

    h: int
    encoders: slice | Ints | Literal["nothing"] | None = None
    until: int = 0
    half: int | None = None

    def take(self, encoders: slice | Ints) -> View:
        """Some of all encoders of Phi_h, on the same trajectories."""
        return View(self.h, encoders, self.until, self.half)

    def part(self, rows: slice) -> View:
        """Some of the encoders of this view."""
        if self.encoders is None:
            return self.take(rows)
        if isinstance(self.encoders, slice):
            first = self.encoders.start or 0
            return self.take(slice(first + rows.start, first + rows.stop))
        return self if isinstance(self.encoders, str) else self.take(self.encoders[rows])


class Packed:
    """All encoders of Phi_1..Phi_H on the trajectories of one share; each step is packed when it is first needed.

    pack  makes the planes (N_s - 1, |Phi_h|, W) of step h
    """

    def __init__(self, share: Share, pack: Callable[[Share, int], Words]) -> None:
        self.share = share
        self._pack = pack
        self._planes: dict[int, Words] = {}
        self._present: dict[int, Words] = {}

    @property
    def segments(self) -> NDArray[np.int64]:
        """The bounds of the agents' words."""
        return self.share.segments

    def step(self, h: int) -> Words:
        """The planes of all encoders of step h, 0 where a trajectory is over."""
        if h not in self._planes:
            planes, present = self._pack(self.share, h), self._reach(h)
            if (self.share.lengths < h).any():
                planes &= present
            self._planes[h] = planes
        return self._planes[h]

    def present(self, view: View) -> Words:
        """The trajectories that a view is of: (W,)."""
        reached = self._reach(max(view.h, view.until))
        return reached if view.half is None else reached & self.share.halves[view.half]

    def planes(self, view: View) -> Words:
        """The planes (V, I, W) of a view."""
        planes = self.step(view.h)
        if isinstance(view.encoders, str):
            return planes[:0, :1]
        planes = planes if view.encoders is None else np.ascontiguousarray(planes[:, view.encoders])
        over = view.until > view.h and bool((self.share.lengths < view.until).any())
        return planes & self.present(view) if over or view.half is not None else planes

    def _reach(self, h: int) -> Words:
        if h not in self._present:
            self._present[h] = self.share.packed((self.share.lengths >= h) - np.int64(1), 1)[0]
        return self._present[h]


def pack_coordinates(share: Share, h: int, N_s: int = 2) -> Words:
    """Every coordinate of the observations as an encoder; they must be integers in 0..N_s-1."""
    from craftrl.engine.kernels import pack_bits

    n_features = int(np.prod(share.tau.obs_shape, dtype=np.int64))
    planes = np.zeros((N_s - 1, n_features, share.segments[-1]), dtype=np.uint64)
    for word, x in share.blocks(h):
        flat = np.ascontiguousarray(x.reshape(len(x), n_features))
        if N_s == 2 and flat.dtype.itemsize == 1:
            fits = pack_bits(flat.view(np.uint8), planes[0], word)
        else:
            fits = flat.max(initial=0) < N_s and flat.min(initial=0) >= 0
            for v in range(1, N_s):
                pack_bits((flat == v).view(np.uint8), planes[v - 1], word)
        if not fits:
            raise InvalidDataError(
                f"Coordinates must lie in 0..{N_s - 1}; {flat.min()}..{flat.max()} were given at h = {h}; raise "
                "n_values, or use a FiniteOracle with functions that map them there."
            )
    return planes


def pack_functions(share: Share, h: int, functions: Sequence[Callable[[NDArray[Any]], Any]], N_s: int) -> Words:
    """Any list of encoders, each evaluated once on every block of observations."""
    planes = np.zeros((N_s - 1, len(functions), share.segments[-1]), dtype=np.uint64)
    octets = planes.view(np.uint8)
    for word, x in share.blocks(h):
        for i, phi in enumerate(functions):
            values = _checked_values(phi(x), len(x), N_s, i)
            for v in range(1, N_s):
                bits = np.packbits(values == v, bitorder="little")
                octets[v - 1, i, 8 * word : 8 * word + len(bits)] = bits
    return planes


def _checked_values(given: Any, n: int, N_s: int, index: int) -> Ints:
    """An encoder's values, if they are integers in 0..N_s-1."""
    values = np.asarray(given)
    if values.shape != (n,):
        raise InvalidDataError(
            f"An encoder must return one value per observation; encoder {index} returned shape {values.shape} "
            f"for {n} observations."
        )
    if values.dtype.kind not in "biuf" or (values.dtype.kind == "f" and not np.array_equal(values, np.rint(values))):
        raise InvalidDataError(
            f"An encoder's values must be integers; encoder {index} returned {values.dtype} values that are not."
        )
    if n and (values.min() < 0 or values.max() >= N_s):
        raise InvalidDataError(
            f"An encoder's values must lie in 0..{N_s - 1} (n_values = {N_s}); encoder {index} returned "
            f"{values.min()}..{values.max()}; raise n_values or mend the encoder."
        )
    return values
