"""Models as files: the same model comes back, whatever its oracle, without pickle; anything else is one sentence."""

import hashlib
import importlib
import json
import os
import pickle
import pkgutil
import shutil
import subprocess
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import craftrl
from craftrl import (
    CRAFT,
    ClassifierOracle,
    CoordinateOracle,
    CraftError,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
)
from craftrl.core.saved import Savable
from craftrl.estimators.base import Learner
from craftrl.paper import PairedObservation
from shipped import BOUNDS, ORACLES, fitted, rows_of, tree

ALTERED = "A model must be as save wrote it; .* was cut short or altered"
NONE = "A model must be a file that save or craftrl fit has written; "
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


def round_trip(model, folder, **given):
    """Saved, and loaded without any pickle."""

    def refuse(*given, **more):
        raise AssertionError("a pickle was read")

    model.save(folder / "model")
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((pickle, "load"), (pickle, "loads"), (torch, "load")):
            patch.setattr(module, name, refuse)
        return craftrl.load(folder / "model", **given)


def on_bits(oracle=None, **more):
    return fitted(CRAFT(oracle or CoordinateOracle(), **(BOUNDS | more)), *rows_of("bits"))


def on_features(classifier):
    return fitted(CRAFT(ClassifierOracle(classifier, folds=2, repeats=1), **BOUNDS), *rows_of("features"))


def refused(path, sentence, kind=InvalidDataError, **given):
    with pytest.raises(kind, match=sentence) as caught:
        craftrl.load(path, **given)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Files of models, one for each kind of oracle asked for."""
    files = {}

    def file(name):
        if name not in files:
            kind, make = ORACLES[name]
            files[name] = tmp_path_factory.mktemp("saved") / "model"
            fitted(CRAFT(make(), **BOUNDS), *rows_of(kind)).save(files[name])
        return files[name]

    return file


@pytest.fixture
def model(saved, tmp_path):
    return shutil.copy(saved("coordinates"), tmp_path / "model")


# -- what comes back --------------------------------------------------------------------------------------------------

FIRST = ("coordinates", False), ("classifier", True), ("network of images", True), ("functions of each step", False)
KINDS = [(name, stationary) for name in ORACLES for stationary in (False, True)]
KINDS.remove(("classifier without probabilities", True))  # which takes longest, and is saved as a classifier is
KINDS.remove(("functions of each step", True))  # which have no encoder for all steps


@pytest.mark.parametrize(
    ("name", "stationary"), [pytest.param(*kind, marks=[pytest.mark.slow] * (kind not in FIRST)) for kind in KINDS]
)
def test_every_kind_of_model_comes_back(name, stationary, tmp_path):
    kind, make = ORACLES[name]
    (x, agent), oracle = rows_of(kind), make()
    model = fitted(CRAFT(oracle, **BOUNDS, stationary=stationary), x, agent)
    again = round_trip(model, tmp_path, **({"oracle": oracle} if name in NEEDS_ORACLE else {}))
    assert repr([again, again.oracle_, again.choices_]) == repr([model, model.oracle_, model.choices_])
    for learned in ("labels_", "n_states_", "agents_", "bounds_"):
        assert same(getattr(again, learned), getattr(model, learned))
    for part in ("steps", "grid", "oracle_use", "findings", "start"):
        assert same(getattr(again.trace_, part), getattr(model.trace_, part))
    assert again.labels_.dtype == model.labels_.dtype
    assert again.summary() == model.summary()
    assert np.array_equal(again.transform(x), model.transform(x))
    assert np.array_equal(again.log_odds(x), model.log_odds(x))
    assert len({str(each.diagnose(x, agent, n_resamples=0)) for each in (again, model)}) == 1
    if stationary:
        assert np.array_equal(again.encode(x[:, 1]), model.encode(x[:, 1]))


def test_a_loaded_model_is_fitted_again_as_it_was(tmp_path):
    x, agent = rows_of("bits")
    model = fitted(CRAFT(CoordinateOracle(n_threads=np.int64(1))), x, np.array(["left", "right"])[agent])
    again = round_trip(model, tmp_path)
    assert again.agents_ == ("left", "right")
    assert again.oracle.n_threads == 1
    assert np.array_equal(fitted(again, x, agent).labels_, model.labels_)
    paired = fitted(PairedObservation(CoordinateOracle()), x, agent)
    paired.save(tmp_path / "paired")
    assert same(list(craftrl.load(tmp_path / "paired").candidates_), list(paired.candidates_))


def test_many_states_do_not_overflow_in_what_is_loaded(tmp_path):
    x = np.random.default_rng(0).integers(16, size=(400, 3, 1)) * [[0], [1], [1]]
    model = fitted(CRAFT(CoordinateOracle(16), alpha=1.0, eta=0.1, nu=0.01), x, np.arange(400) % 2)
    again = round_trip(model, tmp_path)
    assert again.labels_.dtype == again.transform(x).dtype == np.int64


def test_an_oracle_of_ones_own_with_our_encoders_is_asked_for_only_when_it_is_needed(tmp_path):
    class Own(CoordinateOracle):
        pass

    x, agent = rows_of("bits")
    model = on_bits(Own())
    again = round_trip(model, tmp_path)
    assert np.array_equal(again.transform(x), model.transform(x))
    with pytest.raises(InvalidParameterError, match=r"was Own\(\), which no file holds"):
        again.diagnose(x, agent)
    given = craftrl.load(tmp_path / "model", oracle=Own())
    assert str(given.diagnose(x, agent, n_resamples=0)) == str(model.diagnose(x, agent, n_resamples=0))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    own = on_bits()
    own.encoders_ = type(own.encoders_)([len] * len(own.encoders_))
    nameless = make_pipeline(FunctionTransformer(lambda z: z), tree())
    for model, told in (
        (own, "of kinds that files can hold; builtin_function_or_method is none"),
        (fitted(type("Sub", (CRAFT,), {})(**BOUNDS), *rows_of("bits")), "of kinds that files can hold; Sub is none"),
        (on_features(nameless), r"<lambda>, which cannot be imported by name"),
    ):
        with pytest.raises(InvalidParameterError, match=told):
            model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_any_path_is_the_file_itself_and_any_reader_of_safetensors_opens_it(saved, tmp_path):
    model = craftrl.load(saved("network of vectors"))
    model.save(tmp_path / "new folder" / "model.safetensors")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file == tmp_path / "new folder/model.safetensors"
    assert file.read_bytes() == saved("network of vectors").read_bytes()  # the same model is the same file
    with safe_open(file, "numpy") as opened:
        content = json.loads(opened.metadata()["craftrl"])
        weights = [opened.get_tensor(name) for name in opened.keys()]  # noqa: SIM118
    assert (content["model"], content["craftrl"]) == ("CRAFT", craftrl.__version__)
    mine = [value.numpy() for value in model.encoder_.trunk.state_dict().values() if value.ndim == 2]
    assert any(np.array_equal(array, value) for value in mine for array in weights)


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


def test_files_find_every_class_of_the_package_and_torch_waits_until_a_network_needs_it(model):
    def subclasses(base):
        found = [cls for cls in base.__subclasses__() if cls.__module__.startswith("craftrl.")]
        assert len({cls.__name__ for cls in found}) == len(found)
        return {*found, *(each for cls in found for each in subclasses(cls))}

    for module in pkgutil.walk_packages(craftrl.__path__, "craftrl."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    learners, savable = ({cls.__name__ for cls in subclasses(base)} for base in (Learner, Savable))
    assert {"CRAFT", "DRAFT"} <= learners
    assert {"CoordinateEncoder", "NetworkEncoder", "Training"} <= savable
    names = " ".join(learners), " ".join(learners | savable)
    subprocess.run([sys.executable, "-c", LOADED, str(model), *names], check=True)


# -- damage -----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), cut=st.integers(0, 40), inserted=st.binary(max_size=40))
@example(at=0, cut=0, inserted=b"")
@example(at=1, cut=0, inserted=b"more")
@example(at=0, cut=10**9, inserted=b"")
def test_a_file_that_was_changed_anywhere_is_refused(model, saved, at, cut, inserted):
    whole = saved("coordinates").read_bytes()
    at = round(at * len(whole))
    changed = whole[:at] + inserted + whole[at + cut :]
    model.write_bytes(changed)
    if changed == whole:
        assert craftrl.load(model).transform(rows_of("bits")[0]).shape == (300, 4)
    else:
        refused(model, ".")


def test_every_bit_of_the_checksum_counts_and_it_is_of_the_whole_file(model, saved):
    whole = saved("coordinates").read_bytes()
    start = whole.index(b"sha256")
    for i in (*range(start, start + 90), *range(len(whole) - 40, len(whole))):
        model.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        refused(model, "its checksum does not fit" if i > start + 90 else ".")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 99, b"\2\0\0\0\0\0\0\0{}", tensor_bytes({}),
                                     (10**5).to_bytes(8, "little") + b"[" * 10**5])  # fmt: skip
def test_what_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    refused(tmp_path / "file", f"{NONE}.*file cannot be read, is of another kind, or was cut")
    refused(tmp_path, f"{NONE}{tmp_path} is a folder")
    refused(str(tmp_path / "no" / "where"), f"{NONE}{tmp_path}/no/where is not there")


# -- files with a checksum that fits, changed by somebody who knows about checksums -----------------------------------


def reseal(path, change):
    """Change what a file says, its JSON and its tensors."""
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    content, tensors = json.loads(header["__metadata__"]["craftrl"]), read_tensors(data)
    change(content, tensors)
    data = tensor_bytes(tensors, {"craftrl": json.dumps({**content, "sha256": "0" * 64})})
    path.write_bytes(data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode(), 1))


def put(*keys_and_value):
    """A change of the JSON: of the value that these keys lead to."""
    *keys, last, value = keys_and_value

    def change(content, tensors):
        for key in keys:
            content = content[key]
        content[last] = value

    return change


def in_object(kind, *keys_and_value):
    return lambda content, tensors: put(*keys_and_value)(
        next(each for each in content["objects"] if each["kind"] == kind), tensors
    )


def cut_weights(content, tensors):
    tensors.update({name: np.ascontiguousarray(a[:-1]) for name, a in tensors.items() if a.ndim == 2})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("model", "Guess"), "there is no Learner 'Guess'"),
        (put("parameters", "speed", 3), "unexpected keyword argument 'speed'"),
        (put("learned", "__class__", 3), "a model learns nothing called '__class__'"),
        (put("learned", "transform", 3), "a model learns nothing called 'transform'"),
        (put("learned", "labels_", {"pickle": "x"}), "there is no value 'pickle'"),
        (in_object("CoordinateEncoder", "kind", "os.system"), "there is no Savable 'os.system'"),
        (in_object("CoordinateEncoder", "kind", "CRAFT"), "there is no Savable 'CRAFT'"),
        (in_object("CoordinateEncoder", "parts", "colour", 1), "unexpected keyword argument 'colour'"),
    ],
)
def test_content_that_save_never_writes_is_refused(model, change, reason):
    reseal(model, change)
    refused(model, f"{ALTERED} .*({reason})")


def test_models_of_a_newer_version_and_weights_of_another_shape_are_refused(model, saved, tmp_path):
    reseal(model, lambda content, tensors: content.update(format_version=99, craftrl="9.0"))
    refused(model, r"was saved by craftrl 9.0 in format 99; .* install a newer one")
    network = shutil.copy(saved("network of vectors"), tmp_path / "network")
    reseal(network, cut_weights)
    refused(network, ALTERED)


def test_no_file_says_where_the_next_fit_writes(saved, tmp_path):
    theirs = tmp_path / "theirs"
    network = shutil.copy(saved("network of vectors"), tmp_path / "network")
    reseal(network, in_object("Training", "parts", "checkpoints", str(theirs)))
    assert craftrl.load(network).oracle.training.checkpoints is None
    on_features(make_pipeline(StandardScaler(), tree(), memory=str(theirs))).save(tmp_path / "pipeline")
    shutil.rmtree(theirs)
    for file in (network, tmp_path / "pipeline"):
        fitted(craftrl.load(file), *rows_of("features"))
    assert not theirs.exists()


class Majority(ClassifierMixin, BaseEstimator):
    """A classifier of the user's own, which no list of known types has."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        return np.full((len(x), len(self.classes_)), 1 / len(self.classes_))


def test_a_classifier_of_unknown_type_is_loaded_only_if_it_is_trusted(tmp_path):
    model, x = on_features(Majority()), rows_of("features")[0]
    model.save(tmp_path / "model")
    refused(tmp_path / "model", r"every type in it is known; .*Majority; .*trusted=\['.*Majority")
    again = craftrl.load(tmp_path / "model", trusted=[f"{__name__}.Majority"])
    assert np.array_equal(again.transform(x), model.transform(x))
    for trusted in (3, True, "sklearn.tree", [3]):
        refused(tmp_path / "model", "trusted must be a list", InvalidParameterError, trusted=trusted)


# -- what no file holds, and where none may be put --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "oracle", "told"),
    [
        ("functions", None, r"are functions, which no file holds; .* oracle=FiniteOracle"),
        ("network with a trunk of one's own", None, r"a trunk of your own, whose code no file holds; .*NeuralOracle"),
        ("functions", CoordinateOracle(), r"are functions, which no file holds"),
        ("functions", FiniteOracle([]), r"number \d+ of h = 2 is wanted of 0 that were given"),
        ("functions", "functions", "oracle must be the oracle that was fitted, or None; 'functions'"),
        ("coordinates", FiniteOracle([len]), "that was a CoordinateOracle, and a FiniteOracle was given"),
    ],
)
def test_functions_and_trunks_must_be_given_again_and_be_those_fitted(saved, name, oracle, told):
    refused(saved(name), told, InvalidParameterError, oracle=oracle)


def contents_of(folder):
    return {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()}


def test_a_model_is_overwritten_only_when_asked_and_nothing_else_ever(model, tmp_path):
    other = on_bits(nu=0.2)
    with pytest.raises(InvalidParameterError, match=r"must be a new file; .*model is there already; .*overwrite=True"):
        other.save(model)
    assert craftrl.load(model).nu == 0.1
    other.save(model, overwrite=True)
    assert craftrl.load(model).nu == 0.2
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "tensors").write_bytes(tensor_bytes({"weights": np.zeros(3)}))
    (tmp_path / "link").symlink_to(model)
    before = contents_of(tmp_path)
    for name, reason in {
        "folder": "is a folder; choose another name",
        "file": "exists and is no model of craftrl",
        "tensors": "exists and is no model of craftrl",
        "link": "is a link to",
    }.items():
        for overwrite in (True, False):
            with pytest.raises(InvalidParameterError, match=f"{name} {reason}" if overwrite else "."):
                other.save(tmp_path / name, overwrite=overwrite)
    assert before == contents_of(tmp_path)


def test_what_cannot_be_written_is_one_sentence_and_leaves_the_old_model(model, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("text")
    before = contents_of(tmp_path)

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for path, told in {
        "file/model": "The output folder must be writable",
        "model": "must be room for the model",
    }.items():
        with pytest.raises(CraftError, match=told):
            on_bits().save(tmp_path / path, overwrite=True)
    assert contents_of(tmp_path) == before
