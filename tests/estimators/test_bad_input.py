"""What a user may get wrong: one sentence each, and no foreign error."""

import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import craftrl
from craftrl import (
    CRAFT,
    ClassifierOracle,
    CoordinateOracle,
    CraftError,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
    NeuralOracle,
    NotFittedError,
    TrajectoryDataset,
)
from craftrl.core.encoders import encode_dataset
from craftrl.estimators.base import Learner
from small_worlds import flips, walked

KNOWN = {"alpha": 0.5, "eta": 0.1, "nu": 0.05}
TREE = DecisionTreeClassifier()


@pytest.fixture(scope="module")
def data():
    """Two agents that move one of three bits differently."""
    x = np.random.default_rng(0).integers(0, 2, size=(300, 3, 3))
    x[:, :, 1], agent = walked(150, flips(0.2, 0.8), 3)
    return x, agent


@pytest.fixture(scope="module")
def model(data):
    return CRAFT(**KNOWN).fit(*data)


def refused(kind, sentence, call, *given, **more):
    with pytest.raises(kind, match=sentence) as caught:
        call(*given, **more)
    assert "\n" not in str(caught.value)


# -- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0}, "alpha must be a positive number; alpha = 0 was given"),
        ({"eta": 0.6}, r"eta must lie in \(0, 1/2\]; eta = 0.6 was given"),
        ({"nu": 1.5}, r"nu must lie in \(0, 1\]; nu = 1.5 was given"),
        ({"alpha": 1e-6, "eta": 0.2}, "fewer than 32768 bins; alpha = 1e-06 and eta = 0.2 ask for 11090355; raise"),
        ({"nu": "automatic"}, "nu must be a number or 'auto'; 'automatic' was given"),
        ({"coupling": "loose"}, "coupling must be one of 'auto', 'independent', .*; 'loose' was given"),
        ({"relabel": 1}, "relabel must be True, False or 'auto'; 1 was given"),
        ({"horizon": 1}, "horizon must be an integer of at least 2; 1 was given; or 'auto', or None"),
        *(({"window": window}, "window must be") for window in (1, 2.5, "long", True)),
        ({"window": 10, "stationary": False}, "Windows need one encoder for all steps"),
        ({"partition": "smooth"}, "partition must be a Partition or None; 'smooth' was given"),
    ],
)
def test_parameters_are_refused_by_fit(data, change, message):
    refused(InvalidParameterError, message, CRAFT(CoordinateOracle(), **(KNOWN | change)).fit, *data)


@pytest.mark.parametrize(
    "oracle",
    [
        CoordinateOracle(ray=6379),
        CoordinateOracle(n_threads="all"),
        CoordinateOracle(n_values=1),
        CoordinateOracle(n_values=10**6),
        FiniteOracle(None),
        FiniteOracle("ab"),
        FiniteOracle([3]),
        FiniteOracle([]),
        FiniteOracle(lambda h: None),
        FiniteOracle([lambda x: ["a"] * len(x)]),
        FiniteOracle([lambda x: x[:, 0]] * 100_000, n_values=30_000),  # which fits into no memory
        ClassifierOracle(TREE, folds=10**6),
        ClassifierOracle(TREE, seed="x"),
    ],
    ids=lambda oracle: re.sub(r" at 0x\w+", "", str(oracle))[:60],  # the same names in every process
)
def test_parameters_of_oracles_are_refused_by_fit(data, oracle):
    refused(CraftError, "must|needs", CRAFT(oracle, **KNOWN).fit, *data)


@pytest.mark.parametrize(
    "oracle", [CoordinateOracle(), FiniteOracle([len]), ClassifierOracle(TREE), NeuralOracle()], ids=str
)
def test_an_oracle_that_is_asked_directly_wants_a_dataset(oracle):
    for odd in (None, 3, "x", int, np.zeros((4, 2)), [1, 2]):
        refused(InvalidParameterError, "tau must be a TrajectoryDataset", oracle.prepare, odd)


# -- data -------------------------------------------------------------------------------------------------------------


def test_fit_takes_what_is_as_good_as_an_array_and_refuses_the_rest_in_one_sentence(data):
    """tests/data/test_dataset.py has all that is refused."""
    torch = pytest.importorskip("torch")
    x, agent = data
    masked, fit = np.ma.array(x, mask=np.zeros_like(x, dtype=bool)), CRAFT(**KNOWN).fit
    assert list(fit(masked, agent).n_states_) == list(fit(torch.tensor(x), torch.tensor(agent)).n_states_) == [1, 2, 2]
    masked[0, 0, 0] = np.ma.masked
    refused(InvalidDataError, "masked", fit, masked, agent)
    refused(InvalidDataError, "at most 64 agents", fit, x[:70], np.arange(70))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.full((3, 3), 7), r"integers in 0..1; 7..7 of dtype int64 were given"),
        (np.full((3, 3), -1), r"integers in 0..1; -1..-1 of dtype int64 were given"),
        (np.full((3, 3), 0.5), r"integers in 0..1; 0.5..0.5 of dtype float64 were given"),
        (np.uint8(1), r"must have shape \(n, 3\).* shape \(\) was given"),
        (np.zeros(3), r"must have shape \(n, 3\).* shape \(3,\) was given; put a single one"),
        (np.zeros((3, 2)), r"must have shape \(n, 3\).* crop, resize or convert them"),
    ],
)
def test_observations_unlike_those_fitted_are_refused(model, x, message):
    refused(InvalidDataError, message, model.encode, x, 2)


def test_trajectories_unlike_those_fitted_are_refused(model, data):
    x, _ = data
    refused(InvalidDataError, "at most 3 steps, as those fitted; longer", model.transform, np.tile(x, (1, 2, 1)))
    refused(InvalidDataError, "must have shape", model.transform, x[:, :0])
    for nothing in ([], [None, None]):
        refused(InvalidDataError, ".", model.transform, nothing)
    assert model.encode(x[:0, 0], 3).shape == (0,)
    short = TrajectoryDataset.from_arrays([x[:150, :2], x[150:, :2]])
    refused(InvalidDataError, "same number of steps; 3 and 2 were given", encode_dataset, model.encoders_, short)
    refused(NotFittedError, r"CRAFT must be fitted first; call fit\(x, agent\)", CRAFT().encode, x[:, 1], 2)


def test_bytes_and_floats_are_not_mixed_up_by_a_network():
    def as_fitted(x, dtype):
        model = Learner()
        model.data_ = {"dtype": dtype}
        return model._as_fitted(x)

    pixels = np.array([[0, 128, 255]], dtype=np.uint8)
    scaled = pixels / 255
    assert as_fitted(pixels.astype(np.int64), "uint8").dtype == np.uint8
    assert as_fitted(scaled, "uint8") is scaled
    refused(InvalidDataError, "must be uint8, .*; float64 from 0 to 255 was", as_fitted, pixels.astype(float), "uint8")
    refused(InvalidDataError, "must be float32, .*; uint8 from 0 to 255", as_fitted, pixels, "float32")


# -- steps, paths, and what is no mistake -----------------------------------------------------------------------------


@pytest.mark.parametrize("h", [0, 4, -1, 1.5, 2.0, "1", [1], np.array([1, 2])])
def test_a_step_must_be_one_of_those_fitted(model, data, h):
    for ask in (lambda: model.encode(data[0][:, 0], h), lambda: model.n_states_[h], lambda: model.trace_[h]):
        refused(InvalidParameterError, "h must be one of 1", ask)


def test_steps_count_from_one_in_every_way_of_asking(model, data):
    assert list(reversed(model.n_states_)) == list(model.n_states_)[::-1]
    assert model.n_states_.index(2) == 2
    assert repr(model.n_states_) == "ByStep([1, 2, 2])"
    refused(InvalidParameterError, r"this model has an encoder for each step; none was given", model.encode, data[0][0])


@pytest.mark.parametrize("path", [None, 3, b"model", "a\0b"])
def test_a_path_must_be_a_name(model, path):
    for call in (model.save, craftrl.load):
        refused(InvalidParameterError, "The model must be a path", call, path)


def test_transform_takes_what_fit_takes(data):
    x, agent = data
    states = CRAFT(**KNOWN).fit_transform([x[:150], x[150:]])
    assert np.array_equal(states, CRAFT(**KNOWN).fit(x, agent).transform(x))
    lengths = np.where(np.arange(300) % 5 == 0, 2, 3)
    ragged = CRAFT(**KNOWN).fit_transform([x_i[:n] for x_i, n in zip(x, lengths)], agent)
    assert ((ragged == -1) == (np.arange(3) >= lengths[:, None])).all()
