"""scikit-learn's contract: its own checks where they apply, and the uses that the contract is for.

Its other checks fit flat tables, call `predict` or `score`, or need sample weights, sparse input, pandas or feature
names. What they ask beside that (fit twice, pickle, order of rows, no attribute without `_`) is in
`craftrl.testing.check_learner`.
"""

import pickle
from functools import partial

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, NotFittedError
from craftrl.paper import baselines
from shipped import BOUNDS, ORACLES, fitted, rows_of, tree

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
NAMES = ("SingleObservation", "PairedObservation", "DRAFT", "RecursiveDRAFT")
LEARNERS = {"CRAFT": CRAFT} | {name: partial(getattr(baselines, name), CoordinateOracle()) for name in NAMES}
SUBJECTS = LEARNERS | {name: make for name, (_, make) in ORACLES.items()}


@pytest.mark.parametrize("name", SUBJECTS)
def test_scikit_learns_own_checks(name):
    for check in OF_PARAMETERS + (OF_LEARNERS if name in LEARNERS else []):
        getattr(estimator_checks, check)(name, SUBJECTS[name]())


def test_check_is_fitted_knows_before_from_after():
    with pytest.raises(NotFittedError):
        CRAFT().transform(np.zeros((2, 2, 2)))
    x, agent = rows_of("bits")
    model = fitted(CRAFT(**BOUNDS), x=x, agent=agent)  # by name
    check_is_fitted(model)
    assert np.array_equal(model.transform(x=x), model.transform(x))


def negated(x):
    return 1 - x


def test_a_pipeline_prepares_observations_and_parameters_are_reached_through_all_layers():
    x, agent = rows_of("bits")
    pipeline = make_pipeline(FunctionTransformer(negated), CRAFT(CoordinateOracle(), **BOUNDS))
    states = fitted(clone(pipeline), x, agent).transform(x)
    assert np.array_equal(states, fitted(CRAFT(CoordinateOracle(), **BOUNDS), 1 - x, agent).transform(1 - x))
    for setting in ParameterGrid({"craft__oracle__n_values": [2, 3], "craft__nu": [0.1, 0.2]}):
        model = clone(pipeline).set_params(**setting)["craft"]
        assert (model.oracle.n_values, model.nu) == (setting["craft__oracle__n_values"], setting["craft__nu"])
    assert pipeline["craft"].oracle.n_values == 2
    deep = CRAFT(ClassifierOracle(tree())).set_params(oracle__classifier__max_depth=7)
    assert deep.oracle.classifier.max_depth == 7
    with pytest.raises(ValueError, match="Invalid parameter 'n_values' for estimator ClassifierOracle"):
        deep.set_params(oracle__n_values=2)


@pytest.mark.slow
def test_fits_run_in_other_processes_and_come_back_by_pickle():
    x, agent = rows_of("bits")
    models = [CRAFT(CoordinateOracle(), **(BOUNDS | {"nu": nu})) for nu in (0.1, 0.2)]
    elsewhere = Parallel(n_jobs=2, backend="loky")(delayed(model.fit)(x, agent) for model in models)
    for here, there in zip(models, elsewhere):
        assert np.array_equal(fitted(here, x, agent).transform(x), there.transform(x))
        assert list(map(str, here.choices_)) == list(map(str, there.choices_))
    assert np.array_equal(pickle.loads(pickle.dumps(models[0])).labels_, elsewhere[0].labels_)
