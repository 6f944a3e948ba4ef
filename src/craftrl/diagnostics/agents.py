"""Which agents to compare? What their data says before any state is learned.

CRAFT needs agents that are in the same places and move differently there, and enough of both (Equations 4 and 5 of the
paper: eta, alpha and nu). None of the three can be read off raw observations, but each has a shadow there: how well
single observations tell two agents apart (`shared`), how much the next observation adds (`moves`), and whether more is
told than chance would tell (`p_value`).

All agents are told apart at once: one model of log-odds for all of them, learned from one half of the trajectories and
asked about the other, in turn. What it says of two of them is read off it. Each agent's recordings count as two agents,
the earlier half and the later one, so that a change of habits is one more pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy
from scipy.stats import mannwhitneyu

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.core.evidence import paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.diagnostics.tests import log_likelihood
from craftrl.errors import InvalidParameterError
from craftrl.oracles.cross_fitting import calibration
from craftrl.oracles.finite import CoordinateOracle
from craftrl.progress import progress_bar

__all__ = ["AgentPair", "AgentPairs", "Drift", "compare_agents"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
PairVerdict = Literal["compare", "data short", "other places", "alike", "too little"]

ALL_PAIRS = 8  # agents of whom every pair is compared; of more, the ones that stand out most
FEWEST = 8  # trajectories of an agent, below which nothing is compared
FALSE_ALARMS = 0.05  # how often agents that act alike may be called different, over all pairs together
FEW = 100  # trajectories of an agent, below which nothing was learned reliably
FEW_STEPS = 0.25  # share of the steps at which a difference must be seen, so that data is not short
APART = 0.2  # agents that share less of their places at a step cannot be compared there
COARSE = 0.2  # not to see larger differences says little: the paper's two agents differ by 0.25
PER_CHOICE, PER_TEST = 0.5, 8.0  # nats that the choice among entries takes at a step, times ln(entries); and the test

ROWS, RUNS = 800, 16  # trajectories of each agent that are looked at, and the stretches of neighbours they come in
PAIRS, STRETCH = 30, 5  # pairs of neighbouring steps that are looked at, and how many in a row of a long horizon
MOST_VALUES = 16  # integers with more values than this are measurements
MOST_ENTRIES = 4096  # entries times values of an observation whose entries are counted; larger ones are images
MOST_COUNTED = 512  # entries times values that are counted in pairs, those that vary most
LONGEST, SIDE = 1024, 12  # entries of a vector, and pixels along either side of an image, that are looked at
COMPONENTS, EXAMPLES, FRAMES = 24, 12_000, 4000  # directions of long vectors; pairs and frames that trees learn from
TREES: dict[str, Any] = {"max_iter": 30, "learning_rate": 0.2, "max_leaf_nodes": 15, "max_bins": 64}
CALIBRATED = 20_000  # pairs that log-odds are scaled on

MEANING: dict[PairVerdict, str] = {
    "compare": "worth comparing",
    "data short": "worth it; data is short",
    "other places": "worth little: told apart by single frames",
    "alike": "not worth it: nothing tells them apart",
    "too little": "too little data to say",
}


def compare_agents(
    tau: Any, *, names: Sequence[str] | None = None, seed: int = 0, progress: bool = False
) -> AgentPairs:
    """How different are the agents' data, and which pairs of agents are worth comparing? Takes seconds.

    tau       a dataset, the path of one, or a list with one array or one list of episodes per agent
    names     of the agents; those of the dataset, else their numbers
    seed      which half of the trajectories is learned from and which is held out
    progress  whether to show a bar

    Two questions are asked of trajectories that were held out: how well single observations tell two agents apart, and
    what the next observation adds. Entries of small integers are chosen by the oracle of coordinates and counted; on
    anything else boosted trees are trained. With more than eight agents, the eight that stand out most are compared in
    pairs.

    Paper: Equations 4 and 5 (eta, nu and alpha)
    """
    check_whole("seed", seed, 0)
    check_flag("progress", progress)
    dataset = as_dataset(tau).tau
    called = _names(names, dataset)
    with progress_bar(desc="compare", unit="half", total=2, leave=False, delay=1.0, disable=not progress) as bar:
        sample = _sample(dataset)
        told = _told(sample, np.random.default_rng(seed), seed, bar.update)
    chosen = _standing_out(told, dataset.K)
    two = list(combinations(chosen, 2))
    pairs = [_pair(dataset, sample, told, called, i, j, len(two)) for i, j in two]
    halves = [(2 * k, 2 * k + 1) for k in range(dataset.K)]
    drifts = [Drift(k, called[k], *_drift(told, k, dataset.K)) for k, two in enumerate(halves) if told.enough(*two)]
    return AgentPairs(
        names=called,
        n=tuple(map(int, dataset.counts)),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair.evidence)),
        drifts=tuple(drifts),
        steps=tuple(sample.steps[c] for c in sample.pairs),
        counted=sample.values is not None,
    )


def _names(names: Sequence[str] | None, tau: TrajectoryDataset) -> tuple[str, ...]:
    given = tuple(map(str, tau.names)) if names is None else names
    listed = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    if not listed or not len(given) == len(set(given)) == tau.K:
        raise InvalidParameterError(
            f"names must be a list of {tau.K} different texts, one per agent; {shown(names)} was given."
        )
    return tuple(given)


# -- what is found ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contrast:
    """How two groups of trajectories differ; arrays have one entry for each pair of steps that was looked at.

    p_any    how likely chance alone tells the groups apart as well as this
    p_moves  the same for what x_{h+1} tells beyond x_h
    shared   the groups' common share of the places that they visit: 1 where single observations tell nothing of the
             group, 0 where they tell it every time
    moves    what x_{h+1} tells of the group beyond x_h, in nats
    error    its standard error
    """

    p_any: float
    p_moves: float
    shared: Floats
    moves: Floats
    error: Floats


@dataclass(frozen=True)
class AgentPair:
    """Two agents, by number and by name.

    n          trajectories of each
    looked_at  trajectories of each that were looked at
    contrast   what was found; None where there was too little to look at
    p_value    how likely chance alone tells the agents apart as well, corrected for the number of pairs
    p_moves    the same for what x_{h+1} adds
    visible    the least difference in points that would have been seen
    """

    agents: tuple[int, int]
    names: tuple[str, str]
    n: tuple[int, int]
    looked_at: tuple[int, int]
    contrast: Contrast | None
    p_value: float
    p_moves: float
    visible: float

    @property
    def points(self) -> float:
        """How differently the agents move, as a difference of chances between 0 and 1; what was seen of it."""
        return 0.0 if self.contrast is None else as_points(float(self.contrast.moves.mean()))

    @property
    def shared(self) -> float:
        """The common share of the places that the two visit, mean over steps."""
        return np.nan if self.contrast is None else float(self.contrast.shared.mean())

    @property
    def differing(self) -> NDArray[np.bool_]:
        """At which of the pairs of steps looked at a difference in moves is seen, by two standard errors."""
        if self.contrast is None:
            return np.zeros(0, dtype=bool)
        return np.asarray(self.contrast.moves > 2 * self.contrast.error)

    @property
    def evidence(self) -> float:
        """What all trajectories together say of a difference in moves, in nats per step: pairs are ranked by it."""
        if self.contrast is None:
            return 0.0
        a, b = self.n
        return 4 * a * b / (a + b) * max(0.0, float(self.contrast.moves.mean()))

    @property
    def verdict(self) -> PairVerdict:
        """What to do with this pair."""
        if self.contrast is None or self.p_value >= FALSE_ALARMS:
            return "too little" if self.contrast is None or self.visible > COARSE else "alike"
        if (self.contrast.shared < APART).mean() > 0.5:
            return "other places"
        if min(self.n) < FEW:
            return "data short"
        if self.p_moves >= FALSE_ALARMS:
            return "other places" if self.shared < 1 - APART else "data short"
        return "data short" if self.differing.mean() < FEW_STEPS else "compare"


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
    return as_points((PER_CHOICE * np.log(max(entries, 2)) + test / n_steps) / max(n, 1))


# -- what the log-odds tell ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """Some trajectories of every agent at some steps.

    x       (n, steps, entries), in the order of agents and recordings
    there   bool (n, steps): which observations there are
    group   int (n,): 2 k for the first half of agent k's recordings, 2 k + 1 for the second
    steps   h of every column, from 1
    pairs   columns c for which steps[c + 1] = steps[c] + 1
    values  how many values an entry may have, where all are small integers that can be counted; else None
    size    entries of an observation as it was recorded
    """

    x: NDArray[Any]
    there: NDArray[np.bool_]
    group: Ints
    steps: tuple[int, ...]
    pairs: tuple[int, ...]
    values: int | None
    size: int


@dataclass(frozen=True)
class _Told:
    """Log-odds of held-out trajectories: place (n, pairs, groups) by x_h alone, moved by (x_h, x_{h+1}); in nats, all
    groups being as likely beforehand. `there` (n, pairs), `group` (n,), `fold` (n,)."""

    place: Floats
    moved: Floats
    there: NDArray[np.bool_]
    group: Ints
    fold: Ints

    def enough(self, *groups: int) -> bool:
        return min(int((self.group == group).sum()) for group in groups) >= FEWEST

    def contrast(self, a: Sequence[int], b: Sequence[int]) -> Contrast:
        """Groups a, all together, against groups b."""
        rows = np.flatnonzero(np.isin(self.group, [*a, *b]))
        y, there, fold = np.where(np.isin(self.group[rows], b), 1, -1), self.there[rows], self.fold[rows]
        place, moved = (self._against(said[rows], a, b) for said in (self.place, self.moved))
        beyond = np.where(there, _gain(y, moved) - _gain(y, place), 0.0)
        moves, error = _mean(beyond, y, there)
        right, _ = _mean((y[:, None] * place > 0) + 0.5 * (place == 0), y, there)
        centred = np.where(there, moved - _mean(moved, y, there)[0], 0.0).sum(axis=1)
        ranks = [_rank_test(centred[fold == half], y[fold == half]) for half in (0, 1)]
        p_moves = paired_p_value(beyond.sum(axis=1) / np.maximum(there.sum(axis=1), 1))
        return Contrast(min(1.0, 2 * min(ranks)), p_moves, np.clip(2 * (1 - right), 0, 1), moves, error)

    @staticmethod
    def _against(said: Floats, a: Sequence[int], b: Sequence[int]) -> Floats:
        return np.asarray(_joined(said, b) - _joined(said, a))


def _joined(said: Floats, groups: Sequence[int]) -> Floats:
    return np.asarray(logsumexp(said[..., list(groups)], axis=-1) - np.log(len(groups)))


def _gain(y: Ints, log_odds: Floats) -> Floats:
    """What log-odds tell of each trajectory's group, y in -1, 1; both are as likely beforehand."""
    return np.asarray(np.log(2) - np.logaddexp(0, -y[:, None] * log_odds))


def _mean(values: NDArray[Any], y: Ints, there: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(pairs,): the mean over the two groups of each group's mean, and its standard error."""
    mean, variance = np.zeros((2, values.shape[1]))
    for side in (-1, 1):
        own = there & (y == side)[:, None]
        n = np.maximum(own.sum(axis=0), 1)
        mu = np.where(own, values, 0).sum(axis=0) / n
        mean += mu / 2
        variance += np.where(own, (values - mu) ** 2, 0).sum(axis=0) / n**2 / 4
    return mean, np.sqrt(variance)


def _rank_test(log_odds: Floats, y: Ints) -> float:
    """Exact where the groups are alike, whatever the log-odds learned from the other half."""
    if not 0 < (y > 0).sum() < len(y):
        return 1.0
    return float(mannwhitneyu(log_odds[y > 0], log_odds[y < 0], alternative="greater").pvalue)


def _told(sample: _Sample, rng: np.random.Generator, seed: int, tick: Callable[[], object]) -> _Told:
    """Learn from one half of each group's trajectories and ask about the other, in turn."""
    fold = np.zeros(len(sample.x), dtype=np.int64)
    n_groups = int(sample.group.max()) + 1
    for group in range(n_groups):
        own = np.flatnonzero(sample.group == group)
        fold[rng.permutation(own)] = np.arange(len(own)) % 2
    place, moved = np.zeros((2, len(sample.x), len(sample.pairs), n_groups))
    learn = _by_trees if sample.values is None else _by_counts
    for half in (0, 1):
        test = fold == half
        place[test], moved[test] = learn(sample, ~test, test, n_groups, seed)
        tick()
    there = sample.there[:, np.asarray(sample.pairs) + 1]
    place, moved = (_scaled(said, sample.group, there, rng) for said in (place, moved))
    return _Told(place, moved, there, sample.group, fold)


def _scaled(said: Floats, group: Ints, there: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Log-odds of the best of many functions boast: they are scaled down until they fit what was held out."""
    row, column = np.nonzero(there)
    some = rng.permutation(len(row))[:CALIBRATED]
    return said * calibration(said[row[some], column[some]], group[row[some]])[0]


def _by_counts(sample: _Sample, known: Ints, test: Ints, n_groups: int, seed: int) -> tuple[Floats, Floats]:
    """One entry for each step, in a chain, with a table for each pair of steps.

    What an agent controls often shows in no single entry but in how one entry follows another. Entries are chosen for
    all steps together, so that what is little at a single step adds up; the library's `coupling="chain"` does the same.
    """
    values, x, group, there = sample.values or 2, sample.x[known], sample.group[known], sample.there[known]
    agents = [np.flatnonzero(group // 2 == k) for k in range(n_groups // 2)]
    episodes = [[x[i, : there[i].sum()] for i in own] for own in agents if len(own)]
    prepared = CoordinateOracle(values, n_threads=1).prepare(TrajectoryDataset.from_episodes(episodes))
    pairs = (prepared.pair_counts(h) for h in range(1, prepared.tau.H))
    chain = _best_chain([log_likelihood(_pairs_as_cells(counts)) for counts in pairs])
    place, moved = np.zeros((2, int(np.sum(test)), len(sample.pairs), n_groups))
    for p, c in enumerate(sample.pairs):
        if c + 1 < len(chain):
            entries = [sample.x[:, c + after, chain[c + after]].astype(np.int64) for after in (0, 1)]
            for said, cell, size in ((place, entries[0], values), (moved, entries[0] * values + entries[1], values**2)):
                table = np.full((n_groups, size), 0.5)  # half a count in each: what was never seen tells little
                np.add.at(table, (group[there[:, c + 1]], cell[known][there[:, c + 1]]), 1.0)
                said[:, p] = np.log(table / table.sum(axis=1, keepdims=True)).T[cell[test]]
    return place, moved


def _pairs_as_cells(counts: Ints) -> Ints:
    """(I, J, V, V, K) as (I, J, V * V, K)."""
    return counts.reshape(*counts.shape[:2], -1, counts.shape[-1])


def _best_chain(scores: list[Floats]) -> list[int]:
    """One entry for each step such that the scores of neighbours add up to the most."""
    total, came = np.zeros(len(scores[0])), []
    for score in scores:
        through = total[:, None] + score
        came.append(through.argmax(axis=0))
        total = through.max(axis=0)
    chain = [int(total.argmax())]
    for back in reversed(came):
        chain.append(int(back[chain[-1]]))
    return chain[::-1]


def _by_trees(sample: _Sample, known: Ints, test: Ints, n_groups: int, seed: int) -> tuple[Floats, Floats]:
    """Boosted trees on shrunk observations and on pairs of them, the same for all steps."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng, pairs = np.random.default_rng(seed), np.asarray(sample.pairs)
    project = _projection(sample.x[known][sample.there[known]], rng)
    row, column = np.nonzero(sample.there[known][:, pairs + 1])
    some = rng.permutation(len(row))[:EXAMPLES]
    row, column = np.flatnonzero(known)[row[some]], pairs[column[some]]
    target = sample.group[row]
    said = np.zeros((2, int(np.sum(test)), len(pairs), n_groups))
    features = _features(project, sample.x[row, column], sample.x[row, column + 1], column)
    share = np.bincount(target, minlength=n_groups) / len(target)
    for which in (0, 1):
        trees = HistGradientBoostingClassifier(**TREES, early_stopping=False, random_state=seed)
        trees.fit(features[which], target)
        for p, c in enumerate(pairs):
            asked = _features(project, sample.x[test, c], sample.x[test, c + 1], np.full(int(np.sum(test)), c))[which]
            log_p = np.log(np.clip(trees.predict_proba(asked), 1e-6, 1.0))
            said[which][:, p, trees.classes_] = log_p - np.log(share[trees.classes_])
    return said[0], said[1]


def _features(project: Callable[[Any], Any], x: Any, x_next: Any, column: Ints) -> tuple[Any, Any]:
    here, after = project(x), project(x_next)
    return np.column_stack([column, here]), np.column_stack([column, here, after, after - here])


def _projection(frames: NDArray[Any], rng: np.random.Generator) -> Callable[[Any], Any]:
    """A function from observations (m, entries) to at most `COMPONENTS` numbers each."""
    if frames.shape[1] <= COMPONENTS:
        return lambda x: x
    from sklearn.decomposition import PCA

    some = frames[rng.permutation(len(frames))[:FRAMES]]
    return PCA(min(COMPONENTS, len(some)), svd_solver="randomized", random_state=0).fit(some).transform


def _standing_out(told: _Told, K: int) -> list[int]:
    """All agents, or those that the log-odds know best from all others together."""
    if K <= ALL_PAIRS:
        return list(range(K))
    everybody = range(2 * K)
    moves = []
    for k in range(K):
        own = [2 * k, 2 * k + 1]
        others = [g for g in everybody if g not in own]
        found = told.contrast(others, own) if told.enough(*own) else None
        moves.append(-1.0 if found is None else float(found.moves.mean()))
    return sorted(int(k) for k in np.argsort(-np.array(moves), kind="stable")[:ALL_PAIRS])


def _pair(
    tau: TrajectoryDataset, sample: _Sample, told: _Told, names: tuple[str, ...], i: int, j: int, n_pairs: int
) -> AgentPair:
    a, b = (2 * i, 2 * i + 1), (2 * j, 2 * j + 1)
    n = tuple(int(np.isin(told.group, groups).sum()) for groups in (a, b))
    found = told.contrast(a, b) if min(n) >= FEWEST else None
    return AgentPair(
        agents=(i, j),
        names=(names[i], names[j]),
        n=(int(tau.counts[i]), int(tau.counts[j])),
        looked_at=(n[0], n[1]),
        contrast=found,
        p_value=1.0 if found is None else min(1.0, found.p_any * n_pairs),
        p_moves=1.0 if found is None else min(1.0, found.p_moves * n_pairs),
        visible=least_visible(2 * n[0] * n[1] / max(sum(n), 1), sample.size, len(sample.pairs), n_pairs),
    )


def _drift(told: _Told, k: int, K: int) -> tuple[float, float]:
    found = told.contrast((2 * k,), (2 * k + 1,))
    return as_points(float(found.moves.mean())), min(1.0, found.p_any * K)


# -- some of a dataset --------------------------------------------------------------------------------------------


def _sample(tau: TrajectoryDataset) -> _Sample:
    """Read what is compared, and hold no more of it than that: trajectories from all over each agent's recordings, and
    observations as short vectors; small integers stay what they are, features too, and images are shrunk."""
    steps, size = _steps(tau.H), int(np.prod(tau.obs_shape, dtype=np.int64))
    may_count = tau.dtype.kind in "biu" and 2 * size <= MOST_ENTRIES
    rows = [_rows(tau.agent_slice(k), int(tau.counts[k])) for k in range(tau.K)]
    x = np.concatenate([_read(tau, run, steps, not may_count) for runs in rows for run in runs])
    every = np.concatenate([np.arange(*run) for runs in rows for run in runs])
    group = np.concatenate([np.arange(n) * 2 // max(n, 1) + 2 * k for k, n in enumerate(map(_n_rows, rows))])
    values = None
    if may_count:
        largest = max(2, 1 + int(x.max()))
        values = largest if x.min() >= 0 and largest <= MOST_VALUES and largest * size <= MOST_ENTRIES else None
        x = _shrunk(x, axis=2) if values is None else _varying(x.reshape(*x.shape[:2], -1), values)
    there = tau.lengths[every][:, None] >= np.asarray(steps)
    two = there[:, 1]
    pairs = tuple(c for c, (h, after) in enumerate(pairwise(steps)) if after == h + 1)
    return _Sample(x[two], there[two], group[two], steps, pairs, values, size)


def _steps(H: int) -> tuple[int, ...]:
    """All steps of a short horizon; of a long one, stretches spread over it."""
    if H - 1 <= PAIRS:
        return tuple(range(1, H + 1))
    firsts = np.linspace(1, H - STRETCH, PAIRS // STRETCH).round().astype(int)
    return tuple(sorted({int(h) for first in firsts for h in range(first, first + STRETCH + 1)}))


def _rows(mine: slice, count: int) -> list[tuple[int, int]]:
    """The stretches of an agent's trajectories that are read: a store reads neighbours at once."""
    if count <= ROWS:
        return [(mine.start, mine.stop)]
    size = ROWS // RUNS
    return [(int(first), int(first) + size) for first in mine.start + np.linspace(0, count - size, RUNS).astype(int)]


def _n_rows(runs: list[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in runs)


def _read(tau: TrajectoryDataset, run: tuple[int, int], steps: Sequence[int], shrink: bool) -> NDArray[Any]:
    """(rows, steps, ...), shortened as it is read."""
    blocks = (tau.at(h, slice(*run)) for h in steps)
    return np.stack([_shrunk(block) if shrink else block for block in blocks], axis=1)


def _varying(x: NDArray[Any], values: int) -> NDArray[Any]:
    """Of long observations, at every step the entries that vary most, which need not be the same at all steps."""
    most = max(1, MOST_COUNTED // values)
    if x.shape[2] <= most:
        return x
    kept = np.sort(np.argsort(-x.var(axis=0), axis=1, kind="stable")[:, :most], axis=1)
    return np.take_along_axis(x, kept[None], axis=2)


def _shrunk(x: NDArray[Any], axis: int = 1) -> NDArray[np.float32]:
    """Observations, which begin at this axis, as vectors; images as means over areas, `SIDE` x `SIDE` of them at most;
    of long vectors entries from all over them."""
    if x.ndim >= axis + 2:
        for side in (axis, axis + 1):
            size = x.shape[side]
            if size > SIDE:
                edges = np.linspace(0, size, SIDE + 1).astype(int)
                width = np.diff(edges).reshape(-1, *[1] * (x.ndim - side - 1))
                x = np.add.reduceat(x, edges[:-1], axis=side, dtype=np.float32) / width
    flat = x.reshape(*x.shape[:axis], -1)
    some = np.linspace(0, flat.shape[-1] - 1, min(flat.shape[-1], LONGEST)).astype(int)
    return np.asarray(flat[..., some], dtype=np.float32)


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
        return "\n".join(
            [
                f"how different the agents are, before anything is learned ({by}, {len(self.steps)} pairs of steps, "
                "tested on held-out trajectories):",
                f"  {'agents':{width}}  trajectories  moves differ  at steps  places shared       p  verdict",
                *(f"  {' and '.join(pair.names):{width}}  {_numbers(pair)}" for pair in self.pairs),
                *self.advice,
            ]
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences, the most useful first."""
        return tuple(self._advice())

    def _advice(self) -> Iterable[str]:
        by = {verdict: [pair for pair in self.pairs if pair.verdict == verdict] for verdict in MEANING}
        good, short = by["compare"], by["data short"]
        if good or short:
            pair = (good or short)[0]
            yield (
                f"Compare {pair.names[0]} with {pair.names[1]} first: their moves differ as much as chances that are "
                f"{pair.points:.0%} apart, which is seen at {pair.differing.sum()} of {len(pair.differing)} steps, and "
                f"they share {pair.shared:.0%} of their places."
            )
        else:
            yield "No pair of these agents is worth comparing yet."
        if len(good) > 1:
            yield f"Also worth comparing, best first: {', '.join(' with '.join(pair.names) for pair in good[1:])}."
        few = {name: n for pair in short for name, n in zip(pair.names, pair.n) if n < FEW}
        if few:
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
        if by["alike"]:
            visible = max(pair.visible for pair in by["alike"])
            yield (
                f"{_pairs(by['alike'])} act alike: a difference of about {visible:.0%} would have been seen. Join them "
                "into one agent, or leave one out."
            )
        if by["other places"]:
            shared = max(pair.shared for pair in by["other places"])
            yield (
                f"{_pairs(by['other places'])} are told apart by single frames (they share at most {shared:.0%} of "
                "their places): they go to different places, or were recorded differently. Let them visit the same "
                "places, or compare each with an agent that goes to both."
            )
        yield from _too_little(by["too little"])
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


def _too_little(pairs: list[AgentPair]) -> Iterable[str]:
    """One sentence for each agent of whom there is least."""
    by_least: dict[str, list[AgentPair]] = {}
    for pair in pairs:
        by_least.setdefault(pair.names[int(pair.n[1] < pair.n[0])], []).append(pair)
    for name, mine in by_least.items():
        visible = max(pair.visible for pair in mine)
        what = f"a difference below about {visible:.0%} would not" if visible < 1 else "no difference would"
        equal = all(pair.n[0] == pair.n[1] for pair in mine)
        whom = ", ".join(dict.fromkeys(other for pair in mine for other in pair.names)) if equal else name
        yield f"Record more of {whom}: with {min(mine[0].n)} trajectories {what} be seen ({_pairs(mine)})."


def _numbers(pair: AgentPair) -> str:
    n = f"{pair.n[0]:,} + {pair.n[1]:,}"
    if pair.contrast is None:
        return f"{n:>12}  {'-':>12}  {'-':>8}  {'-':>13}  {'-':>6}  {MEANING[pair.verdict]}"
    steps = f"{pair.differing.sum()} of {len(pair.differing)}"
    numbers = f"{n:>12}  {pair.points:>12.0%}  {steps:>8}  {pair.shared:>13.0%}  {_p(pair.p_value):>6}"
    return f"{numbers}  {MEANING[pair.verdict]}"


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _pairs(pairs: Iterable[AgentPair]) -> str:
    return "; ".join(" and ".join(pair.names) for pair in pairs)
