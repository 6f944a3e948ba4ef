"""Reading past the libraries gives what they give, from every store."""

import zipfile

import numpy as np
import pytest
from craftrl.data.raw import Reader

from craftrl import TrajectoryDataset
from craftrl.data import storage
from craftrl.data.dataset import ArraySteps
from craftrl.errors import InvalidDataError

h5py = pytest.importorskip("h5py")

H, OBS = 3, (4, 5, 2)


@pytest.fixture
def tau():
    rng = np.random.default_rng(0)
    return TrajectoryDataset.from_arrays([rng.integers(0, 255, (n, H, *OBS), dtype=np.uint8) for n in (13, 29)])


def gzipped(tau, path, rows=7):
    """A file of our format as someone else may write it."""
    with h5py.File(path, "w") as file:
        x = np.stack([tau.at(h) for h in range(1, H + 1)])
        file.create_dataset("observations", data=x, chunks=(1, rows, *OBS), compression="gzip")
        file["agent"], file["lengths"] = tau.agent, tau.lengths
        file.attrs["format"] = "craftrl trajectories 1"
    return TrajectoryDataset.open(path)


def stores(tau, folder, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 5 * H * int(np.prod(OBS)))  # five trajectories in a shard
    monkeypatch.setattr("craftrl.data.hdf5.CHUNK_BYTES", 6 * int(np.prod(OBS)))  # six in a chunk
    monkeypatch.setattr("craftrl.data.hdf5.FEWEST_ROWS", 6)
    for name in ("tau.h5", "shards"):
        tau.save(folder / name)
        yield TrajectoryDataset.open(folder / name)
    np.save(folder / "x.npy", np.concatenate([tau.steps.array[:1], tau.steps.array]))
    yield TrajectoryDataset(ArraySteps(np.load(folder / "x.npy", mmap_mode="r")[1:]), tau.agent)  # a part of a map


def test_raw_rows_of_every_store_are_the_same(tau, tmp_path, monkeypatch):
    for stored in stores(tau, tmp_path, monkeypatch):
        reader = Reader(stored.steps)
        assert reader.raw is not None
        for step, start, stop in [(0, 0, 42), (1, 5, 6), (2, 4, 31), (2, 41, 42)]:
            out = np.empty((stop - start, *OBS), dtype=np.uint8)
            reader.read_into(step, start, out)
            assert np.array_equal(out, tau.at(step + 1)[start:stop])


def test_what_is_compressed_or_of_another_type_is_decoded(tau, tmp_path):
    reader = Reader(gzipped(tau, tmp_path / "gzip.h5").steps)
    assert (reader.raw, reader.rows_together) == (None, 7)
    tau.save(tmp_path / "tau.h5")
    plain = Reader(TrajectoryDataset.open(tmp_path / "tau.h5").steps)
    assert plain.rows_together == 1
    for given in (reader, plain, Reader(tau.steps)):
        for dtype in (np.uint8, np.float32):
            out = np.empty((20, *OBS), dtype=dtype)
            given.read_into(1, 10, out)
            assert np.array_equal(out, tau.at(2)[10:30])


def test_compressed_shards_have_no_raw_rows(tau, tmp_path, monkeypatch):
    tau.save(tmp_path / "shards")
    monkeypatch.setattr("craftrl.data.shards.check_shards", lambda *given: None)  # they are others than were written
    for file in (tmp_path / "shards").glob("*.npz"):
        with np.load(file) as arrays:
            held = dict(arrays)
        np.savez_compressed(file, **held)
        assert {m.compress_type for m in zipfile.ZipFile(file).infolist()} == {zipfile.ZIP_DEFLATED}
    assert Reader(TrajectoryDataset.open(tmp_path / "shards").steps).raw is None


def test_a_file_that_was_cut_or_removed_is_named(tau, tmp_path):
    np.save(tmp_path / "x.npy", tau.steps.array)
    reader = Reader(ArraySteps(np.load(tmp_path / "x.npy", mmap_mode="r")))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-10])
    out = np.empty((42, *OBS), dtype=np.uint8)
    with pytest.raises(InvalidDataError, match=r"x.npy must be whole; it ends too early"):
        reader.read_into(2, 0, out)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(InvalidDataError, match=r"x.npy cannot be read \(No such file"):
        reader.read_into(0, 0, out)
