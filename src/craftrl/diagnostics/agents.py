"""Which agents to compare? What their data says before any state is learned.

CRAFT needs agents that are in the same places and move differently there, and enough of both (Equations 4 and 5 of the
paper: eta, alpha and nu). None of the three can be read off raw observations, but each leaves a trace there: how well
single observations tell two agents apart (`places`), how much the next observation adds (`moves`), and whether that is
more than chance gives (`p_value`).

All agents are told apart at once: one model of log-odds for all of them, learned from one half of the trajectories and
asked about the other, in turn. What it says of two of them is read off it. Each agent's recordings count as two groups,
the earlier half and the later one, so that a change of habits is one more pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, xlogy
from scipy.stats import mannwhitneyu

from craftrl.arguments import check_flag, check_whole, quoted
from craftrl.arrays import Bools, Floats, Ints
from craftrl.core.evidence import paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.data.windows import cut
from craftrl.errors import InvalidParameterError
from craftrl.oracles.couplings import shortest_path
from craftrl.oracles.cross_fitting import Clones
from craftrl.oracles.finite import CoordinateOracle
from craftrl.oracles.learned import calibration
from craftrl.progress import progress_bar

if TYPE_CHECKING:
    import os

PairVerdict = Literal["compare", "data short", "other places", "alike", "too little"]

ALL_PAIRS = 8  # agents of whom every pair is compared; of more, the ones that stand out most
FALSE_ALARMS = 0.05  # how often agents that act alike may be called different, over all pairs together
MIN_TRAJECTORIES = 8  # of an agent, below which nothing is compared
FEW_TRAJECTORIES = 100  # of an agent, below which nothing was learned reliably
FEW_STEPS = 0.25  # share of the steps at which a difference must be seen, so that data is not short
APART = 0.2  # agents that share less of their places at a step cannot be compared there
COARSE = 0.2  # not to see larger differences says little: the paper's two agents differ by 0.25
PER_CHOICE, PER_TEST = 0.5, 8.0  # nats that the choice among entries takes at a step, times ln(entries); and the test

NEIGHBOURS = 8  # windows in a row that are held out together
ROWS, PAIRS, STRETCH = 800, 30, 5  # trajectories of an agent and pairs of steps looked at, so many of those in a row
MAX_VALUES, MAX_ENTRIES = 16, 4096  # of integers that are counted; and entries times values of an observation
MAX_COUNTED = 512  # entries times values that are counted in pairs, those that vary most
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
ADVICE: dict[PairVerdict, str] = {
    "data short": (
        f"Record more of {{fewer}}: {{pairs}} differ, but with fewer than {FEW_TRAJECTORIES} trajectories of an agent, "
        "or a difference that is seen at few steps only, nothing was learned reliably."
    ),
    "alike": (
        "{pairs} act alike: a difference of about {visible:.0%} would have been seen. Join them into one agent, or "
        "leave one out."
    ),
    "other places": (
        "{pairs} are told apart by single frames (they share at most {shared:.0%} of their places): they go to "
        "different places, or were recorded differently. Let them visit the same places, or compare each with an agent "
        "that goes to both."
    ),
    "too little": ("Record more of {fewer}: a difference below about {visible:.0%} would not be seen between {pairs}."),
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

    Long recordings are compared in windows, as `fit` learns from them.

    Two questions are asked of trajectories that were held out: how well single observations tell two agents apart, and
    what the next observation adds. Small integers are counted, in the entries that together tell most; on anything else
    boosted trees are trained. With more than eight agents, the eight that stand out most are compared in pairs.

    Paper: Equations 4 and 5 (eta, nu and alpha)
    """
    check_whole("seed", seed, 0)
    check_flag("progress", progress)
    data = as_dataset(tau).tau
    windows = cut(data)
    data, what = (data, "trajectories") if windows is None else (windows.tau, "windows")
    called = tuple(map(str, data.names)) if names is None else names
    listed = isinstance(called, (list, tuple)) and all(isinstance(name, str) for name in called)
    if not listed or not len(called) == len(set(called)) == data.K:
        raise InvalidParameterError(
            f"names must be a list of {data.K} different texts, one per agent; {quoted(names)} was given."
        )
    with progress_bar(desc="compare", unit="half", total=2, leave=False, delay=1.0, disable=not progress) as bar:
        seen = _look(data, tuple(called), seed, bar.update)
    agents, halves = list(range(data.K)), [[2 * k, 2 * k + 1] for k in range(data.K)]
    if data.K > ALL_PAIRS:
        others = [[g for g in range(2 * data.K) if g not in own] for own in halves]
        apart = [seen.contrast(rest, own, 1).nats for rest, own in zip(others, halves)]
        agents = sorted(np.argsort(apart, kind="stable")[-ALL_PAIRS:].tolist())
    both = list(combinations(agents, 2))
    pairs = sorted((seen.contrast(halves[i], halves[j], len(both)) for i, j in both), key=lambda pair: -pair.evidence)
    drifts = (seen.contrast([first], [second], data.K) for first, second in halves)
    return AgentPairs(seen.names, tuple(pairs), tuple(drift for drift in drifts if drift.n_steps), seen.counted, what)


# -- what is found ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentPair:
    """Two agents, or the earlier and the later half of one agent's recordings, and how they differ.

    agents, names, n  their numbers, names and numbers of trajectories
    p_value  how likely chance alone tells the two apart as well, corrected for the number of pairs
    p_moves  the same for what x_{h+1} tells beyond x_h
    nats     what x_{h+1} tells of the agent beyond x_h, per pair of steps
    shared   the common share of the places that the two visit: 1 where single observations tell nothing of the agent, 0
             where they tell it every time; mean over steps
    apart    at what share of the steps the two share next to no places
    n_steps  pairs of steps looked at; 0 where there are too few trajectories to look at
    n_seen   those at which a difference in moves is seen, by two standard errors
    visible  the least difference in points that would have been seen
    """

    agents: tuple[int, int]
    names: tuple[str, str]
    n: tuple[int, int]
    p_value: float = 1.0
    p_moves: float = 1.0
    nats: float = 0.0
    shared: float = np.nan
    apart: float = 0.0
    n_steps: int = 0
    n_seen: int = 0
    visible: float = 1.0

    @property
    def told_apart(self) -> bool:
        """Whether the two differ by more than chance."""
        return self.p_value < FALSE_ALARMS

    @property
    def points(self) -> float:
        """How differently the two move, as a difference of chances between 0 and 1; what was seen of it."""
        return as_points(self.nats)

    @property
    def evidence(self) -> float:
        """What all trajectories together say of a difference in moves, in nats per step: pairs are ranked by it."""
        a, b = self.n
        return 4 * a * b / (a + b) * max(0.0, self.nats)

    @property
    def verdict(self) -> PairVerdict:
        """What to do with this pair."""
        if not self.told_apart:
            return "too little" if not self.n_steps or self.visible > COARSE else "alike"
        enough, moves = min(self.n) >= FEW_TRAJECTORIES, self.p_moves < FALSE_ALARMS
        if self.apart > 0.5 or (enough and not moves and self.shared < 1 - APART):
            return "other places"
        return "compare" if enough and moves and self.n_seen >= FEW_STEPS * self.n_steps else "data short"


def as_points(nats: float) -> float:
    """Nats per move as a difference of chances: that of two agents who go one of two ways, one with chance (1 + d)/2,
    the other with (1 - d)/2."""
    d = np.linspace(0, 1, 1001)
    return float(np.interp(nats, ((1 + d) * np.log1p(d) + xlogy(1 - d, 1 - d)) / 2, d))


def least_visible(n: float, entries: int, n_steps: int, n_pairs: int = 1) -> float:
    """The difference in points that is seen in about four of five datasets with n trajectories of each agent.

    At each step they must name the right one of so many entries, which takes evidence in proportion to ln(entries).
    Over all steps together they must tell beyond chance, and more so the more pairs of agents are compared. The factors
    were fitted to worlds of bits and of features; it holds for differences that single entries show.
    """
    test = PER_TEST + 2 * np.log(n_pairs)
    return as_points((PER_CHOICE * np.log(max(entries, 2)) + test / n_steps) / n)


# -- the log-odds of held-out trajectories ------------------------------------------------------------------------


@dataclass(frozen=True)
class _PairLogOdds:
    """What log-odds of all groups say of trajectories that they did not learn from, in nats.

    place, moved  (n, pairs, groups): by x_h alone, and by (x_h, x_{h+1})
    there         (n, pairs): which pairs there are
    group, fold   (n,): 2 k for the earlier half of agent k's recordings, 2 k + 1 for the later; which half held it out
    names, sizes  (K,): of the agents, and how many trajectories each has
    entries       of an observation as it was recorded
    counted       whether values were counted, or trees trained
    """

    place: Floats
    moved: Floats
    there: Bools
    group: Ints
    fold: Ints
    names: tuple[str, ...]
    sizes: list[int]
    entries: int
    counted: bool

    def contrast(self, a: list[int], b: list[int], n_pairs: int) -> AgentPair:
        """Groups a, all together, against groups b; one of so many pairs."""
        i, j = a[0] // 2, b[0] // 2
        who = (i, j), (self.names[i], self.names[j]), (self.sizes[i], self.sizes[j])
        rows = np.flatnonzero(np.isin(self.group, [*a, *b]))
        y, there, fold = np.isin(self.group[rows], b), self.there[rows], self.fold[rows]
        if min(y.sum(), (~y).sum()) < MIN_TRAJECTORIES:
            return AgentPair(*who)
        n_steps, sign = there.shape[1], np.where(y, 1, -1)[:, None]
        place, moved = (
            logsumexp(said[rows][..., b], axis=-1) - logsumexp(said[rows][..., a], axis=-1) - np.log(len(b) / len(a))
            for said in (self.place, self.moved)
        )

        def mean(values: NDArray[np.generic]) -> tuple[Floats, Floats]:
            """(pairs,): the mean over the two groups of each group's mean, and its standard error."""
            own = [np.ma.array(values[side], mask=~there[side]) for side in (y, ~y)]
            error = np.ma.sqrt(sum(one.var(axis=0) / one.count(axis=0) for one in own)) / 2
            return np.ma.filled(sum(one.mean(axis=0) for one in own) / 2, 0.0), np.ma.filled(error, np.inf)

        beyond = np.where(there, np.logaddexp(0, -sign * place) - np.logaddexp(0, -sign * moved), 0.0)
        nats, error = mean(beyond)
        right, _ = mean((sign * place > 0) + 0.5 * (place == 0))
        centred = np.where(there, moved - mean(moved)[0], 0.0).sum(axis=1)
        p_value = 1.0
        for half in (0, 1):  # ranks are exact where groups are alike, whatever was learned from the other half
            two = [centred[(fold == half) & side] for side in (y, ~y)]
            p_value = min(p_value, 2 * n_pairs * float(mannwhitneyu(*two, alternative="greater").pvalue))
        shared = np.clip(2 * (1 - right), 0, 1)
        return AgentPair(
            *who,
            p_value=p_value,
            p_moves=min(1.0, n_pairs * paired_p_value(beyond.sum(axis=1) / np.maximum(there.sum(axis=1), 1))),
            nats=float(nats.mean()),
            shared=float(shared.mean()),
            apart=float((shared < APART).mean()),
            n_steps=n_steps,
            n_seen=int((nats > 2 * error).sum()),
            visible=least_visible(2 * y.sum() * (~y).sum() / len(y), self.entries, n_steps, n_pairs),
        )


def _look(tau: TrajectoryDataset, names: tuple[str, ...], seed: int, tick: Callable[[], object]) -> _PairLogOdds:
    """Read some trajectories of every agent at some steps; learn from one half of each group, ask about the other."""
    rng, entries = np.random.default_rng(seed), int(np.prod(tau.obs_shape, dtype=np.int64))
    steps = np.arange(1, tau.H + 1)
    if tau.H - 1 > PAIRS:  # of a long horizon stretches that are spread over it
        firsts = np.linspace(1, tau.H - STRETCH, PAIRS // STRETCH).round().astype(int)
        steps = np.unique(firsts[:, None] + np.arange(STRETCH + 1))
    pairs = np.flatnonzero(np.diff(steps) == 1)
    of_agents: list[tuple[Ints, Ints, Ints]] = []  # rows, groups and folds
    who = names, tau.counts.tolist(), entries
    for k in range(tau.K):
        own = np.flatnonzero((tau.agent == k) & (tau.lengths > 1))
        own = own[np.linspace(0, len(own) - 1, min(len(own), ROWS)).astype(int)]
        if len(own) >= MIN_TRAJECTORIES:
            later, two = np.arange(len(own)) * 2 // len(own), np.arange(len(own)) % 2
            two = np.concatenate([rng.permutation(two[later == half]) for half in (0, 1)])
            if not tau.aligned:  # neighbouring windows are of one kind
                two = (np.arange(len(own)) // NEIGHBOURS + rng.integers(2)) % 2
            of_agents.append((own, 2 * k + later, two))
    if len(of_agents) < 2:
        said, none = np.zeros((2, 0, len(pairs), 2 * tau.K)), np.zeros(0, dtype=np.int64)
        return _PairLogOdds(said[0], said[1], said[0, ..., 0] > 0, none, none, *who, False)
    chosen, group, fold = (np.concatenate(one) for one in zip(*of_agents))
    some, there = tau.select(chosen), tau.lengths[chosen][:, None] >= steps
    whole = tau.dtype.kind in "biu" and 2 * entries <= MAX_ENTRIES
    x = np.stack(
        [some.at(h).reshape(len(chosen), -1) if whole else _shrunk(some.at(h)) for h in steps.tolist()], axis=1
    )
    values = max(2, 1 + int(x.max())) if whole and x.min() >= 0 else MAX_ENTRIES
    counted = values <= MAX_VALUES and values * entries <= MAX_ENTRIES
    if counted:  # of long observations, at every step the entries that vary most
        vary = np.sort(np.argsort(-x.var(axis=0), axis=1, kind="stable")[:, : MAX_COUNTED // values], axis=1)
        x = np.take_along_axis(x, vary[None], axis=2)
    said = np.zeros((2, len(chosen), len(pairs), 2 * tau.K))  # by x_h alone, and by both
    for turn in (0, 1):
        seen = x, there, group, pairs, fold != turn
        said[:, fold == turn] = (
            _by_counts(*seen, values, said.shape[-1]) if counted else _by_trees(*seen, seed, said.shape[-1])
        )
        tick()
    row, pair = np.nonzero(there[:, pairs + 1])
    few = rng.permutation(len(row))[: 2 * EXAMPLES]
    present, target = np.unique(group[row[few]], return_inverse=True)
    for which in said:  # log-odds of the best of many functions boast: they are scaled until they fit the held-out
        which *= calibration(which[row[few], pair[few]][:, present], target)[0]
    return _PairLogOdds(said[0], said[1], there[:, pairs + 1], group, fold, *who, counted)


def _by_counts(
    x: NDArray[np.number], there: Bools, group: Ints, pairs: Ints, known: Bools, values: int, n_groups: int
) -> Floats:
    """One entry for each step, in a chain, with a table for each pair of steps.

    What an agent controls often shows in no single entry but in how one entry follows another. Entries are chosen for
    all steps together, so that what is little at a single step adds up; the library's `coupling="chain"` does the same.
    """
    of_agents = [np.flatnonzero(known & (group // 2 == k)) for k in np.unique(group // 2)]
    episodes = [[x[i, : there[i].sum()] for i in rows] for rows in of_agents]
    prepared = CoordinateOracle(values, n_threads=1).prepare(TrajectoryDataset.from_episodes(episodes))
    losses = []
    for h in range(1, prepared.tau.H):
        counts = prepared.pair_counts(h)  # (I, J, V, V, K)
        total = counts.sum(axis=-1)
        nats = xlogy(total, total).sum(axis=(2, 3)) - xlogy(counts, counts).sum(axis=(2, 3, 4))
        losses.append((h - 1, 0, np.rint(nats * 2**20).astype(np.int64)))
    chain, _ = shortest_path(losses)
    said = np.zeros((2, int((~known).sum()), len(pairs), n_groups))
    for p, c in enumerate(pairs[pairs + 1 < len(chain)]):
        first, second = (x[:, c + after, chain[c + after]].astype(np.int64) for after in (0, 1))
        both = known & there[:, c + 1]
        for which, (cell, size) in enumerate(((first, values), (first * values + second, values**2))):
            table = np.full((n_groups, size), 0.5)  # half a count in each: what was never seen tells little
            np.add.at(table, (group[both], cell[both]), 1.0)
            said[which, :, p] = np.log(table / table.sum(axis=1, keepdims=True)).T[cell[~known]]
    return said


def _by_trees(
    x: NDArray[np.number], there: Bools, group: Ints, pairs: Ints, known: Bools, seed: int, n_groups: int
) -> Floats:
    """Boosted trees on shrunk observations and on pairs of them, the same for all steps."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng, x = np.random.default_rng(seed), x.astype(np.float32)
    if x.shape[2] > COMPONENTS:
        frames = rng.permutation(x[known][there[known]])[:FRAMES]
        main = PCA(min(COMPONENTS, len(frames)), svd_solver="randomized", random_state=0).fit(frames)
        x = main.transform(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], -1)
    here, after = x[:, pairs], x[:, pairs + 1]
    step = np.broadcast_to(pairs[:, None], (*here.shape[:2], 1))
    row, pair = np.nonzero(there[:, pairs + 1] & known[:, None])
    some = rng.permutation(len(row))[:EXAMPLES]
    row, pair = row[some], pair[some]
    share = np.log(np.maximum(np.bincount(group[row], minlength=n_groups), 0.5))
    clones, said = Clones(HistGradientBoostingClassifier(**TREES), seed), []
    for parts in ([step, here], [step, here, after, after - here]):
        seen = np.concatenate(parts, axis=2)
        asked = seen[~known].reshape(-1, seen.shape[2])
        log_p = clones.fit(seen[row, pair], group[row]).log_p(asked, n_groups)
        said.append(log_p.reshape(-1, len(pairs), n_groups) - share)
    return np.stack(said)


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
    pairs    the pairs that were compared, those most worth it first
    drifts   of each agent the earlier half of its recordings against the later; agents with too few are left out
    counted  whether entries were counted (small integers) or boosted trees trained
    what     was compared: trajectories, or windows of long recordings
    """

    names: tuple[str, ...]
    pairs: tuple[AgentPair, ...]
    drifts: tuple[AgentPair, ...]
    counted: bool
    what: str = "trajectories"

    def __str__(self) -> str:
        by = "entries of small integers counted in pairs" if self.counted else "boosted trees on shrunk observations"
        width = max(len("agents"), *(len(" and ".join(pair.names)) for pair in self.pairs))
        lines = [
            f"how different the agents are, before anything is learned ({by}, tested on held-out trajectories):",
            f"  {'agents':{width}}  {self.what:>12}  moves differ  at steps  places shared       p  verdict",
        ]
        for pair in self.pairs:
            who, n = " and ".join(pair.names), f"{pair.n[0]:,} + {pair.n[1]:,}"
            seen = f"{pair.n_seen} of {pair.n_steps}"
            shared = "-" if np.isnan(pair.shared) else f"{pair.shared:.0%}"
            numbers = f"{pair.points:>12.0%}  {seen:>8}  {shared:>13}  {_p(pair.p_value):>6}"
            lines.append(f"  {who:{width}}  {n:>12}  {numbers}  {MEANING[pair.verdict]}")
        return "\n".join([*lines, *self.advice])

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences, the most useful first."""
        by = {verdict: [pair for pair in self.pairs if pair.verdict == verdict] for verdict in MEANING}
        found = ["No pair of these agents is worth comparing yet."]
        if best := by["compare"] or by["data short"][:1]:
            found = [
                f"Compare {' with '.join(best[0].names)} first: their moves differ as much as chances that are "
                f"{best[0].points:.0%} apart, which is seen at {best[0].n_seen} of {best[0].n_steps} steps, and they "
                f"share {best[0].shared:.0%} of their places."
            ]
        if also := ", ".join(" with ".join(pair.names) for pair in best[1:]):
            found.append(f"Also worth comparing, best first: {also}.")
        for verdict, sentence in ADVICE.items():
            if mine := by[verdict]:
                fewer = {name: n for pair in mine for name, n in zip(pair.names, pair.n) if n == min(pair.n)}
                found.append(
                    sentence.format(
                        pairs="; ".join(" and ".join(pair.names) for pair in mine),
                        fewer=", ".join(f"{name} ({n:,} {self.what})" for name, n in fewer.items()),
                        visible=max(pair.visible for pair in mine),
                        shared=max(pair.shared for pair in mine),
                    )
                )
        found += [
            f"{drift.names[0]} changed over its recordings: its first half is told from its second (moves differ by "
            f"{drift.points:.0%}, p {_p(drift.p_value)}). If they are in the order of time, give the two halves as two "
            "agents."
            for drift in self.drifts
            if drift.told_apart and drift.p_moves < FALSE_ALARMS
        ]
        compared = {name for pair in self.pairs for name in pair.names}
        if left := [name for name in self.names if name not in compared]:
            found.append(f"Not compared in pairs, because they stand out least from all others: {', '.join(left)}.")
        return tuple(found)


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
