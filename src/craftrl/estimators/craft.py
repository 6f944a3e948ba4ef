"""CRAFT: comparison-based representations from action-free trajectories.

Paper: Algorithm 2
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone

from craftrl.core.clusters import Clusterer, find_clusters
from craftrl.core.craft import Bounds, Result, craft
from craftrl.core.grid import check_alpha, check_eta, check_nu
from craftrl.core.seam import COUPLINGS, Coupling
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.diagnostics import Diagnosis, Subject, diagnose
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner
from craftrl.estimators.bounds import START, Tried, chained_loss, search_bounds
from craftrl.estimators.choices import choose_oracle
from craftrl.estimators.matching import Matching
from craftrl.estimators.sharing import share_over_time
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.counting import CountingOracle
from craftrl.oracles.memory import RememberingOracle

if TYPE_CHECKING:
    import os

Auto = Literal["auto"]
CHECKS = {"alpha": check_alpha, "eta": check_eta, "nu": check_nu}

__all__ = ["CRAFT"]


class CRAFT(Learner):
    """Learns, from action-free trajectories of several agents, an encoder of the states that the agents control.

    Everything may be left out: the data chooses the oracle and the bounds, the oracle says how its answers are best
    read, and `choices_` says what was taken and why. `CRAFT.paper(...)` is Algorithm 2 to the letter.

    Parameters
    ----------
    oracle
        What learns: an oracle such as `CoordinateOracle()` or `NeuralOracle()`, any scikit-learn classifier, or a name:
        "coordinates", "classifier", "network". "auto" takes coordinates for small integers, a network for images
        and feature vectors.
    alpha
        Lower bound on how far apart two agents' log-odds of any two successors of a state are. Typical: 0.3 to 1;
        larger than 1 counts as 1. Too large a value fuses states, too small a one splits them.
    eta
        Lower bound on the share of each agent in the visits to any pair of states. Typical: 0.05 to 0.3, at most 1/2.
    nu
        Lower bound on the share of trajectories that visit any possible pair of states at a step. Typical: 0.01 to 0.2.
        Too large a value drops rare states. With all three bounds true and enough data, every encoder is accurate
        with high probability (Theorem 1; `craftrl.theory.sample_size` says how much is enough). "auto" chooses
        a bound from the data alone, as the one whose encoders best tell the agents apart (docs/bounds.md).
    coupling
        How the encoders behind the log-odds of all steps are chosen. "independent": each pair of steps by itself, as in
        the paper. "chain": all steps at once, which needs a third of the data or so (docs/chain.md). "posterior": all
        chains weighed. The last two need a finite class. "auto" asks the oracle.
    clusterer
        Reads clusters off a spectrum of log-odds: `craftrl.core.clusters.find_clusters`, the paper's scan, or
        `Valleys()` for log-odds that scatter. "auto" asks the oracle.
    relabel
        Whether the trajectories' states at h+1 are read off phi'_{h+1} once it is trained, rather than off the
        clusters. The paper does not: without it, a trajectory that falls between the clusters is lost for good.
        "auto" is True for all oracles of this package.
    stationary
        True if an observation means the same at every step: then one encoder is learned for all of them, and
        `encode(x)` needs no h.

    Attributes
    ----------
    encoders_, n_states_
        phi'_h and |S_h|, indexed from h = 1.
    encoder_, n_states_total_, matching_
        With `stationary=True`: the one encoder, how many states it tells apart, and how those of the steps were
        matched; `n_states_[h]` then counts those that at least half of nu of the trajectories visit.
    labels_
        int (n, H): the state of every trajectory at every step, in the order given, -1 where it was left unassigned.
    choices_
        What was left to the library: `Choice` records, each a sentence when printed.
    oracle_, bounds_
        The oracle, and the alpha, eta and nu that were used.
    trace_
        Everything that was decided on the way: `trace_[h]` is iteration h of Line 7; `trace_.oracle_use` says how often
        the oracle was asked, how much of that was answered from memory, and how long it took.
    agents_
        The agents as they were called in the labels.

    What happens where the paper's assumptions fail: with no state at h+1, all later steps have none either and
    their encoders are the first of their class; with one state, the most constant encoder is returned; with more
    states than an encoder has values, as many states as possible get a value of their own. Each is recorded in
    `trace_[h].outcome`, and `fit` warns once.

    Paper: Algorithm 2
    """

    labels_: NDArray[np.int64]
    matching_: Matching

    def __init__(
        self,
        oracle: Oracle | ClassifierMixin | str = "auto",
        *,
        alpha: float | Auto = "auto",
        eta: float | Auto = "auto",
        nu: float | Auto = "auto",
        coupling: Coupling | Auto = "auto",
        clusterer: Clusterer | Auto = "auto",
        relabel: bool | Auto = "auto",
        stationary: bool = False,
    ) -> None:
        self.oracle = oracle
        self.alpha = alpha
        self.eta = eta
        self.nu = nu
        self.coupling = coupling
        self.clusterer = clusterer
        self.relabel = relabel
        self.stationary = stationary

    @classmethod
    def paper(cls, oracle: Oracle | str = "coordinates", *, alpha: float, eta: float, nu: float) -> Self:
        """Algorithm 2 to the letter: known bounds, each step's encoders by themselves, the scan, no relabelling."""
        return cls(oracle, alpha=alpha, eta=eta, nu=nu, coupling="independent", clusterer=find_clusters, relabel=False)

    def fit(self, x: ArrayLike | TrajectoryDataset | str | os.PathLike[str], agent: ArrayLike | None = None) -> Self:
        """Learn phi'_1..phi'_H.

        x      trajectories (n, H, *obs) with the agent of each in `agent` (n,); or a list with one such array per
               agent; lists of episodes where lengths differ; a `TrajectoryDataset`, or the path of one
        agent  names or numbers, one per trajectory; left out where x says so itself
        """
        self._check_parameters()
        data = as_dataset(x, agent)
        tau = data.tau
        oracle, chosen = choose_oracle(self.oracle, tau)
        reading = self._reading(oracle)
        free = [name for name in CHECKS if getattr(self, name) == "auto"]
        prepared = RememberingOracle(oracle.prepare(tau), remember=bool(free))
        best, why = self._best_run(prepared, tau, free, {name: choice.value for name, choice in reading.items()})
        self.oracle_ = oracle
        self.bounds_ = best.bounds
        self.agents_ = data.names
        self.obs_shape_ = tau.obs_shape
        self._keep(best.result, prepared, tau)
        self.labels_ = data.as_given(self.labels_)
        if self.stationary:
            self.matching_ = replace(self.matching_, labels=data.as_given(self.matching_.labels))
        self.trace_ = replace(best.result.trace, oracle_use=prepared.use)
        asked = [choice for name, choice in reading.items() if getattr(self, name) == "auto"]
        self.choices_ = tuple([chosen] if chosen else []) + tuple(why) + tuple(asked)
        _warn_of_failed_assumptions(self.trace_, self)
        return self

    def diagnose(
        self,
        x: Any,
        agent: ArrayLike | None = None,
        *,
        n_resamples: int | None = None,
        seed: int = 0,
        probe: CountingOracle | None = None,
    ) -> Diagnosis:
        """Check the model against the data it was fitted to; no ground truth is needed.

        x, agent     as given to `fit`
        n_resamples  refits on resampled trajectories, each about as dear as `fit` at known bounds; 0 for none; None
                     asks the oracle: 10 where it counts, 3 for classifiers, none for networks
        seed         of the resampling
        probe        the class of functions in which to look for what the states leave out: any `FiniteOracle` or
                     `CoordinateOracle`; None takes the model's own class, where it is finite
        """
        self._check_fitted()
        data = as_dataset(x, agent)
        if self.labels_.shape != (data.tau.n, data.tau.H) or self.obs_shape_ != data.tau.obs_shape:
            raise InvalidDataError(
                f"The data must be that which the model was fitted to, {self.labels_.shape[0]} trajectories of "
                f"{self.labels_.shape[1]} steps; {data.tau} was given."
            )
        subject = Subject(
            encoders=tuple(self.encoders_),
            n_states=np.array(list(self.n_states_)),
            labels=data.as_grouped(self.labels_),
            trace=self.trace_,
            bounds=self.bounds_,
            refit=self._refit,
        )
        if probe is None and isinstance(self.oracle_, CountingOracle):
            probe = self.oracle_
        times = self.oracle_.refits() if n_resamples is None else n_resamples
        return diagnose(subject, data.tau, n_resamples=times, seed=seed, probe=probe)

    # -- the parts of fit ----------------------------------------------------------------------------------------

    def _reading(self, oracle: Oracle) -> dict[str, Choice]:
        """How the oracle's answers are read: what the user says, and what the oracle says where it is "auto"."""
        reading = {}
        for choice in oracle.suits():
            given = getattr(self, choice.parameter)
            reading[choice.parameter] = choice if given == "auto" else Choice(choice.parameter, given, "given.")
        return reading

    def _best_run(
        self, prepared: RememberingOracle, tau: TrajectoryDataset, free: list[str], reading: dict[str, Any]
    ) -> tuple[Tried, list[Choice]]:
        """One run with the bounds given, or the best of many where some are "auto"; and why those were taken."""
        given = {name: getattr(START if name in free else self, name) for name in CHECKS}

        def run(bounds: Bounds) -> Tried:
            result = craft(prepared, tau, bounds, **reading)
            loss = chained_loss(_codes(prepared, result, tau), tau) if free else np.nan
            return Tried(bounds, result, loss)

        if not free:
            return run(Bounds(**given)), []
        best, n_tried = search_bounds(run, Bounds(**given), free)
        why = (
            f"of {n_tried} combinations tried, its encoders tell the agents apart best ({best.loss:.4f} nats per pair)."
        )
        return best, [Choice(name, getattr(best.bounds, name), why) for name in free]

    def _keep(self, result: Result, prepared: RememberingOracle, tau: TrajectoryDataset) -> None:
        """What was learned, as attributes."""
        for name in ("encoder_", "n_states_total_", "matching_"):
            if hasattr(self, name):
                delattr(self, name)
        if not self.stationary:
            self.encoders_ = ByStep(result.encoders)
            self.n_states_ = ByStep([1, *(step.n_states for step in result.trace.steps)])
            self.labels_ = result.labels
            return
        min_share = self.bounds_.nu / 2
        shared = share_over_time(prepared, result, tau, min_share)
        self.encoder_ = shared.encoder
        self.encoders_ = ByStep([shared.encoder] * tau.H)
        self.n_states_ = ByStep([shared.n_states_at(h, min_share) for h in range(1, tau.H + 1)])
        self.n_states_total_ = shared.n_states
        self.matching_ = shared.matching
        self.labels_ = shared.labels

    def _refit(self, sample: TrajectoryDataset) -> CRAFT:
        """The same on other data, at the bounds and with the oracle that were used."""
        known = {name: getattr(self.bounds_, name) for name in CHECKS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return clone(self).set_params(oracle=clone(self.oracle_), **known).fit(sample)

    def _check_parameters(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise InvalidParameterError(f"{name} must be a number or 'auto'; {value!r} was given.")
            if value != "auto":
                check(value)
        if self.coupling not in ("auto", *COUPLINGS):
            names = ", ".join(map(repr, ("auto", *COUPLINGS)))
            raise InvalidParameterError(f"coupling must be one of {names}; {self.coupling!r} was given.")
        if self.relabel not in (True, False, "auto"):
            raise InvalidParameterError(f"relabel must be True, False or 'auto'; {self.relabel!r} was given.")
        if self.stationary not in (True, False):
            raise InvalidParameterError(f"stationary must be True or False; {self.stationary!r} was given.")
        if isinstance(self.clusterer, type) or not (self.clusterer == "auto" or callable(self.clusterer)):
            raise InvalidParameterError(
                f"clusterer must be 'auto', find_clusters, Valleys() or a function like them; {self.clusterer!r} was "
                "given."
            )


def _codes(prepared: RememberingOracle, result: Result, tau: TrajectoryDataset) -> list[NDArray[np.integer]]:
    """What the encoders of all steps say of all trajectories."""
    return [prepared.read(encoder, tau, h) for h, encoder in enumerate(result.encoders, start=1)]


def _warn_of_failed_assumptions(trace: Trace, model: CRAFT) -> None:
    failed = {kind: steps for kind, steps in trace.outcomes().items() if kind != "one state"}
    if failed:
        what = "; ".join(f"{kind} at h = {_ranges(steps)}" for kind, steps in failed.items())
        exact = isinstance(model.oracle_, CountingOracle) and model.coupling == "independent"
        hint = "; with an exact class, try coupling='chain'" if exact else ""
        warnings.warn(
            f"CRAFT found {what}. The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders "
            f"there are guesses. See trace_ for what was decided{hint}.",
            AssumptionWarning,
            stacklevel=3,
        )


def _ranges(steps: list[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
