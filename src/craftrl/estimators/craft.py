"""CRAFT: comparison-based representations from action-free trajectories.

Paper: Algorithm 2
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from craftrl.core.clusters import Clusterer, find_clusters
from craftrl.core.craft import Bounds, Result, craft
from craftrl.core.grid import check_alpha, check_eta, check_nu
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import AssumptionWarning, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner, check_dataset
from craftrl.estimators.bounds import START, chained_loss, search_bounds
from craftrl.oracles.base import COUPLINGS, Coupling, Oracle, PreparedOracle

Bound = float | Literal["auto"]
CHECKS = {"alpha": check_alpha, "eta": check_eta, "nu": check_nu}

__all__ = ["CRAFT"]


class CRAFT(Learner):
    """Learns, from action-free trajectories of several agents, an encoder of the states that the agents control.

    Parameters
    ----------
    oracle
        The hypothesis class with its training oracles, such as `CoordinateOracle()`.
    alpha, eta, nu
        Known lower bounds: how much two agents' log-odds of any two successors of a state differ; the least share
        of one agent among the visits to a pair of states; the least share of the trajectories that visit any
        possible pair of states. With these, and enough data, every encoder is accurate with high probability
        (Theorem 1; `craftrl.theory.sample_size` says how much is enough). Each may be "auto": then it is chosen
        from the data alone, as the one whose encoders best tell the agents apart (`craftrl.estimators.bounds`).
    coupling
        "independent" is the paper's ERM, each f_h by itself. "chain" chooses the encoders of all steps at once, each
        shared by the pairs on both its sides, which needs a third of the data or so. "posterior" weighs all
        chains and takes at each step the encoder that agrees best with them. See docs/chain.md. The last two need
        a finite class, and are refused by oracles made of classifiers or networks.
    clusterer
        Reads clusters off a spectrum of log-odds: the paper's scan, or `craftrl.core.valleys.Valleys()` for oracles
        whose log-odds scatter, such as a network's.
    relabel
        Whether the trajectories' states at h+1 are read off phi'_{h+1} once it is trained, rather than off
        the clusters. The paper does not: without it, a trajectory that falls between the clusters is lost for good.

    Attributes
    ----------
    encoders_, n_states_
        phi'_h and |S_h|, indexed from h = 1.
    bounds_
        The alpha, eta and nu that were used.
    labels_
        int (n, H): the state of every trajectory at every step, -1 where it was left unassigned.
    trace_
        Everything that was decided on the way: `trace_[h]` is iteration h of Line 7.

    What happens where the paper's assumptions fail: with no state at h+1, all later steps have none either and
    their encoders are the first of their class; with one state, the most constant encoder is returned; with more
    states than an encoder has values, as many states as possible get a value of their own. Each is recorded in
    `trace_[h].outcome`, and `fit` warns once.

    Paper: Algorithm 2
    """

    def __init__(
        self,
        oracle: Oracle,
        *,
        alpha: Bound,
        eta: Bound,
        nu: Bound,
        coupling: Coupling = "independent",
        clusterer: Clusterer = find_clusters,
        relabel: bool = False,
    ) -> None:
        self.oracle = oracle
        self.alpha = alpha
        self.eta = eta
        self.nu = nu
        self.coupling = coupling
        self.clusterer = clusterer
        self.relabel = relabel

    def fit(self, tau: TrajectoryDataset) -> CRAFT:
        """Learn phi'_1..phi'_H from tau."""
        check_dataset(tau)
        self._check_parameters()
        bound = self.oracle.prepare(tau)
        self.bounds_ = self._choose_bounds(bound, tau)
        result = self._run(bound, tau, self.bounds_)
        self.encoders_ = ByStep(result.encoders)
        self.n_states_ = ByStep([1, *(step.n_states for step in result.trace.steps)])
        self.labels_ = result.labels
        self.trace_ = result.trace
        self.obs_shape_ = tau.obs_shape
        _warn_of_failed_assumptions(self.trace_)
        return self

    def _run(self, bound: PreparedOracle, tau: TrajectoryDataset, bounds: Bounds) -> Result:
        return craft(bound, tau, bounds, self.coupling, self.clusterer, self.relabel)

    def _choose_bounds(self, bound: PreparedOracle, tau: TrajectoryDataset) -> Bounds:
        given = {name: getattr(self, name) for name in CHECKS}
        free = [name for name, value in given.items() if value == "auto"]
        start = Bounds(**{name: getattr(START, name) if name in free else value for name, value in given.items()})
        if not free:
            return start
        return search_bounds(lambda bounds: chained_loss(self._run(bound, tau, bounds).encoders, tau), start, free)

    def _check_parameters(self) -> None:
        if not isinstance(self.oracle, Oracle):
            raise InvalidParameterError(
                f"oracle must be an Oracle, such as CoordinateOracle(); {self.oracle!r} was given."
            )
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise InvalidParameterError(f"{name} must be a number or 'auto'; {value!r} was given.")
            if value != "auto":
                check(value)
        if self.coupling not in COUPLINGS:
            raise InvalidParameterError(
                f"coupling must be one of {', '.join(map(repr, COUPLINGS))}; {self.coupling!r} was given."
            )


def _warn_of_failed_assumptions(trace: Trace) -> None:
    failed = {kind: steps for kind, steps in trace.outcomes().items() if kind != "one state"}
    if failed:
        what = "; ".join(f"{kind} at h = {_ranges(steps)}" for kind, steps in failed.items())
        warnings.warn(
            f"CRAFT found {what}. The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders "
            "there are guesses. See trace_ for what was decided; with an exact class, try coupling='chain'.",
            AssumptionWarning,
            stacklevel=3,
        )


def _ranges(steps: list[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
