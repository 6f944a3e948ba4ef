"""scikit-learn's contract: its own checks where they apply, and the uses that the contract is for.

Its other checks fit flat tables: they draw x of shape (n, features) with floats, call `predict` or `score`, or need
sample weights, sparse input, pandas or feature names. Trajectories have a time axis and an agent each, so those checks
do not apply. What they ask beside that (fit twice, pickle, order of rows, no attribute without `_`) is in
`craftrl.testing.check_learner`.
"""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from craftrl import (
    CRAFT,
    AssumptionWarning,
    ClassifierOracle,
    CoordinateOracle,
    FiniteOracle,
    InvalidParameterError,
    NeuralOracle,
    NotFittedError,
    Training,
)
from craftrl.paper import baselines
from shipped import BOUNDS, ORACLES, Bit, fitted, network, own_trunk, rows_of, tree

OF_PARAMETERS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]
OF_LEARNERS = [
    "check_estimators_unfitted",
    "check_fit1d",
    "check_supervised_y_no_nan",
    "check_transformers_unfitted",
]
LEARNERS = {
    "CRAFT": CRAFT,
    "SingleObservation": lambda: baselines.SingleObservation(CoordinateOracle()),
    "PairedObservation": lambda: baselines.PairedObservation(CoordinateOracle()),
    "DRAFT": lambda: baselines.DRAFT(CoordinateOracle()),
    "RecursiveDRAFT": lambda: baselines.RecursiveDRAFT(CoordinateOracle()),
}
SUBJECTS = LEARNERS | {name: make for name, (_, make) in ORACLES.items()}


@pytest.mark.parametrize("check", OF_PARAMETERS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_scikit_learns_own_checks_of_parameters(name, check):
    getattr(estimator_checks, check)(name, SUBJECTS[name]())


@pytest.mark.parametrize("check", OF_LEARNERS)
@pytest.mark.parametrize("name", LEARNERS)
def test_scikit_learns_own_checks_of_estimators(name, check):
    getattr(estimator_checks, check)(name, LEARNERS[name]())


def test_check_is_fitted_knows_before_from_after():
    with pytest.raises(NotFittedError):
        CRAFT().transform(np.zeros((2, 2, 2)))
    check_is_fitted(fitted(CRAFT(**BOUNDS), *rows_of("bits")))


def negated(x):
    return 1 - x


def test_a_pipeline_prepares_observations():
    x, agent = rows_of("bits")
    pipeline = make_pipeline(FunctionTransformer(negated), CRAFT(CoordinateOracle(), **BOUNDS))
    states = fitted(pipeline, x, agent).transform(x)
    assert np.array_equal(states, fitted(CRAFT(CoordinateOracle(), **BOUNDS), 1 - x, agent).transform(1 - x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        assert np.array_equal(clone(pipeline).fit_transform(x, agent), states)


def test_parameters_are_reached_through_all_layers():
    pipeline = make_pipeline(FunctionTransformer(negated), CRAFT(CoordinateOracle()))
    for setting in ParameterGrid({"craft__oracle__n_values": [2, 3], "craft__nu": [0.1, 0.2]}):
        model = clone(pipeline).set_params(**setting)["craft"]
        assert (model.oracle.n_values, model.nu) == (setting["craft__oracle__n_values"], setting["craft__nu"])
    assert pipeline["craft"].oracle.n_values == 2
    deep = CRAFT(ClassifierOracle(tree()))
    deep.set_params(oracle__classifier__max_depth=7)
    assert deep.oracle.classifier.max_depth == 7
    with pytest.raises(ValueError, match="Invalid parameter 'n_values' for estimator ClassifierOracle"):
        deep.set_params(oracle__n_values=2)


def test_fits_run_in_other_processes_and_come_back_by_pickle():
    x, agent = rows_of("bits")
    models = [CRAFT(CoordinateOracle(), **(BOUNDS | {"nu": nu})) for nu in (0.1, 0.2)]
    elsewhere = Parallel(n_jobs=2, backend="loky")(delayed(model.fit)(x, agent) for model in models)
    for here, there in zip(models, elsewhere):
        assert np.array_equal(fitted(here, x, agent).transform(x), there.transform(x))
        assert here.choices_ == there.choices_
    back = pickle.loads(pickle.dumps(models[0]))
    assert np.array_equal(back.labels_, elsewhere[0].labels_)


@pytest.mark.parametrize("name", ORACLES)
def test_a_craft_with_any_oracle_is_cloned(name):
    model = CRAFT(ORACLES[name][1](), **BOUNDS)
    copy = clone(model)
    assert copy.oracle == model.oracle
    assert copy.oracle is not model.oracle
    assert repr(copy) == repr(model)


def scaled_tree():
    return make_pipeline(StandardScaler(), tree())


EQUAL = [
    (CoordinateOracle(3), CoordinateOracle(n_values=3)),
    (FiniteOracle([Bit(0), Bit(1)]), FiniteOracle([Bit(0), Bit(1)])),
    (FiniteOracle([partial(np.take, indices=0, axis=1)]), FiniteOracle([partial(np.take, indices=0, axis=1)])),
    (ClassifierOracle(tree()), ClassifierOracle(tree())),
    (ClassifierOracle(scaled_tree()), ClassifierOracle(scaled_tree())),
    (network(trunk=own_trunk()), network(trunk=own_trunk())),
    (NeuralOracle(training=Training(epochs=2)), NeuralOracle(training=Training(epochs=2))),
]
DIFFERENT = [
    (CoordinateOracle(3), CoordinateOracle(2)),
    (CoordinateOracle(), FiniteOracle([Bit(0)])),
    (CoordinateOracle(), "coordinates"),
    (FiniteOracle([Bit(0), Bit(1)]), FiniteOracle([Bit(0), Bit(2)])),
    (FiniteOracle([lambda x: x[:, 0]]), FiniteOracle([lambda x: x[:, 0]])),  # nobody can tell whether they are equal
    (FiniteOracle([partial(np.take, indices=0, axis=1)]), FiniteOracle([partial(np.take, indices=1, axis=1)])),
    (ClassifierOracle(tree()), ClassifierOracle(tree(min_samples_leaf=3))),
    (ClassifierOracle(tree()), ClassifierOracle(LogisticRegression())),
    (ClassifierOracle(scaled_tree()), ClassifierOracle(make_pipeline(tree()))),
    (network(trunk=own_trunk()), network(trunk=torch.nn.Linear(12, 6))),
    (network(trunk=torch.nn.Linear(12, 6)), network(trunk=torch.nn.Linear(12, 6))),  # other weights
    (network(), network(trunk=own_trunk())),
    (NeuralOracle(training=Training(epochs=2)), NeuralOracle(training=Training(epochs=3))),
]


def test_oracles_are_equal_if_their_parameters_are():
    for one, other in EQUAL:
        assert one == other
    for one, other in DIFFERENT:
        assert one != other


def test_a_classifier_that_is_given_stays_unfitted():
    classifier = tree()
    model = fitted(CRAFT(classifier, **BOUNDS), *rows_of("features"))
    assert model.oracle is classifier
    assert not hasattr(classifier, "tree_")
    assert model.oracle_.classifier is classifier


def test_a_trunk_that_is_given_keeps_its_weights_and_its_mode():
    trunk = own_trunk()
    before = {name: weight.clone() for name, weight in trunk.state_dict().items()}
    model = fitted(CRAFT(network(trunk=trunk), **BOUNDS, stationary=True), *rows_of("features"))
    assert all(torch.equal(before[name], weight) for name, weight in trunk.state_dict().items())
    assert trunk.training
    assert model.oracle.trunk is trunk
    assert not any(part.requires_grad and part.grad is not None for part in trunk.parameters())


def test_a_wrong_parameter_shows_at_fit_and_not_before():
    model = CRAFT(alpha=-1.0).set_params(eta="large")
    with pytest.raises(InvalidParameterError, match="alpha must be a positive number"):
        model.fit(*rows_of("bits"))
