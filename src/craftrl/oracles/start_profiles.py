"""Which first observations show the same state: those whose log-odds agree beside any other observation.

Log-odds depend on observations through their states alone. So the *profile* of a first observation, its log-odds
beside many observations of other trajectories, is the same for all first observations of one state, and the noise in
them does not show in it. Most of these pairs never occur; what a network makes of them is no log-odds of anything, but
as long as it looks at states and not at noise it says the same for the same states. Profiles are grouped by density,
so that their number need not be known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from craftrl.core.learned import PreparedLearned
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["MOST", "REFERENCES", "group_profiles", "read_starts"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
MOST = 4000  # first observations that are grouped; the others are read by an encoder trained on these
REFERENCES = 128  # observations beside which it is seen
DIMENSIONS = 10  # principal components of profiles: beyond these there is noise
NEIGHBOURS = 5  # whose distance says how dense profiles lie
ALIKE = 0.3  # nats by which the mean profiles of two starts differ at least, as root mean square
LEAST = 0.01  # share of the trajectories that makes a start


def group_profiles(profiles: Floats) -> NDArray[np.int64]:
    """A group 0, 1, ... for each profile (m, J), -1 for those between groups; one group where none stands apart."""
    from sklearn.cluster import HDBSCAN

    centred = profiles - profiles.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    main = (left * size)[:, :DIMENSIONS]
    least = max(10, int(LEAST * len(main)))
    if len(main) < 2 * least:
        return np.zeros(len(main), dtype=np.int64)
    found = HDBSCAN(min_cluster_size=least, min_samples=NEIGHBOURS, allow_single_cluster=True, copy=True).fit_predict(
        main
    )
    if found.max() < 1:
        return np.zeros(len(main), dtype=np.int64)
    means = np.stack([profiles[found == group].mean(axis=0) for group in range(found.max() + 1)])
    return np.append(_joined(means), -1)[found]  # -1 picks the last


def read_starts(prepared: PreparedLearned, label: Ints, tau: TrajectoryDataset) -> Ints:
    """The starts of all trajectories, by an encoder trained on those that have a label (n,) already."""
    n_states = int(label.max()) + 1
    if n_states < 2:
        return np.zeros(tau.n, dtype=np.int64)
    return prepared.read(prepared.encode(1, label, n_states).encoder, 1)


def _joined(means: Floats) -> NDArray[np.int64]:
    """Groups 0, 1, ... of groups whose mean profiles are alike: what a network makes of noise may split a state."""
    distance = pdist(means) / np.sqrt(means.shape[1])
    joined = fcluster(linkage(distance, method="average"), t=ALIKE, criterion="distance")
    return joined.astype(np.int64) - 1
