"""Do the states hold all that a network knows? A check of learned states that trains nothing again.

The controlled state is the coarsest partition that is sufficient for the agents, closed under moves and complete
(docs/theory.md). Each of these can be asked of a fitted model, by what the network keeps: log-odds f of the agents,
and the embedding phi that the states were found in.

sufficient  On trajectories that no network learned from: do f(x_h, x_{h+1}) tell the agents better than a table of the
            agents in each pair of states, counted on the other trajectories?
closed      Each state is cut in two where its embeddings differ most. Given state and agent, do the halves predict the
            next state, or the one before? Given both states, do they tell the agents apart? Which state it is that is
            two, and whether halves depend on the states visited in between, is asked by `diagnostics.mixtures`.
minimal     The same of two neighbouring states: if nothing differs between them, they are alike, and one.
readable    On trajectories that no network learned from: is the state that the encoder reads, and the one of the
            nearest embeddings, that of the model's `labels_`?

Moves are no part of what a network learns from, so that closed, complete and minimal look at all trajectories; tables
are counted on others than they are tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import bdtrc, log_softmax

from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.evidence import CONTRADICTED, log_evidence, paired_p_value
from craftrl.core.labels import Labels, n_labels
from craftrl.core.oracle import CheckablePairFunction
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.mixtures import two_means

LOOKED_AT = 4096  # trajectories, of those learned from and of those held out, at most
BYTES = 2**28  # and of each so many bytes of observations
PRIOR = 2.0  # observations that a table weighs as much as, to which a finer one is drawn
BASE = 0.1  # and shares, to which a coarse one is drawn: more would let any finer table look better
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
    closed     float (3,): of what states and halves tell of the next state, the one before, and the agent, the states'
               share; 1 where halves tell no more than chance
    p_value    float (3,): how likely chance alone lets halves tell as much
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
    closed: Floats
    p_value: Floats
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
        return np.where(codes >= 0, _joined(codes + self.offsets, self.alike) - self.offsets, -1)

    @property
    def held(self) -> float:
        """The least of what was asked, between 0 and 1."""
        share = max(self.share, 0.0) if self.insufficient else 1.0
        return min(share, float(self.closed.min()), 1 - self.doubtful, self.read, self.misread[1])

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
        least = float(self.closed.min())
        yield (
            "observations predict neither moves nor agents beyond their states"
            if least == 1
            else f"states hold {least:.0%} of what observations predict of moves and agents"
        )
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
    moves = partial(_Moves, agent=tau.agent[rows], K=tau.K, aligned=tau.aligned, new=new)
    alike = _alike(moves, code, z, visits)
    joined = _joined(code, alike)
    half = np.zeros_like(code)
    for s in np.unique(joined[joined >= 0]):
        half[joined == s] = two_means(z[(joined == s) & ~new[:, None]], z[joined == s])
    closed, p_value = moves(joined).closed(half)
    doubtful = float(visits[np.unique(alike).astype(int)].sum() / visits.sum())
    read, misread = _readable(z, code, labels[rows], new)
    return Sufficiency(*of_agents, len(unseen), closed, p_value, alike, doubtful, read, misread, offsets)


def _joined(label: Labels, alike: tuple[tuple[int, int], ...]) -> Labels:
    """Labels with pairs of them joined: else halves of other states predict which of the two comes next."""
    for s, t in reversed(alike):
        label = np.where(label == t, s, label)
    return label


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


class _Moves:
    """Moves between states of trajectories, and what something beside the states tells of them.

    code  int (n, H), -1 for none, of S states
    new   bool (n,): trajectories that no network learned from
    of    a state: moves from it or to it alone
    """

    def __init__(
        self,
        code: Labels,
        agent: Labels,
        K: int,
        aligned: bool,
        new: NDArray[np.bool_],
        S: int | None = None,
        of: int | None = None,
    ) -> None:
        self.K, self.S, steps = K, n_labels(code) if S is None else S, code.shape[1] - 1
        here, there = code[:, :-1], code[:, 1:]
        self.row, self.h = np.nonzero((here >= 0) & (there >= 0) & ((of is None) | (here == of) | (there == of)))
        self.before, self.after = here[self.row, self.h].astype(np.int64), there[self.row, self.h].astype(np.int64)
        self.both = self.before * self.S + self.after
        self.agent, self.new, self.fold = agent[self.row], new[self.row], self.row % 2 == 0
        self.spell = self.h * min(SPELLS, steps) // steps if aligned else 0 * self.h

    def known(self, target: Labels, coarse: Labels, fine: Labels) -> Floats:
        """(m,): what a fine label of each move tells of a target beyond a coarse one, by tables of the other half."""
        out = np.empty(len(self.row))
        for learn in (self.fold, ~self.fold):
            out[~learn] = _gain(target, coarse, fine, learn, self.S)[~learn]
        return out

    def gains(self, side: Labels) -> Floats:
        """(3, m): by how much the log-probability of the next state, the one before and the agent rises for each move,
        if the side (n, H) of its observations is known; of the agent on new trajectories alone."""
        first, second = side[self.row, self.h], side[self.row, self.h + 1]
        out = np.zeros((3, len(self.row)))
        for i, (target, own, part) in enumerate(((self.after, self.before, first), (self.before, self.after, second))):
            coarse = (self.spell * self.K + self.agent) * self.S + own
            out[i] = self.known(target, coarse, coarse * 2 + part)
        out[2, self.new] = _gain(self.agent, self.both, self.both * 2 + first, ~self.new, self.K)[self.new]
        return out

    def closed(self, half: Labels) -> tuple[Floats, Floats]:
        """(3,): the states' share of what they and halves (n, H) tell, and how likely that is by chance."""
        gains, agent, every = self.gains(half), self.agent, np.ones(len(self.row), dtype=bool)
        by_states = [
            self.known(target, agent, agent * self.S + own).sum()
            for target, own in ((self.after, self.before), (self.before, self.after))
        ]
        by_states.append(_gain(agent, 0 * self.both, self.both, ~self.new, self.K)[self.new].sum())
        p_value, closed = np.ones(3), np.ones(3)
        for i, tried in enumerate((every, every, self.new)):
            rows, row = np.unique(self.row[tried], return_inverse=True)
            if len(rows) > 1:  # trajectory by trajectory
                nats = np.bincount(row, gains[i, tried]).astype(np.float64)
                p_value[i] = min(1.0, 3 * paired_p_value(nats))
                if p_value[i] < CONTRADICTED:
                    closed[i] = max(by_states[i], 0.0) / (max(by_states[i], 0.0) + float(nats.sum()))
        return closed, p_value


def _alike(moves: Callable[..., _Moves], code: Labels, z: Floats, visits: Ints) -> tuple[tuple[int, int], ...]:
    """Pairs of states that nothing tells apart, of those whose embeddings z (n, H, d) are nearest."""
    from craftrl.core.partition import driven  # compiles, so that importing it takes time

    seen = np.flatnonzero(visits >= MIN_VISITS).tolist()
    if len(seen) < 2:
        return ()
    centres = np.stack([z[code == s].mean(axis=0) for s in seen])
    near = cKDTree(centres).query(centres, min(3, len(seen)))[1][:, 1:]
    found, S = [], n_labels(code)
    for i, j in sorted({(min(i, j), max(i, j)) for i, others in enumerate(near.tolist()) for j in others}):
        a, b = seen[i], seen[j]
        if not ((code == a).any(axis=0) & (code == b).any(axis=0)).any():  # of different steps, where each has its own
            continue
        joined, side = np.where(code == b, a, code), np.where(code == b, 1, 0)
        nats = moves(joined, S=S, of=a).gains(side).sum()
        if nats < MIN_NATS and driven(joined, np.where(joined == a, side, -1), S) < MIN_NATS:
            found.append((a, b))
    return tuple(found)


def _gain(target: Labels, coarse: Labels, fine: Labels, learn: NDArray[np.bool_], n_target: int) -> Floats:
    """(m,): the log-probability of a target given a fine label less that given a coarse one, by tables counted where
    `learn`; the fine table is drawn to the coarse one, and that to the target's shares."""

    def counted(label: Labels) -> tuple[Floats, Floats]:
        each = np.bincount(label[learn] * n_target + target[learn], minlength=int(label.max(initial=0) + 1) * n_target)
        return each[label * n_target + target], each.reshape(-1, n_target).sum(axis=1)[label]

    often = np.bincount(target[learn], minlength=n_target)[target]
    shares = (often + 1) / (learn.sum() + n_target)
    hits, total = counted(coarse)
    by_coarse = (hits + BASE * shares) / (total + BASE)
    hits, total = counted(fine)
    return np.log((hits + PRIOR * by_coarse) / (total + PRIOR)) - np.log(by_coarse)


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
