"""What any learner must do; a new one joins the list."""

import warnings

import numpy as np
import pytest

from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, FiniteOracle, InvalidDataError, NotFittedError
from craftrl.baselines import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation
from craftrl.envs import BitsExBMDP, collect

BOUNDS = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}


def first_bits():
    return FiniteOracle([lambda x, i=i: x[:, i] for i in range(4)])


LEARNERS = {
    "CRAFT": lambda: CRAFT.paper(CoordinateOracle(), **BOUNDS),
    "CRAFT of any class": lambda: CRAFT(first_bits(), **BOUNDS),
    "CRAFT chained": lambda: CRAFT(CoordinateOracle(), **BOUNDS, coupling="chain", relabel=True),
    "CRAFT by posterior": lambda: CRAFT(CoordinateOracle(), **BOUNDS, coupling="posterior", relabel=False),
    "CRAFT without bounds": lambda: CRAFT(CoordinateOracle(), coupling="independent", relabel=False),
    "SingleObservation": lambda: SingleObservation(CoordinateOracle()),
    "PairedObservation": lambda: PairedObservation(CoordinateOracle()),
    "RecursiveDRAFT": lambda: RecursiveDRAFT(CoordinateOracle()),
    "DRAFT": lambda: DRAFT(CoordinateOracle()),
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]()


def dataset(learner):
    H = 2 if isinstance(learner, DRAFT) else 4
    world = BitsExBMDP(horizon=H, n_features=6, seed=0)
    return collect(world, world.paper_policies(), 300, seed=0).tau


def fitted(learner, tau):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return learner.fit(tau)


def test_fit_returns_the_learner_and_leaves_its_parameters(learner):
    before = dict(vars(learner))
    assert fitted(learner, dataset(learner)) is learner
    assert {name: vars(learner)[name] for name in before} == before


def test_one_encoder_per_step_from_one_on(learner):
    tau = dataset(learner)
    fitted(learner, tau)
    assert len(learner.encoders_) == tau.H
    for h in range(1, tau.H + 1):
        codes = learner.encode(tau.at(h), h)
        assert codes.shape == (tau.n,)
        assert codes.dtype.kind == "i"
        assert codes.min() >= 0
    assert set(learner.encode(tau.at(1), 1)) == {0}


def test_same_data_same_result(learner):
    tau = dataset(learner)
    first = [fitted(learner, tau).encode(tau.at(h), h) for h in range(1, tau.H + 1)]
    second = [fitted(learner, tau).encode(tau.at(h), h) for h in range(1, tau.H + 1)]
    assert np.array_equal(first, second)


def test_labels_are_one_per_trajectory_and_step(learner):
    tau = dataset(learner)
    fitted(learner, tau)
    if hasattr(learner, "labels_"):
        assert learner.labels_.shape == (tau.n, tau.H)
        assert learner.labels_.min() >= -1
        assert all(learner.labels_[:, h - 1].max() < learner.n_states_[h] for h in range(1, tau.H + 1))


def test_refuses_what_is_not_data(learner):
    with pytest.raises(NotFittedError, match="must be fitted"):
        learner.encode(np.zeros((1, 6)), 1)
    with pytest.raises(InvalidDataError, match="One array needs the agent of each trajectory"):
        learner.fit(np.zeros((2, 3, 4, 5)))
