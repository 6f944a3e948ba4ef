"""Theorem 3.1 with its constants, its inverse, the induction that carries it; and what knowing nothing scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemmas import encoding_sample_size, recursive_step_holds, separation_sample_size

from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.paper import chance_accuracy, guaranteed_epsilon, sample_size
from studies.worlds.lock import LockExBMDP

TOY = {"delta": 0.05, "H": 30, "class_size": 256, "N_s": 2, "alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}
TOY |= {"nu_prime": 3 / 8}

problems = st.fixed_dictionaries(
    {
        "delta": st.floats(0.001, 0.5),
        "H": st.integers(2, 100),
        "class_size": st.integers(1, 10**6),
        "N_s": st.integers(1, 20),
        "alpha": st.floats(0.05, 5),
        "eta": st.floats(0.01, 0.5),
        "nu": st.floats(0.001, 0.5),
        "nu_prime": st.floats(0.5, 1),
    }
)
errors = st.floats(0.001, 1)


def test_the_printed_formula():
    """Equation 103, with the effective alpha = 1 and eta = 1/(1 + e^1.5)."""
    eta, nu, nu_prime, epsilon_0 = 1 / (1 + math.exp(12 / 8)), 5 / 32, 3 / 8, 0.05
    printed = (819200 * 30**2 * (math.log(8 * 30 * 256**2 / 0.05) + 2**2 * math.log(13)) * math.log(1 / eta) ** 2) / (
        nu * eta**2
    )
    printed *= max(1 / nu**2, 1 / (epsilon_0**2 * nu_prime**2))
    found = sample_size(epsilon_0=epsilon_0, **TOY)
    assert found.per_pair == pytest.approx(printed, rel=1e-9)
    assert found.total == pytest.approx(printed / nu, rel=1e-9)
    assert (found.grid.alpha, found.grid.n_xi) == (1.0, 12)
    assert "3.48e+16 visits" in str(found)
    # 5000 trajectories per agent give more than 99.9% in the paper's table; the theorem promises nothing there.
    assert guaranteed_epsilon(10_000, **TOY) is None
    # An infinite alpha is as good as one.
    assert sample_size(epsilon_0=0.1, **{**TOY, "alpha": math.inf}) == sample_size(epsilon_0=0.1, **TOY)


@given(problems, errors)
def test_the_inverse(problem, epsilon_0):
    """Below epsilon_0 = nu/nu' the two are inverse; above, the clusters decide and give nu/nu' for free."""
    n = sample_size(epsilon_0=epsilon_0, **problem).total
    expected = min(epsilon_0, problem["nu"] / problem["nu_prime"])
    assert guaranteed_epsilon(n + 10 + n // 10**9, **problem) == pytest.approx(expected, rel=1e-3)  # rounding
    assert guaranteed_epsilon(sample_size(epsilon_0=1.0, **problem).total // 2, **problem) is None


@given(problems, errors)
def test_the_other_lemmas_are_satisfied_by_the_way(problem, epsilon_0):
    """The theorem names the spread of f_h alone. Merging compares each of at most 1/nu pairs with each other one."""
    found, H, nu = sample_size(epsilon_0=epsilon_0, **problem), problem["H"], problem["nu"]
    epsilon = found.epsilon * (1 - 1e-9)  # epsilon + beta = q_thresh is allowed, and is a matter of rounding
    for h in {1, 2, H // 2, H - 1} & set(range(1, H)):
        assert recursive_step_holds(epsilon=epsilon, beta=(h - 1) * epsilon, nu=nu, h=h, H=H)
    delta, class_size = problem["delta"], problem["class_size"]
    assert found.per_pair >= separation_sample_size(delta=delta / (4 * H) * nu**2, class_size=class_size)
    n_states = math.floor(1 / problem["nu_prime"])
    encoding = encoding_sample_size(epsilon=epsilon_0, delta=delta / (2 * H), class_size=class_size, N=n_states)
    assert problem["nu_prime"] * found.total >= encoding


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon_0": 0.0}, r"epsilon_0 must be a share of errors in \(0, 1\]"),
        ({"alpha": 0.0}, "alpha must be a positive number"),
        ({"alpha": "x"}, "alpha must be a positive number"),
        ({"nu": 1.5}, "nu must lie in"),
        ({"nu_prime": 0.1}, r"nu_prime must be a number in \[nu, 1\]"),
        ({"H": 1}, "H must be a whole number of at least 2"),
        ({"N_s": 1.5}, r"N_s must be a whole number of at least 1 .*; 1\.5 was given"),
        ({"class_size": 10**400}, "class_size must be a whole number of at least 1 that a float holds"),
        ({"nu": 1e-200, "nu_prime": 1.0}, "sample_size must stay below 1e308"),
        ({"delta": 0.0}, r"delta must be a number in \(0, 1\)"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InvalidParameterError, match=message):
        sample_size(**{"epsilon_0": 0.1, **TOY, **change})


@pytest.mark.parametrize("n", [0, 1.5, None, math.nan])
def test_a_number_of_trajectories_that_is_none(n):
    with pytest.raises(InvalidParameterError, match="n must be a whole number of at least 1"):
        guaranteed_epsilon(n, **TOY)


# -- chance -------------------------------------------------------------------------------------------------------


def test_in_the_papers_world_chance_is_a_random_feature():
    worlds = [BitsExBMDP(30, 128, seed) for seed in range(20)]
    chance = np.array([chance_accuracy(world, world.paper_policies()) for world in worlds])
    assert (chance[:, 0] == 1).all()
    assert chance.mean() == pytest.approx(0.705, abs=0.0005)
    plain = BitsExBMDP(4, 10, entangled=False)
    assert chance_accuracy(plain, plain.paper_policies()).tolist() == pytest.approx([1.0, 0.55, 0.55, 0.55])


def test_in_other_worlds_chance_is_one_state_named_at_every_step():
    world = LockExBMDP(5, 6, seed=1)
    states = collect(world, world.policies(), 5000, seed=0).truth.states
    commonest = [np.bincount(s_h).max() / len(s_h) for s_h in states.T]
    assert chance_accuracy(world, world.policies()) == pytest.approx(commonest, abs=0.02)


@pytest.mark.parametrize("policies", [None, "x", np.zeros(2), [None, None]])
def test_policies_are_checked_where_they_are_not_needed(policies):
    with pytest.raises(InvalidParameterError, match=r"policies must be a (list with the policy of each agent|policy)"):
        chance_accuracy(BitsExBMDP(horizon=4, n_features=6, seed=0), policies)
