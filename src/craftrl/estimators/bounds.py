"""alpha, eta and nu where nobody names them: nine fixed settings, of which the data takes one.

The paper takes the bounds as known. What they are for is to read states off the log-odds: high ones find few states
that are surely there, low ones find rare states too and some that are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from craftrl.core.craft import Bounds
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["BOUNDS", "eta_beside", "settings"]

BOUNDS = ("alpha", "eta", "nu")
ALPHAS = (1.0, 0.5, 0.25)
FINER = (1.0, 4.0, 16.0)  # by what eta is divided, and its power of 3/2 by what nu is
ETA, NU = 0.2, 0.1


def settings(tau: TrajectoryDataset, known: Mapping[str, float], alphas: tuple[float, ...] = ALPHAS) -> list[Bounds]:
    """The settings to try, high bounds first, with those that are known in place; one where all are."""
    tried = [Bounds(alpha, eta_beside(tau, ETA / finer), NU / finer**1.5) for finer in FINER for alpha in alphas]
    return list(dict.fromkeys(replace(bounds, **known) for bounds in tried))


def eta_beside(tau: TrajectoryDataset, eta: float) -> float:
    """An eta meant for agents with equally many trajectories, at the odds of the rarest and the most frequent one.

    Of agents with 20,000 and 1,000 trajectories the second makes one visit in 21 where both act alike: with eta = 0.2
    all log-odds would lie beyond the grid.
    """
    if tau.counts.min() == tau.counts.max():
        return eta
    odds = eta / (1 - eta) * float(tau.counts.min() / tau.counts.max())
    return odds / (1 + odds)
