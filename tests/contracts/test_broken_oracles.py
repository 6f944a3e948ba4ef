"""check_oracle fails where it should: one small oracle for each thing that can be wrong."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from craftrl.core.seam import EncoderFit

from craftrl import CoordinateOracle, InvalidParameterError
from craftrl.core.clusters import find_clusters
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder, FeatureEncoder
from craftrl.core.saved import Savable
from craftrl.oracles.base import Choice
from craftrl.oracles.counting import PreparedCounting
from craftrl.testing import check_oracle
from shipped import data

SUITS = CoordinateOracle().suits()


class Broken(CoordinateOracle):
    """An oracle that is right; those below break one thing each."""

    prepared = PreparedCounting

    def __init__(self, n_values=2, n_threads=None):
        self.n_values = n_values
        self.n_threads = n_threads

    device, tile_bytes = "cpu", 2**20

    def prepare(self, tau):
        return self.prepared(self, tau)


def broken(message, **methods):
    """A prepared oracle with these methods, in an oracle of its own; and the sentence that must come."""
    prepared = type("Prepared", (PreparedCounting,), methods)
    return type("Mutant", (Broken,), {"prepared": prepared}), message


def log_odds(change):
    """Log-odds that are changed before they are returned."""

    def changed(self, grid, coupling):
        f = PreparedCounting.log_odds(self, grid, coupling)
        return replace(f, **change(f, self))

    return changed


def encoding(make):
    return lambda self, h, label, n_states: EncoderFit(make(self.tau, h, max(n_states, 1)), 0.0)


def moody(self, h, label, n_states):
    self.asked = getattr(self, "asked", 0) + 1
    return EncoderFit(CoordinateEncoder(self.asked % 2, np.arange(2)), 0.0)


class TwoMinded(FeatureEncoder):
    """Its two parts do not make up the whole."""

    trunk = None

    def features(self, x):
        return np.zeros((len(x), 1))

    def of_features(self, z):
        return np.zeros(len(z), dtype=int)

    def __call__(self, x):
        return x[:, 0].astype(int)


@dataclass(frozen=True)
class Forgetful(Savable):
    """Saved and restored it is another."""

    feature: int

    def __call__(self, x):
        return x[:, self.feature].astype(int)

    def saved(self):
        return {"feature": self.feature + 1}


def only_independent(self, grid, coupling):
    if coupling != "independent":
        raise InvalidParameterError("No.")
    return PreparedCounting.log_odds(self, grid, coupling)


PREPARED = {
    "no bins of the grid": broken(
        "must be bins in 0..12 where", log_odds=log_odds(lambda f, _: {"bins": f.bins + np.int16(100)})
    ),
    "bins of another type": broken("int16 bins of shape", log_odds=log_odds(lambda f, _: {"bins": f.bins + 0.0})),
    "no axis of agents": broken("int16 bins of shape", log_odds=log_odds(lambda f, _: {"bins": f.bins[..., 0]})),
    "a bin without a pair": broken(
        "-1 where a trajectory has no next", log_odds=log_odds(lambda f, _: {"bins": np.maximum(f.bins, 0)})
    ),
    "a loss that is none": broken("one finite number", log_odds=log_odds(lambda f, _: {"loss": f.loss * np.nan})),
    "a loss for all": broken("one finite number", log_odds=log_odds(lambda f, _: {"loss": f.loss.mean()})),
    "a chance below zero": broken(
        "chance of the log-odds must be", log_odds=log_odds(lambda f, _: {"chance": -f.loss})
    ),
    "no probability": broken(
        "p_value of the log-odds must be", log_odds=log_odds(lambda f, _: {"p_value": f.loss + 1})
    ),
    "log-odds of no new data": broken(
        "Log-odds of new trajectories must be", log_odds=log_odds(lambda f, _: {"f": lambda x: np.zeros(len(x))})
    ),
    "one model": broken("one model per step, or none", log_odds=log_odds(lambda f, _: {"models": f.models[:1]})),
    "refuses what suits it": broken("The coupling that suits must be answered", log_odds=only_independent),
    "tells a set from itself": broken(
        "not be separable from itself", separation=lambda *_: SimpleNamespace(loss=lambda new, state: 0.1)
    ),
    "a loss beyond chance": broken(
        r"must lie in \[0, 2\]; 7", separation=lambda *_: SimpleNamespace(loss=lambda new, state: 7)
    ),
    "a state too many": broken("states in 0..1; it returns", encode=encoding(lambda *_: ConstantEncoder(5))),
    "floats for states": broken("an integer array", encode=encoding(lambda *_: lambda x: np.zeros(len(x)))),
    "one state for all": broken("an integer array", encode=encoding(lambda *_: lambda x: np.zeros(1, dtype=int))),
    "no empty batch": broken(
        "must encode an empty batch", encode=encoding(lambda *_: lambda x: np.full(len(x), x.astype(int).min()))
    ),
    "no encoder of no state": broken(
        "An encoder of 0 states must be learned; ZeroDivisionError",
        encode=lambda self, h, label, n_states: EncoderFit(ConstantEncoder(), 1 / n_states),
    ),
    "another answer each time": broken("The answer to encoding must be the same when asked", encode=moody),
    "reads something else": broken(
        "`read` must say what", read=lambda self, encoder, tau, h: np.zeros(tau.n, dtype=int) - 1
    ),
    "fails": broken("Log-odds must come without an error; ZeroDivisionError was raised", log_odds=lambda *_: 1 / 0),
    "two minds": broken("is a FeatureEncoder, and of_features", encode=encoding(lambda *_: TwoMinded())),
    "forgets": broken("the same after saved and restored", encode=encoding(lambda *_: Forgetful(0))),
    "no pickle": broken("must be pickled", encode=encoding(lambda *_: lambda x: np.zeros(len(x), dtype=int))),
    "no two agents more": broken(
        "must be int16 bins",
        log_odds=log_odds(lambda f, prepared: {"bins": f.bins[..., :1] if prepared.tau.K > 2 else f.bins}),
    ),
}


class Changes(Broken):
    def prepare(self, tau):
        self.n_threads = 1
        return super().prepare(tau)


class Computes(Broken):
    def __init__(self, n_values=2, n_threads=None):
        super().__init__(n_values, n_threads)
        self.n_states = n_values


class Converts(Broken):
    def __init__(self, n_values=2, n_threads=None):
        super().__init__(n_values, [n_threads])


class Unequal(Broken):
    def __eq__(self, other):
        return self is other


class EqualToAll(Broken):
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


class SaysLittle(Broken):
    def suits(self):
        return SUITS[:2]


class SaysWrong(Broken):
    def suits(self):
        return (Choice("coupling", "loose", "why not."), *SUITS[1:])


class GivesNoReason(Broken):
    def suits(self):
        return (SUITS[0], Choice("clusterer", find_clusters, ""), SUITS[2])


PARAMETERS = [
    (Changes, "prepare must change no parameter; it changed `n_threads`"),
    (Computes, "must set its parameters .* and nothing else"),
    (Converts, "must store `n_threads` as given"),
    (Unequal, r"clone\(Unequal\) must be equal"),
    (EqualToAll, "must not be equal to whatever"),
    (SaysLittle, "suits must name .* once each"),
    (SaysWrong, "suits must name a legal coupling; 'loose' is none"),
    (GivesNoReason, "must give a sentence as reason for clusterer"),
]


@pytest.mark.parametrize("name", PREPARED)
def test_a_wrong_answer_is_caught(name):
    mutant, message = PREPARED[name]
    globals()["Mutant"] = mutant  # where pickle looks for it
    mutant.__module__ = __name__
    with pytest.raises(AssertionError, match=message):
        check_oracle(mutant(), data("bits").tau)


@pytest.mark.parametrize(("mutant", "message"), PARAMETERS)
def test_wrong_parameters_are_caught(mutant, message):
    with pytest.raises(AssertionError, match=message):
        check_oracle(mutant(), data("bits").tau)


def test_what_is_no_oracle_is_caught():
    with pytest.raises(AssertionError, match="must be a scikit-learn BaseEstimator"):
        check_oracle(len, data("bits").tau)


def test_the_oracle_that_the_broken_ones_are_made_of_is_right():
    check_oracle(Broken(), data("bits").tau)
