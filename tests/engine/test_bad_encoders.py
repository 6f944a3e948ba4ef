"""Encoders and coordinates that are not what they should be: one sentence each."""

import numpy as np
import pytest

from craftrl import CoordinateOracle, FiniteOracle, InvalidDataError, TrajectoryDataset

TAU = TrajectoryDataset.from_arrays([np.full((70, 2, 3), 3, dtype=np.int64), np.zeros((5, 2, 3), dtype=np.int64)])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, 0] + 0.5, r"encoder 1 returned 3.5..3.5 values, float64"),
        (lambda x: x[:, 0] * np.nan, "an integer in 0..1 .* returned nan"),
        (lambda x: x, r"for each of 70 observations; encoder 1 returned 3..3 values, int64 of shape \(70, 3\)"),
        (lambda x: x[:, 0], r"an integer in 0..1 \(n_values = 2\) .* returned 3..3"),
        (lambda x: x[:, 0] - 4, "returned -1..-1"),
        (lambda x: np.full(len(x), "one"), "returned other values"),
    ],
)
def test_encoder_values(function, message):
    with pytest.raises(InvalidDataError, match=message):
        FiniteOracle([lambda x: x[:, 0] // 3, function]).prepare(TAU)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_coordinates(dtype):
    tau = TrajectoryDataset.from_arrays([TAU.at(1)[:70, None].repeat(2, axis=1).astype(dtype)] * 2)
    with pytest.raises(InvalidDataError, match=r"must lie in 0..1; 3..3 were given"):
        CoordinateOracle().prepare(tau)
    assert CoordinateOracle(4).prepare(tau).values(1, 2).tolist() == [3] * 140


def test_whole_floats_pass():
    assert FiniteOracle([lambda x: x[:, 0] / 3.0]).prepare(TAU).values(1, 0).sum() == 70
