"""Log-odds of trajectories that were not learned from, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import mannwhitneyu, norm

__all__ = ["HeldOut", "Told"]

Floats = NDArray[np.float64]
NEWTON_STEPS = 25
RIDGE = 1e-6
TOGETHER = 1.6  # by how much folds of the same data widen the spread of what is pooled over them


@dataclass(frozen=True)
class Told:
    """Log-odds of the second agent against the first for held-out trajectories, (n, pairs) each.

    place   by x_h alone
    before  by x_h alone, of the function that `moved` goes beyond
    moved   by (x_h, x_{h+1})
    """

    place: Floats
    before: Floats
    moved: Floats


@dataclass(frozen=True)
class HeldOut:
    """What was told of held-out trajectories, and whose they are: y (n,) in -1, 1; there (n, pairs)."""

    told: Told
    y: NDArray[np.int64]
    there: NDArray[np.bool_]

    @property
    def beyond(self) -> Floats:
        """(n, pairs): what x_{h+1} tells of a trajectory's group beyond x_h, in nats.

        Log-odds of the best of many functions boast. So they are scaled down until they fit what is held out: factors
        for what x_h says and one for what x_{h+1} adds, the same at all steps.
        """
        *here, added = parts = self._parts
        alone, scale = self._scaled(here)[0], self._scaled(parts)[0]
        if scale[-1] <= 0:
            return np.zeros_like(added)
        return self._gain(np.stack(parts, axis=-1) @ scale) - self._gain(np.stack(here, axis=-1) @ alone)

    def mean(self, values: Any) -> tuple[Floats, Floats]:
        """(pairs,): the mean over the two groups of each group's mean, and its standard error."""
        mean, variance = np.zeros((2, values.shape[1]))
        for side in (-1, 1):
            own = self.there & (self.y == side)[:, None]
            n = np.maximum(own.sum(axis=0), 1)
            mu = np.where(own, values, 0).sum(axis=0) / n
            mean += mu / 2
            variance += np.where(own, (values - mu) ** 2, 0).sum(axis=0) / n**2 / 4
        return mean, np.sqrt(variance)

    def p_any(self) -> float:
        """A rank test of the log-odds of whole trajectories: exact where the groups are alike."""
        log_odds = self.told.place + self.told.moved - self.told.before
        centred = np.where(self.there, log_odds - self.mean(log_odds)[0], 0.0).sum(axis=1)
        return float(mannwhitneyu(centred[self.y > 0], centred[self.y < 0], alternative="greater").pvalue)

    def p_moves(self) -> float:
        """Whether x_{h+1} adds to x_h: its factor above 0, with trajectories, not steps, as what is independent.

        What is held out in one fold is learned from in the others, so that folds err together: where nothing was to be
        found, the factor was spread 1.55 times as widely as its standard error says (30 datasets).
        """
        scale, error = self._scaled(self._parts)
        return float(norm.sf(scale[-1] / (TOGETHER * error[-1]))) if error[-1] > 0 else 1.0

    @property
    def _parts(self) -> list[Floats]:
        """What x_h says, by the best function and by the one that `moved` goes on from, and what `moved` adds."""
        return [self.told.place, self.told.before, self.told.moved - self.told.before]

    def _gain(self, log_odds: Floats) -> Floats:
        """What log-odds tell of each trajectory's group; both groups are as likely beforehand."""
        return np.asarray(np.log(2) - np.logaddexp(0, -self.y[:, None] * log_odds))

    @cached_property
    def _weight(self) -> Floats:
        """(n, pairs): so that both groups weigh alike at every step."""
        weight = np.zeros(self.there.shape)
        for side in (-1, 1):
            own = self.there & (self.y == side)[:, None]
            weight += own / np.maximum(own.sum(axis=0), 1)
        return weight

    def _scaled(self, parts: list[Floats]) -> tuple[Floats, Floats]:
        """The factors of a logistic regression of the group on these log-odds, and their standard errors over
        trajectories (the sandwich formula)."""
        x, weight = np.stack(parts, axis=-1), self._weight[..., None]
        beta, unit = np.zeros(len(parts)), RIDGE * np.eye(len(parts))
        for _ in range(NEWTON_STEPS):
            p = expit(x @ beta)[..., None]
            slope = (weight * ((self.y > 0)[:, None, None] - p) * x).sum(axis=1)
            bend = np.einsum("nsi,nsj->ij", weight * p * (1 - p) * x, x) + unit
            beta = beta + np.clip(np.linalg.solve(bend, slope.sum(axis=0) - unit @ beta), -1, 1)
        inverse = np.linalg.inv(bend)
        return beta, np.sqrt(np.diag(inverse @ (slope.T @ slope) @ inverse))

    @classmethod
    def join(cls, parts: list[HeldOut]) -> HeldOut:
        """Both halves together."""
        told = Told(*(np.concatenate([getattr(p.told, name) for p in parts]) for name in ("place", "before", "moved")))
        return cls(told, np.concatenate([p.y for p in parts]), np.concatenate([p.there for p in parts]))
