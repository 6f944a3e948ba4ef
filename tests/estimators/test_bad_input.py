"""What a user may get wrong: one sentence each, and no foreign error."""

import re
import warnings

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import craftrl
from craftrl import (
    CRAFT,
    AssumptionWarning,
    ClassifierOracle,
    CoordinateOracle,
    CraftError,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
)
from craftrl.envs import BitsExBMDP, collect
from craftrl.estimators.base import Learner

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


def test_what_is_masked_is_missing(data):
    x, agent = data
    masked = np.ma.array(x, mask=np.zeros_like(x, dtype=bool))
    assert list(CRAFT(**KNOWN).fit(masked, agent).n_states_) == [1, 2, 2]
    masked[0, 0, 0] = np.ma.masked
    with pytest.raises(InvalidDataError, match="masked"):
        CRAFT(**KNOWN).fit(masked, agent)
    with pytest.raises(InvalidDataError, match="masked"):
        CRAFT(**KNOWN).fit(x, np.ma.array(agent, mask=agent == 1))


def test_observations_and_trajectories_without_an_entry(model, data):
    x, agent = data
    with pytest.raises(InvalidDataError, match="at least one entry"):
        CRAFT(**KNOWN).fit(x[:, :, :0], agent)
    with pytest.raises(InvalidDataError, match="must have shape"):
        model.transform(x[:, :0])
    with pytest.raises(InvalidDataError, match="was given; crop, resize or convert them"):
        model.transform(x[:, :, :1])


def test_tensors_are_arrays(data):
    torch = pytest.importorskip("torch")
    x, agent = data
    assert CRAFT(**KNOWN).fit(torch.tensor(x), torch.tensor(agent)).agents_ == (0, 1)
    with pytest.raises(InvalidDataError, match="numbers in an array"):
        CRAFT(**KNOWN).fit(torch.tensor(x, dtype=torch.float32, requires_grad=True), agent)


@pytest.mark.parametrize(
    "oracle",
    [
        CoordinateOracle(ray=6379),
        CoordinateOracle(n_threads="all"),
        CoordinateOracle(n_threads=1.5),
        FiniteOracle(None),
        FiniteOracle(3),
        FiniteOracle("ab"),
        FiniteOracle([3]),
        FiniteOracle(lambda h: None),
        FiniteOracle([lambda x: ["a"] * len(x)]),
        ClassifierOracle(DecisionTreeClassifier(), folds=10**6),
        ClassifierOracle(DecisionTreeClassifier(), seed=-1),
        ClassifierOracle(DecisionTreeClassifier(), seed="x"),
    ],
    ids=lambda oracle: re.sub(r" at 0x\w+", "", str(oracle)),  # the same names in every process
)
def test_parameters_of_oracles(data, oracle):
    with pytest.raises(CraftError):
        CRAFT(oracle, **KNOWN).fit(*data)


@pytest.mark.parametrize("seed", [-1, "a", None, 0.5])
def test_the_seed_of_a_diagnosis(model, data, seed):
    with pytest.raises(InvalidParameterError, match="seed"):
        model.diagnose(*data, n_resamples=1, seed=seed)


def test_an_eta_next_to_nothing(data):
    with pytest.raises(InvalidParameterError, match="bins"):
        CRAFT(alpha=1e-3, eta=1e-320, nu=0.05).fit(*data)


def test_more_agents_than_can_be_counted(data):
    with pytest.raises(InvalidDataError, match="at most 64 agents"):
        CRAFT(**KNOWN).fit(data[0][:70], np.arange(70))


@pytest.mark.parametrize("path", [None, 3, b"model", "a\0b"])
def test_a_path_must_be_a_name(model, path):
    for call in (lambda: model.save(path), lambda: craftrl.load(path)):
        with pytest.raises(InvalidParameterError, match="The model must be a path"):
            call()


@pytest.mark.parametrize("trusted", [3, True, "sklearn.tree", [3]])
def test_trusted_must_be_a_list_of_names(model, tmp_path, trusted):
    model.save(tmp_path / "model")
    with pytest.raises(InvalidParameterError, match="trusted must be a list"):
        craftrl.load(tmp_path / "model", trusted=trusted)


def test_one_state_at_every_step_is_no_silent_result():
    x = np.zeros((40, 4, 3), dtype=int)
    with pytest.warns(AssumptionWarning, match="one state at h = 2-4"):
        CRAFT(alpha=0.5, eta=0.1, nu=0.05).fit(x, np.repeat([0, 1], 20))


def test_a_handful_of_trajectories_is_never_trusted():
    x = np.random.default_rng(0).integers(0, 2, (2, 4, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        found = CRAFT().fit(x, [0, 1]).diagnose(x, [0, 1])
    assert found.verdict != "trust"
    assert any("the fewest trajectories has 1:" in str(text) for text in found.warnings)


def test_transform_takes_what_fit_takes():
    rng = np.random.default_rng(0)
    x_a, x_b = rng.integers(0, 2, (30, 3, 4)), rng.integers(0, 2, (20, 3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        model = CRAFT(alpha=0.5, eta=0.1, nu=0.05)
        states = model.fit_transform([x_a, x_b])
        assert np.array_equal(states, model.transform(np.concatenate([x_a, x_b])))
        episodes = [x[: 2 if i % 5 == 0 else 3] for i, x in enumerate(x_a)]
        ragged = model.fit_transform(episodes, np.arange(30) % 2)
    assert ragged.shape == (30, 3)
    assert ((ragged == -1) == (np.arange(3) >= np.array([len(e) for e in episodes])[:, None])).all()


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=3, n_features=4, seed=0)
    return collect(world, world.paper_policies(), 60, seed=0).tau


def fitted_to(dtype):
    model = Learner()
    model.data_ = {"dtype": dtype}
    return model


def test_bytes_and_floats_are_not_mixed_up_by_a_network():
    pixels = np.array([[0, 128, 255]], dtype=np.uint8)
    assert fitted_to("uint8")._as_fitted(pixels.astype(np.int64)).dtype == np.uint8
    scaled = pixels / 255
    assert fitted_to("uint8")._as_fitted(scaled) is scaled
    with pytest.raises(InvalidDataError, match="must be uint8, as in the data fitted; float64 from 0 to 255 was given"):
        fitted_to("uint8")._as_fitted(pixels.astype(float))
    with pytest.raises(InvalidDataError, match="must be float32, as in the data fitted; uint8 from 0 to 255"):
        fitted_to("float32")._as_fitted(pixels)


def test_a_class_that_does_not_fit_into_memory(tau):
    with pytest.raises(InvalidParameterError, match="n_values must be an integer from 2 to 32767"):
        CRAFT(CoordinateOracle(n_values=10**6), **KNOWN).fit(tau)
    many = [lambda x: x[:, 0]] * 100_000
    with pytest.raises(InvalidParameterError, match=r"must fit into memory; that needs .* GiB"):
        CRAFT(FiniteOracle(many, n_values=30_000), **KNOWN).fit(tau)


def test_selections_are_numbers_of_trajectories_or_one_flag_for_each(tau):
    flags = np.zeros(tau.n, dtype=bool)
    flags[[3, 70, 71]] = True
    chosen = tau.select(flags)
    assert np.array_equal(chosen.at(2), tau.at(2)[[3, 70, 71]])
    assert chosen.agent.tolist() == [0, 1, 1]
    for bad in ([-1, 70], [0, tau.n], [0.5, 70], [], flags[:5], [[0], [70]]):
        with pytest.raises((InvalidParameterError, InvalidDataError), match="index must"):
            tau.select(bad)


def test_nothing_to_name_the_states_of(tau):
    model = CRAFT(CoordinateOracle(), **KNOWN).fit(tau)
    for nothing in ([], [None, None]):
        with pytest.raises(InvalidDataError):
            model.transform(nothing)
    with pytest.raises(InvalidParameterError, match="n_resamples must be an integer"):
        model.diagnose(tau, n_resamples=2**63)
