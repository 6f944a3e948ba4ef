"""What classifiers and networks share: settings for log-odds that scatter, values rounded to Xi, folds by class.

Paper: Line 10
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Ints
from craftrl.core.grid import Grid
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import RELABEL, Choice, Coupling

__all__ = ["SCATTERED", "check_independent", "stratified_folds", "to_bins"]

# What suits any oracle whose log-odds are learned, and so scatter about their true values.
SCATTERED = (
    Choice("coupling", "independent", "classifiers and networks have no list of encoders to choose a chain from."),
    Choice("relabel", True, RELABEL),
)


def check_independent(coupling: Coupling, oracle: str, why: str) -> None:
    """Refuse a coupling that would make no difference, rather than let it pass for one that does."""
    if coupling != "independent":
        raise InvalidParameterError(f"coupling must be 'independent' for {oracle}; {coupling!r} was given; {why}.")


def to_bins(f: Floats, grid: Grid) -> NDArray[np.int16]:
    """The nearest grid point of each value, clipped to Xi."""
    return np.clip(np.rint(f / grid.xi + grid.n_xi / 2), 0, grid.n_xi).astype(np.int16)


def stratified_folds(label: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each row, every class spread evenly over all folds."""
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold_of = np.empty(len(label), dtype=np.int64)
    fold_of[order] = np.arange(len(label)) % folds
    return fold_of
