"""What any oracle must answer, whatever it learns with."""

from __future__ import annotations

import pickle
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from craftrl.core.craft import CLUSTERERS
from craftrl.core.encoders import Encoder, FeatureEncoder, read_states
from craftrl.core.grid import Grid
from craftrl.core.learned import PreparedLearned
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds, PreparedOracle
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Oracle
from craftrl.testing.claims import about, can_be_pickled, check_parameters, must, snapshot

__all__ = ["check_oracle"]

COARSE, FINE = Grid.from_bounds(1.0, 0.2), Grid.from_bounds(0.5, 0.05)


def check_oracle(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Raise AssertionError at the first thing that an oracle must do and this one does not.

    oracle  the one to check; it is left as it is
    tau     trajectories that it can learn from, some dozens of each agent. It need not learn anything in them: no
            accuracy is asked for. The oracle is prepared five times, so keep the training short.

    Checked are the parameters, what the oracle says suits it, and the answers to all three questions: their shapes and
    ranges, that they do not depend on what was asked before, that trajectories may be short and agents three, and that
    encoders can do what their class declares.
    """
    check_parameters(oracle)
    before = snapshot(oracle)
    coupling = _check_description(oracle)
    _check_separation(oracle, tau)
    cut = [x[: max(1, len(x) - 1)] if i % 3 == 0 else x for i, x in enumerate(_trajectories(tau))]
    shortened = TrajectoryDataset.from_episodes([cut[tau.agent_slice(k)] for k in range(tau.K)])
    three_agents = tau.select(np.arange(tau.n), np.arange(tau.n) % 3)
    for some in (tau, shortened, three_agents):
        with about(f"{type(oracle).__name__}.prepare"):
            prepared = oracle.prepare(some)
        _check_log_odds(prepared, coupling)
        _check_encoding(prepared, oracle)
        if isinstance(prepared, PreparedLearned):
            _check_learned(prepared, coupling, oracle)
        if some is tau:
            _check_order_of_asking(prepared, oracle.prepare(tau), coupling)
    must(
        snapshot(oracle) == before,
        f"{type(oracle).__name__}.prepare must change no parameter; it changed one; work on a clone of it.",
    )


@about("The description of an oracle")
def _check_description(oracle: Oracle) -> Coupling:
    """Equality, and `suits`: all three parameters, with values that CRAFT takes; the coupling is returned."""
    name, choices = type(oracle).__name__, oracle.suits()
    must(isinstance(oracle, Oracle), f"{name} must be a subclass of craftrl.oracles.Oracle.")
    must(
        clone(oracle) == oracle and oracle != object(),
        f"clone({name}) must be equal to the original, and nothing else be equal to it; see Oracle.same_value.",
    )
    legal = {"coupling": get_args(Coupling), "clusterer": tuple(CLUSTERERS), "relabel": (False, True)}
    must(
        sorted(choice.parameter for choice in choices if isinstance(choice, Choice)) == sorted(legal),
        f"{name}.suits must return a Choice for each of {sorted(legal)}; it returns {choices}.",
    )
    for choice in choices:
        allowed = legal[choice.parameter]
        must(
            choice.value in allowed and choice.why.strip(),
            f"{name}.suits must choose a {choice.parameter} among {allowed} and say why; it says {str(choice)!r}.",
        )
    return next(choice.value for choice in choices if choice.parameter == "coupling")


@about("Log-odds")
def _check_log_odds(prepared: PreparedOracle, suited: Coupling) -> None:
    """Line 10: a bin of the grid for every pair of the dataset. A coupling that does not suit may be refused."""
    for coupling in get_args(Coupling):
        for grid in (COARSE, FINE):
            try:
                f = prepared.log_odds(grid, coupling)
            except InvalidParameterError as error:
                must(coupling != suited, f"The coupling that suits must be answered; {coupling!r} is refused: {error}")
            else:
                _check_values(f, grid, prepared.tau)


def _check_values(f: LogOdds, grid: Grid, tau: TrajectoryDataset) -> None:
    n, steps, shape = tau.n, tau.H - 1, (tau.n, tau.H - 1, tau.K - 1)
    _check_bins(f.bins, shape, tau.lengths[:, None] > np.arange(1, tau.H), grid)
    must(
        np.shape(f.loss) == (steps,) and np.isfinite(f.loss).all(),
        f"The loss of the log-odds must be one finite number for each of {steps} steps; it is {f.loss}.",
    )
    for name, top in (("chance", np.inf), ("p_value", 1.0)):
        told = getattr(f, name)
        must(
            told is None or (np.shape(told) == (steps,) and ((told >= 0) & (told <= top)).all()),
            f"The {name} of the log-odds must be None, or a number from 0 to {top:g} for each of {steps} steps; it is "
            f"{told}.",
        )
    must(len(f.models) in (0, steps), f"Log-odds must have one model for each of {steps} steps; {f.models} were given.")
    if f.f is not None:
        values = f.f(np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1))
        must(
            np.shape(values) == shape and np.isfinite(values).all(),
            f"f must give finite log-odds of shape {shape} for {n} new trajectories; shape {np.shape(values)} was "
            "returned.",
        )


def _check_bins(bins: NDArray[Any], shape: tuple[int, ...], there: NDArray[np.bool_], grid: Grid) -> None:
    """`there` (shape without its last axis) is where a pair is."""
    must(
        bins.shape == shape and bins.dtype == np.int16,
        f"Log-odds must be int16 bins of shape {shape}; {bins.dtype} of shape {bins.shape} were returned.",
    )
    must((bins[~there] == -1).all(), "Log-odds must be -1 where a trajectory has no next observation; some are not.")
    low, high = bins[there].min(initial=0), bins[there].max(initial=0)
    must(
        low >= 0 and high < grid.size,
        f"Log-odds must be bins in 0..{grid.size - 1} where there is a pair; {low}..{high} were returned.",
    )


@about("Separations")
def _check_separation(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Line 25: L(g) lies in [0, 2], and no set can be told from itself."""
    rows = np.concatenate([np.arange(tau.n)] * 2)
    doubled, copy = tau.select(rows), np.repeat([0, 1], tau.n)[np.argsort(tau.agent[rows], kind="stable")]
    prepared = oracle.prepare(doubled)
    same = prepared.separation(2, np.where(doubled.present(2), copy, -1), 2)
    thirds = prepared.separation(2, np.arange(doubled.n) % 4 - 1, 3)
    losses = [same(0, [1]), same(1, [0]), thirds(2, [0, 1])]
    must(all(0 <= loss <= 2 for loss in losses), f"The losses of a separation must lie in [0, 2]; they are {losses}.")
    must(min(losses[:2]) > 0.5, f"A set must not be separable from itself (loss > 0.5); the loss is {min(losses[:2])}.")
    for n_clusters in (0, 1):
        with about(f"A separation of {n_clusters} clusters"):
            prepared.separation(2, np.full(doubled.n, n_clusters - 1), n_clusters)


def _check_encoding(prepared: PreparedOracle, oracle: Oracle) -> None:
    """Line 46: an encoder for any labels, also where some or all trajectories are unassigned."""
    tau = prepared.tau
    for n_states, label in enumerate((np.full(tau.n, -1), np.zeros(tau.n, dtype=np.int64), np.arange(tau.n) % 3 - 1)):
        with about(f"An encoder of {n_states} states"):
            fit = prepared.encode(tau.H, label, n_states)
            _check_fit(fit, tau.at(tau.H), max(n_states, prepared.N_s or 0), oracle)
            must(
                np.array_equal(prepared.read(fit.encoder, tau.H), read_states(fit.encoder, tau, tau.H)),
                "`read` must say what the encoder says of each observation, and -1 where a trajectory is over; it "
                "differs.",
            )


def _check_fit(fit: EncoderFit, x: NDArray[Any], n_states: int, oracle: Oracle) -> None:
    """Shape and range of the states of an encoder, and whatever its class declares beside."""
    must(np.isfinite(fit.loss) and fit.loss >= 0, f"The loss of an encoder must be 0 or more; it is {fit.loss}.")
    encoder, name = fit.encoder, f"The encoder ({type(fit.encoder).__name__})"
    states, top = encoder(x), max(n_states, 1) - 1
    must(
        isinstance(states, np.ndarray) and states.shape == (len(x),) and states.dtype.kind in "iu",
        f"{name} must return an integer array with one state for each of {len(x)} observations; it returns "
        f"{getattr(states, 'dtype', type(states).__name__)} of shape {np.shape(states)}.",
    )
    low, high = states.min(initial=0), states.max(initial=0)
    must(low >= 0 and high <= top, f"{name} must return states in 0..{top}; it returns {low}..{high}.")
    with about(f"{name}'s answer to an empty batch"):
        must(np.shape(encoder(x[:0])) == (0,), f"{name} must return no state for no observation; it does.")
    again: dict[str, Encoder] = {}
    if isinstance(encoder, FeatureEncoder):
        again["of_features(features(x))"] = lambda x: encoder.of_features(encoder.features(x))
    if isinstance(encoder, Savable):
        again["saved and restored"] = _restored(encoder, oracle)
    if can_be_pickled(oracle):
        with about(f"A pickle of {name}, as of its oracle,"):
            again["a pickle round trip"] = pickle.loads(pickle.dumps(encoder))
    for how, other in again.items():
        must(np.array_equal(other(x), states), f"{name} must say the same by {how}; it differs.")


def _restored(value: Any, oracle: Oracle) -> Any:
    """The value made again from its parts, all the way down."""
    if not isinstance(value, Savable) or isinstance(value, Oracle):
        return value
    return type(value).restored({name: _restored(part, oracle) for name, part in value.saved().items()}, oracle)


@about("Answers to the same questions")
def _check_order_of_asking(one: PreparedOracle, other: PreparedOracle, coupling: Coupling) -> None:
    """The same answers whatever was asked before, and when asked again."""

    def answers(prepared: PreparedOracle, order: int) -> dict[str, Any]:
        label = np.arange(prepared.tau.n) % 3 - 1
        questions = {
            "log-odds": lambda: prepared.log_odds(COARSE, coupling).bins,
            "log-odds on a fine grid": lambda: prepared.log_odds(FINE, coupling).bins,
            "separation": lambda: prepared.separation(2, label, 2)(0, [1]),
            "encoding": lambda: prepared.encode(2, label, 2).encoder(prepared.tau.at(2)),
        }
        if isinstance(prepared, PreparedLearned):
            f = LogOdds(np.zeros((prepared.tau.n, prepared.tau.H - 1, prepared.tau.K - 1), np.int16), np.zeros(0))
            questions["log-odds given states"] = lambda: prepared.log_odds_given(1, label * 0, f, COARSE)
        return {name: questions[name]() for name in [*questions][::order]}

    forwards, again, backwards = answers(one, 1), answers(one, 1), answers(other, -1)
    for question, answer in forwards.items():
        for when, repeated in (("asked again", again), ("asked in another order", backwards)):
            must(
                np.array_equal(answer, repeated[question]),
                f"The answer to {question} must be the same when {when}; it differs; draw nothing from a shared random "
                "state.",
            )


@about("What an oracle that trains answers beside")
def _check_learned(prepared: PreparedLearned, coupling: Coupling, oracle: Oracle) -> None:
    """Log-odds given states, one encoder for all steps and the test of one start."""
    tau = prepared.tau
    f = prepared.log_odds(COARSE, coupling)
    given = prepared.log_odds_given(1, np.arange(tau.n) % 3 - 1, f, COARSE)
    _check_bins(given, f.bins[:, 0].shape, tau.present(2), COARSE)
    labels = np.add.outer(np.arange(tau.n), np.arange(tau.H)) % 3 - 1
    fit = prepared.share(labels, 2, "check")
    for h in (1, tau.H):
        _check_fit(fit, tau.at(h), max(2, prepared.N_s or 0), oracle)
    p_values = prepared.test_start().p_first, prepared.test_start().p_beyond
    must(all(0 <= p <= 1 for p in p_values), f"The p-values of one start must lie in [0, 1]; they are {p_values}.")


def _trajectories(tau: TrajectoryDataset) -> list[NDArray[Any]]:
    """Every trajectory by itself, of its own length."""
    steps = [tau.at(h) for h in range(1, tau.H + 1)]
    return [np.stack([x_h[i] for x_h in steps[:length]]) for i, length in enumerate(tau.lengths)]
