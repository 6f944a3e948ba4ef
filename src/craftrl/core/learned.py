"""What classifiers and networks answer beyond the three questions: their log-odds scatter, and need more care.

Paper: Lines 10 and 46, for log-odds that are learned
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.oracle import EncoderFit, LogOdds, PreparedOracle
from craftrl.core.starts import StartTest

__all__ = ["PreparedLearned", "Profiles"]


@dataclass(frozen=True)
class Profiles:
    """Log-odds of every x_{h+1} beside things that are the same for all: the same for observations of one state.

    values    float (n, S + A, K-1): beside each of the S states of h, then beside A observations of h+2, if there are
              any; NaN in rows without x_{h+1} or without a state at h
    n_before  S
    """

    values: Floats
    n_before: int


class PreparedLearned(PreparedOracle):
    """An oracle that trains. `seed` is that of whatever is drawn at random on the way."""

    seed: int = 0

    @abstractmethod
    def log_odds_given(self, h: int, label: Labels, f: LogOdds, grid: Grid) -> NDArray[np.int16]:
        """The bins of f_h (n, K-1) once the states `label` (n,) of x_h are known, which steadies what scatters."""

    def profiles(self, h: int, label: Labels, f: LogOdds, grid: Grid) -> Profiles | None:
        """Log-odds of every x_{h+1} beside each state `label` (n,) of h, and beside what may follow; None: not known.

        Clusters in which they are of several kinds are taken apart (`craftrl.core.splitting`).
        """
        return None

    @abstractmethod
    def share(self, labels: Labels, n_states: int, name: str) -> EncoderFit:
        """One encoder for all steps, from all states (n, H), -1 for unassigned; `name` is that of the training run."""

    def find_starts(self) -> Labels | None:
        """The state that each trajectory begins in (n,), -1 for unknown; None where the oracle cannot tell."""
        return None

    @abstractmethod
    def test_start(self) -> StartTest:
        """Whether the first two observations speak against one start state."""
