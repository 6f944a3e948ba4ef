"""What may be wrong with recordings, told from a sample of them, before anything is learned.

These are screenings, not proofs: they look at one entry of the observation at a time. What they cannot see, `fit` and
`diagnose` test with a learner (docs/starts.md, docs/diagnostics.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset

__all__ = ["FEW", "Sample", "find_warnings", "largest_difference", "settled_share", "take_sample"]

ROWS = 512  # trajectories of each agent that are looked at
STEPS = 16  # steps that are looked at
ENTRIES = 4096  # entries of an observation that are looked at
FEW = 200  # trajectories per agent, below which even the smallest worlds were not learned well
ROWS_PER_ENTRY = 20  # trajectories for each entry, above which mixtures of entries are looked at
FEWEST = 30  # below this nothing can be said about spread
SETTLED = 0.5  # an entry begins settled if its variance at h = 1 is below this share of that at later steps
# Copies: at least so many different episodes, so often in the mean, with so small a variance for that mean. Episodes
# that repeat by Poisson's law, 1.5 times in the mean or more, have a variance of at least 0.37 of it.
DIFFERENT, OFTEN, EQUALLY = 20, 1.5, 0.2
FALSE_ALARMS = 0.001


@dataclass(frozen=True)
class Sample:
    """Some trajectories of every agent at some steps.

    steps  h of every column, from 1; neighbours h and h + 1 where there is room
    x      for each agent (rows, steps, entries), as float
    there  for each agent (rows, steps): whether the trajectory runs that far
    """

    steps: list[int]
    x: list[NDArray[np.float32]]
    there: list[NDArray[np.bool_]]


def take_sample(tau: TrajectoryDataset) -> Sample:
    """The first trajectories of every agent, at pairs of neighbouring steps spread over the horizon."""
    firsts = np.unique(np.linspace(1, tau.H - 1, min(STEPS // 2, tau.H - 1)).round().astype(int))
    steps = sorted({int(h) for first in firsts for h in (first, first + 1)})
    size = int(np.prod(tau.obs_shape, dtype=np.int64))
    entries = np.linspace(0, size - 1, min(size, ENTRIES)).round().astype(int)
    x, there = [], []
    for k in range(tau.K):
        mine = tau.agent_slice(k)
        stop = min(mine.stop, mine.start + ROWS)
        read = [tau.steps.read(h - 1, mine.start, stop).reshape(stop - mine.start, -1)[:, entries] for h in steps]
        x.append(np.stack(read, axis=1).astype(np.float32))
        there.append(np.stack([tau.lengths[mine.start : stop] >= h for h in steps], axis=1))
    return Sample(steps, x, there)


def find_warnings(tau: TrajectoryDataset, sample: Sample, notes: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    """One sentence or two for everything that may spoil a fit, the worst first."""
    found = [
        *_unchanging(sample),
        *_twice(sample, names),
        *_copies(sample, names),
        *_too_few(tau, names),
        *_told_by_start(sample, names),
        *_varying_start(sample, notes),
        *_too_alike(sample, names),
        *_lossy(notes, names),
    ]
    return tuple(found)


def _too_few(tau: TrajectoryDataset, names: list[str]) -> Iterator[str]:
    few = [f"{name} {n}" for name, n in zip(names, tau.counts) if n < FEW]
    if few:
        yield (
            f"Few episodes: {', '.join(few)}. Small worlds were learned from {FEW} to 1000 episodes of each agent, "
            "larger ones need more; collect more, or cut long recordings at every return to the start."
        )


def _lossy(notes: dict[str, Any], names: list[str]) -> Iterator[str]:
    kinds = list(notes.get("lossy") or [])
    which = kinds[:1] if len(set(kinds)) == 1 else [f"{name}: {kind or 'none'}" for name, kind in zip(names, kinds)]
    if not any(kinds):
        return
    text = (
        f"Lossy compression ({'; '.join(which)}) blurs small figures and leaves traces of earlier frames; record "
        "without loss if you can."
    )
    if len(set(kinds)) > 1:
        text += " The agents were compressed differently, which alone tells them apart: compress all of them alike."
    yield text


def _twice(sample: Sample, names: list[str]) -> Iterator[str]:
    """Equal trajectories are no accident where observations are rich; in small worlds they are, and tell of nothing."""
    seen: list[list[bytes]] = [[row.tobytes() for row in x] for x in sample.x]
    for a in range(len(seen)):
        if len(set(seen[a])) < 0.9 * len(seen[a]):
            continue  # this world repeats itself
        for b in range(a + 1, len(seen)):
            common = len(set(seen[a]) & set(seen[b]))
            if common > 0.1 * min(len(seen[a]), len(seen[b])):
                yield (
                    f"{names[a]} and {names[b]} share episodes: {common} of the first "
                    f"{min(len(seen[a]), len(seen[b]))} are the same; one agent's data may have been given twice."
                )


def _copies(sample: Sample, names: list[str]) -> Iterator[str]:
    """Episodes that a world repeats by itself occur unequally often, as Poisson's law says at the least; copies of a
    whole recording do not."""
    for name, x in zip(names, sample.x):
        times = np.unique([row.tobytes() for row in x], return_counts=True)[1]
        if len(times) >= DIFFERENT and times.mean() >= OFTEN and times.var() < EQUALLY * times.mean():
            yield (
                f"{name} has episodes several times: {len(x) - len(times)} of the first {len(x)} are copies of others. "
                "A copy adds nothing that was not known, and counts in every test as if it did; leave copies out."
            )


def _unchanging(sample: Sample) -> Iterator[str]:
    first = sample.x[0][0, 0]
    if all((x == first).all(axis=-1)[there].all() for x, there in zip(sample.x, sample.there)):
        yield (
            "All observations are the same: nothing in them ever changes, so there is nothing to learn from; check "
            "what was recorded."
        )


def _told_by_start(sample: Sample, names: list[str]) -> Iterator[str]:
    """From one start, the first observation is noise, and noise knows nothing of the agents."""
    found = [(a, b, largest_difference([sample.x[a][:, 0]], [sample.x[b][:, 0]])) for a, b in _pairs(names)]
    which = [f"{names[a]} and {names[b]}" for a, b, difference in found if difference is not None and difference > 1]
    if which:
        yield (
            f"The first observations of these agents differ: {', '.join(which)}. They begin in different states, or "
            "were recorded under different conditions. Then whatever differs passes for what they control; record them "
            "alike."
        )


def _varying_start(sample: Sample, notes: dict[str, Any]) -> Iterator[str]:
    """From one start, something is settled at h = 1 that is not later; where nothing is, starts seem to vary."""
    if notes.get("clip"):
        yield (
            f"Episodes are clips of {notes['clip']} steps, so they begin in many states; CRAFT assumes one. Fit with "
            'start="find" and stationary=True, or cut where the agents are back at the start (docs/starts.md).'
        )
        return
    share = settled_share(sample)
    if share is not None and share > SETTLED:
        yield (
            f"The first observation seems to vary as the later ones do: no entry has less than {share:.0%} of its "
            'later variance. CRAFT assumes one start state; if the agents begin in several, fit with start="find" '
            "(docs/starts.md)."
        )


def settled_share(sample: Sample) -> float | None:
    """The least ratio of the variance at h = 1 to that at later steps; None if nothing can be said.

    Over single entries; and where there are few enough of them, over all their linear mixtures, for a state may not
    stand in any one of them.
    """
    first = np.concatenate([x[:, 0] for x in sample.x])
    later = np.concatenate([x[:, 1:][there[:, 1:]] for x, there in zip(sample.x, sample.there)])
    if len(first) < FEWEST:
        return None
    moving = later.var(axis=0)
    much = moving > 0.1 * moving.max(initial=0.0)  # rare events settle nothing
    if not much.any():
        return None
    single = float((first.var(axis=0)[much] / moving[much]).min())
    mixed = _mixtures(first, later) if len(first) >= ROWS_PER_ENTRY * first.shape[1] > ROWS_PER_ENTRY else 1.0
    return min(single, mixed)


def _mixtures(first: NDArray[np.float32], later: NDArray[np.float32]) -> float:
    """The least ratio over linear mixtures, among those that vary enough later: an eigenvalue.

    Divided by what it is in a sample of this size if all of them vary as later (the edge of Marchenko-Pastur's law).
    """
    scale = np.maximum(later.std(axis=0), 1e-12)
    value, axis = np.linalg.eigh(np.cov(later / scale, rowvar=False))
    much = value > 0.01 * value.max()
    white = axis[:, much] / np.sqrt(value[much])
    least = np.linalg.eigvalsh(white.T @ np.cov(first / scale, rowvar=False) @ white)[0]
    edge = (1 - np.sqrt(white.shape[1] / len(first))) ** 2
    return max(float(least / edge), 0.0)


def _too_alike(sample: Sample, names: list[str]) -> Iterator[str]:
    """Whether any entry, or its product with itself a step later, differs between agents by more than chance."""
    moments = [_entries_and_products(sample, k) for k in range(len(names))]
    found = [(a, b, largest_difference(moments[a], moments[b])) for a, b in _pairs(names)]
    which = [f"{names[a]} and {names[b]}" for a, b, difference in found if difference is not None and difference <= 1]
    if which:
        yield (
            f"These agents look alike: {', '.join(which)}. No entry of the observation differs between them by more "
            "than chance. CRAFT learns from what they do differently; choose agents with other habits, or collect more."
        )


def _entries_and_products(sample: Sample, k: int) -> list[NDArray[np.float32]]:
    """Entries at every step, and products of neighbours; where a trajectory has ended, zero, as for every agent."""
    centre = np.mean([x.mean(axis=(0, 1)) for x in sample.x], axis=0, dtype=np.float32)
    x = (sample.x[k] - centre) * sample.there[k][..., None]
    neighbours = [i for i, h in enumerate(sample.steps[:-1]) if sample.steps[i + 1] == h + 1]
    return [x, *(x[:, i] * x[:, i + 1] for i in neighbours)]


def largest_difference(a: list[NDArray[np.float32]], b: list[NDArray[np.float32]]) -> float | None:
    """The largest |z| between the means of two agents' trajectories, in units of what chance alone stays below.

    Above 1 with probability FALSE_ALARMS if the agents are the same, however many entries there are (Bonferroni). None
    where there are too few trajectories to say.
    """
    from scipy.stats import norm

    if min(len(a[0]), len(b[0])) < FEWEST:
        return None
    largest, n_tests = 0.0, 0
    for xa, xb in zip(a, b):
        gap = np.abs(xa.mean(axis=0) - xb.mean(axis=0))
        error = np.sqrt(xa.var(axis=0) / len(xa) + xb.var(axis=0) / len(xb))
        z = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0).astype(gap.dtype), where=error > 0)
        largest, n_tests = max(largest, float(z.max())), n_tests + z.size
    return largest / float(norm.isf(FALSE_ALARMS / 2 / n_tests))


def _pairs(names: list[str]) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
