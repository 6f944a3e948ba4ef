"""Models as files: the same model comes back, whatever its oracle, without pickle."""

import importlib
import json
import pickle
import pkgutil
import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import craftrl
from craftrl import (
    CRAFT,
    AssumptionWarning,
    ClassifierOracle,
    CoordinateOracle,
    InvalidParameterError,
)
from craftrl.core.oracle import EncoderFit
from craftrl.core.saved import Savable
from craftrl.estimators.base import Learner
from craftrl.oracles.finite import PreparedCounting
from craftrl.paper import baselines
from shipped import BOUNDS, ORACLES, fitted, rows_of

NEEDS_ORACLE = {"functions", "functions of each step", "network with a trunk of one's own"}


def same(a, b):
    """Equal all the way down, arrays and records included."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return a == b


def refuse(*given, **more):
    raise AssertionError("a pickle was read")


def round_trip(model, folder, **given):
    """Saved, and loaded without any pickle."""
    model.save(folder / "model")
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((pickle, "load"), (pickle, "loads"), (torch, "load")):
            patch.setattr(module, name, refuse)
        return craftrl.load(folder / "model", **given)


KINDS = [(name, stationary) for name in ORACLES for stationary in (False, True)]
KINDS.remove(("classifier without probabilities", True))  # which takes longest, and is saved as a classifier is


@pytest.mark.parametrize(("name", "stationary"), KINDS)
def test_every_kind_of_model_comes_back(name, stationary, tmp_path):
    kind, make = ORACLES[name]
    if stationary and name == "functions of each step":
        pytest.skip("has no encoder for all steps")
    x, agent = rows_of(kind)
    oracle = make()
    model = fitted(CRAFT(oracle, **BOUNDS, stationary=stationary), x, agent)
    again = round_trip(model, tmp_path, **({"oracle": oracle} if name in NEEDS_ORACLE else {}))
    assert np.array_equal(again.transform(x), model.transform(x))
    assert repr(again) == repr(model)
    assert again.oracle_ == model.oracle_
    assert again.agents_ == model.agents_
    assert again.bounds_ == model.bounds_
    assert same(again.choices_, model.choices_)
    assert same(again.trace_.steps, model.trace_.steps)
    assert same(again.trace_.grid, model.trace_.grid)
    assert same(again.trace_.oracle_use, model.trace_.oracle_use)
    assert np.array_equal(again.labels_, model.labels_)
    assert again.labels_.dtype == model.labels_.dtype
    assert list(again.n_states_) == list(model.n_states_)
    mine, theirs = (str(each.diagnose(x, agent, n_resamples=0)) for each in (again, model))
    assert mine == theirs
    if stationary:
        assert same(getattr(again, "matching_", None), getattr(model, "matching_", None))
        assert np.array_equal(again.encode(x[:, 1]), model.encode(x[:, 1]))


CLASSIFIERS = [
    RandomForestClassifier(5, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    HistGradientBoostingClassifier(max_iter=5, random_state=0),
    KNeighborsClassifier(5, algorithm="kd_tree"),
    KNeighborsClassifier(5, algorithm="ball_tree", metric="manhattan"),
    KNeighborsClassifier(5, algorithm="brute"),
    make_pipeline(StandardScaler(), PCA(2), QuadraticDiscriminantAnalysis(reg_param=0.5)),
    SVC(),
    GaussianNB(),
    MLPClassifier(8, early_stopping=True, max_iter=1000, random_state=0),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda kind: type(kind).__name__)
def test_classifiers_of_all_kinds_come_back(classifier, tmp_path):
    x, agent = rows_of("features")
    model = fitted(CRAFT(ClassifierOracle(classifier, folds=2, calibrate=False), **BOUNDS), x, agent)
    again = round_trip(model, tmp_path)
    assert np.array_equal(again.transform(x), model.transform(x))
    assert np.array_equal(again.f_(x), model.f_(x))


def test_a_loaded_model_is_fitted_again_as_it_was(tmp_path):
    x, agent = rows_of("bits")
    model = fitted(CRAFT(), x, agent)
    again = round_trip(model, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        assert str(again.diagnose(x, agent, n_resamples=2)) == str(model.diagnose(x, agent, n_resamples=2))
    assert np.array_equal(fitted(again, x, agent).labels_, model.labels_)


def test_names_of_agents_parameters_and_both_encoders_of_a_step_come_back(tmp_path):
    """All learners go through `check_learner`, which saves and loads them."""
    x, agent = rows_of("bits")
    model = fitted(CRAFT(CoordinateOracle(n_threads=1), **BOUNDS), x, np.array(["left", "right"])[agent])
    again = round_trip(model, tmp_path)
    assert again.agents_ == ("left", "right")
    assert again.oracle == CoordinateOracle(n_threads=1)
    paired = fitted(baselines.PairedObservation(CoordinateOracle()), x, agent)
    paired.save(tmp_path / "paired")
    assert same(list(craftrl.load(tmp_path / "paired").candidates_), list(paired.candidates_))


def test_many_states_do_not_overflow_in_what_is_loaded(tmp_path):
    rng = np.random.default_rng(0)
    x = np.stack([np.zeros(400, dtype=int), rng.integers(16, size=400), rng.integers(16, size=400)], axis=1)[..., None]
    model = fitted(CRAFT(CoordinateOracle(16), alpha=1.0, eta=0.1, nu=0.01), x, np.arange(400) % 2)
    again = round_trip(model, tmp_path)
    assert again.labels_.dtype == np.int64
    assert again.transform(x).dtype == np.int64


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    class Prepared(PreparedCounting):
        def encode(self, h, label, n_states):
            return EncoderFit(lambda x: np.zeros(len(x), dtype=int), 0.0)

    class Own(CoordinateOracle):
        def prepare(self, tau):
            return Prepared(self, tau)

    x, agent = rows_of("bits")
    model = fitted(CRAFT(Own(), **BOUNDS), x, agent)
    with pytest.raises(InvalidParameterError, match="of kinds that files can hold; function is none"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidParameterError, match="of kinds that files can hold; Sub is none"):
        fitted(type("Sub", (CRAFT,), {})(**BOUNDS), x, agent).save(tmp_path / "model")


def test_an_oracle_of_ones_own_with_our_encoders_is_asked_for_only_when_it_is_needed(tmp_path):
    class Own(CoordinateOracle):
        pass

    x, agent = rows_of("bits")
    model = fitted(CRAFT(Own(), **BOUNDS), x, agent)
    again = round_trip(model, tmp_path)
    assert np.array_equal(again.transform(x), model.transform(x))
    with pytest.raises(InvalidParameterError, match=r"was Own\(\), which no file holds"):
        again.diagnose(x, agent)
    given = craftrl.load(tmp_path / "model", oracle=Own())
    assert str(given.diagnose(x, agent, n_resamples=0)) == str(model.diagnose(x, agent, n_resamples=0))


def test_a_classifier_that_no_file_can_hold_is_refused(tmp_path):
    x, agent = rows_of("features")
    classifier = make_pipeline(FunctionTransformer(lambda z: z), DecisionTreeClassifier(max_depth=3, random_state=0))
    model = fitted(CRAFT(classifier, **BOUNDS), x, agent)
    with pytest.raises(InvalidParameterError, match=r"<lambda>, which cannot be imported by name"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_any_path_is_the_file_itself_and_any_reader_of_safetensors_opens_it(tmp_path):
    model = fitted(CRAFT(ORACLES["network of vectors"][1](), **BOUNDS), *rows_of("features"))
    model.save(tmp_path / "new folder" / "model.safetensors")
    model.save(tmp_path / "model")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "model",
        "new folder/model.safetensors",
    ]
    with safe_open(tmp_path / "model", "numpy") as file:
        content = json.loads(file.metadata()["craftrl"])
        weights = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118
    assert (content["model"], content["craftrl"]) == ("CRAFT", craftrl.__version__)
    assert any(np.array_equal(array, value) for value in weights_of(model) for array in weights)


def weights_of(model):
    return [value.numpy() for value in model.encoders_[2].trunk.state_dict().values() if value.ndim == 2]


def test_the_same_model_is_the_same_file(tmp_path):
    model = fitted(CRAFT(CoordinateOracle(), **BOUNDS), *rows_of("bits"))
    model.save(tmp_path / "one")
    craftrl.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


LOADED = """
import sys, craftrl
from craftrl.core.saved import Savable
from craftrl.estimators.base import Learner
from craftrl.estimators.saving import _class
craftrl.load(sys.argv[1])
assert "torch" not in sys.modules
for name in sys.argv[3].split():
    assert _class(Learner if name in sys.argv[2].split() else Savable, name).__name__ == name
"""


def test_files_find_every_class_of_the_package_and_torch_waits_until_a_network_needs_it(tmp_path):
    for module in pkgutil.walk_packages(craftrl.__path__, "craftrl."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    learners, savable = ({cls.__name__ for cls in _subclasses(base)} for base in (Learner, Savable))
    assert {"CRAFT", "DRAFT"} <= learners
    assert {"CoordinateEncoder", "NetworkEncoder", "Training"} <= savable
    fitted(CRAFT(CoordinateOracle(), **BOUNDS), *rows_of("bits")).save(tmp_path / "model")
    names = " ".join(learners), " ".join(learners | savable)
    subprocess.run([sys.executable, "-c", LOADED, str(tmp_path / "model"), *names], check=True)


def _subclasses(base):
    found = [cls for cls in base.__subclasses__() if cls.__module__.startswith("craftrl.")]
    assert len({cls.__name__ for cls in found}) == len(found)
    return {*found, *(each for cls in found for each in _subclasses(cls))}
