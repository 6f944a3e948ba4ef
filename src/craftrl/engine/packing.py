"""Bit planes: the values of all encoders of one step on all trajectories, one bit each.

An encoder with values 0..N_s-1 is N_s - 1 planes: plane v holds a 1 where the value is v, and value 0 is what is
left. One observation of 128 bits then takes 16 bytes instead of 128, and counting is AND and popcount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError

__all__ = ["LANES", "PackedStep", "constant_step", "pack_coordinates", "pack_functions", "pack_groups"]

SPLIT = 2**16  # trajectories whose halves are drawn together
LANES = 8  # 64-bit words in one vector: each agent's trajectories start on a new vector

Words = NDArray[np.uint64]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class PackedStep:
    """All encoders of Phi_h on the observations of step h.

    planes    uint64 (N_s - 1, |Phi_h|, W): bit t of plane v - 1 is set where the encoder has value v
    present   uint64 (W,): the trajectories that have an observation at h; planes are 0 elsewhere
    counts    int (K,): trajectories of each agent; their bits lie side by side, each agent's from a new vector on
    first     int (K,): for a part of a dataset, the number of each agent's trajectories that come before it
    """

    planes: Words
    present: Words
    counts: NDArray[np.int64]
    first: NDArray[np.int64] | None = None

    @property
    def N_s(self) -> int:
        """How many values an encoder may take."""
        return len(self.planes) + 1

    @property
    def size(self) -> int:
        """|Phi_h|."""
        return self.planes.shape[1]

    @cached_property
    def segments(self) -> NDArray[np.int64]:
        """Where each agent's words begin, and where the last one's end: shape (K + 1,)."""
        return segments(self.counts)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """How many trajectories of each agent have an observation, shape (K,)."""
        return self.value_counts_among(self.present[None, None])[:, 0, 0]

    @cached_property
    def value_counts(self) -> NDArray[np.int64]:
        """How often each agent shows each value >= 1 of each encoder, shape (K, N_s - 1, |Phi_h|)."""
        return self.value_counts_among(self.planes)

    def value_counts_among(self, planes: Words) -> NDArray[np.int64]:
        """Of any planes (V, F, W) of this layout, the bits set where present, by agent: (K, V, F)."""
        from craftrl.engine.counting import count_planes

        counts = count_planes(planes, self.present[None, None], self.segments)
        return counts[:, :, 0, : planes.shape[1], 0].astype(np.int64)

    def take(self, encoders: Ints) -> PackedStep:
        """Some of the encoders, in the order given."""
        return replace(self, planes=np.ascontiguousarray(self.planes[:, encoders]))

    def nothing(self) -> PackedStep:
        """The encoder that is 0 everywhere, on the same trajectories."""
        return replace(self, planes=self.planes[:0, :1])

    def among(self, other: PackedStep) -> PackedStep:
        """All encoders on those trajectories alone that `other` has an observation of."""
        present = self.present & other.present
        return self if np.array_equal(present, self.present) else self._where(present)

    def half(self, which: int, seed: int) -> PackedStep:
        """All encoders on one of two halves of each agent's trajectories, drawn at random."""
        first = np.zeros_like(self.counts) if self.first is None else self.first
        return self._where(self.present & _halves(seed, tuple(first.tolist()), tuple(self.counts.tolist()))[which])

    def _where(self, present: Words) -> PackedStep:
        return replace(self, planes=self.planes & present, present=present)

    def values(self, index: int) -> NDArray[np.int16]:
        """One encoder's values in the order of the dataset, -1 where there is no observation, shape (n,)."""
        values = np.zeros(int(self.counts.sum()), dtype=np.int16)
        for v, plane in enumerate(self.planes, start=1):
            values += np.int16(v) * self._unpack(plane[index])
        if not np.array_equal(self.totals, self.counts):
            values -= ~self._unpack(self.present)
        return values

    def _unpack(self, words: Words) -> NDArray[np.bool_]:
        octets = words.view(np.uint8)
        parts = [
            np.unpackbits(octets[8 * start :], count=int(n), bitorder="little").view(bool)
            for start, n in zip(self.segments, self.counts)
        ]
        return np.concatenate(parts)


def segments(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bounds of the agents' words, in whole vectors, for so many trajectories each: (K + 1,)."""
    return _segments(tuple(counts.tolist()))


@lru_cache(maxsize=64)
def _segments(counts: tuple[int, ...]) -> NDArray[np.int64]:
    n_words = [-(-n // (64 * LANES)) * LANES for n in counts]
    return np.array([0, *accumulate(n_words)])


@lru_cache(maxsize=2)
def _halves(seed: int, first: tuple[int, ...], counts: tuple[int, ...]) -> Words:
    """Which trajectories are in which half: bit masks (2, W)."""
    halves = [half_of(seed, k, start, n) for k, (start, n) in enumerate(zip(first, counts))]
    return pack_groups(np.concatenate(halves), 2, np.array(counts))


def half_of(seed: int, agent: int, start: int, n: int) -> NDArray[np.int64]:
    """In which half, 0 or 1, trajectories start..start+n-1 of an agent are.

    Of every two neighbours one is in each half. Every SPLIT trajectories have a generator of their own, so that whoever
    holds a part of a dataset splits it as it is split in the whole.
    """
    blocks = range(start // SPLIT, -(-(start + n) // SPLIT))
    drawn = [np.random.default_rng([seed, agent, block]).integers(0, 2, SPLIT // 2) for block in blocks]
    half = np.repeat(np.concatenate([*drawn, np.empty(0, dtype=np.int64)]), 2)
    half[1::2] = 1 - half[1::2]
    return half[start - blocks.start * SPLIT :][:n]


def pack_groups(group: Ints, n_groups: int, counts: NDArray[np.int64]) -> Words:
    """One plane for each group of trajectories: uint64 (n_groups, W); `group` (n,) is -1 for none."""
    from craftrl.engine.pack_kernel import pack_labels

    bounds = segments(counts)
    planes = np.zeros((n_groups, bounds[-1]), dtype=np.uint64)
    pack_labels(np.ascontiguousarray(group, dtype=np.int64), counts, bounds, planes)
    return planes


def constant_step(tau: TrajectoryDataset, h: int) -> PackedStep:
    """The class of one encoder that is 0 everywhere: phi_1, where all episodes start in one state."""
    present = _present(tau, h)
    return PackedStep(np.zeros((0, 1, len(present)), dtype=np.uint64), present, tau.counts)


def pack_coordinates(tau: TrajectoryDataset, h: int, N_s: int = 2) -> PackedStep:
    """Every coordinate of the observations as an encoder; they must be integers in 0..N_s-1."""
    from craftrl.engine.pack_kernel import pack_bits

    present = _present(tau, h)
    n_features = int(np.prod(tau.obs_shape, dtype=np.int64))
    planes = np.zeros((N_s - 1, n_features, len(present)), dtype=np.uint64)
    for word, x in _blocks(tau, h):
        flat = np.ascontiguousarray(x.reshape(len(x), n_features))
        if N_s == 2 and flat.dtype.itemsize == 1:
            if not pack_bits(flat.view(np.uint8), planes[0], word):
                _check_coordinates(flat, h, N_s)
        else:
            _check_coordinates(flat, h, N_s)
            for v in range(1, N_s):
                pack_bits((flat == v).view(np.uint8), planes[v - 1], word)
    if not tau.all_present:
        planes &= present
    return PackedStep(planes, present, tau.counts)


def pack_functions(
    tau: TrajectoryDataset, h: int, functions: Sequence[Callable[[NDArray[Any]], Any]], N_s: int
) -> PackedStep:
    """Any list of encoders, each evaluated once on every block of observations."""
    present = _present(tau, h)
    planes = np.zeros((N_s - 1, len(functions), len(present)), dtype=np.uint64)
    octets = planes.view(np.uint8)
    for word, x in _blocks(tau, h):
        for i, phi in enumerate(functions):
            values = _checked_values(phi(x), len(x), N_s, i)
            for v in range(1, N_s):
                bits = np.packbits(values == v, bitorder="little")
                octets[v - 1, i, 8 * word : 8 * word + len(bits)] = bits
    if not tau.all_present:
        planes &= present
    return PackedStep(planes, present, tau.counts)


def _present(tau: TrajectoryDataset, h: int) -> Words:
    return pack_groups(tau.present(h) - np.int64(1), 1, tau.counts)[0]


def _blocks(tau: TrajectoryDataset, h: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks of observations with the word at which each one's bits begin."""
    bounds = segments(tau.counts)
    for rows, x in tau.blocks(h):
        k = int(tau.agent[rows.start])
        yield int(bounds[k]) + (rows.start - tau.agent_slice(k).start) // 64, x


def _check_coordinates(x: NDArray[Any], h: int, N_s: int) -> None:
    if x.max(initial=0) >= N_s or x.min(initial=0) < 0:
        raise InvalidDataError(
            f"Coordinates must lie in 0..{N_s - 1}; {x.min()}..{x.max()} were given at h = {h}; "
            "raise n_values, or use a FiniteOracle with functions that map them there."
        )


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
