"""What a user may get wrong: one sentence each, and no foreign error."""

import numpy as np
import pytest

from craftrl import CRAFT, InvalidParameterError

KNOWN = {"alpha": 0.5, "eta": 0.1, "nu": 0.05}


@pytest.fixture(scope="module")
def data():
    """Two agents that move one of three bits differently."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 150)
    x = rng.integers(0, 2, size=(300, 3, 3))
    moves = rng.random((300, 2)) < np.where(agent, 0.8, 0.2)[:, None]
    x[:, :, 1] = np.concatenate([np.zeros((300, 1)), np.cumsum(moves, axis=1) % 2], axis=1)
    return x, agent


@pytest.fixture(scope="module")
def model(data):
    return CRAFT(**KNOWN).fit(*data)


@pytest.mark.parametrize("h", [0, 4, -1, 1.5, 2.0, "1", [1], np.array([1, 2])])
def test_a_step_must_be_one_of_those_fitted(model, data, h):
    for ask in (lambda: model.encode(data[0][:, 0], h), lambda: model.n_states_[h], lambda: model.trace_[h]):
        with pytest.raises(InvalidParameterError, match="h must be one of 1"):
            ask()


def test_steps_count_from_one_in_every_way_of_asking(model):
    assert list(reversed(model.n_states_)) == list(model.n_states_)[::-1]
    assert model.n_states_.index(2) == 2
