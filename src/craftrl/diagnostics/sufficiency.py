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

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from craftrl.core.evidence import CONTRADICTED, dependence
from craftrl.core.findings import ranges
from craftrl.core.labels import n_labels, paired, tally
from craftrl.core.oracle import CheckablePairFunction
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["Sufficiency", "least", "sufficiency"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
PER_AGENT = 2048  # trajectories of each agent that are looked at, at most
BYTES = 2**28  # and of all of them so many bytes of observations
LEAST_VISITS, LEAST_SHARE = 10, 0.01  # of a state at a step, so that what is said of it counts
FEWEST, MOST = 12, 32  # references at each step; in between as many as there are states
DIRECTIONS, SMALL = 12, 0.05  # of a profile at most so many directions, and none with so small a part of its deviation
LEARNED = 5  # observations of a state from which on it can be learned


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

    def reasons(self) -> Iterator[str]:
        """What speaks for the states, in parts of a sentence."""
        who = f"the agents of {self.n_unseen:,} trajectories that were not learned from"
        if np.isnan(self.captured):
            yield f"the log-odds tell nothing of {who}"
        else:
            yield (
                f"the states hold {self.captured:.0%} (standard error {self.error:.0%}) of what the log-odds tell of "
                f"{who}, {self.told:.3f} nats per pair"
            )
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
    H, pairs = tau.H, [h for h in range(1, tau.H) if h not in at_chance]
    log_odds = f.of_unseen(tau.rows(unseen), unseen)
    told, captured, error = _captured(log_odds, codes[unseen], tau.agent[unseen], pairs)

    rows = np.concatenate([_spread(np.flatnonzero(tau.agent == k), tau) for k in range(tau.K)])
    code, agent, rng = codes[rows], tau.agent[rows], np.random.default_rng(seed)
    reading, half = _by_profiles(f, tau.rows(rows), code, rng)
    beyond, p_value, by_states = np.zeros(H - 1), np.ones(H - 1), np.zeros(H - 1)
    for h in range(1, H):
        both = [
            _closure(code[:, own], code[:, other], agent, probe)
            for own, other in ((h - 1, h), (h, h - 1))
            for probe in (reading[:, own], half[:, own])
        ]
        log_p, beyond[h - 1] = min(both)
        p_value[h - 1] = min(1.0, len(both) * float(np.exp(log_p)))
        by_states[h - 1] = _foretold(code[:, h - 1], code[:, h], agent)
    beyond[p_value * (H - 1) >= CONTRADICTED] = 0.0
    closed = np.divide(by_states.mean(), by_states.mean() + beyond, out=np.ones(H - 1), where=beyond > 0)

    read, worst = np.full(H, np.nan), np.full(H, -1)
    several = np.array([len(np.unique(own[own >= 0])) > 1 for own in code.T])
    for h in (h for h in range(1, H + 1) if several[h - 1] and (h in pairs or h - 1 in pairs)):
        own, said = code[:, h - 1], reading[:, h - 1]
        visits = tally(own)
        enough = np.flatnonzero(visits >= max(LEAST_VISITS, LEAST_SHARE * visits.sum()))
        if len(enough):
            read[h - 1], worst[h - 1] = min((float((said[own == s] == s).mean()), int(s)) for s in enough)
    return Sufficiency(told, captured, error, len(unseen), closed, p_value, read, worst, several)


def _spread(rows: Ints, tau: TrajectoryDataset) -> Ints:
    """So many of these rows, from all over them, as there is time and memory for."""
    each = int(np.prod(tau.obs_shape)) * tau.dtype.itemsize * tau.H
    most = max(1, min(PER_AGENT, BYTES // (tau.K * each)))
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))] if len(rows) else rows


def _captured(log_odds: Floats, codes: Ints, agent: Ints, pairs: Collection[int]) -> tuple[float, float, float]:
    """What log-odds (m, H-1, K-1) tell of the agents at `pairs`, the share of it left in states, and its error.

    The states' log-odds are those of the pairs averaged within each cell (s_h, s_{h+1}): f_h itself where the states
    are right, less its scatter, so that the share may exceed 1.
    """
    logits = np.concatenate([np.zeros_like(log_odds[..., :1]), -log_odds], axis=-1)
    gain, kept = np.zeros((2, len(agent))), 0
    for h in pairs:
        there = np.isfinite(logits[:, h - 1]).all(axis=1) & (codes[:, h - 1 : h + 1] >= 0).all(axis=1)
        own, share = agent[there], np.bincount(agent[there], minlength=logits.shape[2]) / max(there.sum(), 1)
        _, cell = np.unique(codes[there, h - 1 : h + 1], axis=0, return_inverse=True)
        log_p = np.asarray(log_softmax(logits[there, h - 1], axis=1))
        sums = np.stack([np.bincount(cell, column) for column in log_p.T], axis=1)
        for who, said in enumerate((log_p, log_softmax((sums / np.bincount(cell)[:, None])[cell], axis=1))):
            gain[who, there] += said[np.arange(len(own)), own] - np.log(share[own])
        kept += int(there.sum())
    told = float(gain[0].sum()) / max(kept, 1)
    if told <= 0:
        return told, np.nan, np.nan
    lost = (gain[0] - gain[1]) / (told * kept)
    return told, float(gain[1].sum() / gain[0].sum()), float(lost.std() * np.sqrt(len(agent)))


def _by_profiles(
    f: CheckablePairFunction, x: NDArray[np.generic], codes: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """What the profiles of observations x (n, H, *obs) with states `codes` say: the states as they read them, (n, H),
    and each state cut in two where its profiles differ most, which is where one in which two are fused comes apart.

    The references of a step are observations of all its states in turn, so that every state meets its neighbours.
    """
    n, H = codes.shape
    R = int(np.clip(codes.max() + 1, FEWEST, MOST))
    references = np.empty((R, H), dtype=np.int64)
    for h, code in enumerate(codes.T):
        order = rng.permutation(np.flatnonzero(code >= 0))
        order = order[np.argsort(code[order], kind="stable")]
        visits = tally(code)
        turn = np.concatenate([np.arange(n_visits) for n_visits in visits]) if len(visits) else order
        references[:, h] = np.resize(order[np.argsort(turn, kind="stable")], R)
    beside = f.beside(x, x[references, np.arange(H)])
    reading, half = np.full((n, H), -1), np.zeros((n, H), dtype=np.int64)
    for h, code in enumerate(codes.T):
        there = np.flatnonzero(code >= 0)
        if len(there):
            profile, own = _main_directions(beside[there, h]), code[there]
            reading[there, h] = _read(profile, own, rng.permutation(len(own)) % 2)
            for s in np.unique(own):
                half[there[own == s], h] = _cut_in_two(profile[own == s])
    return reading, half


def _main_directions(profile: Floats) -> Floats:
    """Profiles (n, d) in their main directions (n, at most 12)."""
    centred = profile - profile.mean(axis=0)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    kept = (size > SMALL * size[0]) & (np.arange(len(size)) < DIRECTIONS)
    return np.asarray(centred @ axes[kept | (np.arange(len(size)) == 0)].T)


def _read(profile: Floats, code: Ints, fold: Ints) -> Ints:
    """The states (n,) that the profiles say: a linear discriminant that did not learn from the row.

    All states count alike, so that a rare one is not lost to a common one with the same profile. One with a handful of
    observations is read as another.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # dear to import

    read = np.zeros(len(code), dtype=np.int64)
    for one in (0, 1):
        names = np.flatnonzero(tally(code[fold != one]) >= LEARNED)
        learned = (fold != one) & np.isin(code, names)
        if len(names) < 2 or not profile[learned].std():
            read[fold == one] = names[0] if len(names) else 0
            continue
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(len(names), 1 / len(names)))
        read[fold == one] = rule.fit(profile[learned], code[learned]).predict(profile[fold == one])
    return read


def _cut_in_two(profile: Floats) -> NDArray[np.bool_]:
    """Which profiles (n, d) lie beyond the best cut in two along their first direction, by two means."""
    if len(profile) < 2:
        return np.zeros(len(profile), dtype=bool)
    off = profile - profile.mean(axis=0)
    along = off @ np.linalg.svd(off, full_matrices=False)[2][0]
    order, n = np.sort(along), np.arange(1, len(along))
    before = np.cumsum(order)[:-1]  # the sum of all is 0
    return np.asarray(along > order[np.argmax(before**2 / n + before**2 / n[::-1])])


def _closure(own: Ints, other: Ints, agent: Ints, probe: Ints) -> tuple[float, float]:
    """ln p and nats of how far the neighbouring state `other` depends on a probe (n,), given (own, agent).

    As in `craftrl.diagnostics.tests`. Unknown states (-1) are left out.
    """
    sizes = [n_labels(label) for label in (agent, own, other, probe)]
    cell = paired(paired(paired(agent, own, sizes[1]), other, sizes[2]), probe, sizes[3])
    if not (cell >= 0).any():
        return 0.0, 0.0
    tables = tally(cell, int(np.prod(sizes))).reshape(-1, 1, sizes[3])
    log_p, nats = dependence(tables, np.repeat(np.arange(sizes[0] * sizes[1]), sizes[2]))
    return float(log_p[0]), max(float(nats[0]), 0.0)


def _foretold(own: Ints, other: Ints, agent: Ints) -> float:
    """What the state tells of the neighbouring one given the agent, in nats, less what chance gives."""
    from sklearn.metrics import mutual_info_score  # dear to import

    there = (own >= 0) & (other >= 0)
    total = 0.0
    for k in np.unique(agent[there]):
        mine = there & (agent == k)
        free = (len(np.unique(own[mine])) - 1) * (len(np.unique(other[mine])) - 1)
        total += mine.sum() * mutual_info_score(own[mine], other[mine]) - free / 2
    return max(float(total), 0.0) / max(int(there.sum()), 1)
