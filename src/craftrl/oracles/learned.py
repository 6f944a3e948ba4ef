"""Oracles that train: log-odds, an embedding of every observation, and an encoder of given states.

Log-odds that are learned scatter, so states are not read off them one by one. They are distilled into an embedding, or
are one, and states are found there (`craftrl.estimators.states`). Algorithm 2's other two questions have answers on the
embedding as well: observations are told apart by their nearest neighbours, and an encoder of one step is that of all
steps with the labels of one.

Paper: Lines 10, 25 and 46, for log-odds that are learned
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.neighbors import NearestNeighbors

from craftrl.arrays import Floats, Ints
from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.oracle import Coupling, EncoderFit, PreparedOracle, Separation
from craftrl.errors import InvalidParameterError

MAX_COMPARED = 500  # observations of either set that are looked at to tell two sets apart
NEIGHBOURS = 5  # that say which set an observation is of
DRAWN = 1e-3  # weight of the squared offsets of a calibration


class PreparedLearned(PreparedOracle):
    """An oracle that trains. `seed` is that of whatever is drawn at random on the way."""

    seed: int = 0

    @abstractmethod
    def embed(self) -> Floats:
        """A few numbers (n, H, d) of every observation that hold what its log-odds with others depend on.

        Standardised, of dtype float64; they mean the same at every step. What stands where a trajectory is over means
        nothing.
        """

    @abstractmethod
    def fit_encoder(self, labels: Labels, n_states: int) -> EncoderFit:
        """An encoder that gives observations of any step their states: labels (n, H), -1 for unassigned."""

    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        labels = np.full((self.tau.n, self.tau.H), -1)
        labels[:, h - 1] = np.where(self.tau.present(h), label, -1)
        return self.fit_encoder(labels, n_states)

    def separation(self, h: int, cluster: Labels, n_clusters: int) -> Separation:
        """By the nearest neighbours of each embedding, its own one left out; both sets weigh the same.

        Paper: Line 25, Equation 17
        """
        rows = np.random.default_rng(self.seed).permutation(np.flatnonzero((cluster >= 0) & self.tau.present(h)))
        z, cluster = self.embed()[rows, h - 1], cluster[rows]

        def loss(new: int, state: Sequence[int]) -> float:
            sets = [np.flatnonzero(np.isin(cluster, names))[:MAX_COMPARED] for names in (state, [new])]
            sizes = [len(one) for one in sets]
            if not all(sizes):
                return 0.0
            both, is_new = z[np.concatenate(sets)], np.repeat([False, True], sizes)
            near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(both) - 1)).fit(both).kneighbors()[1]
            takes = is_new[near].sum(axis=1) / sizes[1] > (~is_new[near]).sum(axis=1) / sizes[0]
            return float((~takes[is_new]).mean() + takes[~is_new].mean())

        return loss


def check_independent(coupling: Coupling, oracle: str, why: str) -> None:
    """Refuse a coupling that would make no difference, rather than let it pass for one that does."""
    if coupling != "independent":
        raise InvalidParameterError(f"coupling must be 'independent' for {oracle}; {coupling!r} was given; {why}.")


def to_bins(f: Floats, grid: Grid) -> NDArray[np.int16]:
    """The nearest grid point of each value, clipped to Xi."""
    return np.clip(np.rint(f / grid.xi + grid.n_xi / 2), 0, grid.n_xi).astype(np.int16)


def calibration(
    logits: Floats, target: Ints, step: Ints | int = 0, n_steps: int = 1, drawn: float = DRAWN
) -> tuple[float, Floats]:
    """A factor for logits (m, K) and offsets (n_steps, K), by maximum likelihood on pairs not learned from.

    step   (m,): the step of each pair, from 0 on, whose offsets are added to it
    drawn  weight of the squared offsets, which are drawn to 0 a little

    Logits that say nothing, or less, get the factor 0; the classes' shares are then the best there is.
    """
    m, K = logits.shape
    at = np.broadcast_to(step, m)
    if len(np.unique(target)) < K:
        return 1.0, np.zeros((n_steps, K))
    own = np.eye(K)[target]

    def loss(theta: Floats) -> tuple[float, Floats]:
        shift = theta[1:].reshape(n_steps, K)
        log_q = log_softmax(theta[0] * logits + shift[at], axis=1)
        slope = (np.exp(log_q) - own) / m
        of_shift = np.stack([np.bincount(at, column, n_steps) for column in slope.T], axis=1) + 2 * drawn * shift
        return -(log_q * own).sum() / m + drawn * (shift**2).sum(), np.append((slope * logits).sum(), of_shift)

    theta = minimize(loss, np.append(1.0, np.zeros(n_steps * K)), jac=True, method="L-BFGS-B").x
    if theta[0] <= 0:
        return 0.0, np.tile(np.log(own.mean(axis=0)), (n_steps, 1))
    return float(theta[0]), theta[1:].reshape(n_steps, K)


def judged(log_p: Floats, agent: Ints, lengths: Ints, aligned: bool = True) -> tuple[Floats, Floats, Floats]:
    """Of each step, on pairs that were not learned from: the loss of log-probabilities (n, H-1, K) of the agents, that
    of chance, and the p-value of the one against the other; NaN and 1 where there is no pair.

    aligned  whether the step means something; else all steps have one p-value
    """
    there = lengths[:, None] > np.arange(1, log_p.shape[1] + 1)
    loss, chance, p_value = np.full((3, log_p.shape[1]), np.nan)
    for i, own in enumerate(there.T):
        said, y = log_p[own, i], agent[own]
        p_value[i] = held_out_p_value(said, y)
        if len(y):
            loss[i], chance[i] = -said[np.arange(len(y)), y].mean(), chance_loss(y)
    if not aligned:
        p_value[:] = held_out_p_value(np.where(there[..., None], log_p, 0.0).sum(axis=1), agent)
    return loss, chance, p_value


def stratified_folds(label: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each row, every class spread evenly over all folds."""
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold_of = np.empty(len(label), dtype=np.int64)
    fold_of[order] = np.arange(len(label)) % folds
    return fold_of
