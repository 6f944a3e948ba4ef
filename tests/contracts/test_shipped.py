"""Every learner and oracle that is shipped keeps the contract; a new one joins a list."""

import numpy as np
import pytest

import craftrl.paper
from craftrl import CRAFT, CoordinateOracle, FiniteOracle
from craftrl.estimators.base import Learner
from craftrl.paper import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation
from craftrl.testing import check_learner, check_oracle
from shipped import BOUNDS, ORACLES, data, rows_of

PAPER = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
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
# With one encoder for all steps; of networks, one that reads vectors and one that reads images.
SHARED = ["coordinates", "functions", "classifier", "network of vectors", "network of images"]


@pytest.mark.parametrize("name", ORACLES)
def test_the_oracle_keeps_the_contract(name):
    kind, make = ORACLES[name]
    check_oracle(make(), data(kind).tau)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_learner_keeps_the_contract(name):
    check_learner(EXACT[name](), *rows_of("bits"))


def test_draft_keeps_the_contract_on_two_steps():
    x, agent = rows_of("bits")
    check_learner(DRAFT(CoordinateOracle()), x[:, :2], agent)


# One with `decision_function` alone takes longest; as an oracle it is checked above.
@pytest.mark.parametrize("name", [name for name in ORACLES if name != "classifier without probabilities"])
def test_craft_keeps_the_contract_with_every_oracle(name):
    kind, make = ORACLES[name]
    check_learner(CRAFT(make(), **BOUNDS), *rows_of(kind))


@pytest.mark.parametrize("name", SHARED)
def test_craft_keeps_the_contract_with_one_encoder_for_all_steps(name):
    kind, make = ORACLES[name]
    check_learner(CRAFT(make(), **BOUNDS, stationary=True), *rows_of(kind))


def test_every_learner_of_the_package_is_in_a_list():
    here = {type(make()).__name__ for make in EXACT.values()} | {"DRAFT"}
    found = {name for name, of in vars(craftrl.paper).items() if isinstance(of, type) and issubclass(of, Learner)}
    assert here == {*found, "CRAFT"}


def test_unequal_lengths_keep_the_contract():
    x, agent = rows_of("bits")
    for learner in (CRAFT(**PAPER), RecursiveDRAFT(CoordinateOracle())):
        check_learner(learner, [row[: 2 + i % 3] for i, row in enumerate(x)], agent)


def test_three_agents_keep_the_contract():
    x, _ = rows_of("bits")
    agent = np.array(["left", "right", "neither"])[np.arange(len(x)) % 3]
    for learner in (CRAFT(**PAPER), PairedObservation(CoordinateOracle())):
        check_learner(learner, x, agent)
