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
from craftrl.errors import InvalidParameterError
from craftrl.estimators.base import ByStep, Learner
from craftrl.testing import check_learner, check_oracle
from shipped import data, rows_of


class RightOracle(CoordinateOracle):
    """Asks `change`, a function of the oracle that is prepared, what is wrong with it."""

    change = staticmethod(lambda prepared: None)

    def prepare(self, tau):
        prepared = super().prepare(tau)
        self.change(prepared)
        return prepared


def log_odds(**changes):
    """Log-odds that are changed, each part by a function of it and of the number of agents."""

    def change(prepared):
        right = prepared.log_odds

        def answer(grid, coupling):
            f = right(grid, coupling)
            return replace(f, **{name: make(getattr(f, name), prepared.tau.K) for name, make in changes.items()})

        prepared.log_odds = answer

    return change


def answers(question, answer):
    """Another answer to one question."""
    return lambda prepared: setattr(prepared, question, answer)


def counts_its_questions(prepared):
    asked = count()
    prepared.encode = lambda h, label, n: EncoderFit(CoordinateEncoder(next(asked) % 2, np.arange(2)), 0.0)


def refuse(grid, coupling):
    raise InvalidParameterError("not today.")


class Forgets(CoordinateEncoder):
    def __reduce__(self):
        return ConstantEncoder, (1,)


def encoding(encoder):
    return answers("encode", lambda h, label, n_states: EncoderFit(encoder, 0.0))


ORACLES = {
    "bins off the grid": (
        log_odds(bins=lambda bins, K: bins + np.int16(100)),
        r"bins must be an array of int16 .* in -1\.\.12",
    ),
    "a bin without a pair": (log_odds(bins=lambda bins, K: np.maximum(bins, 0)), "-1 where a trajectory has no next"),
    "two agents only": (
        log_odds(bins=lambda bins, K: bins[..., :1]),
        r"bins must .* of shape \(300, 3, 2\)",
    ),
    "a loss below 0": (log_odds(loss=lambda loss, K: -loss), "The loss of each step must be"),
    "one model for all steps": (
        log_odds(models=lambda models, K: models[:1]),
        "must be a model for each of 3 steps",
    ),
    "log-odds of nothing": (log_odds(f=lambda f, K: lambda x: np.zeros(3)), "What f gives for new data must be"),
    "refuses what suits": (
        answers("log_odds", refuse),
        "The coupling that suits must be answered",
    ),
    "a set told from itself": (answers("separation", lambda *_: lambda new, state: 0.1), "separable from itself"),
    "a state too many": (encoding(ConstantEncoder(5)), r"encoder \(ConstantEncoder\) returns must be .* in 0\.\.1"),
    "a state for nothing": (encoding(lambda x: np.zeros(len(x) or 1, dtype=int)), "returns for no observation must be"),
    "an encoder with a loss below 0": (
        answers("encode", lambda h, label, n_states: EncoderFit(ConstantEncoder(), -1.0)),
        "loss of an encoder must be 0 or more; it is -1.0",
    ),
    "an encoder that pickle changes": (encoding(Forgets(0, np.arange(2))), "After a pickle round trip, the encoder"),
    "answers by what was asked before": (counts_its_questions, "answer to encoding must not depend on what was asked"),
    "reads something else": (
        answers("read", lambda encoder, h: np.full(300, -1)),
        "`read` must say what the encoder",
    ),
    "fails": (answers("log_odds", lambda *_: 1 / 0), "Log-odds must come without an error; ZeroDivisionError was"),
}


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_with_a_wrong_answer_is_caught(name, monkeypatch):
    change, message = ORACLES[name]
    monkeypatch.setattr(RightOracle, "change", staticmethod(change))
    with pytest.raises(AssertionError, match=message):
        check_oracle(RightOracle(), data("bits").tau)


class Changes(RightOracle):
    def prepare(self, tau):
        self.n_values = 3
        return super().prepare(tau)


class Converts(RightOracle):
    def __init__(self, n_values=2):
        super().__init__([n_values])


class SuitsNothing(RightOracle):
    def suits(self):
        return tuple(replace(choice, value="loose") for choice in super().suits())


class LikesNobody(RightOracle):
    def __eq__(self, other):
        return self is other

    __hash__ = None


class SuitsLittle(RightOracle):
    def suits(self):
        return super().suits()[:1]


DESCRIPTIONS = {
    DecisionTreeClassifier: "must be a subclass of craftrl.oracles.Oracle",
    LikesNobody: "must be equal to its clone",
    SuitsLittle: "suits must choose .*; it chooses \\['coupling'\\]",
    Changes: "prepare must change no parameter",
    Converts: "Converts.__init__ must store .* as given",
    SuitsNothing: r"must choose a coupling among \('independent', ",
}


@pytest.mark.parametrize("mutant", DESCRIPTIONS)
def test_an_oracle_with_a_wrong_description_is_caught(mutant):
    with pytest.raises(AssertionError, match=DESCRIPTIONS[mutant]):
        check_oracle(mutant(), data("bits").tau)


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
        return self.change(self, x, agent) or self


def sets(name, make):
    """Something that `fit` leaves behind, made of the learner, x and agent."""
    return lambda model, x, agent: setattr(model, name, make(model, x, agent))


def trains_a_parameter(model, x, agent):
    model.classifier.fit(x.reshape(len(x), -1), agent)


FITS = count()
LEARNERS = {
    "trains a parameter": (trains_a_parameter, "fit must change no parameter"),
    "keeps the data": (sets("x_", lambda model, x, agent: x), "must keep no data; `x_` does"),
    "counts from 0": (sets("encoders_", lambda model, *_: [*model.encoders_]), r"encoders_\[0\], since steps count"),
    "a step without an encoder": (
        sets("encoders_", lambda model, *_: ByStep([*model.encoders_][1:])),
        "encoders_ must have 4 entries; it has 3",
    ),
    "a step without a count": (sets("n_states_", lambda *_: ByStep([2, 2])), "n_states_ must have 4 entries"),
    "other observations": (sets("obs_shape_", lambda *_: (3,)), r"obs_shape_ must be that of the data, \(6,\)"),
    "a label too many": (sets("labels_", lambda model, *_: model.labels_ + 1), r"labels_ at h = 1 must be .* -1\.\.1"),
    "labels in its own order": (
        sets("labels_", lambda model, x, agent: model.labels_[np.argsort(agent, kind="stable")]),
        "labels_ must have the rows in the order given",
    ),
    "never the same": (
        sets("encoders_", lambda *_: ByStep([CoordinateEncoder(next(FITS) % 2, np.arange(2))] * 4)),
        "fitted twice to the same data",
    ),
    "no pickle": (sets("function_", lambda *_: lambda: 0), "A pickle of a fitted learner, as of a fresh one, must"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_with_a_wrong_fit_is_caught(name, monkeypatch):
    change, message = LEARNERS[name]
    monkeypatch.setattr(RightLearner, "change", staticmethod(change))
    with pytest.raises(AssertionError, match=message):
        check_learner(RightLearner(classifier=DecisionTreeClassifier()), *rows_of("bits"))


class AnswersUnfitted(RightLearner):
    def transform(self, x):
        return np.zeros((1, 1), dtype=int)


class TakesAnyLabels(RightLearner):
    def fit(self, x, agent=None):
        strange = agent is None or len(agent) < len(x) or len(np.unique(agent)) < 2
        return super().fit(x, np.arange(len(x)) % 2 if strange else agent)


class TakesAnyShape(RightLearner):
    def encode(self, x, h=None):
        self._check_fitted()
        return self._encoder_at(h)(np.asarray(x)[(slice(None), slice(None), *[0] * (np.ndim(x) - 2))])


class TransformsOtherwise(RightLearner):
    def transform(self, x):
        return 1 - super().transform(x)


class EncodesNothing(RightLearner):
    def encode(self, x, h=None):
        return super().encode(x, h) - 1

    def transform(self, x):
        self._check_fitted()
        return np.zeros((300, 4), dtype=int)


class LosesItself(RightLearner):
    def __setstate__(self, state):
        vars(self).update(state, encoders_=ByStep([ConstantEncoder()] * 4))


QUESTIONS = {
    TransformsOtherwise: "transform must be encode",
    EncodesNothing: r"What encode returns at h = 1 must be",
    LosesItself: "A learner must say the same after a pickle round trip",
    AnswersUnfitted: "transform before fit must be refused with NotFittedError; nothing was raised",
    TakesAnyLabels: "one agent only must be refused with InvalidDataError; nothing was raised",
    TakesAnyShape: "another shape must be refused",
}


@pytest.mark.parametrize("mutant", QUESTIONS)
def test_a_learner_that_answers_wrong_questions_is_caught(mutant):
    with pytest.raises(AssertionError, match=QUESTIONS[mutant]):
        check_learner(mutant(), *rows_of("bits"))


def test_those_that_the_broken_ones_are_made_of_are_right():
    check_oracle(RightOracle(), data("bits").tau)
    check_learner(RightLearner(classifier=DecisionTreeClassifier()), *rows_of("bits"))
