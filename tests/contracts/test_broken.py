"""check_oracle and check_learner fail where they should: one that is right, with one thing wrong at a time."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from craftrl import CoordinateOracle
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder
from craftrl.core.oracle import EncoderFit
from craftrl.data.inputs import as_dataset
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles import Choice
from craftrl.testing import check_learner, check_oracle
from shipped import data, rows_of


class RightOracle(CoordinateOracle):
    """Asks `change`, a function of the oracle and what it prepared, what is wrong with it."""

    change = staticmethod(lambda oracle, prepared: None)

    def prepare(self, tau):
        prepared = super().prepare(tau)
        self.change(self, prepared)
        return prepared


class Forgets(CoordinateEncoder):
    def __reduce__(self):
        return ConstantEncoder, (1,)


def log_odds(name, make):
    """Log-odds of which one part is changed."""

    def change(oracle, prepared):
        right = prepared.log_odds
        prepared.log_odds = lambda grid, coupling: replace(f := right(grid, coupling), **{name: make(getattr(f, name))})

    return change


def answers(question, answer):
    """Another answer to one question."""
    return lambda oracle, prepared: setattr(prepared, question, answer)


ASKED = count()
ORACLES = {
    "bins off the grid": (log_odds("bins", lambda bins: bins + np.int16(100)), r"bins must be .* int16 .* in -1\.\.12"),
    "a bin without a pair": (log_odds("bins", lambda bins: np.maximum(bins, 0)), "-1 where a trajectory has no next"),
    "a loss below 0": (log_odds("loss", np.negative), "The loss of each step must be"),
    "a set told from itself": (answers("separation", lambda *_: lambda new, old: 0.1), "separable from itself"),
    "a state too many": (
        answers("encode", lambda h, label, n: EncoderFit(ConstantEncoder(5), 0.0)),
        r"encoder \(ConstantEncoder\) returns must be .* in 0\.\.1",
    ),
    "an encoder that pickle changes": (
        answers("encode", lambda h, label, n: EncoderFit(Forgets(0, np.arange(2)), 0.0)),
        "After a pickle round trip, the encoder",
    ),
    "answers by what was asked before": (
        answers("encode", lambda h, label, n: EncoderFit(CoordinateEncoder(next(ASKED) % 2, np.arange(2)), 0.0)),
        "answer to encoding must not depend on what was asked",
    ),
    "changes its parameter": (
        lambda oracle, prepared: setattr(oracle, "n_values", 3),
        "prepare must change no parameter",
    ),
    "fails": (answers("log_odds", lambda *_: 1 / 0), "Log-odds must come without an error; ZeroDivisionError was"),
}


@pytest.mark.parametrize("coupling", [Choice("coupling", "markov", " "), Choice("coupling", "best", "why"), "markov"])
def test_a_coupling_that_is_none_or_says_no_reason_is_noticed(coupling):
    oracle = RightOracle()
    oracle.coupling = coupling
    with pytest.raises(AssertionError, match=r"coupling must be a Choice among .* that says why"):
        check_oracle(oracle, data("bits").tau)


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_with_one_thing_wrong_is_caught(name, monkeypatch):
    change, message = ORACLES[name]
    monkeypatch.setattr(RightOracle, "change", staticmethod(change))
    with pytest.raises(AssertionError, match=message):
        check_oracle(RightOracle(), data("bits").tau)


class RightLearner(Learner):
    """Reads one bit at every step; `change` is what is wrong with it after a fit."""

    change = staticmethod(lambda model, x, agent: None)

    def __init__(self, feature=0, classifier=None):
        self.feature = feature
        self.classifier = classifier

    def fit(self, x, agent=None):
        grouped = as_dataset(x, agent)
        encoder = CoordinateEncoder(self.feature, np.arange(2))
        self.encoders_ = ByStep([encoder] * grouped.tau.H)
        self.n_states_ = ByStep([2] * grouped.tau.H)
        self.obs_shape_ = grouped.tau.obs_shape
        states = np.stack([encoder(grouped.tau.at(h)) for h in range(1, grouped.tau.H + 1)], axis=1)
        self.labels_ = grouped.as_given(states)
        self.change(self, x, agent)
        return self


class TakesAnyLabels(RightLearner):
    def fit(self, x, agent=None):
        strange = agent is None or len(agent) < len(x) or len(np.unique(agent)) < 2
        return super().fit(x, np.arange(len(x)) % 2 if strange else agent)


class TransformsOtherwise(RightLearner):
    def transform(self, x):
        return 1 - super().transform(x)


class LosesItself(RightLearner):
    def __setstate__(self, state):
        vars(self).update(state, encoders_=ByStep([ConstantEncoder()] * 4))


def sets(name, make):
    """A learner whose fit leaves something else behind, made of the learner, x and agent."""
    change = staticmethod(lambda model, x, agent: setattr(model, name, make(model, x, agent)))
    return type("Changed", (RightLearner,), {"change": change, "__module__": __name__})


def trains(model, x, agent):
    model.classifier.fit(x.reshape(len(x), -1), agent)


class FailsOtherwise(RightLearner):
    def fit(self, x, agent=None):
        if agent is None:
            raise KeyError("agent")
        return super().fit(x, agent)


LEARNERS = {
    "fails otherwise": (
        FailsOtherwise,
        "refused with InvalidDataError; KeyError was raised: 'agent'",
    ),
    "trains a parameter": (type("Trains", (RightLearner,), {"change": staticmethod(trains)}), "change no parameter"),
    "keeps the data": (sets("x_", lambda model, x, agent: x), "must keep no data; `x_` does"),
    "counts from 0": (sets("encoders_", lambda model, *_: [*model.encoders_]), r"encoders_\[0\], since steps count"),
    "never the same": (
        sets("encoders_", lambda *_: ByStep([CoordinateEncoder(next(ASKED) % 2, np.arange(2))] * 4)),
        "The same data must give the same",
    ),
    "labels in its own order": (
        sets("labels_", lambda model, x, agent: model.labels_[np.argsort(agent, kind="stable")]),
        "labels_ must have the rows in the order given",
    ),
    "transforms otherwise": (TransformsOtherwise, "transform must be encode"),
    "loses itself": (LosesItself, "A learner must say the same after a pickle round trip"),
    "takes any labels": (TakesAnyLabels, "one agent only must be refused with InvalidDataError; nothing was raised"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_with_one_thing_wrong_is_caught(name):
    kind, message = LEARNERS[name]
    with pytest.raises(AssertionError, match=message):
        check_learner(kind(classifier=DecisionTreeClassifier()), *rows_of("bits"))


def test_those_that_the_broken_ones_are_made_of_are_right():
    check_oracle(RightOracle(), data("bits").tau)
    check_learner(RightLearner(classifier=DecisionTreeClassifier()), *rows_of("bits"))
