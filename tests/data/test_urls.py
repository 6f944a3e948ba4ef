"""Datasets and models at URLs: the same as on a disk, whole or not there, and one sentence where a store refuses."""

import pickle

import numpy as np
import pytest

import craftrl
from craftrl import CRAFT, CoordinateOracle, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.data import DatasetWriter, read_actions, read_true_states, store
from craftrl.envs import BitsExBMDP, collect, record
from craftrl.errors import MissingDependencyError, RemoteError
from s3_server import keys, running

pytest.importorskip("fsspec")
s3 = pytest.fixture(scope="module")(running)
WORLD = BitsExBMDP(horizon=5, n_features=9, seed=0)


@pytest.fixture(scope="module")
def tau():
    return collect(WORLD, WORLD.paper_policies(), [300, 170], seed=1).tau


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CRAFTRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "FILE_BYTES", 8000)
    return tmp_path / "cache"


@pytest.fixture(params=["file", "memory", "s3"])
def base(request, tmp_path):
    """A folder in each kind of place, as a user would name it."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://bucket/{request.node.name}"
    return f"memory://{request.node.name}" if request.param == "memory" else f"file://{tmp_path}/there"


def same(opened, tau):
    every = np.arange(tau.n)
    return np.array_equal(opened.agent, tau.agent) and np.array_equal(opened.rows(every), tau.rows(every))


def test_a_dataset_round_trip(tau, base, cache):
    tau.save(f"{base}/data")
    assert not list(cache.iterdir())  # what was uploaded is not kept
    opened = TrajectoryDataset.open(f"{base}/data")
    assert same(opened, tau)
    assert same(pickle.loads(pickle.dumps(opened)), tau)
    bounds = {"alpha": 1.0, "eta": 0.2, "nu": 0.1}
    assert np.array_equal(CRAFT(**bounds).fit(f"{base}/data").labels_, CRAFT(**bounds).fit(tau).labels_)
    with pytest.raises(InvalidParameterError, match="exists already"):
        tau.save(f"{base}/data")
    with pytest.raises(InvalidDataError, match=r"There must be a dataset at .*/none; nothing is there"):
        TrajectoryDataset.open(f"{base}/none")


def test_a_world_is_recorded_with_its_truth(base):
    collection = record(WORLD, WORLD.paper_policies(), 40, f"{base}/data", seed=3)
    assert np.array_equal(read_true_states(f"{base}/data"), collection.truth.states)
    assert np.array_equal(np.concatenate(read_actions(f"{base}/data")), collection.truth.actions)


def test_a_model_round_trip(tau, base):
    model, other = (CRAFT(CoordinateOracle(2), alpha=alpha, eta=0.2, nu=0.1).fit(tau) for alpha in (1.0, 0.9))
    where = f"{base}/model"
    model.save(where)
    assert np.array_equal(craftrl.load(where).transform(tau), model.transform(tau))
    with pytest.raises(InvalidParameterError, match="is there already"):
        other.save(where)
    other.save(where, overwrite=True)
    assert craftrl.load(where).alpha == 0.9
    with pytest.raises(InvalidDataError, match="none is not there"):
        craftrl.load(f"{base}/none")


def test_files_are_fetched_when_they_are_read_and_once(tau, s3, cache):
    tau.save("s3://bucket/once")
    with s3.counting() as asked:
        opened = TrajectoryDataset.open("s3://bucket/once")
        opened.episode(0)
    assert len([path for method, path, _ in asked if method == "GET" and ".npy" in path]) == 1
    with s3.counting() as asked:
        again = TrajectoryDataset.open("s3://bucket/once")
        again.episode(0)
    assert not [path for method, path, _ in asked if method == "GET" and ".npy" in path]
    damaged = next(cache.rglob("00000.npy"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x07")
    with pytest.raises(InvalidDataError, match=r"once/00000.npy must be as it was written; it is damaged"):
        TrajectoryDataset.open("s3://bucket/once").episode(0)
    damaged.write_bytes(b"")
    assert same(TrajectoryDataset.open("s3://bucket/once"), tau)  # one that was cut short is fetched again


def test_what_is_uploaded_halfway_is_no_dataset_and_goes_on(s3, cache):
    def write():
        with DatasetWriter("s3://bucket/halfway", run="x") as writer:
            for i in range(20):
                writer.append("ab"[i % 2], np.full((5, 1000), i, np.uint8), source=str(i))

    with (
        s3.failing("PUT", "00003.npy", 403),
        pytest.raises(RemoteError, match=r"00003.npy could not be written \(.*\)"),
    ):
        write()
    assert keys(s3, "halfway/") == ["halfway/00000.npy", "halfway/00001.npy", "halfway/00002.npy"]
    with pytest.raises(InvalidDataError, match="nothing is there"):
        TrajectoryDataset.open("s3://bucket/halfway")
    assert len(DatasetWriter("s3://bucket/halfway", run="x").done) == 20
    write()
    assert TrajectoryDataset.open("s3://bucket/halfway").counts.tolist() == [10, 10]
    assert DatasetWriter("s3://bucket/halfway", run="x").finished
    assert not list(cache.iterdir())


@pytest.mark.parametrize("kind", [503, "cut"])
def test_a_store_that_is_busy_for_a_moment_is_asked_again(tau, s3, kind):
    where = f"s3://bucket/busy-{kind}"
    tau.save(where)
    with s3.failing("GET", "00000.npy", kind, 1):
        assert same(TrajectoryDataset.open(where), tau)


def test_a_store_that_refuses_is_one_sentence(tau, s3):
    with pytest.raises(RemoteError, match="could not be written") as told:
        tau.save("s3://no-such-bucket/data")
    assert "\n" not in str(told.value)
    model = CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    with pytest.raises(RemoteError, match="could not be written"):
        model.save("s3://no-such-bucket/model")
    with s3.failing("HEAD", "closed", 403), pytest.raises(RemoteError, match=r"The store must answer; s3://.*closed"):
        TrajectoryDataset.open("s3://bucket/closed")


@pytest.mark.parametrize("odd", ["s3://", "s3://bucket", "s3://bucket/", "s3://bucket/../x"])
def test_a_url_must_name_something(tau, odd):
    with pytest.raises(InvalidParameterError, match="must be a path, or a URL with a name in a bucket"):
        tau.save(odd)


def test_urls_that_nobody_knows(tau):
    with pytest.raises(RemoteError, match="nosuch://x/y"):
        craftrl.load("nosuch://x/y")
    with pytest.raises((MissingDependencyError, RemoteError), match="gs"):
        craftrl.load("gs://x/y")
