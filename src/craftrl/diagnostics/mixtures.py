"""Which states look like two things? Their observations then tell where an agent goes next, or where it came from.

Noise knows nothing of the moves. So once a state and the agent are known, nothing else in an observation predicts the
next state or the one before (Section 2.1). Where two states were taken for one, it does. In each state the direction
of the observations is sought that predicts its neighbours best; along it the observations are cut in two groups; and
the groups' neighbours are compared, on other trajectories than the direction was found from. That needs no network and
no embedding, which may have lost what it does not tell apart.

Where there is an embedding, the two groups that differ most in it are tried as well. And groups are two states too if
they are driven: if which of them comes depends on the states visited in between.

Paper: Section 2.1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.evidence import CONTRADICTED, dependence
from craftrl.core.labels import Labels, n_labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.camera import described

# Observations of a state, of whole trajectories, that are looked at; those of all states; and what they may take.
LOOKED_AT, ALL, BYTES = 1500, 2**17, 2**26
SPELLS = 3  # of time, in each of which moves may be others
RIDGE = 2.0  # in units of the mean variance of the features
MIN_VISITS = 40  # of a state, so that anything is said of it
MIN_GROUP = 0.05  # of the observations: a smaller group may be misread ones
MIN_NATS = 0.02  # per visit that the groups must tell of the neighbouring states: misread observations tell less
DRIVEN = 5.0  # nats from which on groups are driven, beside those of choosing among all groups that are tried
MAX_FEATURES = 512  # of an observation; more are mixed at random
KEPT = 64  # observations of each group that are kept, for pictures


@dataclass(frozen=True)
class Mixture:
    """A state that looks like two.

    h        its step, where each has states of its own; else None
    state    its number
    visits   the share of all observations that are in it
    shares   of its observations, in either group
    frames   some observations of either group
    """

    h: int | None
    state: int
    visits: float
    shares: tuple[float, float]
    frames: tuple[NDArray[Any], NDArray[Any]]


def mixtures(
    tau: TrajectoryDataset,
    codes: Labels,
    by_step: bool,
    embed: Callable[[Observations], NDArray[np.floating]] | None = None,
    seed: int = 0,
) -> tuple[Mixture, ...]:
    """The states that look like two, of trajectories whose states are `codes` (n, H), -1 for none.

    by_step  whether the states of each step are numbered by themselves
    """
    rng = np.random.default_rng(seed)
    lost = np.full((len(codes), 1), -1)
    after, before = np.hstack([codes[:, 1:], lost]), np.hstack([lost, codes[:, :-1]])
    states = [
        (h, int(s))
        for h in (range(tau.H) if by_step else [None])
        for s in np.unique(codes if h is None else codes[:, h])
        if s >= 0
    ]
    found, looked_at = [], min(LOOKED_AT, ALL // max(len(states), 1), BYTES // tau.frame_bytes)
    for h, s in states:
        inside = codes == s
        if h is not None:
            inside &= np.arange(tau.H) == h
        visits = inside.sum(axis=1)
        order = rng.permutation(np.flatnonzero(visits))
        inside[order[visits[order].cumsum() > looked_at]] = False
        row, step = np.nonzero(inside)
        fold = row % 2 if tau.aligned else row // 8 % 2  # neighbouring windows are of one kind
        if min(np.bincount(fold, minlength=2)) < MIN_VISITS / 2:
            continue
        x = tau.pick(row, step)
        z = described(x)
        if z.shape[1] > MAX_FEATURES:
            z = z @ rng.normal(size=(z.shape[1], MAX_FEATURES)) / np.sqrt(z.shape[1])
        neighbours = after[row, step], before[row, step]
        cuts = [(_halves(z, sought, fold), fold) for sought in neighbours]
        if embed is not None:  # which knows nothing of the neighbours
            cuts.append((_two_means(np.asarray(embed(x), dtype=np.float64)), 0 * fold))
        spell = step * SPELLS // tau.H if tau.aligned else 0 * step
        tried = len(cuts) * len(states)
        chance = np.log(CONTRADICTED / (len(neighbours) * tried))
        most, half = 0.0, None
        for groups, learned in cuts:
            if MIN_GROUP < groups.mean() < 1 - MIN_GROUP:
                of_moves = [_differ(groups, neighbour, learned, tau.agent[row], spell) for neighbour in neighbours]
                nats = max([nats for log_p, nats in of_moves if log_p < chance and nats > MIN_NATS], default=0.0)
                nats = nats or _driven(groups, row, step, codes, DRIVEN + np.log(tried))
                if nats > most:
                    most, half = nats, groups
        if half is not None:
            share = float(half.mean())
            a, b = (x[rng.permutation(np.flatnonzero(half == one))[:KEPT]] for one in (0, 1))
            of_all = float(visits.sum() / (codes >= 0).sum())
            found.append(Mixture(None if h is None else h + 1, s, of_all, (1 - share, share), (a, b)))
    return tuple(found)


def _two_means(z: Floats) -> Ints:
    """Which of two groups embeddings (m, d) are in: the groups of least variance."""
    from sklearn.cluster import KMeans  # slow to import

    if len(np.unique(z, axis=0)) < 2:
        return np.zeros(len(z), dtype=np.int64)
    return np.asarray(KMeans(2, n_init=3, random_state=0).fit_predict(z))


def _driven(half: Ints, row: Ints, step: Ints, codes: Labels, least: float) -> float:
    """Nats per visit that the states in between tell of which half comes next; 0 where they are not `least` in all."""
    from craftrl.core.partition import driven  # compiles, so that importing it takes time

    rows, at = np.unique(row, return_inverse=True)
    side = np.full((len(rows), codes.shape[1]), -1)
    side[at, step] = half
    nats = float(driven(codes[rows].astype(np.int64), side, n_labels(codes)))
    return nats / len(half) if nats > least else 0.0


def _halves(z: Floats, neighbour: Labels, fold: Labels) -> Ints:
    """Two groups (m,) of observations z (m, d), cut along the direction that predicts the neighbouring state best
    among observations of the other fold: the first of a ridge regression of reduced rank."""
    half = np.zeros(len(z), dtype=np.int64)
    directions: list[Floats] = []
    for one in (0, 1):
        learned = (fold != one) & (neighbour >= 0)
        common = np.flatnonzero(np.bincount(neighbour[learned], minlength=1) >= 5)
        if len(common) < 2:
            return half
        middle = z[learned].mean(axis=0)
        r = z[learned] - middle
        y = (neighbour[learned, None] == common).astype(np.float64)
        y = (y - y.mean(axis=0)) / np.sqrt(y.sum(axis=0))
        gram = r.T @ r
        gram[np.diag_indices(len(gram))] += RIDGE * np.trace(gram) / len(gram)
        weights = np.linalg.solve(gram, r.T @ y)
        direction = weights @ np.linalg.svd(r @ weights, full_matrices=False)[2][0]
        if directions and directions[0] @ direction < 0:
            direction = -direction
        directions.append(direction)
        score = r @ direction
        half[fold == one] = (z[fold == one] - middle) @ direction > _cut(score)
    return half


def _cut(score: Floats) -> float:
    """Where numbers are cut in two groups of least variance."""
    v = np.sort(score)
    n, left = len(v), np.arange(1, len(v))
    total = np.cumsum(v)
    apart = left * (n - left) * (total[:-1] / left - (total[-1] - total[:-1]) / (n - left)) ** 2
    at = int(apart.argmax())
    return float(v[at] + v[at + 1]) / 2


def _differ(half: Ints, neighbour: Labels, fold: Labels, agent: Labels, spell: Labels) -> tuple[float, float]:
    """ln p and nats per visit: whether the halves differ in a neighbouring state, given agent and spell of time."""
    there = neighbour >= 0
    _, stratum = np.unique(np.column_stack([fold, agent, spell])[there], axis=0, return_inverse=True)
    stratum = stratum.reshape(-1)
    n, S = int(stratum.max(initial=-1)) + 1, int(neighbour.max(initial=0)) + 1
    counts = np.zeros((n, 2, S), dtype=np.int64)
    np.add.at(counts, (stratum, half[there], neighbour[there]), 1)
    log_p, nats = dependence(counts.reshape(2 * n, 1, S), np.repeat(np.arange(n), 2))
    return float(log_p[0]), float(nats[0])
