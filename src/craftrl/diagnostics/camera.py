"""Does a single frame give the agent away? Then the recordings differ, and the camera may pass for what is controlled.

Agents visit states more or less often, so that any frame tells something of the agent. But two frames of one state
should not: what else is in them, noise, knows nothing of the agents (Section 2.1). Where light, colour, contrast or
place of the camera differ between agents' recordings, frames of *every* state do tell. Two questions follow.

within  of two frames of one state, one of each agent: how often does a linear rule that learned from other
        trajectories tell whose is whose, by the coarse picture, its contrast and its edges? By chance in half of all.
apart   how many of one agent's visits to states would have to change to be those of the others? Where the camera has
        been learned as a state, there are hardly two frames to compare, and nearly all would.

A rule that holds in some states only speaks against these states (they are fused), not against the camera.

Paper: Sections 2.1 and 2.3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints
from craftrl.core.findings import Finding
from craftrl.core.labels import Labels, n_labels
from craftrl.data.dataset import TrajectoryDataset

FRAMES = 4000  # that are looked at, of all agents together
GRID = 12  # rows and columns of the coarse picture
MIN_FRAMES = 15  # of each agent in a state, to compare them there
FOREIGN = 0.05  # the share of the others in a state that counts as one agent's; some frames are misread
WITHIN, ERRORS = 0.7, 4.0  # `within` from which the camera differs, and by how many standard errors more than chance
SHARE = 0.75  # of the frames that must be of states in which it differs, or of the visits that one agent has to itself
MIN_TRAJECTORIES = 10  # trajectories of each agent, for anything to be said
MIN_HEAT = 0.5  # of the largest difference, from which on a pixel counts as one that differs


@dataclass(frozen=True)
class Camera:
    """What single frames tell of the agents beside the states.

    within  of pairs of frames of one state, one of each agent, the share whose agents are named right; of the agent
            that differs most from the others; 0.5 is chance, NaN where no state has frames of two agents
    error   the standard error of it, if frames do not differ
    states  the share of frames that are of states in which that agent differs: `within` is above 0.6 there, or it
            visits it alone, or never; its own frames weigh as much as those of the others
    apart   the share of its visits to states that would have to change to be distributed as those of the others, for
            the agent of which it is largest
    heat    float (rows, columns) or (features,): how far the mean frames of one state differ between that agent and the
            others, in units of what one agent's frames differ by; of all frames where agents share no state
    """

    within: float
    error: float
    states: float
    apart: float
    heat: Floats

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, if anything is, and where in the picture."""
        if self.apart > SHARE:
            found = Finding("agents apart", (), {"apart": self.apart})
        elif self.within > max(WITHIN, 0.5 + ERRORS * self.error) and self.states > SHARE:
            found = Finding("camera differs", (), {"within": self.within, "states": self.states})
        else:
            return ()
        return (found, Finding("pixels that tell", (), self._place())) if self.heat.ndim == 2 else (found,)

    def _place(self) -> dict[str, float]:
        """Rows and columns between which nearly all pixels lie that differ, and their share of the picture."""
        rows, columns = np.nonzero(self.heat >= MIN_HEAT * self.heat.max())
        ends = {"top": rows, "bottom": rows, "left": columns, "right": columns}
        found = {name: float(np.quantile(at, 0.02 if name in ("top", "left") else 0.98)) for name, at in ends.items()}
        return {**found, "share": len(rows) / self.heat.size}


def camera_of(tau: TrajectoryDataset, labels: Labels, seed: int = 0) -> Camera | None:
    """The same for frames from all over a dataset, whose states are `labels` (n, H); None where there are too few."""
    if tau.counts.min() < MIN_TRAJECTORIES:
        return None
    if n_labels(labels) < 2 and tau.aligned:  # later frames may be of any state, and tell of habits
        labels = np.where(np.arange(tau.H) == 0, labels, -1)
    rng = np.random.default_rng(seed)
    each = FRAMES // tau.K
    row, h = (np.concatenate(part) for part in zip(*(_some(labels, tau.agent == k, each, rng) for k in range(tau.K))))
    x = tau.pick(row, h)
    group = np.arange(tau.n) if tau.aligned else np.arange(tau.n) // 8  # neighbouring windows are of one kind
    return camera(x, tau.agent[row], labels[row, h], group[row])


def _some(labels: Labels, mine: NDArray[np.bool_], most: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    row, h = np.nonzero((labels >= 0) & mine[:, None])
    chosen = np.sort(rng.permutation(len(row))[:most])
    return row[chosen], h[chosen]


def camera(x: NDArray[np.generic], agent: Labels, labels: Labels, group: Labels) -> Camera:
    """What frames x (m, *obs) tell of their agents (m,) beside their states `labels` (m,).

    group  (m,): the trajectory, or stretch of time, that each is of; a rule is tried on others than it was learned from
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # slow to import

    K, S = int(agent.max()) + 1, int(labels.max()) + 1
    z = described(x)
    fold = np.unique(group, return_inverse=True)[1] % 2
    best, states, apart, best_agent, apart_agent = np.nan, 0.0, 0.0, agent == 0, agent == 0
    for k in range(K if K > 2 else 1):
        own = agent == k
        visits = np.stack([np.bincount(labels[mine], minlength=S) / max(mine.sum(), 1) for mine in (own, ~own)])
        score = np.zeros(len(z))
        for one in (0, 1):
            learned = fold != one
            r = z - _middle(z[learned], own[learned], labels[learned], S)[labels]
            both = np.isfinite(r).all(axis=1)
            if len(np.unique(own[learned & both])) < 2:
                continue
            rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
            rule.fit(r[learned & both], own[learned & both])
            score[fold == one] = rule.decision_function(np.nan_to_num(r[fold == one]))
        right, weight = _named_right(score, own, labels, fold, S)
        if weight.sum() and not (np.average(right, weights=weight) <= best):
            best, best_agent = float(np.average(right, weights=weight)), own
            alone = visits.min(axis=0) < FOREIGN * visits.sum(axis=0)
            states = float(visits.mean(axis=0)[alone | ((right > 0.6) & (weight > 0))].sum())
        if (changed := 1 - float(visits.min(axis=0).sum())) > apart:
            apart, apart_agent = changed, own
    n = [len(np.unique(group[agent == k])) for k in range(K)]
    error = float(np.sqrt(np.sum(1 / np.sort(n)[:2]) / 12))
    return Camera(best, error, states, apart, _heat(x, apart_agent if apart > SHARE else best_agent, labels, S))


def described(x: NDArray[np.generic]) -> Floats:
    """Frames (m, *obs) in a few hundred numbers: coarse pictures, contrast and edges of each channel; or features."""
    f = x.astype(np.float32)
    if f.ndim != 4:
        z = f.reshape(len(f), -1)
    else:
        rows, columns = (np.array_split(np.arange(n), min(GRID, n)) for n in f.shape[1:3])
        pooled = np.stack([f[:, r].mean(axis=1) for r in rows], axis=1)
        pooled = np.stack([pooled[:, :, c].mean(axis=2) for c in columns], axis=2)
        edges = [np.abs(np.diff(f, axis=axis)).mean(axis=(1, 2)) for axis in (1, 2) if f.shape[axis] > 1]
        z = np.concatenate([pooled.reshape(len(f), -1), f.std(axis=(1, 2)), *edges], axis=1)
    scale = z.std(axis=0)
    return np.asarray((z[:, scale > 0] - z[:, scale > 0].mean(axis=0)) / scale[scale > 0], dtype=np.float64)


def _middle(z: Floats, own: NDArray[np.bool_], labels: Labels, S: int) -> Floats:
    """(S, d): half-way between the two agents' mean frames of each state; NaN where it has not enough of both."""
    out = np.full((S, z.shape[1]), np.nan)
    for s in range(S):
        a, b = z[own & (labels == s)], z[~own & (labels == s)]
        if min(len(a), len(b)) >= MIN_FRAMES:
            out[s] = (a.mean(axis=0) + b.mean(axis=0)) / 2
    return out


def _named_right(score: Floats, own: NDArray[np.bool_], labels: Labels, fold: Labels, S: int) -> tuple[Floats, Floats]:
    """For each state the share of pairs of frames whose agents are named right, and how much it weighs."""
    right, weight = np.full((S, 2), 0.5), np.zeros((S, 2))
    for s in range(S):
        for one in (0, 1):
            here = (labels == s) & (fold == one)
            a, b = score[here & own], np.sort(score[here & ~own])
            if min(len(a), len(b)) >= MIN_FRAMES:
                below = np.searchsorted(b, a, side="left") + np.searchsorted(b, a, side="right")
                right[s, one], weight[s, one] = below.mean() / (2 * len(b)), len(a) * len(b) / (len(a) + len(b))
    return np.average(right, axis=1, weights=weight + 1e-12), weight.sum(axis=1)


def _heat(x: NDArray[np.generic], own: NDArray[np.bool_], labels: Labels, S: int) -> Floats:
    """How far one agent's mean frames of one state are from the others', in deviations of one agent's frames."""
    difference, variance, total = np.zeros(x.shape[1:]), np.zeros(x.shape[1:]), 0
    for s in range(S):
        a, b = x[(labels == s) & own], x[(labels == s) & ~own]
        n = min(len(a), len(b))
        if n >= MIN_FRAMES:
            difference += n * (a.mean(axis=0, dtype=np.float64) - b.mean(axis=0, dtype=np.float64))
            variance += n * (a.var(axis=0, dtype=np.float64) + b.var(axis=0, dtype=np.float64)) / 2
            total += n
    if not total and S > 1:
        return _heat(x, own, np.zeros_like(labels), 1)
    heat = np.abs(difference) / np.sqrt(np.maximum(variance * total, 1e-12) + total**2)  # a deviation of 1 at least
    return np.asarray(heat.max(axis=-1) if heat.ndim == 3 else heat)
