"""Every oracle that is shipped keeps the contract; a new one joins `shipped.ORACLES`."""

import numpy as np
import pytest

from craftrl.testing import check_oracle
from shipped import ORACLES, data

EXACT = ["coordinates", "functions"]


@pytest.mark.parametrize("name", ORACLES)
def test_the_oracle_keeps_the_contract(name):
    kind, make = ORACLES[name]
    check_oracle(make(), data(kind).tau)


@pytest.mark.parametrize("name", EXACT)
def test_exact_oracles_tell_states_apart_and_learn_their_labels(name):
    tau, s = data("bits").tau, data("bits").truth.states[:, 2]
    prepared = ORACLES[name][1]().prepare(tau)
    separation = prepared.separation(3, 2 * s + np.arange(tau.n) % 2, 4)
    assert separation(0, [1]) > 0.5
    assert separation(0, [2, 3]) < 0.5
    fit = prepared.encode(3, np.where(np.arange(tau.n) % 5 == 0, -1, s), 2)
    assert (fit.encoder(tau.at(3)) == s).mean() > 0.99
    assert fit.loss < 0.02
