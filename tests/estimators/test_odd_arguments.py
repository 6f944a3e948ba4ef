"""Arguments that make no sense to a fit or a fitted model: one of our errors, and never a wrong answer in silence."""

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, InvalidDataError, InvalidParameterError
from craftrl.envs import BitsExBMDP, collect
from craftrl.estimators.base import Learner

KNOWN = {"alpha": 1, "eta": 0.2, "nu": 0.1}


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


@pytest.mark.parametrize("clusterer", ["hills", None, len, ["scan"]])
def test_clusterers_that_there_are_not(tau, clusterer):
    with pytest.raises(
        InvalidParameterError, match=r"clusterer must be one of 'auto', 'scan', 'valleys'; .* was given"
    ):
        CRAFT(CoordinateOracle(), clusterer=clusterer, **KNOWN).fit(tau)


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
    for bad in ([], [None, None]):
        with pytest.raises(InvalidDataError):
            model.transform(bad)
    with pytest.raises(InvalidParameterError, match="n_resamples must be an integer"):
        model.diagnose(tau, n_resamples=2**63)
