"""What is done with a model whose labels stayed with the shards, and the states that are written from it."""

import numpy as np
import pytest

import craftrl
from craftrl.cli import main
from craftrl.distributed import encode_on_shards, read_states
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.report import write_report
from craftrl.states.graph import LatentGraph
from craftrl.testing.datasets import shortened
from sharding import LOCAL, Elsewhere, assert_same, fitted, write_shards

KNOWN = {"alpha": 1.0, "eta": 0.2, "nu": 0.1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    world = BitsExBMDP(horizon=4, n_features=8, seed=0)
    tau = shortened(collect(world, world.paper_policies(), 300, seed=0).tau)
    return write_shards(tau, tmp_path_factory.mktemp("data") / "shards", 130)


@pytest.fixture(scope="module")
def models(folder):
    """Fitted on one machine, and on shards."""
    return fitted(folder, **KNOWN)[0], fitted(folder, LOCAL, **KNOWN)[0]


def test_saved_and_loaded(models, tmp_path):
    whole, shards = models
    shards.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert_same(whole, again)
    assert not hasattr(again, "labels_")
    assert again.summary().splitlines()[:-1] == whole.summary().splitlines()[:-1]  # the last has seconds
    assert again.sizes_fitted() == whole.sizes_fitted() == (600, 4)


def test_a_model_without_labels_must_say_how_many_there_were(models, tmp_path):
    shards = fitted_copy(models[1])
    shards.data_ = {"fingerprint": "0" * 16}
    shards.save(tmp_path / "model")
    with pytest.raises(InvalidDataError, match="labels_ is missing"):
        craftrl.load(tmp_path / "model")


def fitted_copy(model):
    copy = craftrl.CRAFT(**model.get_params(deep=False))
    vars(copy).update(vars(model))
    return copy


def test_diagnosis_reads_the_same_labels(models, folder):
    whole, shards = models
    assert str(whole.diagnose(folder, n_resamples=1)) == str(shards.diagnose(folder, n_resamples=1))
    assert np.array_equal(shards._labels_read(craftrl.TrajectoryDataset.open(folder)), whole.labels_)
    with pytest.raises(InvalidDataError, match="600 trajectories of 4 steps"):
        shards.diagnose([np.zeros((3, 4, 8), dtype=int)] * 2)


def test_report_graph_and_states_of_new_data(models, folder, tmp_path):
    whole, shards = models
    write_report(shards, tmp_path / "with.html", folder, n_resamples=0)
    assert "600 trajectories" in (tmp_path / "with.html").read_text()
    with pytest.raises(InvalidParameterError, match="craftrl report MODEL DATA"):
        write_report(shards, tmp_path / "without.html")
    tau = craftrl.TrajectoryDataset.open(folder)
    assert np.array_equal(shards.transform(tau), whole.transform(tau))
    for one, other in zip(LatentGraph.from_model(whole, tau).counts, LatentGraph.from_model(shards, tau).counts):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("executor", [LOCAL, Elsewhere()])
def test_states_of_shards_are_those_of_the_whole(models, folder, tmp_path, executor):
    out = tmp_path / "states"
    encode_on_shards(models[1], folder, out, executor)
    parts = read_states(out)
    assert np.array_equal(np.concatenate([part.load() for part in parts]), models[0].transform(folder))
    assert [part.agent for part in parts] == [0, 0, 0, 1, 1, 1]
    assert sorted(path.name for path in out.iterdir()) == ["states.json"] + [f"states_{i:05d}.npy" for i in range(6)]
    with pytest.raises(InvalidParameterError, match="holds states already"):
        encode_on_shards(models[1], folder, out, executor)
    encode_on_shards(models[1], folder, out, executor, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["states"]


def test_a_target_that_is_taken_is_refused_before_a_cluster_is_started(models, folder, tmp_path, monkeypatch, capsys):
    models[1].save(tmp_path / "model")
    encode_on_shards(models[1], folder, tmp_path / "states", LOCAL)
    monkeypatch.setattr("craftrl.cli.backend.workers_of", lambda args: pytest.fail("a cluster was started"))
    monkeypatch.chdir(tmp_path)
    assert main(["encode", "model", str(folder), "--backend", "ray", "--out", "states"]) == 2
    assert capsys.readouterr().err.startswith("states holds states already; choose another name")


def test_states_that_were_altered_or_are_not_there(models, folder, tmp_path):
    out = tmp_path / "states"
    encode_on_shards(models[1], folder, out, LOCAL)
    states = np.load(out / "states_00001.npy")
    np.save(out / "states_00001.npy", states + 1)
    (out / "states_00002.npy").unlink()
    parts = read_states(out)
    with pytest.raises(InvalidDataError, match=r"states_00001\.npy is missing or altered"):
        parts[1].load()
    with pytest.raises(InvalidDataError, match=r"states_00002\.npy is missing or altered"):
        parts[2].load()
    (out / "states.json").unlink()
    with pytest.raises(InvalidDataError, match=r"has no whole states\.json"):
        read_states(out)
    with pytest.raises(InvalidParameterError, match="no folder of states of ours"):
        encode_on_shards(models[1], folder, out, LOCAL, overwrite=True)


def test_states_need_a_model_that_fits(models, folder, tmp_path):
    other = write_shards(
        craftrl.TrajectoryDataset.from_arrays([np.zeros((4, 3, 5), dtype=int)] * 2), tmp_path / "other", 2
    )
    with pytest.raises(InvalidDataError, match="at most 4 steps of shape"):
        encode_on_shards(models[1], other, tmp_path / "states", LOCAL)
    with pytest.raises(craftrl.errors.NotFittedError):
        encode_on_shards(craftrl.CRAFT(), folder, tmp_path / "states", LOCAL)


def test_shards_and_states_in_a_store(models, folder, tmp_path):
    url = f"memory://store/{tmp_path.name}"
    craftrl.TrajectoryDataset.open(folder).save(f"{url}/shards")
    whole, remote = fitted(f"{url}/shards", **KNOWN)[0], fitted(f"{url}/shards", LOCAL, **KNOWN)[0]
    assert_same(whole, remote)
    assert_same(models[0], remote)
    encode_on_shards(remote, f"{url}/shards", f"{url}/states", LOCAL)
    with pytest.raises(InvalidParameterError, match="holds states already"):
        encode_on_shards(remote, f"{url}/shards", f"{url}/states", LOCAL)
    encode_on_shards(remote, f"{url}/shards", f"{url}/states", LOCAL, overwrite=True)
    found = np.concatenate([part.load() for part in read_states(f"{url}/states")])
    assert np.array_equal(found, whole.transform(folder))
