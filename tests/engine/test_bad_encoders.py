"""Encoders and coordinates that are not what they should be: one sentence each."""

import numpy as np
import pytest

from craftrl import InvalidDataError, TrajectoryDataset
from craftrl.engine.packing import Share, pack_coordinates, pack_functions
from craftrl.oracles import CoordinateOracle, FiniteOracle

TAU = TrajectoryDataset.from_arrays([np.full((70, 2, 3), 3, dtype=np.int64), np.zeros((5, 2, 3), dtype=np.int64)])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, 0] + 0.5, "must be integers; encoder 1 returned float64"),
        (lambda x: x[:, 0] * np.nan, "must be integers"),
        (lambda x: x, r"one value per observation; encoder 1 returned shape \(70, 3\)"),
        (lambda x: x[:, 0], r"must lie in 0..1 \(n_values = 2\); encoder 1 returned 3..3"),
        (lambda x: x[:, 0] - 4, "returned -1..-1"),
    ],
)
def test_encoder_values(function, message):
    with pytest.raises(InvalidDataError, match=message):
        pack_functions(Share.of(TAU), 1, [lambda x: x[:, 0] // 3, function], 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_coordinates(dtype):
    tau = TrajectoryDataset.from_arrays([TAU.at(1)[:70, None].repeat(2, axis=1).astype(dtype)] * 2)
    with pytest.raises(InvalidDataError, match=r"must lie in 0..1; 3..3 were given at h = 1"):
        pack_coordinates(Share.of(tau), 1)
    assert CoordinateOracle(4).prepare(tau).values(1, 2).tolist() == [3] * 140


def test_whole_floats_pass():
    assert FiniteOracle([lambda x: x[:, 0] / 3.0]).prepare(TAU).values(1, 0).sum() == 70
