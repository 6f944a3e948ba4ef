"""What any oracle must answer, whatever it learns with."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from craftrl.core.encoders import read_states
from craftrl.core.grid import Grid
from craftrl.core.oracle import Coupling, LogOdds, PreparedOracle
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Oracle
from craftrl.testing.claims import about, must, must_answer
from craftrl.testing.datasets import shortened, three_agents, twice
from craftrl.testing.encoders import check_encoder
from craftrl.testing.parameters import check_parameters, check_unchanged, snapshot

__all__ = ["check_oracle"]

Ints = NDArray[np.integer]
COARSE, FINE = Grid.from_bounds(1.0, 0.2), Grid.from_bounds(0.5, 0.05)


def check_oracle(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Raise AssertionError at the first thing that an oracle must do and this one does not.

    oracle  the one to check; it is left as it is
    tau     trajectories that it can learn from, some dozens of each agent. It need not learn anything in them: no
            accuracy is asked for. The oracle is prepared about five times, so keep the training short.

    Checked are the parameters, `suits`, and the answers to all three questions: their shapes and ranges, that they
    do not depend on the order of asking, that trajectories may be short and agents three, and that encoders can do
    what their class declares.
    """
    check_parameters(oracle)
    check_equality(oracle)
    coupling = check_suits(oracle)
    before = {name: snapshot(value) for name, value in oracle.get_params(deep=False).items()}
    prepared = must_answer(lambda: oracle.prepare(tau), f"{type(oracle).__name__}.prepare must take this dataset")
    check_log_odds(prepared, tau, coupling)
    check_encoding(prepared, tau, oracle)
    check_order_of_asking(prepared, clone(oracle).prepare(tau), tau, coupling)
    check_separation(oracle, tau)
    check_sharing(prepared, tau, oracle)
    for other in (shortened(tau), three_agents(tau)):
        again = clone(oracle).prepare(other)
        check_log_odds(again, other, coupling)
        check_encoding(again, other, oracle)
    check_unchanged(before, oracle, "prepare")


@about("Equality")
def check_equality(oracle: Oracle) -> None:
    """Oracles with equal parameters are equal; nothing else is equal to one."""
    name = type(oracle).__name__
    must(isinstance(oracle, Oracle), f"{name} must be a subclass of craftrl.oracles.Oracle.")
    must(clone(oracle) == oracle, f"clone({name}) must be equal to the original; see Oracle.same_value.")
    must(oracle != object(), f"{name} must not be equal to whatever it is compared with.")


@about("What suits the oracle")
def check_suits(oracle: Oracle) -> Coupling:
    """`suits` names all three parameters, with values that CRAFT takes and a reason; the coupling is returned."""
    legal = {
        "coupling": lambda value: value in get_args(Coupling),
        "clusterer": callable,
        "relabel": lambda value: isinstance(value, bool),
    }
    name, choices = type(oracle).__name__, oracle.suits()
    must(all(isinstance(choice, Choice) for choice in choices), f"{name}.suits must return Choice records.")
    named = [choice.parameter for choice in choices]
    must(sorted(named) == sorted(legal), f"{name}.suits must name {sorted(legal)} once each; it names {named}.")
    for choice in choices:
        ok = legal[choice.parameter](choice.value)
        must(ok, f"{name}.suits must name a legal {choice.parameter}; {choice.value!r} is none.")
        must(choice.why.strip().endswith("."), f"{name}.suits must give a sentence as reason for {choice.parameter}.")
    return next(choice.value for choice in choices if choice.parameter == "coupling")


@about("Log-odds")
def check_log_odds(prepared: PreparedOracle, tau: TrajectoryDataset, suited: Coupling) -> None:
    """Line 10: a bin of the grid for every pair of the dataset. A coupling that does not suit may be refused."""
    for coupling in get_args(Coupling):
        for grid in (COARSE, FINE):
            try:
                f = prepared.log_odds(grid, coupling)
            except InvalidParameterError as error:
                must(coupling != suited, f"The coupling that suits must be answered; {coupling!r} is refused: {error}")
            else:
                check_bins(f, grid, tau)


def check_bins(f: LogOdds, grid: Grid, tau: TrajectoryDataset) -> None:
    """Shape, dtype and range of log-odds."""
    shape = (tau.n, tau.H - 1, tau.K - 1)
    must(
        f.bins.shape == shape and f.bins.dtype == np.int16,
        f"Log-odds must be int16 bins of shape {shape}; {f.bins.dtype} of shape {f.bins.shape} were returned.",
    )
    there = tau.lengths[:, None] > np.arange(1, tau.H)
    must((f.bins[~there] == -1).all(), "Log-odds must be -1 where a trajectory has no next observation; some are not.")
    inside = f.bins[there]
    must(
        inside.min() >= 0 and inside.max() < grid.size,
        f"Log-odds must be bins in 0..{grid.size - 1} where there is a pair; {inside.min()}..{inside.max()} were "
        "returned.",
    )
    must(
        np.shape(f.loss) == (tau.H - 1,) and np.isfinite(f.loss).all(),
        f"The loss of the log-odds must be one finite number for each of {tau.H - 1} steps; it is {f.loss}.",
    )
    for name, top in (("chance", np.inf), ("p_value", 1.0)):
        told = getattr(f, name)
        must(
            told is None or (np.shape(told) == (tau.H - 1,) and bool(((told >= 0) & (told <= top)).all())),
            f"The {name} of the log-odds must be None, or a number from 0 to {top:g} for each of {tau.H - 1} steps; it "
            f"is {told}.",
        )
    if f.f is not None:
        values = f.f(np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1))
        must(
            np.shape(values) == shape and np.isfinite(values).all(),
            f"Log-odds of new trajectories must be finite and of shape {shape}; shape {np.shape(values)} was returned.",
        )
    must(
        len(f.models) in (0, tau.H - 1),
        f"Log-odds must have one model per step, or none; {len(f.models)} were returned for {tau.H - 1} steps.",
    )


@about("Separations")
def check_separation(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Line 25: L(g) lies in [0, 2], and no set can be told from itself."""
    doubled, copy = twice(tau)
    prepared = clone(oracle).prepare(doubled)
    separation = prepared.separation(2, np.where(doubled.present(2), copy, -1), 2)
    for new, state in ((0, [1]), (1, [0])):
        loss = separation.loss(new, state)
        must(0 <= loss <= 2, f"The loss of a separation must lie in [0, 2]; {loss} was returned.")
        must(loss > 0.5, f"A set must not be separable from itself (loss > 0.5); a loss of {loss} was returned.")
    thirds = np.arange(doubled.n) % 4 - 1
    union = prepared.separation(2, thirds, 3).loss(2, [0, 1])
    must(0 <= union <= 2, f"The loss of a separation from a union must lie in [0, 2]; {union} was returned.")
    for n_clusters in (0, 1):
        must_answer(
            partial(prepared.separation, 2, np.full(doubled.n, n_clusters - 1), n_clusters),
            f"A separation of {n_clusters} clusters must be answered",
        )


@about("Encoders")
def check_encoding(prepared: PreparedOracle, tau: TrajectoryDataset, oracle: Oracle) -> None:
    """Line 46: an encoder for any labels, also where some or all trajectories are unassigned."""
    x, rows = tau.at(tau.H), np.arange(tau.n)
    for n_states, label in ((0, np.full(tau.n, -1)), (1, np.zeros(tau.n, dtype=np.int64)), (2, rows % 3 - 1)):
        fit = must_answer(
            partial(prepared.encode, tau.H, label, n_states),
            f"An encoder of {n_states} states must be learned",
        )
        must(np.isfinite(fit.loss) and fit.loss >= 0, f"The loss of an encoder must be 0 or more; it is {fit.loss}.")
        check_encoder(fit.encoder, x, max(n_states, prepared.N_s or 0), oracle)
        must(
            np.array_equal(prepared.read(fit.encoder, tau, tau.H), read_states(fit.encoder, tau, tau.H)),
            "`read` must say what the encoder says of each observation, and -1 where a trajectory is over; it differs.",
        )


@about("Answers")
def check_order_of_asking(one: PreparedOracle, other: PreparedOracle, tau: TrajectoryDataset, suited: Coupling) -> None:
    """The same answers whatever was asked before, and when asked again."""
    forwards, backwards = _answers(one, tau, suited, False), _answers(other, tau, suited, True)
    again = _answers(one, tau, suited, False)
    for question, answer in forwards.items():
        for what, repeated in (("asked again", again), ("asked in another order", backwards)):
            must(
                np.array_equal(answer, repeated[question]),
                f"The answer to {question} must be the same when {what}; it differs; draw nothing from a shared "
                "random state.",
            )


def _answers(prepared: PreparedOracle, tau: TrajectoryDataset, coupling: Coupling, backwards: bool) -> dict[str, Any]:
    label = np.arange(tau.n) % 3 - 1
    questions = {
        "log-odds": lambda: prepared.log_odds(COARSE, coupling).bins,
        "log-odds on a fine grid": lambda: prepared.log_odds(FINE, coupling).bins,
        "separation": lambda: prepared.separation(2, label, 2).loss(0, [1]),
        "encoding": lambda: prepared.encode(2, label, 2).encoder(tau.at(2)),
    }
    return {name: questions[name]() for name in (reversed(questions) if backwards else questions)}


@about("One encoder for all steps")
def check_sharing(prepared: PreparedOracle, tau: TrajectoryDataset, oracle: Oracle) -> None:
    """One encoder for all steps, by the oracles that have one."""
    labels = np.add.outer(np.arange(tau.n), np.arange(tau.H)) % 3 - 1
    try:
        fit = prepared.share(labels, 2, "check")
    except InvalidParameterError:
        return  # it says that it cannot
    for h in (1, tau.H):
        check_encoder(fit.encoder, tau.at(h), max(2, prepared.N_s or 0), oracle)
