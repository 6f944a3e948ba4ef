"""Every learner that is shipped keeps the contract; a new one joins a list here."""

import numpy as np
import pytest
from sklearn.base import clone

from craftrl import CRAFT, CoordinateOracle, FiniteOracle
from craftrl.paper import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation, baselines
from craftrl.testing import check_learner
from shipped import BOUNDS, ORACLES, fitted, rows_of

PAPER = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
CAN_SHARE = [
    "coordinates",
    "functions",
    "classifier",
    "network of vectors",
    "network of images",
    "network with a trunk of one's own",
]
EXACT = {
    "CRAFT of the paper": lambda: CRAFT.paper(CoordinateOracle(), **PAPER),
    "CRAFT chained": lambda: CRAFT(CoordinateOracle(), **PAPER, coupling="chain", relabel=True),
    "CRAFT by Markov chain": lambda: CRAFT(CoordinateOracle(), **PAPER, coupling="markov", relabel=True),
    "CRAFT without bounds": lambda: CRAFT(CoordinateOracle(), coupling="independent", relabel=False),
    "CRAFT left to itself": CRAFT,
    "CRAFT of functions without a name": lambda: CRAFT(
        FiniteOracle([lambda x, i=i: x[:, i] for i in range(4)]), **PAPER
    ),
    "SingleObservation": lambda: SingleObservation(CoordinateOracle()),
    "PairedObservation": lambda: PairedObservation(CoordinateOracle()),
    "RecursiveDRAFT": lambda: RecursiveDRAFT(CoordinateOracle()),
}


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_learner_keeps_the_contract(name):
    check_learner(EXACT[name](), *rows_of("bits"))


def test_draft_keeps_the_contract_on_two_steps():
    x, agent = rows_of("bits")
    check_learner(DRAFT(CoordinateOracle()), x[:, :2], agent)


# One with `decision_function` alone takes longest; as an oracle, test_oracles.py has it.
@pytest.mark.parametrize("name", [name for name in ORACLES if name != "classifier without probabilities"])
def test_craft_keeps_the_contract_with_every_oracle(name):
    kind, make = ORACLES[name]
    check_learner(CRAFT(make(), **BOUNDS), *rows_of(kind))


@pytest.mark.parametrize("name", CAN_SHARE)
def test_craft_keeps_the_contract_with_one_encoder_for_all_steps(name):
    kind, make = ORACLES[name]
    check_learner(CRAFT(make(), **BOUNDS, stationary=True), *rows_of(kind))


def test_every_learner_of_the_package_is_in_a_list():
    here = {type(make()).__name__ for make in EXACT.values()} | {"DRAFT"}
    assert here == {*baselines.__all__, "CRAFT"}


def test_episodes_of_unequal_length_keep_the_contract():
    x, agent = rows_of("bits")
    episodes = [row[: 2 + i % 3] for i, row in enumerate(x)]
    for learner in (CRAFT(**PAPER), SingleObservation(CoordinateOracle()), RecursiveDRAFT(CoordinateOracle())):
        check_learner(learner, episodes, agent)


def test_three_agents_keep_the_contract():
    x, _ = rows_of("bits")
    agent = np.array(["left", "right", "neither"])[np.arange(len(x)) % 3]
    for learner in (CRAFT(**PAPER), SingleObservation(CoordinateOracle()), PairedObservation(CoordinateOracle())):
        check_learner(learner, x, agent)


@pytest.mark.parametrize("name", EXACT)
def test_exact_learners_do_not_care_for_the_order_of_rows_at_all(name):
    x, agent = rows_of("bits")
    order = np.random.default_rng(0).permutation(len(x))
    learner = EXACT[name]()
    one, other = fitted(clone(learner), x, agent), fitted(clone(learner), x[order], agent[order])
    assert np.array_equal(one.transform(x), other.transform(x))
    assert set(one.transform(x)[:, 0]) == {0}
    if hasattr(one, "labels_"):
        assert np.array_equal(one.labels_[order], other.labels_)
