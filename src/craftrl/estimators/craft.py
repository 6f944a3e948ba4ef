"""CRAFT: comparison-based representations from action-free trajectories.

Paper: Algorithm 2
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone

from craftrl.arguments import check_choice, check_kind, check_whole, quoted
from craftrl.arrays import Floats
from craftrl.core.encoders import Encoder, MergedEncoder
from craftrl.core.grid import check_bound
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.oracle import COUPLINGS, Coupling, OracleCalls, PairFunction, PreparedOracle
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset, as_observations
from craftrl.data.inputs import Grouped, as_dataset, as_padded
from craftrl.data.labels import plain_array
from craftrl.data.windows import Window, Windows, cut, taken, windows_again
from craftrl.diagnostics import Diagnosis
from craftrl.diagnostics.camera import camera_of
from craftrl.diagnostics.diagnosis import MAX_RESAMPLES, diagnose
from craftrl.diagnostics.findings import findings_of_partition, findings_of_steps, warn
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner, Trajectories
from craftrl.estimators.bounds import BOUNDS
from craftrl.estimators.choices import choose_oracle, recommended
from craftrl.estimators.exact import Fitted, fit_by_step, fit_stationary, tests_of
from craftrl.estimators.learned import Partition, fit_embedded
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.finite import CountingOracle, PreparedCounting, check_counting
from craftrl.oracles.learned import PreparedLearned
from craftrl.oracles.starts import find_starts, one_start_test
from craftrl.progress import fit_bar

Auto = Literal["auto"]
Start = ArrayLike | Literal["find"] | None
MAX_AGENTS = 64  # more are hardly ever meant: labels that name trajectories have one for each


class CRAFT(Learner):
    """Learns, from action-free trajectories of several agents, an encoder of the states that the agents control.

    Everything may be left out. Data and oracle then decide: the table in docs/settings.md says what "auto"
    takes, `choices_` what was taken and why. `CRAFT.paper(...)` is Algorithm 2 to the letter.

    Finite classes find states by Algorithm 2. Oracles that train, networks and classifiers, find them by the partition
    of an embedding (docs/theory.md), which needs no bounds; with `stationary=False` and bounds, by Algorithm 2.

    Parameters
    ----------
    oracle
        What learns: an oracle such as `CoordinateOracle()` or `NeuralOracle()`, any scikit-learn classifier, or a name:
        "coordinates", "classifier", "network".
    alpha
        Lower bound on how far apart two agents' log-odds of any two successors of a state are. Typical: 0.3 to 1;
        larger than 1 counts as 1. Too large a value fuses states, too small a one splits them.
    eta
        Lower bound on the share of each agent in the visits to any pair of states. Typical: 0.05 to 0.3, at most 1/2.
    nu
        Lower bound on the share of trajectories that visit any possible pair of states at a step. Typical: 0.01 to 0.2.
        Too large a value drops rare states. With all three bounds true and enough data, every encoder is accurate
        with high probability (Theorem 3.1; `craftrl.paper.sample_size` says how much is enough).
    coupling
        How the encoders behind the log-odds of all steps are chosen. "independent": each pair of steps by itself, as in
        the paper. "chain": all steps at once, which needs a third of the data or so (docs/theory.md). "markov": a chain
        whose codes depend on nothing but the code before and the agent, as states do; it needs the least data
        (docs/theory.md). The last two need a finite class.
    relabel
        Whether the trajectories' states at h+1 are read off phi'_{h+1} once it is trained, rather than off the
        clusters. The paper does not: without it, a trajectory that falls between the clusters is lost for good.
    stationary
        True if an observation means the same at every step: then one encoder is learned for all of them, and
        `encode(x)` needs no h. "auto" takes it to be so for oracles that train: with as much data, one encoder is more
        accurate than one for each step.
    horizon
        How many steps are learned from; None for all. "auto" takes those that enough trajectories of every agent reach:
        50 of them, or half of its trajectories where it has fewer than 100.
    window
        Long recordings are learned from in windows of at most so many neighbouring frames, which do not cross cuts in
        the picture; None for trajectories as they are. "auto" cuts windows of 20 where some agent's trajectories are
        longer than they are many. One encoder for all steps is then learned.
    partition
        How oracles that train divide embeddings into states; None for `Partition()`.

    Attributes
    ----------
    encoders_, n_states_
        phi'_h and |S_h|, indexed from h = 1.
    encoder_, n_states_total_
        With one encoder for all steps: the encoder, and how many states it tells apart; `n_states_[h]` then counts
        those that trajectories are in at h.
    rounds_, merges_
        Of oracles that train: how the states were found, a tuple (change, gain in nats, number of states) for each
        round; and with one encoder for all steps, what it would cost in nats to join states (`states_at`).
    labels_
        int (n, H): the state of every trajectory at every step, in the order given, -1 where it was left unassigned.
    choices_
        What was left to the library: `Choice` records, each a sentence when printed.
    oracle_, bounds_
        The oracle, and the alpha, eta and nu that were used.
    trace_
        Everything that was decided on the way; `trace_[h]` is iteration h of Line 7.
    f_
        f_1..f_{H-1} for new data, which `log_odds` reads; None where the oracle does not keep them.
    windows_
        Where windows were cut, int (m, 3): the trajectory of each as given, its first frame, and how many it has.
    agents_, data_
        The agents as they were called in the labels; sizes, type and fingerprint of the data.

    Notes
    -----
    Where the paper's assumptions fail: with no state at h+1, all later steps have none either and their encoders are
    the first of their class; with one state, the most constant encoder is returned; with more states than an encoder
    has values, as many as possible get one of their own. `trace_[h].outcome` says so. Log-odds are tested against
    chance, states against the data, and `fit` warns once, of all that speaks against them (docs/is-it-right.md).

    Paper: Algorithm 2
    """

    labels_: NDArray[np.int64]
    windows_: NDArray[np.int64]
    n_states_total_: int
    rounds_: tuple[tuple[str, float, int], ...]
    merges_: tuple[tuple[Labels, float], ...]
    choices_: tuple[Choice, ...]
    trace_: Trace
    f_: PairFunction | None

    def __init__(
        self,
        oracle: Oracle | ClassifierMixin | str = "auto",
        *,
        alpha: float | Auto = "auto",
        eta: float | Auto = "auto",
        nu: float | Auto = "auto",
        coupling: Coupling | Auto = "auto",
        relabel: bool | Auto = "auto",
        stationary: bool | Auto = "auto",
        horizon: int | Auto | None = "auto",
        window: Window = "auto",
        partition: Partition | None = None,
    ) -> None:
        self.oracle = oracle
        self.alpha = alpha
        self.eta = eta
        self.nu = nu
        self.coupling = coupling
        self.relabel = relabel
        self.stationary = stationary
        self.horizon = horizon
        self.window = window
        self.partition = partition

    @classmethod
    def paper(cls, oracle: Oracle | str = "coordinates", *, alpha: float, eta: float, nu: float) -> Self:
        """Algorithm 2 to the letter: known bounds, each step's encoders by themselves, the scan, no relabelling."""
        letter = {"coupling": "independent", "relabel": False, "stationary": False, "horizon": None, "window": None}
        return cls(oracle, alpha=alpha, eta=eta, nu=nu).set_params(**letter)

    def fit(self, x: Trajectories, agent: ArrayLike | None = None, *, start: Start = None) -> Self:
        """Learn phi'_1..phi'_H.

        x      trajectories (n, H, *obs) with the agent of each in `agent` (n,); or a list with one such array per
               agent; lists of episodes where lengths differ; a `TrajectoryDataset`, or the path of one
        agent  names or numbers, one per trajectory; left out where x says so itself
        start  for Algorithm 2: names or numbers, one per trajectory; those with one name begin in one state. "find"
               lets a finite class find out. Left out, all begin in one, and `fit` warns where the data speaks against
               it (docs/settings.md). The partition of an embedding needs none
        """
        self.check_parameters()
        return self._learn(as_dataset(x, agent), start, tested=True)

    def check_parameters(self) -> None:
        """Raise where a parameter means nothing; the oracle checks its own when it is prepared."""
        given = self._given()
        for name in (name for name in BOUNDS if name in given):
            if isinstance(given[name], str):
                raise InvalidParameterError(f"{name} must be a number or 'auto'; {quoted(given[name])} was given.")
            check_bound(name, given[name])
        check_choice("coupling", self.coupling, ("auto", *COUPLINGS))
        check_kind("partition", self.partition, (Partition, type(None)), "a Partition or None")
        for name, otherwise in (("horizon", "for all steps"), ("window", "for trajectories as they are")):
            if given.get(name) is not None:
                check_whole(name, given[name], 2, advice=f"or 'auto', or None {otherwise}")
        if given.get("window") is not None and self.stationary is False:
            raise InvalidParameterError(
                f"Windows need one encoder for all steps; window = {self.window} and stationary = False were given; "
                "leave one of them out."
            )
        for name in ("relabel", "stationary"):
            if not isinstance(given.get(name, True), (bool, np.bool_)):
                raise InvalidParameterError(f"{name} must be True, False or 'auto'; {quoted(given[name])} was given.")

    def _given(self) -> dict[str, Any]:
        """The parameters that are not left to the library."""
        parameters = self.get_params(deep=False)
        return {name: value for name, value in parameters.items() if not (isinstance(value, str) and value == "auto")}

    def _learn(self, data: Grouped, start: Start, tested: bool) -> Self:
        """`fit` on data in one form; `tested`: whether what was learned is tested, and warned of."""
        given, data, windows, cut = data, *self._steps(data, start)
        tau = data.tau
        if tau.K > MAX_AGENTS:
            raise InvalidDataError(
                f"There must be at most {MAX_AGENTS} agents; {tau.K} were given; labels must name agents, not "
                "trajectories; join agents that act alike, or leave some out."
            )
        oracle, chosen = choose_oracle(self.oracle, tau)
        ask = OracleCalls()
        with fit_bar(tau.H, oracle.shows_progress()):
            prepared = oracle.prepare(tau)
            coupling, relabel, stationary, read = self._reading(oracle, prepared)
            starts, found = _starts(start, data, prepared, ask)
            if isinstance(prepared, PreparedCounting) and starts is not None:
                prepared = prepared.from_any_start()
            known = {name: float(value) for name, value in self._given().items() if name in BOUNDS}
            if isinstance(prepared, PreparedCounting) and stationary:
                fitted = fit_stationary(prepared, known, ask)
            elif isinstance(prepared, PreparedLearned) and (stationary or not known):
                fitted = fit_embedded(prepared, known, coupling, stationary, ask, self.partition or Partition())
            elif stationary:
                raise InvalidParameterError(
                    "stationary=True needs an oracle that can train one encoder for all steps; "
                    f"{type(prepared).__name__} cannot; use stationary=False, or derive it from PreparedLearned."
                )
            else:
                fitted = fit_by_step(prepared, known, coupling, relabel, starts, ask)
            result, states = fitted.result, fitted.states
            trace = _tested(prepared, fitted, coupling, starts, ask) if tested else result.trace
        # Everything is learned: only now are earlier results replaced.
        for name in ("encoder_", "n_states_total_", "rounds_", "merges_", "windows_"):
            if hasattr(self, name):
                delattr(self, name)
        self.oracle_, self.bounds_ = oracle, fitted.bounds
        self.agents_, self.obs_shape_, self.data_ = tau.names, tau.obs_shape, data.described()
        self.labels_, self.encoders_ = data.as_given(result.labels), ByStep(result.encoders)
        if windows is not None:
            self.windows_ = np.column_stack([given.rows[windows.of], windows.begin, tau.lengths])
            self.labels_ = given.as_given(windows.put_back(result.labels, given.tau, fitted.encoder))
        self.n_states_ = ByStep(result.n_states)
        if fitted.encoder is not None:
            self.encoder_, self.n_states_total_ = fitted.encoder, n_labels(fitted.codes)
        if states is not None:
            self.rounds_ = states.rounds
            if fitted.encoder is not None:
                self.merges_ = states.merges
            # neither coupling nor relabelling has a part in a partition
            read = tuple(choice for choice in read if choice.parameter == "stationary")
        self.f_ = result.f
        self.trace_ = replace(trace, oracle_use=ask.use)
        self.choices_ = (*chosen, *cut, *fitted.choices, *read, *found)
        warn(self.trace_.findings, stacklevel=3)
        return self

    def _steps(self, data: Grouped, start: Start) -> tuple[Grouped, Windows | None, tuple[Choice, ...]]:
        """The data with the steps to learn from, or in windows, and what was chosen."""
        tau = data.tau.first_steps(self.horizon or data.tau.H) if self.horizon != "auto" else data.tau
        may = self.stationary is not False and (start is None or self.window != "auto")
        if (windows := cut(tau, self.window) if may else None) is not None:
            chosen: tuple[Choice, ...] = ()
            if self.window == "auto":
                chosen = (Choice("window", windows.tau.H, windows.why),)
            if windows.n_cuts:
                why = "the whole picture changes there as it does at no other step; windows do not cross it."
                chosen += (Choice("cuts", windows.n_cuts, why),)
            return Grouped(windows.tau, np.arange(windows.tau.n)), windows, chosen
        H = data.tau.well_reached() if self.horizon == "auto" and tau.aligned else tau.H
        chosen = () if H == tau.H else (Choice("horizon", H, "few trajectories of some agent are longer."),)
        return replace(data, tau=tau.first_steps(H)), None, chosen

    def _reading(self, oracle: Oracle, prepared: PreparedOracle) -> tuple[Coupling, bool, bool, tuple[Choice, ...]]:
        """How the oracle's answers are read: coupling, relabel and stationary as the user says, else as the oracle
        recommends for the data; and what was left to the library."""
        given = self._given()
        chosen = recommended(oracle, prepared.tau)
        coupling = cast(Coupling, chosen["coupling"].value)
        if isinstance(prepared, PreparedCounting) and (other := prepared.affordable(coupling)):
            chosen["coupling"] = Choice("coupling", *other)
        coupling, relabel, stationary = (
            given.get(name, chosen[name].value) for name in ("coupling", "relabel", "stationary")
        )
        left = tuple(choice for name, choice in chosen.items() if name not in given)
        return coupling, bool(relabel), bool(stationary), left

    def log_odds(self, x: Trajectories) -> Floats:
        """f_h(x_h, x_{h+1}) of trajectories that may be new: how much likelier agent 0 is than each other agent.

        x is in whatever form `fit` takes, of at most as many steps as those fitted. Returned are log-odds in nats,
        (n, H-1, K-1): entry [i, h-1, k-1] compares `agents_[0]` with `agents_[k]`, both as frequent as in the data that
        was fitted; NaN where a trajectory is over. They are calibrated: a network's on the pairs held out in training,
        a classifier's as its oracle's `calibrate` says; those of finite classes are rounded to the grid of Line 4.
        """
        self.check_fitted()
        if self.f_ is None:
            raise InvalidParameterError(
                f"log_odds needs a model that keeps its log-odds; {self.oracle_!r} keeps none; give `LogOdds.f` in an "
                "oracle of yours."
            )
        block, there = as_padded(x, len(self.encoders_), self.obs_shape_)
        block = self._as_fitted(block) if hasattr(self.encoders_[1], "trunk") else block
        return np.where(there[:, 1:, None], self.f_(block), np.nan)

    def embed(self, x: ArrayLike) -> Floats:
        """phi(x): the numbers in which states were looked for, (n, d) of observations x (n, *obs).

        Of trajectories (n, H, *obs) they are (n, H, d). Networks with one encoder for all steps have such an embedding.
        """
        self.check_fitted()
        phi = getattr(getattr(self, "encoder_", None), "embed", None)
        if phi is None:
            raise InvalidParameterError(
                f"embed needs a network with one encoder for all steps; {type(self.oracle_).__name__} has made "
                f"{'one encoder that has no embedding' if hasattr(self, 'encoder_') else 'an encoder for each step'}; "
                "fit with oracle='network' and stationary=True."
            )
        array = as_observations(x, "x")
        places = array.shape[: array.ndim - len(self.obs_shape_)]
        if len(places) not in (1, 2) or array.shape[len(places) :] != self.obs_shape_:
            wanted = ", ".join(map(str, self.obs_shape_))
            raise InvalidDataError(
                f"x must have shape (n, {wanted}) or (n, H, {wanted}), as in the data fitted; shape {array.shape} was "
                "given; crop, resize or convert the observations."
            )
        z = phi(self._as_fitted(array.reshape(-1, *self.obs_shape_)))
        return np.asarray(z, dtype=np.float64).reshape(*places, -1)

    def states_at(self, k: int) -> Self:
        """The same model with k states: those that differ least are one, in the order of `merges_`.

        Returned is a fitted model of its own, which names states, is saved and reported as any other.
        """
        self.check_fitted()
        if not hasattr(self, "merges_"):
            raise InvalidParameterError(
                "states_at needs a model that knows what joining states costs; this one does not; fit an oracle that "
                "trains, such as a network, with stationary=True."
            )
        n = self.n_states_total_
        check_whole("k", k, 1, n, f"{n} states were found, and none can be added afterwards")
        model = copy(self)
        if k == n:
            return model
        at = next(i for i, (state_of, _) in enumerate(self.merges_) if n_labels(state_of) == k)
        state_of, cost = self.merges_[at]
        first = np.unique(state_of, return_index=True)[1]  # a state of each of the new ones
        model.labels_ = renamed(self.labels_, state_of)
        model.encoder_ = MergedEncoder(self.encoder_, state_of)
        model.encoders_ = ByStep([model.encoder_] * len(self.encoders_))
        model.n_states_ = ByStep(len(np.unique(column[column >= 0])) for column in model.labels_.T)
        model.n_states_total_ = int(k)
        model.merges_ = tuple((further[first], nats - cost) for further, nats in self.merges_[at + 1 :])
        model.trace_ = self.trace_.merged(state_of, model.labels_)
        why = f"asked for afterwards; {n} were found, and joining them costs {cost:.0f} nats."
        others = tuple(choice for choice in self.choices_ if choice.parameter != "states")
        model.choices_ = (*others, Choice("states", int(k), why))
        return model

    def diagnose(
        self,
        x: Trajectories,
        agent: ArrayLike | None = None,
        *,
        n_resamples: int | None = None,
        seed: int = 0,
        probe: CountingOracle | None = None,
    ) -> Diagnosis:
        """Check the model against the data it was fitted to; no ground truth is needed.

        A network's states are checked by its own log-odds, which trains nothing again (`Diagnosis.sufficiency`).

        x, agent     as given to `fit`
        n_resamples  refits on resampled trajectories, each of which takes about as long as `fit` at known bounds; 0 for
                     none; None asks the oracle: 10 where it counts, 3 for classifiers, none for networks
        seed         of what is drawn at random: resamples, and the references of a network's check
        probe        the class of functions in which to look for what the states leave out: any `FiniteOracle` or
                     `CoordinateOracle`; None takes the model's own class, where it is finite
        """
        self.check_fitted()
        check_whole("seed", seed)
        if n_resamples is not None:
            check_whole("n_resamples", n_resamples, 0, MAX_RESAMPLES)
        if probe is not None:
            check_counting(probe, "diagnose")
        data, labels = self.steps_fitted(given := as_dataset(x, agent)), self.labels_fitted()
        return diagnose(
            tuple(self.encoders_),
            np.array(list(self.n_states_)),
            labels if hasattr(self, "windows_") else given.as_grouped(labels),
            self.trace_,
            data.tau,
            self._refit,
            n_resamples=self.oracle_.refits() if n_resamples is None else n_resamples,
            seed=seed,
            probe=self.oracle_ if probe is None and isinstance(self.oracle_, CountingOracle) else probe,
            f=self.f_,
        )

    def summary(self) -> str:
        """What was chosen and why, what was found at each step, and what speaks against it, as text.

        The line of a step has h, how many states, which entry or function is the state (for finite classes), who has a
        state, the loss of the log-odds that lead to h beside that of chance ("-" where no pair was held out), what
        happened. Steps of windows mean nothing: lines are then of states, with how many frames are in each.
        """
        from craftrl.estimators.verdict import summary

        self.check_fitted()
        return summary(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: of a fitted model the verdict, the states and the choices."""
        from sklearn.utils import estimator_html_repr

        from craftrl.estimators.verdict import as_html

        return as_html(self) if self.__sklearn_is_fitted__() else str(estimator_html_repr(self))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def sizes_fitted(self) -> tuple[int, int]:
        """How many trajectories, or windows, the model was fitted to, and how many steps they have."""
        self.check_fitted()
        return len(self.windows_) if hasattr(self, "windows_") else len(self.labels_), len(self.encoders_)

    def steps_fitted(self, data: Grouped) -> Grouped:
        """The data fitted as it was learned from: its first steps or its windows. Other data is refused."""
        n, H = self.sizes_fitted()
        if hasattr(self, "windows_"):
            tau = windows_again(data.tau, np.argsort(data.rows), self.windows_, self.labels_.shape)
            data = Grouped(tau, np.arange(tau.n))
        elif data.tau.H > H:
            data = replace(data, tau=data.tau.first_steps(H))
        if (data.tau.n, data.tau.H, data.tau.obs_shape) != (n, H, self.obs_shape_):
            raise InvalidDataError(
                f"The data must be that which the model was fitted to, {n} trajectories of {H} steps; {data.tau} was "
                "given."
            )
        if (known := self.data_["fingerprint"]) != (fingerprint := data.tau.fingerprint()):
            raise InvalidDataError(
                f"The data must be that which the model was fitted to (fingerprint {known}); other data of the same "
                f"size was given (fingerprint {fingerprint}); give the data fitted."
            )
        return data

    def labels_fitted(self) -> Labels:
        """`labels_` with the sizes of the data fitted: those of the windows, where these were cut."""
        return taken(self.labels_, self.windows_, len(self.encoders_)) if hasattr(self, "windows_") else self.labels_

    def _refit(self, sample: TrajectoryDataset) -> tuple[tuple[Encoder, ...], list[int]]:
        """What the same gives on other data, at the bounds and with the oracle that were used."""
        known = {} if hasattr(self, "rounds_") else {name: getattr(self.bounds_, name) for name in BOUNDS}
        again = clone(self).set_params(oracle=clone(self.oracle_), horizon=None, **known)
        # Where starts were given, those of a sample are read off.
        several = self.n_states_[1] > 1 and not hasattr(self, "encoder_")
        start = self.encoders_[1](sample.at(1)) if several else None
        again._learn(as_dataset(sample, None), start, tested=False)
        return tuple(again.encoders_), list(again.n_states_)


def _starts(
    start: Start, data: Grouped, prepared: PreparedOracle, ask: OracleCalls
) -> tuple[Labels | None, tuple[Choice, ...]]:
    """Numbers (n,) for the starts in the order of the dataset, None where all are one; and what was found, if asked."""
    if start is None:
        return None, ()
    if isinstance(start, str) and start == "find":
        if not isinstance(prepared, PreparedCounting):
            raise InvalidParameterError(
                f"start='find' needs a finite class; {type(prepared).__name__} has none; leave start out, as oracles "
                "that train need none, or name the starts yourself."
            )
        numbers = ask("starts", find_starts, prepared)
        why = "so many groups of first observations differ in their log-odds beside any second one."
        return numbers if n_labels(numbers) > 1 else None, (Choice("start", n_labels(numbers), why),)
    array = plain_array(start)
    given = np.empty((0, 0)) if array is None else array
    missing = given.dtype.kind not in "biufSU" or (given.dtype.kind == "f" and np.isnan(given).any())
    if given.shape != (data.tau.n,) or missing:
        raise InvalidDataError(
            f"start must be 'find' or name the start of each of {data.tau.n} trajectories; shape {given.shape} of "
            f"{given.dtype} was given."
        )
    numbers = data.as_grouped(np.unique(given, return_inverse=True)[1].reshape(-1))
    return numbers if n_labels(numbers) > 1 else None, ()


def _tested(
    prepared: PreparedOracle, fitted: Fitted, coupling: Coupling, starts: Labels | None, ask: OracleCalls
) -> Trace:
    """The trace of a fit with tests of what was learned, and all that speaks against it."""
    result, tau, nu = fitted.result, prepared.tau, fitted.bounds.nu
    tests = None
    if isinstance(prepared, PreparedCounting):
        tests = tests_of(prepared, fitted, coupling)
        if starts is None and fitted.encoder is None:  # else nothing rests on one start
            result = replace(result, trace=replace(result.trace, start=ask("start", one_start_test, prepared)))
    if fitted.states is not None:
        found = findings_of_partition(result, tau, nu, fitted.states.evidence, fitted.embedding_r2)
    else:
        found = findings_of_steps(result, tau, nu, coupling, tests)
    camera = camera_of(tau, result.labels) if isinstance(prepared, PreparedLearned) else None
    return replace(result.trace, findings=(*found, *(camera.findings() if camera is not None else ())))
