"""The paper's two shortcuts: the observation, or pair of observations, that best tells the agents apart.

Neither works: the latent states of two policies may be equally frequent at every step, and a pair of distractors
that share their noise tells the agents apart as well as a pair of states.

Paper: Section 4, Appendix D
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.core.encoders import ConstantEncoder
from craftrl.core.losses import FIXED_POINT
from craftrl.data.inputs import as_dataset
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles.base import Encoder
from craftrl.oracles.counting import CountingOracle, PreparedCounting, check_counting

__all__ = ["PairedObservation", "SingleObservation"]

AT_ONCE = 2**20  # counts of pairs of values that are looked at together


def mutual_information(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """I(cell; agent) of cell counts (..., cells, K), times their sum, up to a constant and in fixed point.

    Integers, so that equal ones are equal in whatever order they are summed.
    """
    joint = np.rint(xlogy(counts, counts) * FIXED_POINT).astype(np.int64).sum(axis=(-2, -1))
    cells = counts.sum(axis=-1)
    return joint - np.rint(xlogy(cells, cells) * FIXED_POINT).astype(np.int64).sum(axis=-1)


class SingleObservation(Learner):
    """phi_h maximises the mutual information between phi_h(x_h) and the agent's identity, each h by itself.

    At h = 1 there is one state, and the encoder is constant as CRAFT's is.

    Paper: Appendix D
    """

    def __init__(self, oracle: CountingOracle) -> None:
        self.oracle = oracle

    def fit(self, x: Any, agent: Any = None) -> SingleObservation:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        tau = as_dataset(x, agent).tau
        check_counting(self.oracle, type(self).__name__)
        prepared = self.oracle.prepare(tau)
        self.encoders_ = ByStep([ConstantEncoder(), *(self._best(prepared, h) for h in range(2, tau.H + 1))])
        self.obs_shape_ = tau.obs_shape
        return self

    def _best(self, prepared: PreparedCounting, h: int) -> Encoder:
        counts = prepared.group_counts(h, prepared.tau.agent, prepared.tau.K)  # (K, |Phi|, N_s)
        index = int(np.argmax(mutual_information(np.moveaxis(counts, 0, -1))))
        return self.oracle.encoder(h, index, np.arange(self.oracle.n_values))


class PairedObservation(Learner):
    """(phi_h, phi_{h+1}) maximise the mutual information between the pair of codes and the agent's identity.

    Steps 2..H-1 get two encoders, from the pair after and the pair before: `candidates_[h]` holds both, and the
    paper averages their accuracies. `encode` uses the one before, where there is one.

    Paper: Appendix D
    """

    candidates_: ByStep[tuple[Encoder, ...]]

    def __init__(self, oracle: CountingOracle) -> None:
        self.oracle = oracle

    def fit(self, x: Any, agent: Any = None) -> PairedObservation:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        tau = as_dataset(x, agent).tau
        check_counting(self.oracle, type(self).__name__)
        prepared = self.oracle.prepare(tau)
        candidates: list[list[Encoder]] = [[] for _ in range(tau.H)]
        for h in range(1, tau.H):
            i, j = self._best(prepared, h)
            values = np.arange(self.oracle.n_values)
            candidates[h - 1].append(self.oracle.encoder(h, i, values) if h > 1 else ConstantEncoder())
            candidates[h].append(self.oracle.encoder(h + 1, j, values))
        self.candidates_ = ByStep([tuple(found) for found in candidates])
        self.encoders_ = ByStep([found[0] for found in candidates])
        self.obs_shape_ = tau.obs_shape
        return self

    def _best(self, prepared: PreparedCounting, h: int) -> tuple[int, int]:
        """The first pair of encoders with the most information; some rows of the table of all pairs at a time."""
        cells = prepared.n_encoders(h + 1) * prepared.N_s**2 * prepared.tau.K
        at_once = max(1, AT_ONCE // cells)
        best = (0, 0, np.iinfo(np.int64).min)
        for first in range(0, prepared.n_encoders(h), at_once):
            counts = prepared.pair_counts(h, slice(first, first + at_once))  # (I, J, N_s, N_s, K)
            information = mutual_information(counts.reshape(*counts.shape[:2], -1, counts.shape[-1]))
            i, j = divmod(int(np.argmax(information)), information.shape[1])
            if information[i, j] > best[2]:
                best = (first + i, j, information[i, j])
        return best[:2]
