"""f_1..f_{H-1} of classifiers, for trajectories that were not fitted.

Paper: Line 10
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.saved import Savable

__all__ = ["ClassifierLogOdds", "agent_log_p", "pair_features"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
FLOOR = 1e-6  # probabilities are kept this far from 0 and 1


@dataclass(frozen=True)
class ClassifierLogOdds(Savable):
    """f_h by classifiers, averaged: of each deal into folds the last one, which saw all trajectories but that fold's.

    models        for each step those that answer, the same ones at each if `together`; None where there was nothing
                  to learn from
    classes       the agents that each of them knows
    together      whether they serve all steps, with h as one more feature
    scale, shift  float (H-1,) and (H-1, K): what calibrates them
    out_of        what h is divided by as a feature; 1 in files of older versions
    """

    models: tuple[tuple[Any, ...], ...]
    classes: tuple[tuple[Ints, ...], ...]
    together: bool
    scale: Floats
    shift: Floats
    out_of: int = 1

    def __call__(self, x: NDArray[Any]) -> Floats:
        flat = x.reshape(*x.shape[:2], -1).astype(np.float64)
        H, K = x.shape[1], self.shift.shape[1]
        found = np.empty((len(x), H - 1, K - 1))
        for h in range(1, H):
            z = pair_features(flat[:, h - 1], flat[:, h], h / self.out_of if self.together else None)
            said = [agent_log_p(model, known, z, K) for model, known in zip(self.models[h - 1], self.classes[h - 1])]
            log_p = np.mean(said, axis=0) * self.scale[h - 1] + self.shift[h - 1]
            found[:, h - 1] = log_p[:, :1] - log_p[:, 1:]
        return found


def pair_features(x_h: Floats, x_next: Floats, time: float | None) -> Floats:
    """What a classifier sees of pairs: both vectors, and how far on they are where one classifier serves all steps."""
    step = [] if time is None else [np.full((len(x_h), 1), float(time))]
    return np.hstack([x_h, x_next, *step])


def agent_log_p(model: Any, classes: Ints, x: Floats, n_classes: int) -> Floats:
    """Log-probabilities (m, n_classes) by a classifier that knows some of the classes; the others have the floor."""
    log_p = np.full((len(x), n_classes), np.log(FLOOR))
    if len(x):
        log_p[:, classes] = 0.0 if model is None else np.log(np.clip(model.predict_proba(x), FLOOR, 1.0))
    return log_p
