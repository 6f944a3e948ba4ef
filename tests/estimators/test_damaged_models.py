"""Folders that are no model, or no longer one, and targets that must not be overwritten: one sentence each."""

import json
import shutil

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import craftrl
from craftrl import CRAFT, CoordinateOracle, FiniteOracle, InvalidDataError, InvalidParameterError
from craftrl.data.seals import file_digest, sealed
from shipped import BOUNDS, ORACLES, fitted, rows_of

ALTERED = "The files of a model must be as save wrote them; those in .* are incomplete or altered"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of models, one for each kind of oracle asked for."""
    folders = {}

    def folder(name):
        if name not in folders:
            kind, make = ORACLES[name]
            folders[name] = tmp_path_factory.mktemp("saved") / "model"
            fitted(CRAFT(make(), **BOUNDS), *rows_of(kind)).save(folders[name])
        return folders[name]

    return folder


@pytest.fixture
def model(saved, tmp_path):
    return shutil.copytree(saved("coordinates"), tmp_path / "model")


def edit(folder, change):
    """The configuration, changed by somebody who knows about checksums."""
    file = folder / "config.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    seal_again(folder)


def seal_again(folder):
    file = folder / "config.json"
    content = json.loads(file.read_text())
    content.pop("checksum", None)
    content["files"] = {path.name: file_digest(path) for path in folder.iterdir() if path != file}
    file.write_text(json.dumps(sealed(content)))


def object_of(content, kind):
    return next(each for each in content["objects"] if each["kind"] == kind)


def drop(*keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


def drop_both(one, other):
    """Neither is needed where the other is there: labels stay with shards, and old models did not describe the data."""

    def change(content):
        del content["learned"][one], content["learned"][other]

    return change


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(content):
        for key in keys:
            content = content[key]
        content[last] = value

    return change


def in_object(kind, *keys_and_value):
    return lambda content: put(*keys_and_value)(object_of(content, kind))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("model", "Guess"), "there is no model 'Guess'"),
        (put("model", ["CRAFT"]), "there is no model"),
        (drop("model"), "config.json has no 'model'"),
        (drop("objects"), "config.json has no 'objects'"),
        (drop("learned"), "config.json has no 'learned'"),
        (drop("parameters"), "config.json has no 'parameters'"),
        (drop("learned", "encoders_"), "encoders_ must hold one encoder for each"),
        (drop("learned", "bounds_"), "bounds_ must be a Bounds, and is None"),
        (drop("learned", "trace_"), "trace_ must be a Trace, and is None"),
        (drop("learned", "choices_"), "choices_ must be a tuple, and is None"),
        (drop("learned", "n_states_"), "n_states_ must be a ByStep, and is None"),
        (drop_both("labels_", "data_"), "labels_ is missing"),
        (drop("learned", "oracle_"), "oracle_ is missing"),
        (put("learned", "trace_", 3), "trace_ must be a Trace, and is 3"),
        (drop("learned", "obs_shape_"), "obs_shape_ must be positive integers, and is None"),
        (put("parameters", "speed", 3), "unexpected keyword argument 'speed'"),
        (put("learned", "__class__", 3), "a model learns nothing called '__class__'"),
        (put("learned", "transform", 3), "a model learns nothing called 'transform'"),
        (put("learned", "labels_", {"pickle": "x"}), "there is no tag 'pickle'"),
        (put("learned", "labels_", {}), r"must have one tag, and \[\] were found"),
        (put("learned", "labels_", {"array": "a0", "tuple": []}), "must have one tag"),
        (put("learned", "labels_", {"array": "b9"}), "there is no array 'b9'"),
        (put("learned", "labels_", {"object": 999}), "there is no object number 999"),
        (put("learned", "labels_", {"object": -1}), "there is no object number -1"),
        (put("learned", "labels_", {"function": "eval"}), "there is no function 'eval'"),
        (put("learned", "labels_", {"estimator": 0}), "FileNotFoundError"),
        (in_object("CoordinateEncoder", "kind", "os.system"), "there is no kind of object 'os.system'"),
        (in_object("CoordinateEncoder", "parts", "feature", 6), "reads entry 6 of observations with 6"),
        (in_object("CoordinateEncoder", "parts", "feature", -1), "reads entry -1 of observations with 6"),
        (in_object("CoordinateEncoder", "parts", "feature", 1.5), "reads entry 1.5 of observations with 6"),
        (in_object("CoordinateEncoder", "parts", "colour", 1), "unexpected keyword argument 'colour'"),
        (in_object("CoordinateEncoder", "parts", {"feature": 1}), "state_of"),
        (put("learned", "obs_shape_", {"tuple": [-6]}), "obs_shape_ must be positive integers"),
        (put("learned", "obs_shape_", {"tuple": [3]}), "of observations with 3"),
        (put("learned", "n_states_", {"by_step": [1, 2]}), r"a number for each of 4 steps, and is \[1, 2\]"),
        (put("learned", "n_states_", {"by_step": [1, 2, 2, "two"]}), "a number for each of 4 steps"),
        (put("learned", "encoders_", {"by_step": []}), "encoders_ must hold one encoder for each"),
        (put("learned", "encoders_", {"by_step": [1, 2, 3, 4]}), "encoders_ must hold one encoder for each"),
        (put("learned", "labels_", [1, 2]), r"states of trajectories at 4 steps, and has shape \(2,\)"),
    ],
)
def test_an_edited_configuration_is_refused(model, change, reason):
    edit(model, change)
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*{reason}") as caught:
        craftrl.load(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("state_of", np.array([0, 7]), r"must name states below 2, and names \[0, 7\]"),
        ("state_of", np.array([0, -1]), r"must name states below 2, and names \[0, -1\]"),
        ("state_of", np.array([[0, 1]]), "must name states below 2"),
    ],
)
def test_altered_arrays_are_refused(model, name, values, reason):
    from safetensors.numpy import load_file, save_file

    content = json.loads((model / "config.json").read_text())
    arrays = load_file(model / "arrays.safetensors")
    arrays[object_of(content, "CoordinateEncoder")["parts"][name]["array"]] = values
    save_file(arrays, model / "arrays.safetensors")
    seal_again(model)
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*{reason}"):
        craftrl.load(model)


def test_a_network_with_weights_of_another_shape_is_refused(saved, tmp_path):
    from safetensors.numpy import load_file, save_file

    model = shutil.copytree(saved("network of vectors"), tmp_path / "model")
    arrays = {name: a[:-1] if a.ndim == 2 else a for name, a in load_file(model / "arrays.safetensors").items()}
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, model / "arrays.safetensors")
    seal_again(model)
    with pytest.raises(InvalidDataError, match=ALTERED):
        craftrl.load(model)


@pytest.mark.parametrize("name", ["network of vectors", "classifier"])
def test_encoders_of_other_observations_are_refused(saved, tmp_path, name):
    model = shutil.copytree(saved(name), tmp_path / "model")
    edit(model, put("learned", "obs_shape_", {"tuple": [5]}))
    with pytest.raises(InvalidDataError, match=r"does not take observations of shape \(5,\)"):
        craftrl.load(model)


def test_missing_and_truncated_files_are_refused(model, saved, tmp_path):
    arrays = model / "arrays.safetensors"
    whole = arrays.read_bytes()
    arrays.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*arrays.safetensors: its checksum does not fit"):
        craftrl.load(model)
    seal_again(model)
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*arrays.safetensors is cut short or damaged"):
        craftrl.load(model)
    arrays.unlink()
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*arrays.safetensors is missing"):
        craftrl.load(model)
    trees = shutil.copytree(saved("classifier"), tmp_path / "trees")
    (trees / "estimator-0.skops").write_bytes(b"no archive")
    with pytest.raises(InvalidDataError, match=ALTERED):
        craftrl.load(trees)


def test_one_number_changed_by_hand_is_noticed(model):
    file = model / "config.json"
    whole = file.read_text()
    content = json.loads(whole)
    content["learned"]["n_states_"]["by_step"][-1] += 1
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidDataError, match=f"{ALTERED} .*config.json: its checksum does not fit"):
        craftrl.load(model)
    file.write_text(json.dumps(json.loads(whole)))  # other white space says the same
    craftrl.load(model)


def test_a_model_without_checksums_is_one_of_an_older_format(model):
    content = json.loads((model / "config.json").read_text())
    del content["checksum"]
    (model / "config.json").write_text(json.dumps(content))
    with pytest.raises(InvalidDataError, match="checksum"):
        craftrl.load(model)
    del content["files"]
    (model / "config.json").write_text(json.dumps({**content, "format_version": 2}))
    craftrl.load(model)


def test_a_model_of_a_newer_version_is_refused(model):
    edit(model, put("format_version", 99))
    edit(model, put("craftrl", "9.0"))
    with pytest.raises(
        InvalidDataError, match=r"was saved by craftrl 9.0 in format 99; this is .* install a newer one"
    ):
        craftrl.load(model)


@pytest.mark.parametrize("content", [None, "", "{", "[]", "[1]", "{}", '{"format": "another"}', "[" * 100_000, "\xff"])
def test_a_folder_that_is_no_model_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(
        InvalidDataError, match=r"A model must be a folder that save or craftrl fit has written; .* has no"
    ):
        craftrl.load(tmp_path)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("text")
    for path in (tmp_path / "file", tmp_path / "nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(InvalidDataError, match="A model must be a folder that save"):
            craftrl.load(path)


def test_functions_and_trunks_must_be_given_again(saved):
    with pytest.raises(InvalidParameterError, match=r"are functions, which no file holds; .* oracle=FiniteOracle"):
        craftrl.load(saved("functions"))
    with pytest.raises(InvalidParameterError, match=r"a trunk of your own, whose code no file holds; .*NeuralOracle"):
        craftrl.load(saved("network with a trunk of one's own"))
    with pytest.raises(InvalidParameterError, match="are functions, which no file holds"):
        craftrl.load(saved("mixed with functions"))


def test_another_oracle_than_the_one_fitted_is_refused(saved):
    with pytest.raises(InvalidParameterError, match=r"are functions, which no file holds"):
        craftrl.load(saved("functions"), oracle=CoordinateOracle())
    with pytest.raises(InvalidParameterError, match="that was a CoordinateOracle, and a FiniteOracle was given"):
        craftrl.load(saved("coordinates"), oracle=FiniteOracle([len]))
    with pytest.raises(InvalidParameterError, match=r"it has 0 functions at h = 2, and the model needs number"):
        craftrl.load(saved("functions"), oracle=FiniteOracle([]))
    with pytest.raises(InvalidParameterError, match="oracle must be the oracle that was fitted, or None; 'functions'"):
        craftrl.load(saved("functions"), oracle="functions")


class Majority(ClassifierMixin, BaseEstimator):
    """A classifier of the user's own, which no list of known types has."""

    def fit(self, x, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.best_ = self.classes_[counts.argmax()]
        return self

    def predict(self, x):
        return np.full(len(x), self.best_)

    def predict_proba(self, x):
        return np.full((len(x), len(self.classes_)), 1 / len(self.classes_))


def test_a_classifier_of_unknown_type_is_loaded_only_if_it_is_trusted(tmp_path):
    x, agent = rows_of("features")
    model = fitted(CRAFT(Majority(), **BOUNDS), x, agent)
    model.save(tmp_path / "model")
    with pytest.raises(
        InvalidDataError, match=r"only if every type in it is known; .*Majority; .*trusted=\['.*Majority"
    ):
        craftrl.load(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", trusted=[f"{__name__}.Majority"])
    assert np.array_equal(again.transform(x), model.transform(x))


def test_a_model_is_overwritten_only_when_asked_and_nothing_else_ever(model, tmp_path):
    other = fitted(CRAFT(CoordinateOracle(), **(BOUNDS | {"nu": 0.2})), *rows_of("bits"))
    with pytest.raises(
        InvalidParameterError, match="holds a model already; choose another name, or replace it with overwrite=True"
    ):
        other.save(model)
    assert craftrl.load(model).nu == 0.1
    other.save(model, overwrite=True)
    assert craftrl.load(model).nu == 0.2
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(model)
    for name in ("folder", "file", "link"):
        for overwrite in (False, True):
            with pytest.raises(
                InvalidParameterError, match=f"{name} exists and is no model of ours; choose another name"
            ):
                other.save(tmp_path / name, overwrite=overwrite)
    edit(model, put("format", "another"))
    with pytest.raises(InvalidDataError, match="A model must be a folder that save"):
        other.save(model, overwrite=True)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("text")
    model = fitted(CRAFT(CoordinateOracle(), **BOUNDS), *rows_of("bits"))
    with pytest.raises(craftrl.CraftError, match="The output folder must be writable"):
        model.save(tmp_path / "file" / "model")
