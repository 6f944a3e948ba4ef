"""Hypothesis classes with their training oracles.

An oracle is a description, with scikit-learn's parameters (`get_params`, `clone`, equality). `prepare` gives it the
data; what is computed there lives no longer than one fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from craftrl.core.oracle import PreparedOracle
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset


@dataclass(frozen=True)
class Choice(Savable):
    """Something that was left to the library: which parameter, what was taken, and why."""

    parameter: str
    value: str | bool | int | float | Oracle
    why: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.why}"

    @property
    def setting(self) -> str:
        """The parameter and its value, such as "alpha = 0.5"."""
        return f"{self.parameter} = {f'{self.value:.4g}' if isinstance(self.value, float) else self.value}"


class Oracle(BaseEstimator, Savable, ABC):
    """A hypothesis class with its training oracles.

    Parameters are stored as given and checked by `prepare`.

    coupling          what to take where the user says "auto", and why
    shares_over_time  whether one encoder can be trained for all steps (`PreparedLearned.fit_encoder`)
    """

    shares_over_time: bool = False

    coupling = Choice("coupling", "independent", "the paper's, which asks nothing more of an oracle.")

    @abstractmethod
    def prepare(self, tau: TrajectoryDataset) -> PreparedOracle:
        """Pose the three training problems on this dataset; checks the parameters, and that the class fits the data."""

    def refits(self) -> int:
        """How many refits on resampled data `diagnose` makes where `n_resamples` is not given."""
        return 10

    def shows_progress(self) -> bool | None:
        """Whether a fit shows how far it is; None: where a terminal is watching."""
        return False

    def saved(self) -> dict[str, Any]:
        return self.get_params(deep=False)
