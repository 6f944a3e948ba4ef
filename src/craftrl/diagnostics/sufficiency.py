"""Do the states hold all that the log-odds know? A check that trains nothing again.

Refits of a network are dear, and on less data they are worse than the model that they judge. But what a network has
learned can be asked. Right states are sufficient: the agent depends on (x_h, x_{h+1}) through (s_h, s_{h+1}) alone, and
the neighbouring state on x_h through s_h and the agent (Equation 1). And they are no finer than needed: what the
log-odds do not tell apart is no two states. Three questions follow.

captured  on trajectories that were not learned from: how much of what f_h tells of the agents is left once it is
          averaged over all pairs of the same two states? Codes that follow noise lose nearly all of it.
closed    does what f knows of x_h, its profile, foretell the neighbouring state beyond its own? States in which two are
          fused, or that are misread, fail.
read      do profiles say which state an observation is of? States that differ by noise alone have one profile.

The profile of x_h are its log-odds with observations that are the same for all, its references: f_h(x_h, r) for
references r of the next step, f_{h-1}(r, x_h) for those of the step before. f_h depends on x_h through its state alone
(Equation 1), so observations of one state have one profile, but for the errors of f, and noise has no part in it.

Paper: Equation 1, Section 2.5
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from craftrl.core.evidence import CONTRADICTED, dependence
from craftrl.core.findings import ranges
from craftrl.core.oracle import CheckablePairFunction
from craftrl.data.dataset import TrajectoryDataset
from craftrl.states.visits import count_visits, pair_labels

__all__ = ["Sufficiency", "captured_share", "least", "sufficiency"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
PER_AGENT = 2048  # trajectories of each agent that are looked at, at most
BYTES = 2**28  # and of all of them so many bytes of observations
LEAST_VISITS, LEAST_SHARE = 10, 0.01  # of a state at a step, so that what is said of it counts
FEWEST, MOST = 12, 32  # references at each step; in between as many as there are states
DIRECTIONS, SMALL = 12, 0.05  # of a profile at most so many directions, and none with so small a part of its deviation
LEARNED = 5  # observations of a state from which on it can be learned
FOLDS = 2  # of those whose rows are read by what was learned from the others


@dataclass(frozen=True)
class Sufficiency:
    """What the log-odds know, against what the states hold of it.

    told      what the log-odds tell of the agents of trajectories that they did not learn from, in nats per pair
    captured  the states' share of that; NaN where it is nothing
    error     the standard error of `captured`, over those trajectories
    n_unseen  how many of them there are
    closed    float (H-1,): of what states and profiles tell of the neighbouring state, the states' share; 1 where the
              profiles add nothing that chance would not. What states tell is the mean over steps: at single ones, as
              after one start, it may be nothing
    p_value   float (H-1,): how likely chance alone lets profiles add as much
    read      float (H,): of the state that profiles tell worst from the others, the share that they read right; NaN
              where there is one state, and where the agents act alike on both sides of the step
    worst     int (H,): that state, -1 for none
    several   bool (H,): whether there are several states at the step
    """

    told: float
    captured: float
    error: float
    n_unseen: int
    closed: Floats
    p_value: Floats
    read: Floats
    worst: NDArray[np.int64]
    several: NDArray[np.bool_]

    def __str__(self) -> str:
        """What is captured, in words."""
        who = f"the agents of {self.n_unseen:,} trajectories that were not learned from"
        if np.isnan(self.captured):
            return f"the log-odds tell nothing of {who}"
        return (
            f"the states hold {self.captured:.0%} (standard error {self.error:.0%}) of what the log-odds tell of "
            f"{who}, {self.told:.3f} nats per pair"
        )

    def reasons(self) -> Iterator[str]:
        """What speaks for the states, in parts of a sentence."""
        yield str(self)
        yield f"they hold {least(self.closed)} of what the log-odds foretell of the neighbouring state at every step"
        known = ~np.isnan(self.read)
        if known.any():
            yield f"the log-odds in turn tell {least(self.read)} of every state's observations from those of the others"
        if blind := ranges(np.flatnonzero(~known & self.several) + 1):
            yield f"at h = {blind} the agents do not differ, so nothing was checked there"

    @property
    def held(self) -> Floats:
        """(H,): the captured share, at most 1, times what profiles read right of the worst state of each step.

        Where all trajectories begin in one state, that one is right.
        """
        captured = float(np.clip(np.nan_to_num(self.captured, nan=0.0), 0.0, 1.0))
        held = captured * np.nan_to_num(self.read, nan=1.0)
        return np.asarray(np.append(held[0] if self.several[0] else 1.0, held[1:]))


def least(shares: Floats) -> str:
    """The smallest of some shares, in words."""
    shown = f"{float(np.nanmin(shares)):.0%}"
    return shown if shown == "100%" else f"at least {shown}"


def sufficiency(
    f: CheckablePairFunction, codes: Ints, tau: TrajectoryDataset, at_chance: Collection[int], seed: int
) -> Sufficiency | None:
    """Check states `codes` (n, H), -1 for none, by log-odds f; None where f does not say what it learned from.

    `at_chance` are the h at which the agents cannot be told apart: there is nothing to capture there.
    """
    unseen = _spread(f.unseen, tau)
    if not len(unseen):
        return None
    pairs = [h for h in range(1, tau.H) if h not in at_chance]
    log_odds = f.of_unseen(tau.rows(unseen), unseen)
    told, captured, error = captured_share(log_odds, codes[unseen], tau.agent[unseen], pairs)

    rows = np.concatenate([_spread(np.arange(tau.n)[tau.agent_slice(k)], tau) for k in range(tau.K)])
    some, rng = codes[rows], np.random.default_rng(seed)
    profile = profiles(f, tau.rows(rows), some, rng)
    reading = np.stack([read_by_profile(p, code, rng) for p, code in zip(profile, some.T)], axis=1)
    half = np.stack([halves(p, code) for p, code in zip(profile, some.T)], axis=1)
    closed, p_value = _closed(some, tau.agent[rows], reading, half)
    known = [h for h in range(1, tau.H + 1) if h in pairs or h - 1 in pairs]
    read, worst = _told_apart(some, reading, known)
    several = np.array([len(np.unique(code[code >= 0])) > 1 for code in some.T])
    return Sufficiency(told, captured, error, len(unseen), closed, p_value, read, worst, several)


def captured_share(log_odds: Floats, codes: Ints, agent: Ints, pairs: Collection[int]) -> tuple[float, float, float]:
    """What log-odds (m, H-1, K-1) tell of the agents at `pairs`, the share of it left in states, and its error.

    The states' log-odds are those of the pairs averaged within each cell (s_h, s_{h+1}): f_h itself where the states
    are right, less its scatter, so that the share may exceed 1.
    """
    logits = np.concatenate([np.zeros_like(log_odds[..., :1]), -log_odds], axis=-1)
    gain, kept = np.zeros((2, len(agent))), 0
    for h in pairs:
        there = np.isfinite(logits[:, h - 1]).all(axis=1) & (codes[:, h - 1 : h + 1] >= 0).all(axis=1)
        own, share = agent[there], np.bincount(agent[there], minlength=logits.shape[2]) / max(there.sum(), 1)
        _, cell = np.unique(pair_labels(codes[there, h - 1], codes[there, h]), return_inverse=True)
        log_p = np.asarray(log_softmax(logits[there, h - 1], axis=1))
        for who, said in enumerate((log_p, log_softmax(_cell_means(log_p, cell), axis=1))):
            gain[who, there] += said[np.arange(len(own)), own] - np.log(share[own])
        kept += int(there.sum())
    told = float(gain[0].sum()) / max(kept, 1)
    if told <= 0:
        return told, np.nan, np.nan
    lost = (gain[0] - gain[1]) / (told * kept)
    return told, float(gain[1].sum() / gain[0].sum()), float(lost.std() * np.sqrt(len(agent)))


def _cell_means(values: Floats, cell: Ints) -> Floats:
    sums = np.stack([np.bincount(cell, column) for column in values.T], axis=1)
    return np.asarray((sums / np.bincount(cell)[:, None])[cell])


def _closed(codes: Ints, agent: Ints, reading: Ints, half: Ints) -> tuple[Floats, Floats]:
    """Of each pair of steps the states' share of what they and profiles foretell, and the p-value of the profiles."""
    found = [_foretold(h, codes, agent, reading, half) for h in range(1, codes.shape[1])]
    p_value, nats, by_states = np.array(found).T
    beyond = np.where(p_value * len(found) < CONTRADICTED, nats, 0.0)
    known = by_states.mean()
    return np.divide(known, known + beyond, out=np.ones(len(found)), where=beyond > 0), p_value


def _foretold(h: int, codes: Ints, agent: Ints, reading: Ints, half: Ints) -> tuple[float, float, float]:
    """Of the pair from h: what profiles tell of the neighbour beyond the states, in the direction in which they tell
    more (p-value and nats), and what the states tell."""
    both = [
        left_over(codes[:, own], codes[:, other], agent, (reading[:, own], half[:, own]))
        for own, other in ((h - 1, h), (h, h - 1))
    ]
    log_p, nats = min(both)
    return min(1.0, 2 * float(np.exp(log_p))), nats, foretold(codes[:, h - 1], codes[:, h], agent)


def _told_apart(codes: Ints, reading: Ints, known: Collection[int]) -> tuple[Floats, NDArray[np.int64]]:
    """Of each step the share read right of its worst state, and that state; NaN and -1 where nothing is known."""
    read, worst = np.full(codes.shape[1], np.nan), np.full(codes.shape[1], -1)
    for h in known:
        code, said = codes[:, h - 1], reading[:, h - 1]
        visits = np.bincount(code[code >= 0])
        enough = np.flatnonzero(visits >= max(LEAST_VISITS, LEAST_SHARE * visits.sum()))
        if np.count_nonzero(visits) > 1 and len(enough):
            read[h - 1], worst[h - 1] = min((float((said[code == s] == s).mean()), int(s)) for s in enough)
    return read, worst


def _spread(rows: Ints, tau: TrajectoryDataset) -> Ints:
    """So many of these rows, from all over them, as there is time and memory for."""
    each = int(np.prod(tau.obs_shape)) * tau.dtype.itemsize * tau.H
    most = max(1, min(PER_AGENT, BYTES // (tau.K * each)))
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))] if len(rows) else rows


# -- profiles -----------------------------------------------------------------------------------------------------


def profiles(f: CheckablePairFunction, x: NDArray[Any], codes: Ints, rng: np.random.Generator) -> list[Floats]:
    """The profiles of observations x (n, H, *obs) with states `codes` (n, H), in their main directions, by step.

    The references of a step are observations of all its states in turn, so that every state meets its neighbours.
    """
    H = codes.shape[1]
    R = int(np.clip(codes.max() + 1, FEWEST, MOST))
    rows = np.stack([_in_turn(codes[:, h], R, rng) for h in range(H)], axis=1)
    found = f.beside(x, x[rows, np.arange(H)])
    return [main_directions(found[:, h], codes[:, h] >= 0) for h in range(H)]


def _in_turn(code: Ints, R: int, rng: np.random.Generator) -> Ints:
    """R rows, of all states in turn and drawn at random within each."""
    there = rng.permutation(np.flatnonzero(code >= 0))
    there = there[np.argsort(code[there], kind="stable")]
    starts = np.flatnonzero(np.diff(code[there], prepend=-1))
    turn = np.arange(len(there)) - starts[np.searchsorted(starts, np.arange(len(there)), side="right") - 1]
    return np.resize(there[np.argsort(turn, kind="stable")], R)


def main_directions(profile: Floats, there: NDArray[np.bool_]) -> Floats:
    """Profiles (n, d) in their main directions (n, at most 12), those of rows that are not there 0."""
    if not there.any():
        return np.zeros((len(profile), 1))
    centred = np.where(there[:, None], profile - profile[there].mean(axis=0), 0.0)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    kept = (size > SMALL * size[0]) & (np.arange(len(size)) < DIRECTIONS)
    return np.asarray(centred @ axes[kept | (np.arange(len(size)) == 0)].T)


def read_by_profile(profile: Floats, code: Ints, rng: np.random.Generator) -> Ints:
    """The states (n,) that the profiles say, -1 where a code is: a linear discriminant that did not learn from the row.

    All states count alike, so that a rare one is not lost to a common one with the same profile. One with a handful of
    observations is read as another.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # dear to import

    read, there = np.full(len(code), -1), np.flatnonzero(code >= 0)
    fold_of = rng.permutation(len(there)) % FOLDS
    for fold in range(FOLDS):
        learned, own = there[fold_of != fold], there[fold_of == fold]
        names, visits = np.unique(code[learned], return_counts=True)
        names = names[visits >= LEARNED]
        learned = learned[np.isin(code[learned], names)]
        if len(names) < 2 or not profile[learned].std():
            read[own] = names[0] if len(names) else 0
            continue
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(len(names), 1 / len(names)))
        read[own] = rule.fit(profile[learned], code[learned]).predict(profile[own])
    return read


def halves(profile: Floats, code: Ints) -> Ints:
    """Every state cut in two (n,), 0 or 1, where its profiles differ most: along their first direction, by two means.

    A state in which two are fused comes apart here.
    """
    half = np.zeros(len(code), dtype=np.int64)
    for s in np.unique(code[code >= 0]):
        own = np.flatnonzero(code == s)
        if len(own) < 2:
            continue
        off = profile[own] - profile[own].mean(axis=0)
        along = off @ np.linalg.svd(off, full_matrices=False)[2][0]
        order = np.sort(along)
        n = np.arange(1, len(order))
        before = np.cumsum(order)[:-1]  # the sum of all is 0
        half[own] = along > order[np.argmax(before**2 / n + before**2 / n[::-1])]
    return half


def left_over(own: Ints, other: Ints, agent: Ints, probes: Sequence[Ints]) -> tuple[float, float]:
    """ln p and nats of the probe (n,) that depends most on the neighbouring state `other`, given (own, agent).

    Closure, as in `craftrl.diagnostics.tests`: given the state and the agent, the neighbouring state is independent
    of whatever else there is in the observation. Unknown states (-1) are left out.
    """
    found = [(0.0, 0.0)]
    for probe in probes:
        tables = count_visits(pair_labels(own, agent), other, probe)
        cells, n_other, n_values = tables.shape
        if not tables.size:
            continue
        log_p, nats = dependence(tables.reshape(-1, 1, n_values), np.repeat(np.arange(cells), n_other))
        found.append((min(float(log_p[0]) + np.log(len(probes)), 0.0), max(float(nats[0]), 0.0)))
    return min(found)


def foretold(own: Ints, other: Ints, agent: Ints) -> float:
    """What the state tells of the neighbouring one given the agent, in nats, less what chance gives."""
    there = (own >= 0) & (other >= 0)
    table = count_visits(agent[there], own[there], other[there])
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    n_log_n, of_rows, of_columns, of_all = (xlogy(n, n).sum() for n in (table, rows, columns, rows.sum(axis=1)))
    ratio = n_log_n - of_rows - of_columns + of_all
    free = np.sum(((rows > 0).sum(axis=1) - 1).clip(0) * ((columns > 0).sum(axis=1) - 1).clip(0))
    return max(float(ratio - free / 2), 0.0) / max(int(there.sum()), 1)
