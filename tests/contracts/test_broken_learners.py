"""check_learner fails where it should: a small learner, with one thing wrong at a time."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from craftrl.core.encoders import CoordinateEncoder
from craftrl.data.inputs import as_dataset
from craftrl.estimators.base import ByStep, Learner
from craftrl.testing import check_learner
from shipped import rows_of


class Right(Learner):
    """Reads one bit at every step."""

    def __init__(self, feature=0, classifier=None):
        self.feature = feature
        self.classifier = classifier

    def fit(self, x, agent=None):
        data = as_dataset(x, agent)
        encoder = CoordinateEncoder(self.feature, np.arange(2))
        self.encoders_ = ByStep([encoder] * data.tau.H)
        self.n_states_ = ByStep([2] * data.tau.H)
        self.obs_shape_ = data.tau.obs_shape
        states = np.stack([encoder(data.tau.at(h)) for h in range(1, data.tau.H + 1)], axis=1)
        self.labels_ = data.as_given(states)
        return self


def after_fit(message, change, name="AfterFit"):
    """A learner whose fit ends with a change; and the sentence that must come."""

    def fit(self, x, agent=None):
        Right.fit(self, x, agent)
        return change(self, x, agent) or self

    mutant = type(name, (Right,), {"fit": fit, "__module__": __name__})
    return mutant, message


def sets(**values):
    """A change that sets attributes, each a function of what was fitted."""

    def change(self, x, agent):
        for name, value in values.items():
            setattr(self, name, value(self, x, agent))

    return change


def grows(self, x, agent):
    Grows.times += 1
    return ByStep([CoordinateEncoder(Grows.times % 2, np.arange(2))] * 4)


class Grows:
    times = 0


def order_matters(self, x, agent):
    return ByStep([CoordinateEncoder(int(agent is not None and agent[1]), np.arange(2))] * 4)


def trained(self, x, agent):
    self.classifier.fit(x.reshape(len(x), -1), agent)


MUTANTS = {
    "returns another": after_fit("must return the learner itself", lambda self, x, agent: Right()),
    "changes a parameter": after_fit("changed `feature`", sets(feature=lambda *_: 1)),
    "trains a parameter": after_fit("changed `classifier`", trained),
    "keeps the data": after_fit("must keep no data; `x_`", sets(x_=lambda self, x, agent: x)),
    "keeps a dataset": after_fit("must keep no data", sets(tau_=lambda self, x, agent: as_dataset(x, agent).tau)),
    "learns without a mark": after_fit("names that end in `_`; it sets `score`", sets(score=lambda *_: 1.0)),
    "an encoder short": after_fit(
        "must have 4 entries", sets(encoders_=lambda self, *_: ByStep([*self.encoders_][1:]))
    ),
    "counts from 0": after_fit(r"encoders_\[0\]", sets(encoders_=lambda self, *_: [*self.encoders_])),
    "other shape": after_fit("obs_shape_ must be that of the data", sets(obs_shape_=lambda *_: (7,))),
    "labels of another shape": after_fit("labels_ must have shape", sets(labels_=lambda self, *_: self.labels_[:, 1:])),
    "labels out of range": after_fit("must be below 2", sets(labels_=lambda self, *_: self.labels_ + 5)),
    "labels below": after_fit("must be -1 or more", sets(labels_=lambda self, *_: self.labels_ - 5)),
    "counts of another length": after_fit("n_states_ must have 4", sets(n_states_=lambda *_: ByStep([2]))),
    "never the same": after_fit("fitted twice to the same data", sets(encoders_=grows)),
    "depends on the order": after_fit("must not depend on how the rows", sets(encoders_=order_matters)),
    "labels in its own order": after_fit(
        "labels_ must have the rows in the order given",
        sets(labels_=lambda self, x, agent: self.labels_[np.argsort(agent, kind="stable")]),
    ),
    "no pickle": after_fit("must be pickled", sets(function_=lambda *_: lambda: 0)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_learner_with_a_wrong_fit_is_caught(name):
    mutant, message = MUTANTS[name]
    globals()["AfterFit"] = mutant  # where pickle looks for it
    with pytest.raises(AssertionError, match=message):
        check_learner(mutant(classifier=DecisionTreeClassifier()), *rows_of("bits"))


class AnswersUnfitted(Right):
    def transform(self, x):
        return np.zeros((1, 1), dtype=int)


class TransformsElsewise(Right):
    def transform(self, x):
        return 1 - super().transform(x)


class TakesAnyLabels(Right):
    def fit(self, x, agent=None):
        if isinstance(x, np.ndarray) and agent is not None and len(agent) < len(x):
            agent = np.arange(len(x)) % 2
        return super().fit(x, agent)


class TakesOneAgent(Right):
    def fit(self, x, agent=None):
        one = agent is not None and len(agent) == len(x) and len(np.unique(agent)) < 2
        return super().fit(x, np.arange(len(x)) % 2 if one else agent)


class TakesNoLabels(Right):
    def fit(self, x, agent=None):
        return super().fit(x, np.arange(len(x)) % 2 if agent is None else agent)


class TakesAnyShape(Right):
    def encode(self, x, h=None):
        self._check_fitted()
        return self._encoder_at(h)(np.asarray(x)[(slice(None), slice(None), *[0] * (np.ndim(x) - 2))])


class RaisesAnything(Right):
    def fit(self, x, agent=None):
        if agent is None:
            raise KeyError("agent")
        return super().fit(x, agent)


class Fails(Right):
    def fit(self, x, agent=None):
        raise IndexError("out of range")


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (AnswersUnfitted, "transform before fit must be refused with NotFittedError; nothing was raised"),
        (TransformsElsewise, "transform must be encode step by step"),
        (TakesAnyLabels, "labels of another length must be refused"),
        (TakesOneAgent, "one agent only must be refused"),
        (TakesNoLabels, "one array and no labels must be refused"),
        (TakesAnyShape, "another shape must be refused"),
        (RaisesAnything, "refused with InvalidDataError; KeyError was raised"),
        (Fails, "fit must take this data; IndexError was raised: out of range"),
    ],
)
def test_a_learner_that_answers_wrong_questions_is_caught(mutant, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(mutant(), *rows_of("bits"))


def test_the_learner_that_the_broken_ones_are_made_of_is_right():
    check_learner(Right(classifier=DecisionTreeClassifier()), *rows_of("bits"))
