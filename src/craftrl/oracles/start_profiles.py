"""Which first observations show the same state: those whose log-odds agree beside any other observation.

Log-odds depend on observations through their states alone. So the *profile* of a first observation, its log-odds
beside many observations of other trajectories, is the same for all first observations of one state, and the noise in
them does not show in it. Profiles are grouped by density, so that their number need not be known.
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from craftrl.arrays import Floats
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.learned import PreparedLearned
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["MOST", "REFERENCES", "group_profiles", "read_starts"]

MOST = 4000  # first observations that are grouped; the others are read by an encoder trained on these
REFERENCES = 128  # observations beside which it is seen
DIMENSIONS = 10  # principal components of profiles: beyond these there is noise
NEIGHBOURS = 5  # whose distance says how dense profiles lie
ALIKE = 0.3  # nats by which the mean profiles of two starts differ at least, as root mean square
LEAST = 0.01  # share of the trajectories that makes a start


def group_profiles(profiles: Floats) -> Labels:
    """A group 0, 1, ... for each profile (m, J), -1 for those between groups; one group where none stands apart.

    Groups whose mean profiles are alike are one: what a network makes of noise may split a state.
    """
    from sklearn.cluster import HDBSCAN  # dear to import

    m = len(profiles)
    left, size, _ = np.linalg.svd(profiles - profiles.mean(axis=0), full_matrices=False)
    least = max(10, int(LEAST * m))
    found = np.zeros(m, dtype=np.int64)
    if m >= 2 * least:
        density = HDBSCAN(min_cluster_size=least, min_samples=NEIGHBOURS, allow_single_cluster=True, copy=True)
        found = density.fit_predict((left * size)[:, :DIMENSIONS])
    if found.max() < 1:
        return np.zeros(m, dtype=np.int64)
    means = np.stack([profiles[found == group].mean(axis=0) for group in range(found.max() + 1)])
    distance = pdist(means) / np.sqrt(means.shape[1])
    return renamed(found, fcluster(linkage(distance, method="average"), t=ALIKE, criterion="distance") - 1)


def read_starts(prepared: PreparedLearned, label: Labels, tau: TrajectoryDataset) -> Labels:
    """The starts of all trajectories, by an encoder trained on those that have a label (n,) already."""
    n_states = n_labels(label)
    if n_states < 2:
        return np.zeros(tau.n, dtype=np.int64)
    return prepared.read(prepared.encode(1, label, n_states).encoder, 1)
