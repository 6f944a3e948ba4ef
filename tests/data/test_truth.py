"""Ground truth on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from craftrl.data.truth import GroundTruth, read_true_states, truth_path, write_truth

from craftrl.data import TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError

TAU = TrajectoryDataset.from_arrays([np.zeros((2, 3, 1)), np.zeros((1, 3, 1))])
TRUTH = GroundTruth(np.arange(9).reshape(3, 3), np.zeros((3, 2), dtype=np.int64))


def test_the_truth_lies_beside_the_data() -> None:
    assert truth_path("folder/data.h5") == Path("folder/data.truth.npz")
    assert truth_path(Path("shards")) == Path("shards.truth.npz")


def test_states_come_back_and_nothing_else_stays(tmp_path: Path) -> None:
    write_truth(tmp_path / "x.truth.npz", TRUTH)
    assert (read_true_states(tmp_path / "x.truth.npz", TAU) == TRUTH.states).all()
    assert [p.name for p in tmp_path.iterdir()] == ["x.truth.npz"]


@pytest.mark.parametrize("kind", ["missing", "text", "empty", "torn", "an array", "other arrays", "no integers"])
def test_what_is_no_truth_is_one_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.npz"
    write_truth(tmp_path / "whole.npz", TRUTH)
    if kind == "text":
        path.write_text("no truth")
    elif kind == "empty":
        path.touch()
    elif kind == "torn":
        path.write_bytes((tmp_path / "whole.npz").read_bytes()[:100])
    elif kind == "an array":
        with path.open("wb") as file:
            np.save(file, TRUTH.states)
    elif kind == "other arrays":
        np.savez(path, s=TRUTH.states)
    elif kind == "no integers":
        np.savez(path, states=TRUTH.states / 2)
    with pytest.raises(InvalidDataError, match=r"must be an NPZ file with `states` \(n, H\), .* check the name"):
        read_true_states(path, TAU)


def test_the_truth_of_other_data_is_refused(tmp_path: Path) -> None:
    write_truth(tmp_path / "x.npz", GroundTruth(TRUTH.states[:2], TRUTH.actions[:2]))
    with pytest.raises(InvalidDataError, match=r"shape \(3, 3\); .*x.npz has \(2, 3\); it belongs to other data"):
        read_true_states(tmp_path / "x.npz", TAU)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match="The ground truth's folder must be writable"):
        write_truth(tmp_path / "file" / "x.npz", TRUTH)
