"""Which agents to compare? What their data says before any state is learned.

CRAFT needs agents that are in the same places and move differently there, and enough of both (Equations 4 and 5 of the
paper: eta, alpha and nu). None of the three can be read off raw observations, but each has a shadow there: how well
single observations tell two agents apart (`places`), how much the next observation adds (`moves`), and whether more is
told than chance would tell (`p_value`).

All agents are told apart at once: one model of log-odds for all of them, learned from one half of the trajectories and
asked about the other, in turn. What it says of two of them is read off it. Each agent's recordings count as two groups,
the earlier half and the later one, so that a change of habits is one more pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy
from scipy.stats import mannwhitneyu

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.core.evidence import paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.couplings import shortest_path
from craftrl.oracles.cross_fitting import Clones, calibration
from craftrl.oracles.finite import CoordinateOracle
from craftrl.progress import progress_bar

if TYPE_CHECKING:
    import os

__all__ = ["AgentPair", "AgentPairs", "Drift", "compare_agents"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
PairVerdict = Literal["compare", "data short", "other places", "alike", "too little"]

ALL_PAIRS = 8  # agents of whom every pair is compared; of more, the ones that stand out most
FALSE_ALARMS = 0.05  # how often agents that act alike may be called different, over all pairs together
FEWEST, FEW = 8, 100  # trajectories of an agent, below which nothing is compared, and nothing was learned reliably
FEW_STEPS = 0.25  # share of the steps at which a difference must be seen, so that data is not short
APART = 0.2  # agents that share less of their places at a step cannot be compared there
COARSE = 0.2  # not to see larger differences says little: the paper's two agents differ by 0.25
PER_CHOICE, PER_TEST = 0.5, 8.0  # nats that the choice among entries takes at a step, times ln(entries); and the test

ROWS, PAIRS, STRETCH = 800, 30, 5  # trajectories of an agent and pairs of steps looked at, so many of those in a row
MOST_VALUES, MOST_ENTRIES = 16, 4096  # of integers that are counted; and entries times values of an observation
MOST_COUNTED = 512  # entries times values that are counted in pairs, those that vary most
LONGEST, SIDE, COMPONENTS = 1024, 12, 24  # entries of a vector, pixels along a side of an image, directions of either
EXAMPLES, FRAMES = 12_000, 4000  # pairs and frames that are learned from
TREES = {"max_iter": 30, "learning_rate": 0.2, "max_leaf_nodes": 15, "max_bins": 64, "early_stopping": False}

MEANING: dict[PairVerdict, str] = {
    "compare": "worth comparing",
    "data short": "worth it; data is short",
    "other places": "worth little: told apart by single frames",
    "alike": "not worth it: nothing tells them apart",
    "too little": "too little data to say",
}


def compare_agents(
    tau: TrajectoryDataset | Sequence[ArrayLike] | str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> AgentPairs:
    """How different are the agents' data, and which pairs of agents are worth comparing? Takes seconds.

    tau       a dataset, the path of one, or a list with one array or one list of episodes per agent
    names     of the agents; those of the dataset, else their numbers
    seed      which half of the trajectories is learned from and which is held out
    progress  whether to show a bar

    Two questions are asked of trajectories that were held out: how well single observations tell two agents apart, and
    what the next observation adds. Small integers are counted, in the entries that together tell most; on anything else
    boosted trees are trained. With more than eight agents, the eight that stand out most are compared in pairs.

    Paper: Equations 4 and 5 (eta, nu and alpha)
    """
    check_whole("seed", seed, 0)
    check_flag("progress", progress)
    data = as_dataset(tau).tau
    called = tuple(map(str, data.names)) if names is None else names
    listed = isinstance(called, (list, tuple)) and all(isinstance(name, str) for name in called)
    if not listed or not len(called) == len(set(called)) == data.K:
        raise InvalidParameterError(
            f"names must be a list of {data.K} different texts, one per agent; {shown(names)} was given."
        )
    with progress_bar(desc="compare", unit="half", total=2, leave=False, delay=1.0, disable=not progress) as bar:
        told = _look(data, seed, bar.update)
    agents, n = list(range(data.K)), np.bincount(told.group // 2, minlength=data.K)
    if data.K > ALL_PAIRS:
        groups = np.arange(2 * data.K)
        apart = [told.contrast(groups[groups // 2 != k], groups[groups // 2 == k])["moves"].mean() for k in agents]
        agents = sorted(np.argsort(-np.nan_to_num(apart, nan=-1.0), kind="stable")[:ALL_PAIRS].tolist())
    pairs = []
    for i, j in (two := list(combinations(agents, 2))):
        visible = least_visible(2 * n[i] * n[j] / max(n[i] + n[j], 1), told.entries, told.place.shape[1], len(two))
        found = told.contrast([2 * i, 2 * i + 1], [2 * j, 2 * j + 1], len(two))
        counts = int(data.counts[i]), int(data.counts[j])
        pairs.append(AgentPair((i, j), (called[i], called[j]), counts, visible, **found))
    drifts = []
    for k in np.flatnonzero(n >= 2 * FEWEST).tolist():
        found = told.contrast([2 * k], [2 * k + 1], data.K)
        drifts.append(Drift(k, called[k], as_points(float(found["moves"].mean())), found["p_value"]))
    pairs.sort(key=lambda pair: -pair.evidence)
    sizes = tuple(int(count) for count in data.counts)
    return AgentPairs(tuple(called), sizes, tuple(pairs), tuple(drifts), told.steps, told.counted)


# -- what is found ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentPair:
    """Two agents, by number and by name; arrays have one entry for each pair of steps that was looked at.

    n        trajectories of each
    visible  the least difference in points that would have been seen
    p_value  how likely chance alone tells the agents apart as well, corrected for the number of pairs
    p_moves  the same for what x_{h+1} tells beyond x_h
    places   the common share of the places that the two visit: 1 where single observations tell nothing of the agent, 0
             where they tell it every time; empty where there was too little to look at
    moves    what x_{h+1} tells of the agent beyond x_h, in nats
    error    its standard error
    """

    agents: tuple[int, int]
    names: tuple[str, str]
    n: tuple[int, int]
    visible: float
    p_value: float = 1.0
    p_moves: float = 1.0
    places: Floats = field(default_factory=lambda: np.zeros(0))
    moves: Floats = field(default_factory=lambda: np.zeros(0))
    error: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def points(self) -> float:
        """How differently the agents move, as a difference of chances between 0 and 1; what was seen of it."""
        return as_points(float(self.moves.mean())) if len(self.moves) else 0.0

    @property
    def shared(self) -> float:
        """The common share of the places that the two visit, mean over steps."""
        return float(self.places.mean()) if len(self.places) else np.nan

    @property
    def differing(self) -> Bools:
        """At which of the pairs of steps looked at a difference in moves is seen, by two standard errors."""
        return np.asarray(self.moves > 2 * self.error)

    @property
    def evidence(self) -> float:
        """What all trajectories together say of a difference in moves, in nats per step: pairs are ranked by it."""
        a, b = self.n
        return 4 * a * b / (a + b) * max(0.0, float(self.moves.mean())) if len(self.moves) else 0.0

    @property
    def verdict(self) -> PairVerdict:
        """What to do with this pair."""
        if self.p_value >= FALSE_ALARMS:
            return "too little" if not len(self.moves) or self.visible > COARSE else "alike"
        if (self.places < APART).mean() > 0.5:
            return "other places"
        if min(self.n) >= FEW and self.p_moves >= FALSE_ALARMS and self.shared < 1 - APART:
            return "other places"
        seen = min(self.n) >= FEW and self.p_moves < FALSE_ALARMS and self.differing.mean() >= FEW_STEPS
        return "compare" if seen else "data short"


@dataclass(frozen=True)
class Drift:
    """An agent's first half of trajectories against its second, in the order of the recordings."""

    agent: int
    name: str
    points: float
    p_value: float

    @property
    def changed(self) -> bool:
        return self.p_value < FALSE_ALARMS


_D = np.linspace(0, 1, 1001)
_NATS = ((1 + _D) * np.log1p(_D) + xlogy(1 - _D, 1 - _D)) / 2


def as_points(nats: float) -> float:
    """Nats per move as a difference of chances: that of two agents who go one of two ways, one with chance (1 + d)/2,
    the other with (1 - d)/2."""
    return float(np.interp(nats, _NATS, _D))


def least_visible(n: float, entries: int, n_steps: int, n_pairs: int = 1) -> float:
    """The difference in points that is seen in about four of five datasets with n trajectories of each agent.

    At each step they must name the right one of so many entries, which takes evidence in proportion to ln(entries).
    Over all steps together they must tell beyond chance, and more so the more pairs of agents are compared. The factors
    were fitted to worlds of bits and of features; it holds for differences that single entries show.
    """
    test = PER_TEST + 2 * np.log(n_pairs)
    return as_points((PER_CHOICE * np.log(max(entries, 2)) + test / max(n_steps, 1)) / max(n, 1))


# -- the log-odds of held-out trajectories ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Told:
    """What log-odds of all groups say of trajectories that they did not learn from, in nats.

    place, moved  (n, pairs, groups): by x_h alone, and by (x_h, x_{h+1})
    there         (n, pairs): which pairs there are
    group, fold   (n,): 2 k for the earlier half of agent k's recordings, 2 k + 1 for the later; which half held it out
    steps         the h of each pair; `entries` of an observation as it was recorded; whether values were `counted`
    """

    place: Floats
    moved: Floats
    there: Bools
    group: Ints
    fold: Ints
    steps: tuple[int, ...]
    entries: int
    counted: bool

    def contrast(self, a: Sequence[int] | Ints, b: Sequence[int] | Ints, n_pairs: int = 1) -> dict[str, Floats]:
        """Groups a, all together, against groups b: what `AgentPair` has of them; nothing where there is too little."""
        rows = np.flatnonzero(np.isin(self.group, [*a, *b]))
        y, there, fold = np.where(np.isin(self.group[rows], b), 1, -1), self.there[rows], self.fold[rows]
        if min((y > 0).sum(), (y < 0).sum()) < FEWEST:
            return {} if n_pairs > 1 or len(a) + len(b) == 4 else {"moves": np.full(1, np.nan)}
        place, moved = (
            logsumexp(said[rows][..., list(b)], axis=-1)
            - logsumexp(said[rows][..., list(a)], axis=-1)
            - np.log(len(b) / len(a))
            for said in (self.place, self.moved)
        )
        gain = np.logaddexp(0, -y[:, None] * place) - np.logaddexp(0, -y[:, None] * moved)
        beyond = np.where(there, gain, 0.0)
        moves, error = _mean(beyond, y, there)
        right, _ = _mean((y[:, None] * place > 0) + 0.5 * (place == 0), y, there)
        centred = np.where(there, moved - _mean(moved, y, there)[0], 0.0).sum(axis=1)
        p_value = 1.0
        for half in (0, 1):  # ranks are exact where groups are alike, whatever was learned from the other half
            two = [centred[(fold == half) & (y == side)] for side in (1, -1)]
            if all(map(len, two)):
                p_value = min(p_value, 2 * n_pairs * float(mannwhitneyu(*two, alternative="greater").pvalue))
        p_moves = min(1.0, n_pairs * paired_p_value(beyond.sum(axis=1) / np.maximum(there.sum(axis=1), 1)))
        shared = np.clip(2 * (1 - right), 0, 1)
        return {"p_value": p_value, "p_moves": p_moves, "places": shared, "moves": moves, "error": error}


def _mean(values: NDArray[np.generic], y: Ints, there: Bools) -> tuple[Floats, Floats]:
    """(pairs,): the mean over the two groups of each group's mean, and its standard error."""
    mean, variance = np.zeros((2, values.shape[1]))
    for side in (-1, 1):
        own = there & (y == side)[:, None]
        n = np.maximum(own.sum(axis=0), 1)
        mu = np.where(own, values, 0).sum(axis=0) / n
        mean += mu / 2
        variance += np.where(own, (values - mu) ** 2, 0).sum(axis=0) / n**2 / 4
    return mean, np.sqrt(variance)


def _look(tau: TrajectoryDataset, seed: int, tick: Callable[[], object]) -> _Told:
    """Read some trajectories of every agent at some steps; learn from one half of each group, ask about the other."""
    rng, entries = np.random.default_rng(seed), int(np.prod(tau.obs_shape, dtype=np.int64))
    steps = np.arange(1, tau.H + 1)
    if tau.H - 1 > PAIRS:  # of a long horizon stretches that are spread over it
        firsts = np.linspace(1, tau.H - STRETCH, PAIRS // STRETCH).round().astype(int)
        steps = np.unique(firsts[:, None] + np.arange(STRETCH + 1))
    pairs = np.flatnonzero(np.diff(steps) == 1)
    long_enough = np.flatnonzero(tau.lengths > 1)
    own = [long_enough[tau.agent[long_enough] == k] for k in range(tau.K)]
    own = [mine[np.linspace(0, len(mine) - 1, min(len(mine), ROWS)).astype(int)] for mine in own]
    rows = np.concatenate(own)
    group = np.concatenate([2 * k + 2 * np.arange(len(mine)) // max(len(mine), 1) for k, mine in enumerate(own)])
    fold = np.zeros(len(rows), dtype=np.int64)
    for g in np.unique(group):
        mine = rng.permutation(np.flatnonzero(group == g))
        fold[mine] = np.arange(len(mine)) % 2
    enough = np.array([len(mine) >= FEWEST for mine in own])
    some, there = tau.select(rows), (tau.lengths[rows][:, None] >= steps)
    may_count = tau.dtype.kind in "biu" and 2 * entries <= MOST_ENTRIES
    x = np.stack([some.at(h) if may_count else _shrunk(some.at(h)) for h in steps.tolist()], axis=1)
    values = max(2, 1 + int(x.max())) if may_count and x.min() >= 0 else MOST_ENTRIES
    counted = values <= MOST_VALUES and values * entries <= MOST_ENTRIES
    if counted:
        x = x.reshape(*x.shape[:2], -1)
        vary = np.sort(np.argsort(-x.var(axis=0), axis=1, kind="stable")[:, : MOST_COUNTED // values], axis=1)
        x = np.take_along_axis(x, vary[None], axis=2)
    elif may_count:
        x = np.stack([_shrunk(x[:, c]) for c in range(len(steps))], axis=1)
    said = np.zeros((2, len(rows), len(pairs), 2 * tau.K))  # by x_h alone, and by both
    for half in (0, 1):
        known = (fold != half) & enough[group // 2]
        if enough.sum() > 1:
            learned = (x, there, group, pairs, known, fold == half)
            said[:, fold == half] = _by_counts(*learned, values) if counted else _by_trees(*learned, seed)
        tick()
    row, pair = np.nonzero(there[:, pairs + 1] & enough[group // 2][:, None])
    few = rng.permutation(len(row))[: 2 * EXAMPLES]
    row, pair = row[few], pair[few]
    target = np.unique(group[row], return_inverse=True)
    for which in (0, 1):  # log-odds of the best of many functions boast: they are scaled until they fit the held-out
        said[which] *= calibration(said[which][row, pair][:, target[0]], target[1])[0] if len(row) else 1.0
    return _Told(*said, there[:, pairs + 1], group, fold, tuple(steps[pairs].tolist()), entries, counted)


def _by_counts(
    x: NDArray[np.generic], there: Bools, group: Ints, pairs: Ints, known: Bools, test: Bools, values: int
) -> Floats:
    """One entry for each step, in a chain, with a table for each pair of steps.

    What an agent controls often shows in no single entry but in how one entry follows another. Entries are chosen for
    all steps together, so that what is little at a single step adds up; the library's `coupling="chain"` does the same.
    """
    of_agents = [np.flatnonzero(known & (group // 2 == k)) for k in np.unique(group[known] // 2)]
    episodes = [[x[i, : there[i].sum()] for i in rows] for rows in of_agents]
    prepared = CoordinateOracle(values, n_threads=1).prepare(TrajectoryDataset.from_episodes(episodes))
    losses = []
    for h in range(1, prepared.tau.H):
        counts = prepared.pair_counts(h)  # (I, J, V, V, K)
        total = counts.sum(axis=-1)
        nats = xlogy(total, total).sum(axis=(2, 3)) - xlogy(counts, counts).sum(axis=(2, 3, 4))
        losses.append((h - 1, 0, np.rint(nats * 2**20).astype(np.int64)))
    chain, _ = shortest_path(losses)
    said = np.zeros((2, int(test.sum()), len(pairs), int(group.max()) + 1))
    for p, c in enumerate(pairs[pairs + 1 < len(chain)]):
        first, second = (x[:, c + after, chain[c + after]].astype(np.int64) for after in (0, 1))
        both = known & there[:, c + 1]
        for which, (cell, size) in enumerate(((first, values), (first * values + second, values**2))):
            table = np.full((said.shape[-1], size), 0.5)  # half a count in each: what was never seen tells little
            np.add.at(table, (group[both], cell[both]), 1.0)
            said[which, :, p] = np.log(table / table.sum(axis=1, keepdims=True)).T[cell[test]]
    return said


def _by_trees(
    x: NDArray[np.generic], there: Bools, group: Ints, pairs: Ints, known: Bools, test: Bools, seed: int
) -> Floats:
    """Boosted trees on shrunk observations and on pairs of them, the same for all steps."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(seed)
    if x.shape[2] > COMPONENTS:
        frames = x[known][there[known]]
        frames = frames[rng.permutation(len(frames))[:FRAMES]]
        main = PCA(min(COMPONENTS, len(frames)), svd_solver="randomized", random_state=0).fit(frames)
        x = main.transform(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], -1)
    here, after = x[:, pairs], x[:, pairs + 1]
    step = np.broadcast_to(pairs[:, None], (*here.shape[:2], 1))
    features = np.concatenate([step, here], axis=2), np.concatenate([step, here, after, after - here], axis=2)
    row, pair = np.nonzero(there[:, pairs + 1] & known[:, None])
    some = rng.permutation(len(row))[:EXAMPLES]
    row, pair = row[some], pair[some]
    said, n_groups = np.zeros((2, int(test.sum()), len(pairs), int(group.max()) + 1)), int(group.max()) + 1
    share = np.log(np.maximum(np.bincount(group[row], minlength=n_groups), 0.5))
    clones = Clones(HistGradientBoostingClassifier(**TREES), seed)
    for which, seen in enumerate(features):
        one = clones.fit(seen[row, pair], group[row])
        log_p = one.log_p(seen[test].reshape(-1, seen.shape[2]), n_groups).reshape(said.shape[1:])
        said[which] = log_p - share
    return said


def _shrunk(x: NDArray[np.generic]) -> NDArray[np.float32]:
    """Observations (n, ...) as vectors; images as means over areas, `SIDE` x `SIDE` of them at most; of long vectors
    entries from all over them."""
    for axis in (1, 2) if x.ndim > 2 else ():
        if x.shape[axis] > SIDE:
            edges = np.linspace(0, x.shape[axis], SIDE + 1).astype(int)
            width = np.diff(edges).reshape(-1, *[1] * (x.ndim - axis - 1))
            x = np.add.reduceat(x, edges[:-1], axis=axis, dtype=np.float32) / width
    flat = x.reshape(len(x), -1)
    some = np.linspace(0, flat.shape[1] - 1, min(flat.shape[1], LONGEST)).astype(int)
    return np.asarray(flat[:, some], dtype=np.float32)


# -- in words -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentPairs:
    """What `compare_agents` found; as text, it is what `craftrl inspect --pairs` prints.

    names    of all agents
    n        trajectories of each
    pairs    the pairs that were compared, those most worth it first
    drifts   whether each agent's habits changed over its recordings; agents with too few trajectories are left out
    steps    pairs of neighbouring steps that were looked at, each by its first h
    counted  whether entries were counted (small integers) or boosted trees trained
    """

    names: tuple[str, ...]
    n: tuple[int, ...]
    pairs: tuple[AgentPair, ...]
    drifts: tuple[Drift, ...]
    steps: tuple[int, ...]
    counted: bool

    def __str__(self) -> str:
        width = max(len("agents"), *(len(" and ".join(pair.names)) for pair in self.pairs))
        by = "entries of small integers counted in pairs" if self.counted else "boosted trees on shrunk observations"
        lines = [
            f"how different the agents are, before anything is learned ({by}, {len(self.steps)} pairs of steps, "
            "tested on held-out trajectories):",
            f"  {'agents':{width}}  trajectories  moves differ  at steps  places shared       p  verdict",
        ]
        for pair in self.pairs:
            shown = ("-", "-", "-", "-")
            if len(pair.moves):
                steps = f"{pair.differing.sum()} of {len(pair.differing)}"
                shown = (f"{pair.points:.0%}", steps, f"{pair.shared:.0%}", _p(pair.p_value))
            numbers = "  ".join(f"{text:>{size}}" for text, size in zip(shown, (12, 8, 13, 6)))
            n = f"{pair.n[0]:,} + {pair.n[1]:,}"
            lines.append(f"  {' and '.join(pair.names):{width}}  {n:>12}  {numbers}  {MEANING[pair.verdict]}")
        return "\n".join([*lines, *self.advice])

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences, the most useful first."""
        return tuple(self._advice())

    def _advice(self) -> Iterator[str]:
        by = {verdict: [pair for pair in self.pairs if pair.verdict == verdict] for verdict in MEANING}
        good, short, alike, apart = by["compare"], by["data short"], by["alike"], by["other places"]
        if best := (good or short)[:1]:
            yield (
                f"Compare {best[0].names[0]} with {best[0].names[1]} first: their moves differ as much as chances that "
                f"are {best[0].points:.0%} apart, which is seen at {best[0].differing.sum()} of "
                f"{len(best[0].differing)} steps, and they share {best[0].shared:.0%} of their places."
            )
        else:
            yield "No pair of these agents is worth comparing yet."
        if len(good) > 1:
            yield f"Also worth comparing, best first: {', '.join(' with '.join(pair.names) for pair in good[1:])}."
        if few := {name: n for pair in short for name, n in zip(pair.names, pair.n) if n < FEW}:
            yield (
                f"Record more of {', '.join(f'{name} ({n} trajectories)' for name, n in few.items())}: "
                f"{_pairs(pair for pair in short if min(pair.n) < FEW)} differ, but with fewer than {FEW} trajectories "
                "of an agent nothing was learned reliably."
            )
        for pair in short:
            if min(pair.n) >= FEW:
                yield (
                    f"{_pairs([pair])} differ, but this is seen at {pair.differing.sum()} of {len(pair.differing)} "
                    "steps only: record more of both, unless they act alike at the other steps."
                )
        if alike:
            yield (
                f"{_pairs(alike)} act alike: a difference of about {max(pair.visible for pair in alike):.0%} would "
                "have been seen. Join them into one agent, or leave one out."
            )
        if apart:
            yield (
                f"{_pairs(apart)} are told apart by single frames (they share at most "
                f"{max(pair.shared for pair in apart):.0%} of their places): they go to different places, or were "
                "recorded differently. Let them visit the same places, or compare each with an agent that goes to both."
            )
        by_least: dict[str, list[AgentPair]] = {}  # one sentence for each agent of whom there is least
        for pair in by["too little"]:
            by_least.setdefault(pair.names[int(pair.n[1] < pair.n[0])], []).append(pair)
        for name, mine in by_least.items():
            visible = max(pair.visible for pair in mine)
            what = f"a difference below about {visible:.0%} would not" if visible < 1 else "no difference would"
            equal = all(pair.n[0] == pair.n[1] for pair in mine)
            whom = ", ".join(dict.fromkeys(other for pair in mine for other in pair.names)) if equal else name
            yield f"Record more of {whom}: with {min(mine[0].n)} trajectories {what} be seen ({_pairs(mine)})."
        for drift in self.drifts:
            if drift.changed:
                yield (
                    f"{drift.name} changed over its recordings: its first half is told from its second (moves differ "
                    f"by {drift.points:.0%}, p {_p(drift.p_value)}). If they are in the order of time, give the two "
                    "halves as two agents."
                )
        compared = {name for pair in self.pairs for name in pair.names}
        if left := [name for name in self.names if name not in compared]:
            yield f"Not compared in pairs, because they stand out least from all others: {', '.join(left)}."


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _pairs(pairs: Iterable[AgentPair]) -> str:
    return "; ".join(" and ".join(pair.names) for pair in pairs)
