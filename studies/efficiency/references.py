"""Yardsticks and ways not taken: encoders read straight off the pairwise losses of the exact engine.

None of these is a learner. The genie and the hub say what the data allows; the tempered posterior and the
conditional chain were tried as learners and left (docs/efficiency.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl import CoordinateOracle
from craftrl.core.grid import Grid
from craftrl.data import TrajectoryDataset
from craftrl.engine import PackedStep, constant_step, pair_counts
from craftrl.engine.engine import Engine
from craftrl.oracles.chain import agreement, chain_posterior, most_agreeing, shortest_chain

__all__ = ["PairLosses"]

Int64 = NDArray[np.int64]


class PairLosses:
    """The losses of all pairs of features at all steps of one dataset, in fixed point.

    Encoder 0 of step 1 is the constant one; `losses[h-1]` is (|Phi_h|, |Phi_{h+1}|). Every method below returns
    the features of steps 2..H.
    """

    def __init__(self, tau: TrajectoryDataset, grid: Grid) -> None:
        oracle = CoordinateOracle()
        bound = oracle.prepare(tau)
        self.engine: Engine = oracle.engine
        self.grid = grid
        self.start = constant_step(tau, 1)
        self.steps: list[PackedStep] = [bound.step(h) for h in range(2, tau.H + 1)]
        self.losses: list[Int64] = list(self.engine.all_losses([self.start, *self.steps], grid))

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
        return [int(np.argmax(agrees.sum(axis=1))) for agrees in map(_agreement, self.steps)]

    def consensus(self, temperature: float) -> list[int]:
        """The posterior over chains with all losses divided by `temperature`, and its most agreeing features."""
        cooled = [np.rint(loss / temperature).astype(np.int64) for loss in self.losses]
        weights = chain_posterior(cooled, reversed(cooled))[1:]
        return [most_agreeing(weight, _agreement(step)) for weight, step in zip(weights, self.steps)]

    def conditional_chain(self) -> list[int]:
        """The shortest chain when each pair is charged only for what phi_{h+1} adds to phi_h.

        That is the loss of the pair less the loss of phi_h alone: I(agent; phi_{h+1} | phi_h) in place of
        I(agent; phi_h, phi_{h+1}). Inconsistent: see `studies.efficiency.population`.
        """
        alone = [next(self.engine.all_losses([self.start, step], self.grid))[0] for step in self.steps[:-1]]
        charged = [self.losses[0], *(loss - less[:, None] for loss, less in zip(self.losses[1:], alone))]
        return shortest_chain(charged)[0][1:]


def _agreement(step: PackedStep) -> NDArray[np.float64]:
    return agreement(pair_counts(step, step).sum(axis=-1))
