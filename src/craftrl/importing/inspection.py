"""What a dataset holds, what may be wrong with it, and how it looks, before anything is learned.

Warnings are screenings, not proofs: they come from a sample, and look at one entry of the observation at a time. What
they cannot see, `fit` and `diagnose` test with a learner (docs/settings.md, docs/is-it-right.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from craftrl.arguments import check_flag
from craftrl.data import TrajectoryDataset, read_actions
from craftrl.data.files import check_new, written_whole
from craftrl.data.windows import LENGTH, longer_than_many
from craftrl.errors import require

ROWS, STEPS, ENTRIES = 512, 16, 4096  # trajectories of each agent, steps, and entries of an observation, looked at
FEW_TRAJECTORIES = 200  # trajectories per agent, below which even the smallest worlds were not learned well
MIN_TRAJECTORIES = 30  # below this nothing can be said about spread
FALSE_ALARMS = 0.001
UNLIKE = 1.1  # ratio of the times between frames of two agents, above which they are said to differ
UNEVEN = 1.5  # ratio of the longest to the shortest time between frames, above which their rate is said to vary


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found: what the dataset holds, in words, and what may be wrong; as text, both."""

    summary: str
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.summary, *([f"warning: {text}" for text in self.warnings] or ["no warnings"])])


def inspect(
    path: str | os.PathLike[str], sheet: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Inspection:
    """Look at a dataset: its agents, lengths and shapes, and warnings from a sample of its trajectories.

    With `sheet`, frames of every agent are drawn into a PNG file of that name. A file that is there already is replaced
    with `overwrite` alone.
    """
    check_flag("overwrite", overwrite)
    if sheet is not None:
        check_new(sheet, "contact sheet", overwrite, (".png",))
    tau = TrajectoryDataset.open(path)
    names, about = [str(name) for name in tau.names], tau.notes.get("agents", {})
    kind = {1: "feature vectors", 3: "images"}.get(len(tau.obs_shape), "arrays")
    width = max(len("agent"), *map(len, names))
    lines = [
        f"{os.fspath(path)}: {tau.K} agents, {tau.n} episodes of up to {tau.H} steps; {kind} of shape {tau.obs_shape}, "
        f"{tau.dtype}",
        f"  {'agent':{width}}  episodes  shortest  median  longest  imported from",
    ]
    for k, name in enumerate(names):
        n, source = tau.lengths[tau.agent_slice(k)], about.get(name, {}).get("format", "")
        numbers = f"{len(n):8d}  {n.min():8d}  {np.median(n):6g}  {n.max():7d}"
        lines.append(f"  {name:{width}}  {numbers}  {source}".rstrip())
    lines.append(f"actions, which no learner reads: {'beside the observations' if read_actions(path) else 'none'}")
    found = Inspection("\n".join(lines), tuple(_warnings(tau, names)))
    if sheet is not None:
        with written_whole(sheet, "contact sheet") as temporary:
            _contact_sheet(tau, names).save(temporary, format="PNG")
    return found


# -- warnings ---------------------------------------------------------------------------------------------------------


def _warnings(tau: TrajectoryDataset, names: list[str]) -> Iterator[str]:
    """One sentence or two for everything that may spoil a fit, the worst first.

    Looked at are the first trajectories of every agent, x[k] (rows, steps, entries), at pairs of neighbouring steps
    that are spread over the horizon; `there` tells how far they run.
    """
    firsts = np.unique(np.linspace(1, tau.H - 1, min(STEPS // 2, tau.H - 1)).round().astype(int))
    steps = sorted({int(h) for first in firsts for h in (first, first + 1)})
    size = int(np.prod(tau.obs_shape, dtype=np.int64))
    entries = np.linspace(0, size - 1, min(size, ENTRIES)).round().astype(int)
    rows = [slice(own.start, min(own.stop, own.start + ROWS)) for own in map(tau.agent_slice, range(tau.K))]
    read = [[tau.at(h, own).reshape(own.stop - own.start, -1)[:, entries] for h in steps] for own in rows]
    x = [np.stack(own, axis=1).astype(np.float32) for own in read]
    there = [np.stack([tau.lengths[own] >= h for h in steps], axis=1) for own in rows]
    pairs = {(a, b): f"{names[a]} and {names[b]}" for a, b in combinations(range(tau.K), 2)}
    about = {name: tau.notes.get("agents", {}).get(name, {}) for name in names}
    lossy = {name: "; ".join(own.get("lossy", [])) for name, own in about.items()}

    if all((own == x[0][0, 0]).all(axis=-1)[present].all() for own, present in zip(x, there)):
        yield "All observations are the same, so that there is nothing to learn from; check what was recorded."
    # Equal trajectories are no accident where observations are rich; in small worlds they are, and tell of nothing.
    seen = [[row.tobytes() for row in own] for own in x]
    for (a, b), both in pairs.items():
        n, common = min(len(seen[a]), len(seen[b])), len(set(seen[a]) & set(seen[b]))
        if seen[a] == seen[b] or (len(set(seen[a])) >= 0.9 * len(seen[a]) and common > 0.1 * n):
            yield f"{both} share episodes: {common} of the first {n} are the same; was one agent's data given twice?"
    # Episodes that a world repeats by itself, 1.5 times in the mean, vary in how often by 0.37 of that or more, as
    # Poisson's law says at the least; copies of a whole recording are equally frequent.
    for name, own in zip(names, seen):
        times = np.unique(own, return_counts=True)[1]
        if len(times) >= 20 and times.mean() >= 1.5 and times.var() < 0.2 * times.mean():
            yield (
                f"{name} has episodes several times: {len(own) - len(times)} of the first {len(own)} are copies of "
                "others. A copy adds nothing, and counts in every test as if it did; leave copies out."
            )
    n_windows = np.bincount(tau.agent, np.maximum(1, tau.lengths // LENGTH)).astype(int)
    counts = n_windows if longer_than_many(tau) else tau.counts
    few = [f"{name} has {n}" for name, n in zip(names, counts) if n < FEW_TRAJECTORIES]
    if few:
        what = f"windows of {LENGTH} frames" if counts is n_windows else "episodes"
        yield (
            f"Few {what}: {', '.join(few)}. Small worlds were learned from {FEW_TRAJECTORIES} to 1000 episodes of each "
            "agent, larger ones need more; collect more."
        )
    # From one start, the first observation is noise, and noise knows nothing of the agents.
    differ = [both for (a, b), both in pairs.items() if (_largest_z([x[a][:, 0]], [x[b][:, 0]]) or 0) > 1]
    if differ:
        means = np.stack([own[:, 0].mean(axis=0) for own in x])
        by, spread = np.ptp(means, axis=0).max(), max(own.max() for own in x) - min(own.min() for own in x)
        by_much = f"{by:.3g} of 255" if tau.dtype == np.uint8 else f"{by / spread:.2g} of the range of values"
        kinds = ", ".join(sorted({*lossy.values()} - {""}))
        clips = ", unless they are clips from anywhere, which begin where the agents are" * (len(tau.obs_shape) == 3)
        loss = (
            f"Where that is little, lossy compression ({kinds}) may be the reason; otherwise they" if kinds else "They"
        )
        yield (
            f"The first observations of these agents differ, by up to {by_much} in the mean of an entry: "
            f"{', '.join(differ)}. {loss} begin in different states, or were recorded under different conditions. "
            f"Whatever differs passes for what they control; record them alike{clips}."
        )
    # Whether any entry, or its product with itself a step later, differs between agents by more than chance.
    centre = np.mean([own.mean(axis=(0, 1)) for own in x], axis=0, dtype=np.float32)
    centred = [(own - centre) * present[..., None] for own, present in zip(x, there)]
    neighbours = [i for i, h in enumerate(steps[:-1]) if steps[i + 1] == h + 1]
    moments = [[own, *(own[:, i] * own[:, i + 1] for i in neighbours)] for own in centred]
    z = {both: _largest_z(moments[a], moments[b]) for (a, b), both in pairs.items()}
    alike = [both for both, largest in z.items() if largest is not None and largest <= 1]
    if alike:
        yield (
            f"These agents look alike: {', '.join(alike)}. No entry of the observation differs between them by more "
            "than chance. CRAFT learns from what they do differently; choose agents with other habits, or collect more."
        )
    gaps = {name: own["interval"] for name, own in about.items() if "interval" in own}
    uneven = [f"{name} {1000 * a:.0f} to {1000 * b:.0f} ms" for name, (a, b) in gaps.items() if b > UNEVEN * a]
    if uneven:
        yield (
            f"Frames come at unequal intervals ({', '.join(uneven)}), so that steps are not equally long; beyond a few "
            "dropped frames, convert the videos to a constant rate, such as with: ffmpeg -i IN -vf fps=10 OUT.mkv"
        )
    elif gaps and max(a for a, _ in gaps.values()) > UNLIKE * min(b for _, b in gaps.values()):
        rates = ", ".join(f"{name} {1000 * a:.0f} ms" for name, (a, _) in gaps.items())
        yield (
            f"Frames of these agents come at different intervals ({rates}): a step is a longer time for one than for "
            "another, which alone tells them apart; record at one rate, or convert: ffmpeg -i IN -vf fps=10 OUT.mkv"
        )
    if any(lossy.values()):
        same = len(set(lossy.values())) == 1
        which = lossy[names[0]] if same else "; ".join(f"{name}: {kind or 'none'}" for name, kind in lossy.items())
        unequal = " The agents were compressed differently, which alone tells them apart: compress all of them alike."
        yield (
            f"Lossy compression ({which}) blurs small figures and leaves traces of earlier frames; record without loss "
            f"if you can.{'' if same else unequal}"
        )


def _largest_z(a: list[NDArray[np.float32]], b: list[NDArray[np.float32]]) -> float | None:
    """The largest |z| between the means of two agents' trajectories, in units of what chance alone stays below.

    Above 1 with probability FALSE_ALARMS if the agents are the same, however many entries there are (Bonferroni). None
    where there are too few trajectories to say.
    """
    if min(len(a[0]), len(b[0])) < MIN_TRAJECTORIES:
        return None
    largest, n_tests = 0.0, 0
    for xa, xb in zip(a, b):
        gap = np.abs(xa.mean(axis=0) - xb.mean(axis=0))
        error = np.sqrt(xa.var(axis=0) / len(xa) + xb.var(axis=0) / len(xb))
        z = np.divide(gap, error, out=np.where(gap > 0, np.inf, 0.0).astype(gap.dtype), where=error > 0)
        largest, n_tests = max(largest, float(z.max())), n_tests + z.size
    return largest / float(norm.isf(FALSE_ALARMS / 2 / n_tests))


# -- contact sheet ----------------------------------------------------------------------------------------------------

SHOWN, COLUMNS = 4, 8  # episodes of every agent, and frames of each
SIDE, GAP, LEFT, TOP = 96, 10, 96, 22  # pixels: of a tile's longer side, between tiles, beside and above them
PAPER, INK = (250, 250, 250), (40, 40, 40)


def _contact_sheet(tau: TrajectoryDataset, names: list[str]) -> Any:
    """A few episodes of every agent as rows of frames, and where frames change, as a Pillow image.

    The last two tiles say more than frames do. "varies at h = 1" is bright where the first frames of an agent's
    episodes differ: with one start, its figure leaves a dark place there. "changes at h = 2" is bright where the second
    frame differs from the first.
    """
    pillow, draw = require("PIL.Image", "video"), require("PIL.ImageDraw", "video")
    size = int(np.prod(tau.obs_shape, dtype=np.int64))
    side = int(np.ceil(np.sqrt(size)))  # vectors are drawn as a square, row by row
    shape = tau.obs_shape[:2] if len(tau.obs_shape) in (2, 3) else (-(-size // side), side)
    scale = SIDE // max(shape) or SIDE / max(shape)
    height, width = (max(1, round(n * scale)) for n in shape)
    steps = np.unique(np.linspace(1, tau.H, min(COLUMNS, tau.H)).round().astype(int)).tolist()
    some = np.stack([tau.at(h, slice(64)) for h in (1, tau.H)])
    low, high = (0.0, 255.0) if tau.dtype == np.uint8 else (float(some.min()), float(some.max()))

    def tile(x: NDArray[Any], low: float, high: float) -> Any:
        values = np.rint((x - np.float64(low)) / max(high - low, 1e-12) * 255).clip(0, 255).astype(np.uint8)
        if values.ndim != 3 or values.shape[-1] != 3:
            flat = (values[..., 0] if values.ndim == 3 else values).ravel()
            values = np.pad(flat, (0, shape[0] * shape[1] - len(flat)), constant_values=PAPER[0]).reshape(shape)
        how = pillow.Resampling.BOX if scale < 1 else pillow.Resampling.NEAREST
        return pillow.fromarray(np.ascontiguousarray(values)).convert("RGB").resize((width, height), how)

    heights = [2 * TOP + min(SHOWN, int(n)) * (height + GAP) for n in tau.counts]
    sheet = pillow.new("RGB", (LEFT + (len(steps) + 2) * (SIDE + GAP), sum(heights)), PAPER)
    pen = draw.Draw(sheet)
    for k, (name, top) in enumerate(zip(names, np.cumsum([0, *heights]).tolist())):
        own = tau.agent_slice(k)
        many = slice(own.start, min(own.stop, own.start + 256))
        first, second = (tau.at(h, many).astype(np.float32) for h in (1, 2))
        moved = np.abs(second - first)[tau.lengths[many] >= 2]
        changes = {"varies at h = 1": first.std(axis=0), "changes at h = 2": moved.sum(axis=0) / max(len(moved), 1)}
        pen.text((GAP, top), f"{name}: {tau.counts[k]} episodes", fill=INK)
        for column, title in enumerate([*(f"h = {h}" for h in steps), *changes]):
            pen.text((LEFT + column * (SIDE + GAP), top + TOP), title, fill=INK)
        for row, i in enumerate(np.linspace(own.start, own.stop - 1, min(SHOWN, tau.counts[k])).astype(int).tolist()):
            y = top + 2 * TOP + row * (height + GAP)
            pen.text((GAP, y), f"episode {i - own.start}", fill=INK)
            for column, h in enumerate(h for h in steps if h <= tau.lengths[i]):
                sheet.paste(tile(tau.episode(i)[h - 1], low, high), (LEFT + column * (SIDE + GAP), y))
        for column, change in enumerate(changes.values(), start=len(steps)):
            grey = change.mean(axis=-1) if change.ndim == 3 else change
            sheet.paste(tile(grey, 0.0, float(grey.max())), (LEFT + column * (SIDE + GAP), top + 2 * TOP))
    return sheet
