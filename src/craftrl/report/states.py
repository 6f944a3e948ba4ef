"""What each state looks like, what decides on it, and what it ignores: from the observations that are in it.

Whatever still differs among observations of one state is ignored by it. That holds for every encoder. Which entries
decide is found by swapping them between observations; which pixels do, a network says by its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints
from craftrl.core.labels import Labels, crossed
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.mixtures import Mixture
from craftrl.estimators.craft import CRAFT
from craftrl.figures import heat_of, heated
from craftrl.report.figures import LONGEST, png, to_bytes
from craftrl.report.tables import Table

TRAJECTORIES = 2048  # of each agent that are looked at
FRAMES = 1024  # of a state that are looked at
LOOKED_AT = 16  # frames of a state in which the pixels that decide are sought
EXAMPLES = 4  # frames of a state that are shown
MAX_PIXELS = 1_000_000  # of all pictures of a report together
MAX_STATES = 96
SWAPPED = 64  # entries that are swapped: those whose mean differs most between the states
SHOWN = 12  # entries that are shown


@dataclass(frozen=True)
class Picture:
    """A picture as a data address, what is under it, and what it shows in words."""

    source: str
    label: str
    alt: str


@dataclass(frozen=True)
class State:
    """One state: at one step, or at all of them (h is None) where one encoder serves all.

    visits    observations in it, in the sample
    share     of all observations of the step, or of all steps
    by_agent  the same share for each agent
    pictures  the mean, what decides where that is known, what is ignored; and frames drawn at random
    groups    of a state that looks like two: for each of the two groups its share, the mean, and frames
    """

    h: int | None
    state: int
    visits: int
    share: float
    by_agent: tuple[float, ...]
    pictures: tuple[Picture, ...] = ()
    examples: tuple[Picture, ...] = ()
    groups: tuple[tuple[float, tuple[Picture, ...]], ...] = ()

    @property
    def name(self) -> str:
        return f"State {self.state}" + ("" if self.h is None else f" at step {self.h}")


@dataclass(frozen=True)
class Sample:
    """Trajectories from all over a dataset, and the states that a model's encoders read, int (n, H), -1 for none."""

    tau: TrajectoryDataset
    codes: Labels

    @classmethod
    def of(cls, model: CRAFT, tau: TrajectoryDataset) -> Sample:
        """Up to 2048 trajectories of each agent."""
        mine = [tau.agent_slice(k) for k in range(tau.K)]
        rows = [np.linspace(own.start, own.stop - 1, min(TRAJECTORIES, own.stop - own.start)) for own in mine]
        some = tau.select(np.concatenate(rows).astype(int))
        return cls(some, model.transform(some))

    def frames(self, h: int | None, state: int | None, most: int, seed: int = 0) -> tuple[NDArray[Any], Ints, Ints]:
        """Up to so many observations of a state (None: of any), drawn at random, the agents taking turns: they, their
        trajectories and their steps."""
        codes = self.codes if h is None else self.codes[:, h - 1 : h]
        row, step = np.nonzero(codes >= 0 if state is None else codes == state)
        order = np.random.default_rng(seed).permutation(len(row))
        row, step = row[order], step[order] + (0 if h is None else h - 1)
        turn = np.zeros(len(row), dtype=int)
        for k in range(self.tau.K):
            mine = self.tau.agent[row] == k
            turn[mine] = np.arange(mine.sum())
        first = np.argsort(turn, kind="stable")[:most]
        row, step = row[first], step[first]
        return self.tau.pick(row, step), row, step + 1


def states_of(sample: Sample, shared: bool) -> list[State]:
    """Every state that was seen, in order, without pictures."""
    found = []
    for h in [None] if shared else range(1, sample.tau.H + 1):
        codes = sample.codes if h is None else sample.codes[:, h - 1 : h]
        visits = crossed(np.repeat(sample.tau.agent, codes.shape[1]), codes.ravel())  # (K, states)
        there = visits.sum(axis=1)
        for state in np.flatnonzero(visits.sum(axis=0)).tolist():
            own = visits[:, state]
            by_agent = tuple((own / np.maximum(there, 1)).tolist())
            found.append(State(h, state, int(own.sum()), float(own.sum() / there.sum()), by_agent))
    return found


def _commonest(found: list[State], most: int) -> list[State]:
    """At most so many of them, the most visited of each step, in order."""
    steps = list(dict.fromkeys(state.h for state in found))
    each = max(1, most // max(1, len(steps)))
    kept = {h: sorted((s for s in found if s.h == h), key=lambda s: -s.visits)[:each] for h in steps}
    return [state for state in found if state in kept[state.h]][:most]


# -- images -------------------------------------------------------------------------------------------------------


def portraits(
    model: CRAFT, sample: Sample, found: list[State], mixtures: Sequence[Mixture], names: Sequence[str]
) -> list[State]:
    """The most visited states with pictures; those that look like two with a row for each of the two groups."""
    rows, columns = (min(side, LONGEST) for side in sample.tau.obs_shape[:2])
    chosen = _commonest(found, int(np.clip(MAX_PIXELS // (rows * columns * (EXAMPLES + 3)), 1, MAX_STATES)))
    seen = {state.name: sample.frames(state.h, state.state, FRAMES) for state in chosen}
    lowest, highest = 0.0, 255.0
    if sample.tau.dtype != np.uint8:
        lowest, highest = (float(end([end(x) for x, _, _ in seen.values()])) for end in (np.min, np.max))
    deviation = {name: x.std(axis=0, dtype=np.float64).mean(axis=2, keepdims=True) for name, (x, _, _) in seen.items()}
    most = max((float(one.max()) for one in deviation.values()), default=1.0)

    def picture(x: NDArray[Any], label: str, alt: str, low: float = lowest, high: float = highest) -> Picture:
        return Picture(png(to_bytes(x, low, high)), label, alt)

    out = []
    for state in chosen:
        (x, row, step), name = seen[state.name], state.name.lower()
        mean = x.mean(axis=0, dtype=np.float64)
        pictures = [picture(mean, "mean", f"mean frame of {name}")]
        heat = heat_of(model.encoder_at(state.h), x[:LOOKED_AT])
        if heat is not None:
            heat = heat.mean(axis=0)
            marked = heated(to_bytes(mean, lowest, highest), heat / max(heat.max(), 1e-12))
            alt = f"mean frame of {name}, darkened, with the pixels that decide on the state in orange"
            pictures.append(picture(marked, "decides", alt, 0, 255))
        alt = f"where frames of {name} differ from one another: the brighter, the more; the state ignores it"
        pictures.append(picture(deviation[state.name], "ignored", alt, 0, most))
        whose = [f"{names[k]}, step {h}" for k, h in zip(sample.tau.agent[row], step)]
        examples = [picture(one, at, f"a frame of {name}: {at}") for one, at in zip(x[:EXAMPLES], whose)]
        groups = []
        for mixture in mixtures:
            if (mixture.h, mixture.state) == (state.h, state.state):
                for share, part in zip(mixture.shares, mixture.frames):
                    half = f"one half of {name}"
                    middle = picture(part.mean(axis=0, dtype=np.float64), "mean", f"mean frame of {half}")
                    some = (picture(one, "a frame", f"a frame of {half}") for one in part[: EXAMPLES - 1])
                    groups.append((share, (middle, *some)))
        out.append(replace(state, pictures=tuple(pictures), examples=tuple(examples), groups=tuple(groups)))
    return out


# -- feature vectors, bits and other entries ----------------------------------------------------------------------


def entries(model: CRAFT, sample: Sample, found: list[State]) -> tuple[Table, dict[int | None, tuple[str, Table]]]:
    """Which entries decide at every step that has two states or more, and their mean and deviation in each state; and
    for each step how many entries changed nothing, in a sentence, and the table with a column for each state."""
    several = [h for h in dict.fromkeys(s.h for s in found) if sum(s.h == h for s in found) > 1]
    chosen = _commonest([state for state in found if state.h in several], MAX_STATES)
    keys = model.data_.get("reading", {}).get("keys", [])  # of a table, where they are the entries
    names = dict(enumerate(keys)) if len(keys) == np.prod(sample.tau.obs_shape) else {}
    rows: list[tuple[Any, ...]] = []
    by_step: dict[int | None, tuple[str, Table]] = {}
    for h in several:
        own = [state for state in chosen if state.h == h]
        x = [sample.frames(h, s.state, FRAMES)[0].reshape(-1, int(np.prod(sample.tau.obs_shape))) for s in own]
        mean = np.array([part.mean(axis=0, dtype=np.float64) for part in x])
        deviation = np.array([part.std(axis=0, dtype=np.float64) for part in x])
        weight = np.array([s.visits for s in own]) / sum(s.visits for s in own)
        apart = weight @ (mean - weight @ mean) ** 2
        goes_with = apart / np.maximum(apart + weight @ deviation**2, 1e-12)  # the share of variance between states
        tried = np.argsort(-goes_with, kind="stable")[:SWAPPED]
        decides = _decides(model, sample, h, tried)
        which = "All" if len(tried) == len(goes_with) else f"The {len(tried)} that differ most between states, of"
        nothing = int((decides == 0).sum())
        said = f"{which} {len(goes_with):,} entries were swapped; {nothing} of them made no difference: ignored."
        lines = []
        for i in np.lexsort((-goes_with[tried], -decides))[:SHOWN]:
            entry = int(tried[i])
            shares = float(decides[i]), float(goes_with[entry])
            of_states = [(float(mean[j, entry]), float(deviation[j, entry])) for j in range(len(own))]
            rows += [(h, entry, *shares, state.state, *pair) for state, pair in zip(own, of_states)]
            values = (f"{m:.2g} ± {d:.2g}" for m, d in of_states)
            lines.append((names.get(entry, str(entry)), *(f"{part:.0%}" for part in shares), *values))
        where = "all steps" if h is None else f"step {h}"
        columns = ("entry", "decides", "goes with the state", *(f"state {state.state}" for state in own))
        by_step[h] = said, Table("entries", f"The entries that matter most at {where}.", columns, tuple(lines))
    caption = "Entries of the observation: how often the state changes if one is swapped, and its values in each state."
    columns = ("h", "entry", "decides", "goes with the state", "state", "mean", "deviation")
    return Table("entries", caption, columns, tuple(rows)), by_step


def _decides(model: CRAFT, sample: Sample, h: int | None, tried: Ints, seed: int = 0) -> Floats:
    """For each entry tried, the share of observations whose state changes if the entry is another one's."""
    rng = np.random.default_rng(seed)
    x = sample.frames(h, None, FRAMES // 2, seed)[0]
    state, flat, changed = model.encode(x, h), x.reshape(len(x), -1), []
    for entry in tried.tolist():
        swapped = flat.copy()
        swapped[:, entry] = flat[rng.permutation(len(flat)), entry]
        changed.append((model.encode(swapped.reshape(x.shape), h) != state).mean())
    return np.array(changed)
