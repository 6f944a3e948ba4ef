"""Do the states hold all that a network knows? A check of learned states that trains nothing again.

The controlled state is the coarsest partition that is sufficient for the agents, closed under moves and complete
(docs/theory.md). Whether a state is two, by where agents go, come from, or by what drives them, any model is asked
(`diagnostics.mixtures`). The rest is asked of what a network keeps: log-odds f of the agents, and the embedding phi
that the states were found in.

sufficient  On trajectories that no network learned from: do f(x_h, x_{h+1}) tell the agents better than a table of the
            agents in each pair of states, counted on the other trajectories?
minimal     Of two states that are neighbours in the embedding: do they differ in the states before and after, in who
            visits them, or in what the path through the states does to them? If not, they are alike, and one.
readable    On trajectories that no network learned from: is the state that the encoder reads, and the one of the
            nearest embeddings, that of the model's `labels_`?

Agents are asked of on trajectories that no network learned from; moves are no part of what it learns from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import bdtrc, log_softmax

from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.evidence import log_evidence, paired_p_value
from craftrl.core.labels import Labels, crossed, n_labels
from craftrl.core.oracle import CheckablePairFunction
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.state_tests import two_or_one

LOOKED_AT = 4096  # trajectories, of those learned from and of those held out, at most
BYTES = 2**28  # and of each so many bytes of observations
PRIOR = 2.0  # observations that the agents' shares weigh as much as, to which a table is drawn
BY_STEP = np.array([4.0, 32.0, 256.0, 1e6])  # the same where a step's table is drawn to that of all steps
SPELLS = 3  # of time, in each of which moves may be others
NEIGHBOURS = 7  # embeddings that say the state of another
MIN_VISITS = 10  # of a state, so that what is said of it counts
MIN_SHARE = 0.9  # of the log-odds' gain, that states must reach
MIN_READ, MAX_P_VALUE = 0.95, 0.01  # share of a state that must be read right, and how likely less is by chance
MIN_NATS = 5.0  # nats from which on two states differ
APART = 10.0  # between embeddings of different steps, where each step has states of its own


@dataclass(frozen=True)
class Sufficiency:
    """What a network knows, against what the states hold of it.

    gain       the log-likelihood of the agents of held-out trajectories by the log-odds, less that by the agents'
               shares, in nats per pair
    share      the same gain by the states, as a share of it; above 1 where states tell more of the agents, NaN where
               the log-odds tell nothing
    p_gain     how likely log-odds or states gain as much by chance
    error      the standard error of what one tells more than the other, in units of what the better one tells
    n_unseen   how many of them there are
    alike      pairs of states that look like one
    doubtful   the share of observations in these
    read       the share of held-out observations that are read as in `labels_`
    misread    of states of which surely more than 5% are misread, the worst, and the share of it that is read right;
               -1 and 1 where there are none
    offsets    int (H,): what is added to the numbers of a step's states in `alike` and `misread`, where each step has
               states of its own; else 0
    """

    gain: float
    p_gain: float
    share: float
    error: float
    n_unseen: int
    alike: tuple[tuple[int, int], ...]
    doubtful: float
    read: float
    misread: tuple[int, float]
    offsets: Ints

    def named(self, state: int) -> tuple[tuple[int, ...], int]:
        """The step of a state, where each has its own, else none; and its number there."""
        if not self.offsets.any():
            return (), state
        h = int(np.searchsorted(self.offsets, state, side="right"))
        return (h,), state - int(self.offsets[h - 1])

    def joined(self, codes: Labels) -> Labels:
        """States (n, H) with those that look like one joined."""
        states = codes + self.offsets
        for s, t in reversed(self.alike):
            states = np.where(states == t, s, states)
        return np.where(codes >= 0, states - self.offsets, -1)

    @property
    def held(self) -> float:
        """The least of what was asked, between 0 and 1."""
        share = max(self.share, 0.0) if self.insufficient else 1.0
        return min(share, 1 - self.doubtful, self.read, self.misread[1])

    @property
    def insufficient(self) -> bool:
        """Whether the states surely tell less of the agents than the log-odds do, and not just by the error of tables
        that are counted on few trajectories."""
        return self.share < MIN_SHARE and self.share + 2 * self.error < 1

    def reasons(self) -> Iterator[str]:
        """What speaks for the states, in parts of a sentence."""
        new = f"{self.n_unseen:,} trajectories that were not learned from"
        if np.isnan(self.share):
            yield f"the log-odds tell nothing of the agents of {new}"
        else:
            good = "not as good" if self.insufficient else "as good"
            known = f"{self.share:.0%}, give or take {min(200 * self.error, 100):.0f}; on {new}"
            yield f"for telling the agents apart, the state is {good} as the whole observation ({known})"
        yield f"of new observations the encoder reads {self.read:.1%} as the fit found them"


def sufficiency(
    f: CheckablePairFunction,
    embed: Callable[[Observations], NDArray[np.floating]],
    codes: Labels,
    labels: Labels,
    tau: TrajectoryDataset,
    by_step: bool = False,
) -> Sufficiency | None:
    """Check states by log-odds f and an embedding; None where nothing was held out.

    codes, labels  int (n, H): states as the encoder reads them, and as `fit` found them; -1 for none
    by_step        whether the states of each step are numbered by themselves
    """
    offsets = np.zeros(tau.H, dtype=np.int64)
    if by_step:
        offsets[1:] = np.cumsum(np.maximum(codes.max(axis=0), labels.max(axis=0)) + 1)[:-1]
        codes, labels = (np.where(label >= 0, label + offsets, -1) for label in (codes, labels))
    unseen = _some(f.unseen, tau)
    if not len(unseen):
        return None
    learned = np.setdiff1d(np.arange(tau.n), f.unseen)
    of_agents = _of_agents(f.of_unseen(tau.rows(unseen), unseen), codes, tau, learned, unseen)
    rows = np.concatenate([_some(learned, tau), unseen])
    new, code, x = np.isin(rows, unseen), codes[rows], tau.rows(rows)
    z = np.stack([np.asarray(embed(x[:, h]), dtype=np.float64) for h in range(tau.H)], axis=1)
    if by_step:
        z = np.concatenate([z, np.broadcast_to(APART * np.eye(tau.H), (len(z), tau.H, tau.H))], axis=2)
    visits = np.bincount(code[code >= 0], minlength=n_labels(codes))
    alike = _alike(code, z, tau.agent[rows], new, tau.aligned, visits)
    doubtful = float(visits[np.unique(alike).astype(int)].sum() / visits.sum())
    read, misread = _readable(z, code, labels[rows], new)
    return Sufficiency(*of_agents, len(unseen), alike, doubtful, read, misread, offsets)


def _some(rows: Ints, tau: TrajectoryDataset) -> Ints:
    """So many of these rows, from all over them, as there is time and memory for."""
    each = int(np.prod(tau.obs_shape)) * tau.dtype.itemsize * tau.H
    most = max(1, min(LOOKED_AT, BYTES // each))
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))] if len(rows) else rows


def _of_agents(
    log_odds: Floats, codes: Labels, tau: TrajectoryDataset, learned: Ints, unseen: Ints
) -> tuple[float, float, float, float]:
    """What log-odds (m, H-1, K-1) tell of the agents of `unseen`, how likely neither they nor the states tell anything,
    the states' share of it, and its standard error.

    The states' table of agents is drawn at each step to that of all steps, as strongly as its evidence is best.
    """
    S, K, H = n_labels(codes), tau.K, tau.H
    pair = np.where((codes[:, :-1] >= 0) & (codes[:, 1:] >= 0), codes[:, :-1] * S + codes[:, 1:], -1)
    names, pair[pair >= 0] = np.unique(pair[pair >= 0], return_inverse=True)
    i, h = np.nonzero(pair[learned] >= 0)
    counts = np.zeros((H - 1, len(names), K))
    np.add.at(counts, (h, pair[learned][i, h], tau.agent[learned][i]), 1)
    shares = counts.sum(axis=(0, 1)) / max(counts.sum(), 1)
    pooled = counts.sum(axis=0) + PRIOR * shares
    pooled /= pooled.sum(axis=1, keepdims=True)
    weight = BY_STEP[-1]
    if tau.aligned:
        weight = max(BY_STEP, key=lambda weight: log_evidence(counts, weight * pooled + 1e-9).sum())
    table = counts + weight * pooled
    table /= table.sum(axis=2, keepdims=True)
    i, h = np.nonzero((pair[unseen] >= 0) & np.isfinite(log_odds).all(axis=2))
    agent = tau.agent[unseen][i]
    logits = np.concatenate([np.zeros_like(log_odds[..., :1]), -log_odds], axis=2)[i, h]
    of_odds = log_softmax(logits, axis=1)[np.arange(len(i)), agent] - np.log(shares[agent])
    of_states = np.log(table[h, pair[unseen][i, h], agent] / shares[agent])
    by_odds, by_states = (np.bincount(i, nats, len(unseen)).astype(np.float64) for nats in (of_odds, of_states))
    gain = float(by_odds.sum())
    p_gain = min(1.0, 2 * min(map(paired_p_value, (by_odds, by_states)))) if len(unseen) > 1 else 1.0
    if gain <= 0:
        return gain / max(len(i), 1), p_gain, np.nan, np.nan
    more, held = by_odds - by_states, float(by_states.sum())
    return gain / len(i), p_gain, held / gain, float(more.std() * np.sqrt(len(more))) / max(gain, held)


def _alike(
    code: Labels, z: Floats, agent: Labels, new: NDArray[np.bool_], aligned: bool, visits: Ints
) -> tuple[tuple[int, int], ...]:
    """Pairs of states that nothing tells apart, of those whose embeddings z (n, H, d) are nearest."""
    from craftrl.core.partition import driven  # compiles, so that importing it takes time

    seen, S, steps = np.flatnonzero(visits >= MIN_VISITS).tolist(), n_labels(code), code.shape[1] - 1
    if len(seen) < 2:
        return ()
    centres = np.stack([z[code == s].mean(axis=0) for s in seen])
    near = cKDTree(centres).query(centres, min(3, len(seen)))[1][:, 1:]
    spell = np.arange(steps) * min(SPELLS, steps) // steps * aligned
    who = np.broadcast_to(agent[:, None], code.shape)
    group = spell * n_labels(agent) + who[:, 1:]
    sizes, found = (n_labels(group), 2, S), []
    for i, j in sorted({(min(i, j), max(i, j)) for i, others in enumerate(near.tolist()) for j in others}):
        a, b = seen[i], seen[j]
        if not ((code == a).any(axis=0) & (code == b).any(axis=0)).any():  # of different steps, where each has its own
            continue
        joined, side = np.where(code == b, a, code), np.where(code == a, 0, np.where(code == b, 1, -1))
        after = crossed(group, side[:, :-1], joined[:, 1:], sizes=sizes)
        before = crossed(group, side[:, 1:], joined[:, :-1], sizes=sizes)
        visits_of = crossed(np.where(new[:, None], side, -1), who, sizes=(2, n_labels(agent)))
        nats = sum(float(two_or_one(counts)[0, 1]) for counts in (*after, *before, visits_of))
        if nats < MIN_NATS and driven(joined, side, S) < MIN_NATS:
            found.append((a, b))
    return tuple(found)


def _readable(z: Floats, code: Labels, labels: Labels, new: NDArray[np.bool_]) -> tuple[float, tuple[int, float]]:
    """The share of observations of new trajectories that the encoder, and the nearest embeddings of others, give the
    state of `labels`; and the state for which that is least."""
    known, asked = (code >= 0) & ~new[:, None], (code >= 0) & new[:, None]
    _, near = cKDTree(z[known]).query(z[asked], min(NEIGHBOURS, int(known.sum())))
    votes = np.zeros((int(asked.sum()), n_labels(code)))
    for column in np.reshape(near, (len(votes), -1)).T:
        votes[np.arange(len(votes)), code[known][column]] += 1
    own = labels[asked]
    right = (votes.argmax(axis=1) == own) & (code[asked] == own)
    worst = -1, 1.0
    for s in np.unique(own):
        n, share = int((own == s).sum()), float(right[own == s].mean())
        if n >= MIN_VISITS and share < worst[1] and bdtrc(round(n * (1 - share)) - 1, n, 1 - MIN_READ) < MAX_P_VALUE:
            worst = int(s), share
    return float(right.mean()), worst
