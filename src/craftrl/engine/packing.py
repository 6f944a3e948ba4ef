"""Bit planes: the values of all encoders at all steps on some trajectories, one bit each.

An encoder with values 0..N_s-1 is N_s - 1 planes: plane v holds a 1 where the value is v, and value 0 is what is
left. One observation of 128 bits then takes 16 bytes instead of 128, and counting is AND and popcount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.threads import ordered_map
from craftrl.errors import InvalidDataError

LANES = 8  # 64-bit words in one vector: each agent's trajectories start on a new vector
BLOCK_BYTES = 16 * 2**20  # of observations that are read and packed at once

Words = NDArray[np.uint64]
Answer = TypeVar("Answer")
Pack = Callable[["Part"], Sequence[Words]]  # makes the planes (N_s - 1, |Phi_h|, W) of every step, from h = 1 on


class View(NamedTuple):
    """Some encoders of one step on some trajectories: what is counted is said in these.

    h         the step whose observations they read; at h = 0, before the first, there is one encoder, which is constant
    encoders  which of Phi_h
    until     a later step, of trajectories that have an observation there too; 0 for all that have one at h
    half      0 or 1: on one of two halves of the trajectories
    """

    h: int
    encoders: slice | Ints = slice(None)
    until: int = 0
    half: int | None = None

    def part(self, rows: slice | Ints) -> View:
        """Some of the encoders of this view."""
        if not isinstance(self.encoders, slice):
            return self._replace(encoders=self.encoders[rows])
        first = self.encoders.start or 0
        some = slice(first + rows.start, first + rows.stop) if isinstance(rows, slice) else first + rows
        return self._replace(encoders=some)


class Part:
    """Some trajectories of a dataset, of each agent a run of consecutive ones, and their bit planes.

    It is made, and may be sent elsewhere, before it is packed.

    rows       int (n,): the trajectories, as numbers within the whole dataset
    n_entries  numbers in one observation
    counts     int (K,): trajectories of each agent
    segments   int (K + 1,): where each agent's words begin, in whole vectors, and where the last one's end
    """

    def __init__(self, tau: TrajectoryDataset, number: int = 0, out_of: int = 1) -> None:
        """One of `out_of` equal parts."""
        self.H, self.n_entries = tau.H, int(np.prod(tau.obs_shape, dtype=np.int64))
        begin = np.concatenate([[0], tau.counts.cumsum()[:-1]])
        self._first = number * tau.counts // out_of  # of each agent, how many come before these
        self.counts: NDArray[np.int64] = (number + 1) * tau.counts // out_of - self._first
        runs = zip(begin + self._first, begin + self._first + self.counts)
        self.rows: NDArray[np.int64] = np.concatenate([np.arange(*run) for run in runs])
        self.tau = tau if out_of == 1 else tau.like(self.rows, tau.agent[self.rows], tau.H, None)
        self.segments: NDArray[np.int64] = LANES * np.cumsum([0, *(-(-self.counts // (64 * LANES)))])

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """All observations in blocks (m, H, *obs), each with the word at which its bits begin."""
        size = max(64, BLOCK_BYTES // (self.H * self.n_entries * self.tau.dtype.itemsize) // 64 * 64)
        for word, end, count in zip(self.segments.tolist(), self.counts.cumsum().tolist(), self.counts.tolist()):
            for start in range(end - count, end, size):
                yield word + (start - end + count) // 64, self.tau.rows(np.arange(start, min(start + size, end)))

    def pack(self, pack: Pack) -> Part:
        """Fill the planes, which are 0 where a trajectory is over."""
        self._planes = [np.zeros((0, 1, self.segments[-1]), dtype=np.uint64), *pack(self)]
        self._all_reach = int(self.tau.lengths.min(initial=self.H))
        self._present = [self.grouped(np.zeros_like(self.tau.lengths), 1)[0]] * (self.H + 1)
        for h in range(self._all_reach + 1, self.H + 1):
            self._present[h] = self.grouped(np.where(self.tau.lengths >= h, 0, -1), 1)[0]
            self._planes[h] &= self._present[h]
        return self

    def present(self, view: View) -> Words:
        """The trajectories that a view is of: (W,)."""
        reached = self._present[max(view.h, view.until)]
        return reached if view.half is None else reached & self._halves[view.half]

    def planes(self, view: View) -> Words:
        """The planes (V, I, W) of a view."""
        planes = np.ascontiguousarray(self._planes[view.h][:, view.encoders])
        some = view.half is not None or view.until > max(view.h, self._all_reach)
        return planes & self.present(view) if some else planes

    def values(self, view: View) -> NDArray[np.int16]:
        """The values (n,) of a view's one encoder, -1 where there is no observation."""
        planes = np.concatenate([self.present(view)[None], self.planes(view)[:, 0]])
        present, *bits = np.unpackbits(planes.view(np.uint8), axis=1, bitorder="little")
        values = present - np.int16(1)
        for v, bit in enumerate(bits, start=1):
            values += np.int16(v) * bit
        return np.concatenate([values[64 * word :][:n] for word, n in zip(self.segments, self.counts)])

    def grouped(self, group: Labels, n_groups: int) -> Words:
        """One plane for each group of trajectories: (n_groups, W); `group` (n,) is -1 for none."""
        from craftrl.engine.kernels import pack_labels

        planes = np.zeros((n_groups, self.segments[-1]), dtype=np.uint64)
        pack_labels(np.ascontiguousarray(group, dtype=np.int64), self.counts, self.segments, planes)
        return planes

    @cached_property
    def _halves(self) -> Words:
        """Two halves (2, W) of each agent's trajectories, drawn at random: of every two neighbours one in each."""
        halves = []
        for agent, (first, n) in enumerate(zip(self._first, self.counts)):
            drawn = np.random.default_rng([0, agent, 0]).integers(0, 2, (first + n + 1) // 2)
            halves.append(np.stack([drawn, 1 - drawn], axis=1).ravel()[first : first + n])
        return self.grouped(np.concatenate(halves), 2)


class Parts:
    """Data is a list of parts, and a count is a sum over parts: here a list of one, on a cluster one for each core.

    Whoever counts says what, as a function of one part; where the parts lie makes no difference to any sum. Labels of
    trajectories are arrays of the whole dataset, and are cut to each part's trajectories, `rows`, on the way.
    """

    def __init__(self, tau: TrajectoryDataset, pack: Pack) -> None:
        self.n = tau.n
        self.rows: Sequence[NDArray[np.int64] | slice] = [slice(None)]
        self._part = Part(tau).pack(pack)

    def each(self, count: Callable[..., Answer], *args: Any, label: Labels | None = None) -> Iterator[Answer]:
        """What every part answers to count(part, *args), or to count(part, *args, its rows of label), in order."""
        yield count(self._part, *args) if label is None else count(self._part, *args, label)

    def total(self, count: Callable[..., Any], *args: Any, label: Labels | None = None) -> Any:
        """The sum of these."""
        return sum(self.each(count, *args, label=label))

    def values(self, view: View) -> NDArray[np.int16]:
        """One encoder's values in the order of the dataset, -1 where there is no observation: (n,)."""
        found = np.empty(self.n, dtype=np.int16)
        for rows, values in zip(self.rows, self.each(Part.values, view)):
            found[rows] = values
        return found


def pack_coordinates(part: Part, N_s: int = 2, n_threads: int = 1) -> list[Words]:
    """Every coordinate of the observations as an encoder; they must be integers in 0..N_s-1."""
    from craftrl.engine.kernels import pack_bits

    planes = np.zeros((part.H, N_s - 1, part.n_entries, part.segments[-1]), dtype=np.uint64)

    def pack(block: tuple[int, NDArray[Any]]) -> None:
        word, x = block
        flat = np.ascontiguousarray(x.reshape(*x.shape[:2], part.n_entries))
        if N_s == 2 and flat.dtype.itemsize == 1:
            fits = pack_bits(flat.view(np.uint8), planes, 0, word)
        else:
            fits = flat.max(initial=0) < N_s and flat.min(initial=0) >= 0
            for v in range(1, N_s):
                pack_bits((flat == v).view(np.uint8), planes, v - 1, word)
        if not fits:
            raise InvalidDataError(
                f"Coordinates must lie in 0..{N_s - 1}; {flat.min()}..{flat.max()} were given; raise n_values, or use "
                "a FiniteOracle with functions that map them there."
            )

    for _ in ordered_map(pack, part.blocks(), n_threads):
        pass
    return list(planes)


def pack_functions(part: Part, Phi: Sequence[Sequence[Callable[[NDArray[Any]], Any]]], N_s: int) -> list[Words]:
    """Phi_1..Phi_H as lists of functions, each evaluated once on every block of observations."""
    planes = [np.zeros((N_s - 1, len(functions), part.segments[-1]), dtype=np.uint64) for functions in Phi]
    for word, x in part.blocks():
        for x_h, functions, planes_h in zip(np.moveaxis(x, 1, 0), Phi, planes):
            observed, octets = np.ascontiguousarray(x_h), planes_h.view(np.uint8)
            for i, phi in enumerate(functions):
                values = np.asarray(phi(observed))
                _check_values(values, len(x), N_s, i)
                for v in range(1, N_s):
                    bits = np.packbits(values == v, bitorder="little")
                    octets[v - 1, i, 8 * word : 8 * word + len(bits)] = bits
    return planes


def _check_values(values: NDArray[Any], n: int, N_s: int, index: int) -> None:
    """An encoder's values must be n integers in 0..N_s-1."""
    kind = values.dtype.kind
    whole = kind in "biu" or (kind == "f" and np.array_equal(values, np.rint(values)))
    if values.shape != (n,) or not whole or values.min() < 0 or values.max() >= N_s:
        found = f"{values.min()}..{values.max()}" if values.size and kind in "biuf" else "other"
        raise InvalidDataError(
            f"An encoder must return an integer in 0..{N_s - 1} (n_values = {N_s}) for each of {n} observations; "
            f"encoder {index} returned {found} values, {values.dtype} of shape {values.shape}; mend it, or raise "
            "n_values."
        )
