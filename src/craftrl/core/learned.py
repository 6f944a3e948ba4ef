"""What classifiers and networks answer: log-odds, an embedding of every observation, and an encoder of given states.

Log-odds that are learned scatter, so states are not read off them one by one. They are taught to an embedding, or are
one, and states are found there (`craftrl.estimators.states`). Algorithm 2's other two questions have answers on the
embedding as well: observations are told apart by their nearest neighbours, and an encoder of one step is that of all
steps with the labels of one.

Paper: Lines 25 and 46, for log-odds that are learned
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from craftrl.arrays import Floats
from craftrl.core.labels import Labels
from craftrl.core.oracle import EncoderFit, PreparedOracle, Separation

__all__ = ["PreparedLearned"]

ENOUGH = 500  # observations of either set that are looked at to tell two sets apart
NEIGHBOURS = 5  # that say which set an observation is of


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
            sets = [np.flatnonzero(np.isin(cluster, names))[:ENOUGH] for names in (state, [new])]
            sizes = [len(one) for one in sets]
            if not all(sizes):
                return 0.0
            both, is_new = z[np.concatenate(sets)], np.repeat([False, True], sizes)
            _, near = cKDTree(both).query(both, min(NEIGHBOURS + 1, len(both)))
            others = np.where(near == np.arange(len(both))[:, None], -1, near)
            others[(others >= 0).all(axis=1), -1] = -1  # of several in one place, the own one may not be among them
            for_new = ((others >= 0) & is_new[others]).sum(axis=1) / sizes[1]
            for_old = ((others >= 0) & ~is_new[others]).sum(axis=1) / sizes[0]
            takes = for_new > for_old
            return float((~takes[is_new]).mean() + takes[~is_new].mean())

        return loss
