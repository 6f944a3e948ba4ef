"""Datasets and models at URLs: the same as on a disk, whole or not there, and one sentence where a store refuses."""

import pickle

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import craftrl
from craftrl import CRAFT, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.data import DatasetWriter, read_actions, read_true_states, store
from craftrl.envs import BitsExBMDP, record
from craftrl.errors import MissingDependencyError, RemoteError
from data.literal import assert_is
from s3_server import running

s3 = pytest.fixture(scope="module")(running)
WORLD = BitsExBMDP(horizon=5, n_features=9, seed=0)
X = np.random.default_rng(0).integers(2, size=(470, 3, 9)).astype(np.uint8)
AGENT = [0] * 300 + [1] * 170
TAU = TrajectoryDataset.from_arrays([X[:300], X[300:]])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CRAFTRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "FILE_BYTES", 4000)
    return tmp_path / "cache"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def base(request, tmp_path):
    """A folder in each kind of place, as a user would name it."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://bucket/{request.node.name}"
    return f"memory://{request.node.name}" if request.param == "memory" else f"file://{tmp_path}/there"


def refusing(monkeypatch, method, part):
    """Have the store in memory refuse what touches a file of this name."""
    before = getattr(MemoryFileSystem, method)

    def refuse(self, *paths, **more):
        if any(part in str(path) for path in paths):
            raise PermissionError("no rights")
        return before(self, *paths, **more)

    monkeypatch.setattr(MemoryFileSystem, method, refuse)


def test_a_dataset_round_trip(base, cache):
    TAU.save(f"{base}/data")
    assert not list(cache.iterdir())  # what was uploaded is not kept
    assert not [name for name in fsspec.url_to_fs(base)[0].ls(f"{base}/data", detail=False) if "tmp" in name[-5:]]
    opened = TrajectoryDataset.open(f"{base}/data")
    for tau in (opened, pickle.loads(pickle.dumps(opened))):
        assert_is(tau, AGENT, list(X))
    with pytest.raises(InvalidParameterError, match="exists already"):
        TAU.save(f"{base}/data")
    with pytest.raises(InvalidDataError, match=r"There must be a dataset at .*/none; nothing is there"):
        TrajectoryDataset.open(f"{base}/none")


def test_a_model_of_a_recorded_world_round_trip(base):
    collection = record(WORLD, WORLD.paper_policies(), 300, f"{base}/data", seed=3)
    assert np.array_equal(read_true_states(f"{base}/data"), collection.truth.states)
    assert np.array_equal(np.concatenate(read_actions(f"{base}/data")), collection.truth.actions)
    model, other = (CRAFT(alpha=alpha, eta=0.2, nu=0.1).fit(f"{base}/data") for alpha in (1.0, 0.9))
    where = f"{base}/model"
    model.save(where)
    assert np.array_equal(craftrl.load(where).labels_, model.labels_)
    with pytest.raises(InvalidParameterError, match="is there already"):
        other.save(where)
    other.save(where, overwrite=True)
    assert craftrl.load(where).alpha == 0.9
    with pytest.raises(InvalidDataError, match="none is not there"):
        craftrl.load(f"{base}/none")


def test_files_are_fetched_when_they_are_read_and_once(cache, monkeypatch):
    fetched, get = [], MemoryFileSystem.get_file
    monkeypatch.setattr(MemoryFileSystem, "get_file", lambda fs, path, *to: (fetched.append(path), get(fs, path, *to)))
    TAU.save("memory://once")
    for _ in range(2):
        TrajectoryDataset.open("memory://once").episode(0)
        assert len(fetched) == 1
    damaged = next(cache.rglob("00000.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x07")
    with pytest.raises(InvalidDataError, match=r"once/00000.npy must be as it was written; it is damaged"):
        TrajectoryDataset.open("memory://once").episode(0)
    damaged.write_bytes(b"")  # one that was cut short is fetched again
    assert np.array_equal(TrajectoryDataset.open("memory://once").rows(np.arange(470)), X)


def test_what_is_uploaded_halfway_is_no_dataset_and_goes_on(cache, monkeypatch):
    def write():
        with DatasetWriter("memory://halfway", run="x") as writer:
            for i in range(20):
                writer.append("ab"[i % 2], np.full((5, 500), i, np.uint8), source=str(i))

    with monkeypatch.context() as patch:
        refusing(patch, "put_file", "00003.npy")
        with pytest.raises(RemoteError, match=r"00003.npy could not be written \(no rights\)"):
            write()
    assert len(fsspec.filesystem("memory").ls("/halfway")) == 3
    with pytest.raises(InvalidDataError, match="nothing is there"):
        TrajectoryDataset.open("memory://halfway")
    assert len(DatasetWriter("memory://halfway", run="x").done) == 20
    write()
    assert TrajectoryDataset.open("memory://halfway").counts.tolist() == [10, 10]
    assert DatasetWriter("memory://halfway", run="x").finished
    assert not list(cache.iterdir())


@pytest.mark.parametrize(
    ("method", "call", "sentence"),
    [
        ("info", TrajectoryDataset.open, r"memory://closed/dataset.json could not be found \(no rights\); check"),
        ("cat_file", TrajectoryDataset.open, r"The store must answer; memory://closed/dataset.json could not be read"),
        ("pipe_file", lambda url: CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(TAU).save(url), "could not be written"),
    ],
)
@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_a_store_that_refuses_is_one_sentence(monkeypatch, method, call, sentence):
    if not fsspec.filesystem("memory").exists("/closed"):
        TAU.save("memory://closed")
    refusing(monkeypatch, method, "closed")
    with pytest.raises(RemoteError, match=sentence) as told:
        call("memory://closed" if method != "pipe_file" else "memory://folder/closed")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *(
            (lambda url=url: TAU.save(url), "must be a path, or a URL with a name in a bucket")
            for url in ("s3://", "s3://bucket", "s3://bucket/", "s3://bucket/../x")
        ),
        (lambda: craftrl.load("nosuch://x/y"), "nosuch://x/y"),
        (lambda: craftrl.load("gs://x/y"), "gs"),
    ],
)
def test_a_url_must_name_something_in_a_store_that_is_known(call, sentence):
    with pytest.raises((InvalidParameterError, MissingDependencyError, RemoteError), match=sentence):
        call()


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_one_sentence(s3):
    with pytest.raises(RemoteError, match="could not be written") as told:
        TAU.save("s3://no-such-bucket/data")
    assert "\n" not in str(told.value)
