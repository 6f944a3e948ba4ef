"""Yardsticks and a way not taken: encoders read straight off the pairwise losses of bits.

None of these is a learner. The genie and the hub say what the data allows; the conditional chain was tried as a
learner and left (README.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins
from craftrl.data import TrajectoryDataset

__all__ = ["PairLosses"]

Int64 = NDArray[np.int64]


class PairLosses:
    """The losses of all pairs of features at all steps of one dataset of bits, in fixed point.

    Encoder 0 of step 1 is the constant one; `losses[h-1]` is (|Phi_h|, |Phi_{h+1}|). Every method below returns
    the features of steps 2..H.
    """

    def __init__(self, tau: TrajectoryDataset, grid: Grid) -> None:
        constant = np.zeros((tau.n, 1))
        self.bits = [tau.at(h).astype(np.float64) for h in range(2, tau.H + 1)]
        self.losses = [_losses(p, q, tau, grid) for p, q in zip([constant, *self.bits], self.bits)]
        self.alone = [_losses(constant, bits, tau, grid)[0] for bits in self.bits]

    def genie(self, truth: Sequence[int]) -> list[int]:
        """At each step the feature with the least loss between the true features on both sides.

        `truth` are the true features of steps 2..H. No chain can know its neighbours better.
        """
        before = [0, *truth[:-1]]
        found = []
        for k, loss in enumerate(self.losses):
            through = loss[before[k]].copy()
            if k + 1 < len(self.losses):
                through += self.losses[k + 1][:, truth[k + 1]]
            found.append(int(np.argmin(through)))
        return found

    def hub(self) -> list[int]:
        """At each step the feature that agrees most with all others, up to relabelling; agents are not looked at."""
        found = []
        for bits in self.bits:
            agree = bits.T @ bits + (1 - bits).T @ (1 - bits)
            found.append(int(np.argmax(np.maximum(agree, len(bits) - agree).sum(axis=1))))
        return found

    def conditional_chain(self) -> list[int]:
        """The shortest chain when each pair is charged only for what phi_{h+1} adds to phi_h.

        That is the loss of the pair less the loss of phi_h alone: I(agent; phi_{h+1} | phi_h) in place of
        I(agent; phi_h, phi_{h+1}). Inconsistent: see `studies.efficiency.population`.
        """
        charged = [self.losses[0], *(loss - less[:, None] for loss, less in zip(self.losses[1:], self.alone))]
        to_go = [np.zeros(charged[-1].shape[1], dtype=np.int64)]
        for loss in reversed(charged):
            to_go.insert(0, (loss + to_go[0]).min(axis=1))
        path = [0]
        for loss, rest in zip(charged, to_go[1:]):
            path.append(int(np.argmin(loss[path[-1]] + rest)))
        return path[1:]


def _losses(p: NDArray[np.float64], q: NDArray[np.float64], tau: TrajectoryDataset, grid: Grid) -> Int64:
    """The least loss of every feature of one step with every feature of the next: (|Phi_h|, |Phi_{h+1}|)."""
    counts = np.empty((2, 2, p.shape[1], q.shape[1], tau.K), dtype=np.int64)
    for k in range(tau.K):
        mine = tau.agent == k
        for u, v in np.ndindex(2, 2):
            counts[u, v, ..., k] = np.rint((p[mine] == u).T.astype(float) @ (q[mine] == v).astype(float))
    return best_bins(counts, grid)[1].sum(axis=(0, 1))
