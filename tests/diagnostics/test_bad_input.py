"""The checks may be called one by one: what they are given is checked, and told in one sentence."""

from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
from craftrl.core.seam import CheckablePairFunction

from craftrl import CRAFT, CoordinateOracle, CraftError
from craftrl.diagnostics import (
    agent_shares,
    closure_test,
    cluster_gaps,
    diagnose,
    resample,
    residual_information,
    sufficiency,
)
from craftrl.envs import BitsExBMDP, collect

WORLD = BitsExBMDP(horizon=3, n_features=4, seed=0)
TAU = collect(WORLD, WORLD.paper_policies(), 40, seed=0).tau
CODES = np.zeros((TAU.n, TAU.H), dtype=int)
PROBE = CoordinateOracle()


@pytest.mark.parametrize("check", [closure_test, residual_information])
@pytest.mark.parametrize(
    ("codes", "tau", "probe"),
    [
        (CODES[:5], TAU, PROBE),
        (CODES[:, :1], TAU, PROBE),
        (CODES + 0.5, TAU, PROBE),
        ("states", TAU, PROBE),
        (None, TAU, PROBE),
        (CODES, "data.h5", PROBE),
        (CODES, None, PROBE),
        (CODES, TAU, "coordinates"),
        (CODES, TAU, CoordinateOracle),
        (CODES, TAU, None),
    ],
)
def test_states_data_and_probe(check, codes, tau, probe):
    with pytest.raises(CraftError, match="given"):
        check(codes, tau, probe)


@pytest.mark.parametrize(
    ("codes", "tau", "eta"),
    [
        (CODES[:5], TAU, 0.2),
        (CODES, None, 0.2),
        (CODES, TAU, "0.2"),
        (CODES, TAU, 0.0),
        (CODES, TAU, np.nan),
        (CODES, TAU, [0.2]),
    ],
)
def test_shares(codes, tau, eta):
    with pytest.raises(CraftError, match="given"):
        agent_shares(codes, tau, eta)


@pytest.mark.parametrize("trace", [None, "trace", CRAFT(), []])
def test_gaps(trace):
    with pytest.raises(CraftError, match="given"):
        cluster_gaps(trace)


def test_eta_may_be_a_fraction():
    fraction, number = (agent_shares(CODES, TAU, eta) for eta in (Fraction(1, 4), 0.25))
    assert fraction.p_value.tolist() == number.p_value.tolist()


@pytest.mark.parametrize("at_chance", [None, "x", 2, [None], [1.5], [[1], [2]]])
def test_steps_at_chance(at_chance):
    f = Mock(spec=CheckablePairFunction)
    with pytest.raises(CraftError, match=r"at_chance must .* given"):
        sufficiency(f, CODES, TAU, at_chance, 0)
    f.of_unseen.assert_not_called()  # arguments are checked first


def test_a_model_is_no_subject():
    with pytest.raises(CraftError, match=r"CRAFT\.diagnose makes one"):
        diagnose(CRAFT(), TAU, n_resamples=0)
    with pytest.raises(CraftError, match=r"CRAFT\.diagnose makes one"):
        resample(CRAFT(), TAU, 3, 0)
    with pytest.raises(CraftError, match="log-odds that say what they learned from"):
        sufficiency(None, CODES, TAU, [], 0)
