"""Stores: a dataset, a model, a recording and a sweep are the same on disk, in memory and on S3; commands take URLs."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from craftrl.data.hdf5 import read_notes
from craftrl.data.raw import Reader
from craftrl.data.truth import read_true_states, truth_path

import craftrl
from craftrl import CRAFT, CoordinateOracle, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.cli import main
from craftrl.data import places
from craftrl.envs import record
from s3_server import keys
from stored import M, fitted, same


@pytest.fixture(params=["disk", "file", "memory", "renaming", "s3"])
def base(request, tmp_path, monkeypatch):
    """A folder in each kind of place, as a user would name it."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://bucket/{request.node.name}"
    if request.param == "renaming":  # as with a file server: it has folders, and files get other names
        pytest.importorskip("fsspec")
        monkeypatch.setattr(places, "DISKS", ())
        return f"local://{tmp_path}"
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return f"memory://{request.node.name}"
    return f"file://{tmp_path}" if request.param == "file" else str(tmp_path)


@pytest.mark.parametrize("name", ["tau.h5", "shards"])
def test_a_dataset_round_trip(tau, base, name, small_blocks):
    where = f"{base}/{name}"
    tau.save(where)
    opened = TrajectoryDataset.open(where)
    same(opened, tau)
    assert np.array_equal(fitted(where).labels_, fitted(tau).labels_)
    with pytest.raises(InvalidParameterError, match="exists already"):
        tau.save(where)
    same(pickle.loads(pickle.dumps(opened)), tau)
    reader = Reader(opened.steps)
    assert reader.raw is not None
    for step, start, stop in ((0, 0, 470), (3, 17, 18), (4, 290, 320)):
        x = np.empty((stop - start, M), np.uint8)
        reader.read_into(step, start, x)
        assert np.array_equal(x, tau.steps.read(step, start, stop))


def test_episodes_of_unequal_length_and_names_of_agents(base):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, size=(3, 20))
    uneven = TrajectoryDataset.from_episodes([[rng.random((m, 2, 3)) for m in agent] for agent in lengths])
    uneven.save(f"{base}/shards")
    same(TrajectoryDataset.open(f"{base}/shards"), uneven)
    named = TrajectoryDataset(uneven.steps, uneven.agent, uneven.lengths, names=["ann", "bob", "cy"])
    named.save(f"{base}/tau.h5")
    assert TrajectoryDataset.open(f"{base}/tau.h5").names == ("ann", "bob", "cy")
    assert read_notes(f"{base}/tau.h5")["agents"] == ["ann", "bob", "cy"]


def test_a_model_round_trip(tau, base):
    model, other = fitted(tau), CRAFT(CoordinateOracle(2), alpha=0.9, eta=0.2, nu=0.1).fit(tau)
    where = f"{base}/model"
    model.save(where)
    assert np.array_equal(craftrl.load(where).transform(tau), model.transform(tau))
    with pytest.raises(InvalidParameterError, match="is there already"):
        other.save(where)
    other.save(where, overwrite=True)
    assert craftrl.load(where).alpha == 0.9
    tau.save(f"{base}/data")
    with pytest.raises(InvalidParameterError, match=r"data (exists and is no model of craftrl|is a folder)"):
        model.save(f"{base}/data", overwrite=True)
    with pytest.raises(InvalidDataError, match="none is not there"):
        craftrl.load(f"{base}/none")


def test_a_world_is_recorded_with_its_truth(world, base):
    collection = record(world, world.paper_policies(), 40, f"{base}/data", seed=3)
    opened = TrajectoryDataset.open(f"{base}/data")
    same(opened, collection.tau)
    assert np.array_equal(read_true_states(truth_path(f"{base}/data"), opened), collection.truth.states)


@dataclass(frozen=True)
class Settings:
    n: int


def test_commands_take_urls(s3, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = "s3://bucket/commands"
    collected = ["collect", "--world", "bits", "--horizon", "4", "--features", "8", "--n", "400", "--out", f"{at}/data"]
    assert main(collected) == 0
    fit = ["fit", f"{at}/data", "--alpha", "1", "--eta", "1/5", "--nu", "1/10", "--out", f"{at}/model"]
    assert main(fit) == 0
    assert main(["evaluate", f"{at}/model", f"{at}/data", "--truth", f"{at}/data.truth.npz"]) == 0
    assert "mean over h = 1..4: 100.00%" in capsys.readouterr().out
    assert main(["encode", f"{at}/model", f"{at}/data", "--out", f"{at}/states.npz"]) == 0
    assert main(["report", f"{at}/model", "--out", f"{at}/report.html"]) == 0
    assert main(["inspect", f"{at}/data", "--no-sheet"]) == 0
    assert f"{at}/data: 2 agents" in capsys.readouterr().out
    found = {key.rpartition("/")[2] for key in keys(s3, "commands/")}
    assert {"report.html", "states.npz", "model", "manifest.json"} <= found
    for again in (collected, fit, ["encode", f"{at}/model", f"{at}/data", "--out", f"{at}/states.npz"]):
        assert main(again) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all("already" in line for line in told)
    assert not list(tmp_path.iterdir())


def test_results_of_studies_stay_on_a_disk(capsys):
    command = ["reproduce", "table1", "--seeds", "1", "--quiet", "--out", "s3://bucket/study"]
    assert main(command) == 2
    assert "The results folder must be on a disk of this machine" in capsys.readouterr().err
