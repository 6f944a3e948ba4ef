"""An oracle that is asked directly wants a dataset."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from craftrl import ClassifierOracle, CoordinateOracle, FiniteOracle, NeuralOracle
from craftrl.errors import InvalidParameterError

ORACLES = [
    CoordinateOracle(),
    FiniteOracle([lambda x: x[:, 0]]),
    ClassifierOracle(DecisionTreeClassifier()),
    NeuralOracle(),
]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: type(oracle).__name__)
def test_data_must_be_a_dataset(oracle):
    for odd in (None, 3, "x", int, np.zeros((4, 2)), [1, 2]):
        with pytest.raises(InvalidParameterError, match="tau must be a TrajectoryDataset"):
            oracle.prepare(odd)
