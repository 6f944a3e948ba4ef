"""What any oracle must answer, whatever it learns with."""

from __future__ import annotations

import pickle
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds, PreparedOracle
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.learned import PreparedLearned
from craftrl.testing.claims import LARGEST, about, check_array, check_parameters, content, must, pickled

COARSE, FINE = Grid.from_bounds(1.0, 0.2), Grid.from_bounds(0.5, 0.05)


def check_oracle(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Raise AssertionError at the first thing that an oracle must do and this one does not.

    oracle  the one to check; it is left as it is
    tau     trajectories that it can learn from, some dozens of each agent. It need not learn anything in them: no
            accuracy is asked for. The oracle is prepared five times, so keep the training short.

    Checked are the parameters, what the oracle recommends, and the answers to all three questions: their shapes and
    ranges, that they do not depend on what was asked before, that trajectories may be short and agents three, and that
    encoders go through pickle.
    """
    check_parameters(oracle)
    before = content(oracle)
    must(isinstance(oracle, Oracle), f"{type(oracle).__name__} must be a subclass of craftrl.oracles.Oracle.")
    with about("The description of an oracle"):
        chosen, couplings = oracle.coupling, get_args(Coupling)
        legal = isinstance(chosen, Choice) and chosen.value in couplings and chosen.why.strip()
        must(legal, f"coupling must be a Choice among {couplings} that says why; it is {str(chosen)!r}.")
    with about("Separations"):
        _check_separation(oracle, tau)
    # The same, every third trajectory without its last observation; and the same of three agents.
    x = tau.rows(np.arange(tau.n))
    short = [row[: max(length - (i % 3 == 0), 1)] for i, (row, length) in enumerate(zip(x, tau.lengths))]
    shortened = TrajectoryDataset.from_episodes([short[tau.agent_slice(k)] for k in range(tau.K)])
    coupling = cast(Coupling, chosen.value)
    for some in (tau, shortened, tau.select(np.arange(tau.n), np.arange(tau.n) % 3)):
        with about("A prepared oracle"):
            prepared = oracle.prepare(some)
        with about("Log-odds"):
            _check_log_odds(prepared, coupling)
        with about("Encoders"):
            _check_encoding(prepared, oracle)
        if isinstance(prepared, PreparedLearned):
            with about("An embedding, and one encoder for all steps,"):
                z = prepared.embed()
                check_array("The embedding", z, (tau.n, tau.H, z.shape[-1]), np.float64, -LARGEST, LARGEST)
                shared = prepared.fit_encoder(np.add.outer(np.arange(tau.n), np.arange(tau.H)) % 3 - 1, 2)
                for h in (1, tau.H):
                    _check_encoder(shared, some.at(h), 2, oracle)
        if some is tau:
            with about("Answers to the same questions"):
                _check_order_of_asking(prepared, oracle.prepare(tau), coupling)
    must(content(oracle) == before, "prepare must change no parameter; it changed one; work on a clone of it.")


def _check_separation(oracle: Oracle, tau: TrajectoryDataset) -> None:
    """Line 25: L(g) lies in [0, 2], and no set can be told from itself."""
    rows = np.concatenate([np.arange(tau.n)] * 2)
    doubled, copy = tau.select(rows), np.repeat([0, 1], tau.n)[np.argsort(tau.agent[rows], kind="stable")]
    prepared = oracle.prepare(doubled)
    same = prepared.separation(2, np.where(doubled.present(2), copy, -1), 2)
    thirds = prepared.separation(2, np.arange(doubled.n) % 4 - 1, 3)
    losses = np.array([same(0, [1]), same(1, [0]), thirds(2, [0, 1])])
    check_array("The losses of a separation", losses, (3,), np.floating, 0, 2)
    must(min(losses[:2]) > 0.5, f"A set must not be separable from itself (loss > 0.5); the loss is {min(losses[:2])}.")
    for n_clusters in (0, 1):
        prepared.separation(2, np.full(doubled.n, n_clusters - 1), n_clusters)


def _check_log_odds(prepared: PreparedOracle, recommended: Coupling) -> None:
    """Line 10: a bin of the grid for every pair of the dataset. A coupling that does not suit may be refused."""
    tau = prepared.tau
    steps, shape, there = tau.H - 1, (tau.n, tau.H - 1, tau.K - 1), tau.lengths[:, None] > np.arange(1, tau.H)
    for coupling, grid in ((coupling, grid) for coupling in get_args(Coupling) for grid in (COARSE, FINE)):
        try:
            f: LogOdds = prepared.log_odds(grid, coupling)
        except InvalidParameterError as error:
            refused = f"{coupling!r} is refused: {error}"
            must(coupling != recommended, f"The coupling that is recommended must be answered; {refused}")
            continue
        check_array("The array of bins", f.bins, shape, np.int16, -1, grid.size - 1)
        right = (f.bins[~there] == -1).all() and (f.bins[there] >= 0).all()
        must(right, "Bins must be -1 where a trajectory has no next observation, 0 or more elsewhere; some are not.")
        for name, top in (("loss", LARGEST), ("chance", LARGEST), ("p_value", 1.0)):
            if (value := getattr(f, name)) is not None:
                check_array(f"The {name} of each step", value, (steps,), np.floating, 0, top)
        must(len(f.models) in (0, steps), f"There must be a model for each of {steps} steps, or none; got {f.models}.")
        if f.f is not None:
            check_array("What f gives for new data", f.f(tau.rows(np.arange(tau.n))), shape, np.floating)


def _check_encoding(prepared: PreparedOracle, oracle: Oracle) -> None:
    """Line 46: an encoder for any labels, also where some or all trajectories are unassigned."""
    tau = prepared.tau
    for n_states, label in enumerate((np.full(tau.n, -1), np.zeros(tau.n, dtype=np.int64), np.arange(tau.n) % 3 - 1)):
        fit = prepared.encode(tau.H, label, n_states)
        _check_encoder(fit, tau.at(tau.H), max(n_states, prepared.N_s or 1), oracle)
        same = np.array_equal(prepared.read(fit.encoder, tau.H), PreparedOracle.read(prepared, fit.encoder, tau.H))
        must(same, "`read` must say what the encoder says, and -1 where a trajectory is over; it differs.")


def _check_encoder(fit: EncoderFit, x: NDArray[Any], n_states: int, oracle: Oracle) -> None:
    """Shape and range of the states of an encoder, and that pickle changes nothing."""
    must(0 <= fit.loss <= LARGEST, f"The loss of an encoder must be 0 or more; it is {fit.loss}.")
    encoder, name = fit.encoder, f"the encoder ({type(fit.encoder).__name__})"
    states = encoder(x)
    check_array(f"What {name} returns", states, (len(x),), np.integer, 0, n_states - 1)
    check_array(f"What {name} returns for no observation", encoder(x[:0]), (0,), np.integer)
    if pickled(oracle):
        same = np.array_equal(pickle.loads(pickle.dumps(encoder))(x), states)
        must(same, f"After a pickle round trip, {name} must say the same; it differs.")


def _check_order_of_asking(one: PreparedOracle, other: PreparedOracle, coupling: Coupling) -> None:
    """The same answers whatever was asked before, and when asked again."""
    label, x = np.arange(one.tau.n) % 3 - 1, one.tau.at(2)

    def answers(prepared: PreparedOracle, order: int) -> dict[str, Any]:
        questions = {
            "log-odds": lambda: prepared.log_odds(COARSE, coupling).bins,
            "log-odds on a fine grid": lambda: prepared.log_odds(FINE, coupling).bins,
            "separation": lambda: prepared.separation(2, label, 2)(0, [1]),
            "encoding": lambda: prepared.encode(2, label, 2).encoder(x),
        }
        if isinstance(prepared, PreparedLearned):
            questions["embedding"] = prepared.embed
        return {name: questions[name]() for name in [*questions][::order]}

    forwards, again, backwards = answers(one, 1), answers(one, 1), answers(other, -1)
    for question, answer in forwards.items():
        same = np.array_equal(answer, again[question]) and np.array_equal(answer, backwards[question])
        must(same, f"The answer to {question} must not depend on what was asked before; draw from no shared generator.")
