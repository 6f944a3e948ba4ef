"""States of feature vectors, bits and other entries: which entries decide, and what they are like in each state.

An entry decides if the state changes once the entry is replaced by that of another observation of the same step.
Nothing need be known of the encoder for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.estimators.craft import CRAFT
from craftrl.report.portraits import Group, commonest, groups, moments
from craftrl.report.sample import Sample
from craftrl.report.tables import Table

__all__ = ["Entries", "entries"]

Floats = NDArray[np.float64]
SWAPPED = 64  # entries of a step that are swapped: those whose mean differs most between the states
OBSERVATIONS = 512  # of a step in which they are swapped
SHOWN = 12  # entries of a step that are shown
MOST_STATES = 96


@dataclass(frozen=True)
class Entries:
    """The table, for each step how many entries were swapped and changed no state, and states left out.

    ignored  h (None for all steps): (entries that changed nothing, entries swapped, entries in all)
    """

    table: Table
    ignored: dict[int | None, tuple[int, int, int]]
    left_out: int


def entries(model: CRAFT, sample: Sample) -> Entries:
    """Which entries decide at every step that has two states or more, and their mean and deviation in each state."""
    found = groups(model, sample)
    steps = [h for h in dict.fromkeys(g.h for g in found) if sum(g.h == h for g in found) > 1]
    told_apart = [group for group in found if group.h in steps]
    chosen = commonest(told_apart, MOST_STATES)
    known = {group: (mean.ravel(), dev.ravel()) for group, (mean, dev) in moments(sample, chosen).items()}
    rows: list[tuple[Any, ...]] = []
    ignored: dict[int | None, tuple[int, int, int]] = {}
    for h in steps:
        mine = [group for group in chosen if group.h == h]
        between = _between(mine, known)
        tried = np.argsort(-between, kind="stable")[:SWAPPED]
        changed = _changed(model, sample, h, tried)
        ignored[h] = (int((changed == 0).sum()), len(tried), len(between))
        for i in np.lexsort((-between[tried], -changed))[:SHOWN]:
            entry = int(tried[i])
            for group in mine:
                mean, deviation = (float(values[entry]) for values in known[group])
                rows.append((h, entry, float(changed[i]), float(between[entry]), group.state, mean, deviation))
    caption = "Entries of the observation: how often the state changes if one is swapped, and its values in each state."
    columns = ("h", "entry", "decides", "goes with the state", "state", "mean", "deviation")
    return Entries(Table("entries", caption, columns, tuple(rows)), ignored, len(told_apart) - len(chosen))


def _between(mine: list[Group], known: dict[Group, tuple[Floats, Floats]]) -> Floats:
    """For each entry, the share of its variance that lies between the states rather than within them."""
    weight = np.array([group.visits for group in mine], dtype=float)
    weight /= weight.sum()
    means, deviations = (np.array([known[group][i] for group in mine]) for i in range(2))
    within = weight @ deviations**2
    apart = weight @ (means - weight @ means) ** 2
    return np.asarray(apart / np.maximum(apart + within, 1e-12))


def _changed(model: CRAFT, sample: Sample, h: int | None, tried: NDArray[np.integer], seed: int = 0) -> Floats:
    """For each entry tried, the share of observations whose state changes if the entry is another one's."""
    rng = np.random.default_rng(seed)
    x = _some(sample, h, rng)
    state = model.encode(x, h)
    flat = x.reshape(len(x), -1)
    changed = []
    for entry in tried.tolist():
        swapped = flat.copy()
        swapped[:, entry] = flat[rng.permutation(len(flat)), entry]
        changed.append((model.encode(swapped.reshape(x.shape), h) != state).mean())
    return np.array(changed)


def _some(sample: Sample, h: int | None, rng: np.random.Generator) -> NDArray[Any]:
    """Observations of a step, or of all steps, at random."""
    steps = np.arange(1, sample.tau.H + 1) if h is None else np.array([h])
    rows, at = np.nonzero(sample.codes[:, steps - 1] >= 0)
    picked = rng.permutation(len(rows))[:OBSERVATIONS]
    return np.stack([sample.one(int(steps[at[i]]), int(rows[i])) for i in picked])
