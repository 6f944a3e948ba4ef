"""Checksums of our own for the chunks of HDF5 files."""

import h5py
import numpy as np
import pytest
from craftrl.data.hdf5 import Hdf5Writer

from craftrl import InvalidDataError, TrajectoryDataset

ROWS = 300  # more than one chunk


@pytest.fixture
def black(tmp_path):
    """Dark frames, in blocks of unequal sizes; the second agent's have a step less."""
    x = np.zeros((ROWS, 3, 4, 4), np.uint8)
    x[:, :, 0, 0] = np.arange(ROWS)[:, None] % 7
    with Hdf5Writer(tmp_path / "x.h5", 3, (4, 4), np.uint8) as writer:
        for start, stop in ((0, 100), (100, 290), (290, ROWS)):
            writer.append(0, x[start:stop])
        writer.append(1, x[:, :2])
    return tmp_path / "x.h5", x


def whiten(path, row, step):
    """Two bytes that were 0 become 255, which HDF5's own checksum does not see."""
    with h5py.File(path) as file:
        observations = file["observations"]
        chunk, within = divmod(row, observations.chunks[1])
        info = observations.id.get_chunk_info_by_coord((step, chunk * observations.chunks[1], 0, 0))
    place = info.byte_offset + within * 16 + 2
    data = bytearray(path.read_bytes())
    assert data[place : place + 2] == b"\0\0"
    data[place : place + 2] = b"\xff\xff"
    path.write_bytes(data)
    with h5py.File(path) as file:
        assert file["observations"][step, row, 0, 2] == 255


def test_what_was_written_is_read_in_any_pieces(black):
    path, x = black
    tau = TrajectoryDataset.open(path)
    assert np.array_equal(tau.steps.read(1, 250, 310)[:50], x[250:, 1])  # the end of one agent, the next one's begin
    assert np.array_equal(tau.at(1), np.concatenate([x, x])[:, 0])
    assert np.array_equal(tau.steps.read(1, 5, 9), x[5:9, 1])
    assert len(tau.steps.read(1, 9, 9)) == 0


@pytest.mark.parametrize("row", [3, 299, 599])
def test_black_that_turned_white_is_refused(black, row):
    path, _ = black
    whiten(path, row, step=1)
    tau = TrajectoryDataset.open(path)
    assert len(tau.at(1)) == 2 * ROWS
    with pytest.raises(
        InvalidDataError, match=r"x.h5 cannot be read to its end \(the checksum of step 2 does not fit\)"
    ):
        tau.at(2)
    with pytest.raises(InvalidDataError, match="checksum"):
        tau.steps.raw()


def test_a_file_of_an_older_format_is_read_without_them(black):
    path, _ = black
    with h5py.File(path, "a") as file:
        del file["crc32"]
        file.attrs["format"] = np.bytes_("craftrl trajectories 2")
    whiten(path, 3, step=1)
    assert TrajectoryDataset.open(path).at(2)[3, 0, 2] == 255


def test_a_table_that_is_missing_or_of_another_shape_is_damage(black):
    path, _ = black
    with h5py.File(path, "a") as file:
        table = file["crc32"][...]
        del file["crc32"]
        file["crc32"] = table[:, :1]
    with pytest.raises(InvalidDataError, match="table of checksums"):
        TrajectoryDataset.open(path)
    with h5py.File(path, "a") as file:
        del file["crc32"]
    with pytest.raises(InvalidDataError, match=r"truncated, damaged or no HDF5 file"):
        TrajectoryDataset.open(path)
