"""Datasets on disk: equal to those in memory, written whole or not at all, and one sentence for each way to fail."""

import json
import pickle
import resource
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from craftrl.data.hdf5 import Hdf5Writer
from craftrl.data.shards import ShardWriter

from craftrl import CRAFT, CoordinateOracle, CraftError, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.data import storage
from craftrl.envs import BitsExBMDP, collect
from stored import same

FORMATS = ["tau.h5", "tau_shards"]
WRITERS = [Hdf5Writer, ShardWriter]


@pytest.fixture
def tau():
    world = BitsExBMDP(horizon=5, n_features=9, seed=0)
    return collect(world, world.paper_policies(), [300, 170], seed=1).tau


@pytest.fixture
def uneven():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, size=(3, 40))
    return TrajectoryDataset.from_episodes([[rng.random((m, 2, 3)) for m in agent] for agent in lengths])


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(tau, uneven, tmp_path, name, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 3000)  # many blocks and shards
    for i, dataset in enumerate((tau, uneven)):
        path = tmp_path / f"{i}_{name}"
        dataset.save(path)
        same(TrajectoryDataset.open(path), dataset)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"0_{name}", f"1_{name}"]


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_are_read_across_shards(tau, tmp_path, name, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 3000)
    tau.save(tmp_path / name)
    opened = TrajectoryDataset.open(tmp_path / name)
    for (rows, x), (rows_again, y) in zip(tau.blocks(3, 9 * 64), opened.blocks(3, 9 * 64), strict=True):
        assert rows == rows_again
        assert np.array_equal(x, y)


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_fit_from_disk_equals_fit_in_memory(tau, tmp_path, name):
    tau.save(tmp_path / name)
    fits = [
        CRAFT.paper(CoordinateOracle(), alpha=1, eta=0.2, nu=0.15).fit(data)
        for data in (tau, TrajectoryDataset.open(tmp_path / name))
    ]
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    assert [e.feature for e in list(fits[0].encoders_)[1:]] == [e.feature for e in list(fits[1].encoders_)[1:]]


@pytest.mark.parametrize("name", FORMATS)
def test_opened_dataset_can_be_sent_to_another_process(tau, tmp_path, name):
    tau.save(tmp_path / name)
    same(pickle.loads(pickle.dumps(TrajectoryDataset.open(tmp_path / name))), tau)


@pytest.mark.parametrize("writer", WRITERS)
def test_writer_takes_blocks_of_agents(tmp_path, writer):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (90, 4, 3), dtype=np.uint8), rng.integers(0, 2, (50, 3, 3), dtype=np.uint8)
    with writer(tmp_path / "x", 4, (3,), np.uint8) as out:
        out.append(0, a[:30])
        out.append(0, a[30:])
        out.append(1, b)
    same(TrajectoryDataset.open(tmp_path / "x"), TrajectoryDataset.from_arrays([a, b]))


@pytest.mark.parametrize("writer", WRITERS)
def test_writer_takes_lengths_and_clears_what_lies_beyond(tmp_path, writer):
    x = np.ones((3, 4, 2), dtype=np.uint8)
    with writer(tmp_path / "x", 4, (2,), np.uint8) as out:
        out.append(0, x, lengths=[1, 4, 2])
        out.append(1, x)
    tau = TrajectoryDataset.open(tmp_path / "x")
    assert tau.lengths.tolist() == [1, 4, 2, 4, 4, 4]
    assert tau.at(3)[:, 0].tolist() == [0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("lengths", [[1, 2], [0, 1, 1], [5, 1, 1]])
def test_writer_refuses_impossible_lengths(tmp_path, lengths):
    with (
        pytest.raises(InvalidDataError, match=r"one length in 1\.\.4"),
        ShardWriter(tmp_path / "x", 4, (2,), "u1") as out,
    ):
        out.append(0, np.ones((3, 4, 2), dtype=np.uint8), lengths)


@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_left_of_an_interrupted_write(tmp_path, writer):
    def interrupted():
        with writer(tmp_path / "x", 2, (3,), np.uint8) as out:
            out.append(0, np.zeros((5, 2, 3), dtype=np.uint8))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("agent", "x", "message"),
    [
        (0, np.zeros((5, 2, 4), dtype=np.uint8), "must have shape"),
        (0, np.zeros((5, 3, 3), dtype=np.uint8), "must have shape"),
        (0, np.zeros((5, 2, 3)), "holds uint8"),
        (1, np.zeros((5, 2, 3), dtype=np.uint8), "in order"),
    ],
)
def test_writer_refuses_what_does_not_belong(tmp_path, writer, agent, x, message):
    with pytest.raises(InvalidDataError, match=message), writer(tmp_path / "x", 2, (3,), np.uint8) as out:
        out.append(agent, x)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writer", WRITERS)
def test_one_agent_is_no_dataset(tmp_path, writer):
    with pytest.raises(InvalidDataError, match="at least two agents"), writer(tmp_path / "x", 2, (3,), "u1") as out:
        out.append(0, np.zeros((5, 2, 3), dtype=np.uint8))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_existing_target_is_not_overwritten(tau, tmp_path, name):
    tau.save(tmp_path / name)
    with pytest.raises(InvalidParameterError, match="exists already"):
        tau.save(tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_missing_room_is_told_before_writing(tau, tmp_path, name, monkeypatch):
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(CraftError, match="must be room"):
        tau.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="the system has no limit on file sizes")
@pytest.mark.parametrize("name", FORMATS)
def test_disk_that_fills_up_while_writing(tmp_path, name):
    """In a process of its own, whose files may not grow beyond 50 kB."""
    code = f"""
        import resource
        import numpy as np
        from craftrl import CraftError, TrajectoryDataset
        tau = TrajectoryDataset.from_arrays([np.ones((2000, 4, 20), dtype=np.uint8)] * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            tau.save({str(tmp_path / name)!r})
        except CraftError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "There must be room for the dataset" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written(tau, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CraftError, match="could not be written"):
        tau.save(tmp_path / "file" / "tau")


def test_nothing_there(tmp_path):
    with pytest.raises(InvalidDataError, match="nothing is there"):
        TrajectoryDataset.open(tmp_path / "tau.h5")


@pytest.mark.parametrize("keep", [0.1, 0.6, 0.99])
def test_truncated_hdf5(tau, tmp_path, keep):
    tau.save(tmp_path / "tau.h5")
    whole = (tmp_path / "tau.h5").read_bytes()
    (tmp_path / "tau.h5").write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(InvalidDataError, match="truncated, damaged or no HDF5 file"):
        TrajectoryDataset.open(tmp_path / "tau.h5")


def test_foreign_hdf5(tmp_path):
    import h5py

    with h5py.File(tmp_path / "tau.h5", "w") as file:
        file["observations"] = np.zeros((2, 3))
    with pytest.raises(InvalidDataError, match="another kind of HDF5 file"):
        TrajectoryDataset.open(tmp_path / "tau.h5")
    (tmp_path / "text.h5").write_text("not at all")
    with pytest.raises(InvalidDataError, match="no HDF5 file"):
        TrajectoryDataset.open(tmp_path / "text.h5")


@pytest.fixture
def shards(tau, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 5000)
    tau.save(tmp_path / "tau")
    return tmp_path / "tau"


def test_truncated_shard(shards):
    victim = shards / "shard_00001.npz"
    victim.write_bytes(victim.read_bytes()[:-100])
    with pytest.raises(InvalidDataError, match=r"shard_00001.npz is missing, truncated or foreign"):
        TrajectoryDataset.open(shards)


def test_missing_shard(shards):
    (shards / "shard_00002.npz").unlink()
    with pytest.raises(InvalidDataError, match=r"shard_00002.npz is missing"):
        TrajectoryDataset.open(shards)


def test_shard_with_a_damaged_array(shards):
    dataset = TrajectoryDataset.open(shards)
    victim = shards / "shard_00000.npz"
    content = bytearray(victim.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 50] = bytes(50 * [255])
    victim.write_bytes(bytes(content))
    with pytest.raises(InvalidDataError, match=r"shard_00000.npz"):
        [dataset.at(h) for h in range(1, dataset.H + 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("x_5"), "must have H = 5 steps"),
        (lambda arrays: arrays.update(x_6=arrays["x_5"]), "must have H = 5 steps"),
        (lambda arrays: arrays.update(x_2=arrays["x_2"].astype(np.int32)), "int32"),
        (lambda arrays: arrays.update(x_2=arrays["x_2"][:-1]), "shape in the manifest"),
    ],
)
def test_shard_with_another_H_or_dtype(shards, change, message):
    with np.load(shards / "shard_00000.npz") as file:
        arrays = dict(file)
    change(arrays)
    np.savez(shards / "shard_00000.npz", **arrays)
    with pytest.raises(InvalidDataError, match=message):
        TrajectoryDataset.open(shards)


def test_room_is_told_in_units_of_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda folder: SimpleNamespace(free=3 * 2**10))
    with pytest.raises(CraftError, match=r"needs 5.00 MiB and 3.00 KiB are free"):
        storage.check_room(tmp_path / "x", 5 * 2**20)


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_file_is_not_called_damaged_where_memory_runs_out(tau, tmp_path, name, monkeypatch):
    tau.save(tmp_path / name)
    opened = TrajectoryDataset.open(tmp_path / name)

    def no_memory(*given):
        raise MemoryError

    where = "craftrl.data.shards.load_arrays" if name == "tau_shards" else "craftrl.data.hdf5.np.asarray"
    monkeypatch.setattr(where, no_memory)
    with pytest.raises(MemoryError, match=r"MiB of .* are read at a time"):
        opened.at(1)


def test_shards_that_exchange_their_names(shards):
    first, second = shards / "shard_00000.npz", shards / "shard_00001.npz"
    first.rename(shards / "aside")
    second.rename(first)
    (shards / "aside").rename(second)
    with pytest.raises(InvalidDataError, match=r"shard_00000.npz holds other trajectories"):
        TrajectoryDataset.open(shards)


def test_a_manifest_of_an_older_version_has_no_checksums_of_shards(shards, tau):
    manifest = json.loads((shards / "manifest.json").read_text())
    for shard in manifest["shards"]:
        del shard["contents"]
    manifest["format"] = "craftrl shards 1"
    del manifest["checksum"]
    (shards / "manifest.json").write_text(json.dumps(manifest))
    assert np.array_equal(TrajectoryDataset.open(shards).at(1), tau.at(1))


def test_folder_without_a_manifest(shards):
    (shards / "manifest.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(InvalidDataError, match="no whole"):
        TrajectoryDataset.open(shards)
    (shards / "manifest.json").unlink()
    with pytest.raises(InvalidDataError, match="no whole"):
        TrajectoryDataset.open(shards)
