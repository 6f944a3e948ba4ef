"""Any scikit-learn classifier is an oracle, also where a state has few members; one that is broken is refused."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, InvalidParameterError, load
from craftrl.oracles.cross_fitting import Clones

BOUNDS = {"alpha": 1.0, "eta": 0.05, "nu": 0.05}
KINDS = {
    "nearest neighbours": KNeighborsClassifier(25),
    "quadratic discriminant": QuadraticDiscriminantAnalysis(),
    "linear discriminant": LinearDiscriminantAnalysis(),
    "naive Bayes": GaussianNB(),
    "logistic regression": LogisticRegression(),
    "support vectors": SVC(),
    "support vectors by share": NuSVC(),
    "random forest": RandomForestClassifier(10),
    "extra trees": ExtraTreesClassifier(10),
    "boosting by histograms": HistGradientBoostingClassifier(max_iter=5, early_stopping=True),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "perceptron of layers": MLPClassifier((4,), max_iter=20, early_stopping=True),
    "tree": DecisionTreeClassifier(),
    "products": make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression()),
    "AdaBoost": AdaBoostClassifier(n_estimators=5),
    "ridge": RidgeClassifier(),
    "stack": StackingClassifier([("tree", DecisionTreeClassifier()), ("Bayes", GaussianNB())], cv=2),
    "shares alone": DummyClassifier(),
}


def few(n):
    """Trajectories of n in all."""
    tau = feature_data(n // 2).tau
    return np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1), tau.agent


@pytest.mark.parametrize("n", [60, 140])
@pytest.mark.parametrize("kind", KINDS)
def test_craft_takes_any_classifier(kind, n, tmp_path):
    x, agent = few(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CRAFT(ClassifierOracle(KINDS[kind], repeats=2), **BOUNDS).fit(x, agent)
    states = model.transform(x)
    assert states.shape == (n, 4)
    assert ((states >= 0) & (states < model.n_states_total_)).all()
    assert np.isfinite(model.f_(x)).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(x), states)
    assert np.allclose(again.f_(x), model.f_(x))


@pytest.mark.parametrize("kind", ["nearest neighbours", "quadratic discriminant"])
def test_a_state_with_few_members_is_learned_all_the_same_and_that_is_told_once(kind):
    data = feature_data(100)
    s = data.truth.states[:, 2]
    rare, common = np.argsort(np.bincount(s))[[0, -1]]
    rows = np.concatenate([np.flatnonzero(s == rare)[:6], np.flatnonzero(s == common)[:12]])
    label = np.full(len(s), -1)
    label[rows] = s[rows] == rare
    prepared = ClassifierOracle(KINDS[kind]).prepare(data.tau)
    with pytest.warns(AssumptionWarning, match=r"could not learn 2 classes from 14 rows \(.*\): a linear") as told:
        fit = prepared.encode(3, label, 2)
    assert len(told) == 1
    assert prepared.separation(3, label, 2)(0, [1]) < 0.5
    assert prepared.clones.replaced >= 3
    chosen = np.isin(s, [rare, common])
    assert (fit.encoder(data.tau.at(3)[chosen]) == (s[chosen] == rare)).mean() > 0.95


def test_what_a_classifier_can_learn_is_left_to_it():
    data = feature_data(200)
    prepared = ClassifierOracle(KNeighborsClassifier(25)).prepare(data.tau)
    model = prepared.encode(3, data.truth.states[:, 2], 4).encoder.model
    assert isinstance(model, KNeighborsClassifier)
    assert prepared.clones.replaced == 0


def test_where_nothing_can_be_learned_the_shares_answer():
    """Three rows, each a class of its own: even the linear discriminant refuses."""
    clones = Clones(QuadraticDiscriminantAnalysis(), 0)
    with pytest.warns(AssumptionWarning, match="takes its place"):
        model = clones.fitted(np.eye(3), np.arange(3), clones.bare, "predict")
    assert isinstance(model, DummyClassifier)


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier of somebody's own; `fault` says what is wrong with it."""

    def __init__(self, fault="fit"):
        self.fault = fault

    def fit(self, x, y):
        if self.fault == "fit":
            raise KeyError("weights")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        shape = (len(x), len(self.classes_) + (self.fault == "shape"))
        return np.full(shape, np.nan if self.fault == "nan" else 0.5)

    def predict(self, x):
        return np.zeros(len(x), dtype=int)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (Odd("fit"), r"Odd fails on 200 rows of \d+ random features, too: 'weights'"),
        (Odd("shape"), r"Odd fails .*predict_proba answers for one row in shape \(1, 3\)"),
        (KNeighborsClassifier(-1), "KNeighborsClassifier fails .*must be an int in the range"),
        (MultinomialNB(), "MultinomialNB fails .*Negative values"),
    ],
)
def test_a_broken_classifier_is_refused_by_its_name(classifier, message):
    x, agent = few(100)
    with pytest.raises(InvalidParameterError, match=message):
        CRAFT(classifier, **BOUNDS).fit(x, agent)


def test_probabilities_that_are_no_numbers_say_nothing():
    x, agent = few(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        model = CRAFT(Odd("nan"), **BOUNDS).fit(x, agent)
    assert model.n_states_total_ == 1


def test_agents_that_differ_are_told_apart_by_all_trajectories_and_not_by_a_part_of_them():
    """120 of 150 against 36 of 150 move: the p-value is that of such a table, not that of thirty held out."""
    rng = np.random.default_rng(0)
    moved = np.concatenate([np.arange(150) < 120, np.arange(150) < 36]).astype(float)
    x = np.stack([np.zeros(300), moved], axis=1)[..., None] + rng.normal(0, 0.1, (300, 2, 2))
    model = CRAFT(DecisionTreeClassifier(max_depth=2), **BOUNDS).fit(x, np.repeat([0, 1], 150))
    assert model.trace_.steps[0].p_value < 1e-12
