"""alpha, eta, nu, nu': against the paper's toy world and against the definitions, written out literally."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.paper import empirical_assumptions, population_assumptions
from studies.worlds.policies import HistoryPolicy

NAMES = ("alpha", "eta", "nu", "nu_prime")
seeds = st.integers(0, 2**32 - 1)


def values(assumptions):
    return {name: getattr(assumptions, name).value for name in NAMES}


def of_toy_world(horizon, **more):
    world = BitsExBMDP(horizon, 4)
    return population_assumptions(world, world.paper_policies(), **more)


# -- in a known world ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [3, 30])
def test_the_toy_world_has_the_papers_values(horizon):
    found = of_toy_world(horizon)
    assert list(values(found).values()) == [pytest.approx(math.log(3), rel=1e-15), 1 / 5, 5 / 32, 3 / 8]
    # They are attained at h = 2, where agent B rarely left the start; alpha is the same everywhere, so at h = 1.
    assert (found.eta.h, found.eta.states, found.eta.agents) == (2, (1, 0), (1, 0))
    assert (found.nu.h, found.nu.states, found.nu_prime.h, found.nu_prime.states) == (2, (1, 0), 2, (1,))
    assert (found.alpha.h, found.alpha.states) == (1, (0, 0, 1))
    lines = str(found).splitlines()
    assert lines[0].startswith("alpha = 1.09861 at h = 1, state 0 -> 0 | 1")
    assert lines[1] == "eta   = 0.2 at h = 2, state 1 -> 0, agents 1 and 0"


def test_one_step_alone_is_easier_and_weights_are_shares_of_the_trajectories():
    assert values(of_toy_world(2)) == pytest.approx(dict(zip(NAMES, (math.log(3), 1 / 3, 3 / 8, 3 / 8))))
    found = values(of_toy_world(3, weights=[3, 1]))
    nu = 3 / 4 * 1 / 4 + 1 / 4 * 1 / 16
    assert found | {"nu_prime": 0} == pytest.approx(dict(zip(NAMES, (math.log(3), 1 / 16 / (3 / 4 + 1 / 16), nu, 0))))


def test_a_possible_pair_that_nobody_takes_has_no_coverage():
    world = BitsExBMDP(3, 4)
    found = population_assumptions(world, [world.persistence_policy(1.0)] * 2)
    assert (found.nu.value, found.nu.h, found.nu.states) == (0.0, 1, (0, 1))
    assert (found.nu_prime.value, found.nu_prime.h, found.nu_prime.states) == (0.0, 2, (1,))
    assert (found.eta.value, found.alpha.value, found.alpha.h) == (0.5, math.inf, None)
    assert "no state has two successors" in str(found)


def test_large_samples_approach_it():
    world = BitsExBMDP(5, 2)
    data = collect(world, world.paper_policies(), 100_000, seed=3)
    empirical = values(empirical_assumptions(data.tau.agent, data.truth.states))
    assert empirical == pytest.approx(values(population_assumptions(world, world.paper_policies())), rel=0.03)


def test_three_agents_separate_what_no_two_do():
    """Agents 0 and 1 differ in state 0 alone, agents 0 and 2 in state 1 alone."""
    world, even = BitsExBMDP(3, 2), [0.5, 0.5]
    a = MarkovPolicy([[even], [even, even]])
    b = MarkovPolicy([[[0.75, 0.25]], [[0.8, 0.2], even]])
    c = MarkovPolicy([[even], [even, [0.1, 0.9]]])
    for pair in ([a, b], [a, c]):
        assert population_assumptions(world, pair).alpha.value == pytest.approx(0, abs=1e-12)
    found = population_assumptions(world, [a, b, c]).alpha
    assert found.value == pytest.approx(math.log(3))
    assert (found.h, found.states, set(found.agents)) == (1, (0, 0, 1), {1, 0})


def test_policies_without_population_values_are_refused():
    world = BitsExBMDP(4, 4)
    uniform = HistoryPolicy(lambda history: np.full((len(history), 2), 0.5))
    for policies, more, told in (
        ([uniform, uniform], {}, "Markov policies of at least two agents"),
        (world.paper_policies(), {"weights": [1, 0]}, "one positive number per policy"),
        (BitsExBMDP(3, 4).paper_policies(), {}, "a table for every step; h = 3 was given, and there are 2"),
        ([MarkovPolicy([[[1.0]]] * 3)] * 2, {}, r"a table of shape \(1, 2\) for h = 1; \(1, 1\) was given"),
    ):
        with pytest.raises(InvalidParameterError, match=told):
            population_assumptions(world, policies, **more)


# -- of data ------------------------------------------------------------------------------------------------------


def literal_two_agents(agent, states):
    """Equations 3-7 as they stand, for two agents and the pairs that somebody visits; shares n, ratios d."""
    n, H = states.shape
    alpha, eta, nu, nu_prime = math.inf, math.inf, math.inf, math.inf
    for h in range(H):
        for s in set(states[:, h]):
            nu_prime = min(nu_prime, (states[:, h] == s).mean())
            if h == H - 1:
                continue
            D = {
                succ: [((agent == k) & (states[:, h] == s) & (states[:, h + 1] == succ)).sum() for k in (0, 1)]
                for succ in set(states[states[:, h] == s, h + 1])
            }
            for d in D.values():
                nu = min(nu, sum(d) / n)
                eta = min(eta, d[0] / sum(d), d[1] / sum(d))
            for (a, b), (a_other, b_other) in combinations(D.values(), 2):
                if a + a_other == 0 or b + b_other == 0:
                    alpha = 0.0  # one of the agents is never here
                elif min(a * b_other, b * a_other) > 0:
                    alpha = min(alpha, abs(math.log(a * b_other) - math.log(b * a_other)))
    return dict(zip(NAMES, (alpha, eta, nu, nu_prime)))


@settings(max_examples=150)
@given(seeds, st.integers(2, 30), st.integers(2, 4), st.integers(1, 3))
def test_agrees_with_the_definitions(seed, n, H, n_states):
    rng = np.random.default_rng(seed)
    agent = np.concatenate([[0, 1], rng.integers(0, 2, n)])
    states = rng.integers(0, n_states, (n + 2, H))
    states[:, 0] = 0
    found = values(empirical_assumptions(agent, states))
    assert found == pytest.approx(literal_two_agents(agent, states))
    swapped, renamed = 1 - agent, rng.permutation(n_states)[states]
    assert values(empirical_assumptions(swapped, renamed)) == pytest.approx(found)


@settings(max_examples=60)
@given(seeds)
def test_alpha_is_the_best_pairs_and_eta_the_worst_pairs(seed):
    """With one state and two successors, K agents are as good as their best pair and as rare as their worst."""
    counts = np.random.default_rng(seed).integers(1, 9, (3, 2))
    agent = np.repeat([0, 0, 1, 1, 2, 2], counts.ravel())
    states = np.stack([np.zeros_like(agent), np.repeat([0, 1] * 3, counts.ravel())], axis=1)
    found, pairs = empirical_assumptions(agent, states), []
    for i, j in combinations(range(3), 2):
        rows = np.isin(agent, [i, j])
        pairs.append(empirical_assumptions((agent[rows] == j).astype(int), states[rows]))
    assert found.alpha.value == pytest.approx(max(p.alpha.value for p in pairs))
    assert found.eta.value == pytest.approx(min(p.eta.value for p in pairs))


def test_unknown_states_count_nowhere_but_in_the_total():
    states = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [0, -1]])
    found = values(empirical_assumptions(np.array([0, 0, 1, 1, 1]), states))
    assert (found["alpha"], found["eta"], found["nu"]) == (0.0, 0.5, pytest.approx(2 / 5))


def test_trajectories_that_are_over_are_not_counted_as_lost():
    rng = np.random.default_rng(0)
    long, agent = rng.integers(0, 2, (60, 4)), np.arange(60) % 2
    alone = empirical_assumptions(agent, long).nu.value
    clips = np.concatenate([rng.integers(0, 2, (4000, 2)), np.full((4000, 2), -1)], axis=1)
    both, agents = np.concatenate([long, clips]), np.concatenate([agent, np.arange(4000) % 2])
    lengths = np.repeat([4, 2], [60, 4000])
    beside = empirical_assumptions(agents, both, lengths=lengths).nu.value
    assert beside == pytest.approx(alone, rel=0.5)
    assert beside > 10 * empirical_assumptions(agents, both).nu.value
    for odd in (lengths[:-1], lengths - 2, 4):
        with pytest.raises(InvalidDataError, match="lengths must be one integer of at least 1 for each of 4060"):
            empirical_assumptions(agents, both, lengths=odd)


def test_a_transition_that_one_agent_never_takes():
    found = empirical_assumptions([0, 0, 0, 1, 1], [[0, 0], [0, 0], [0, 1], [0, 0], [0, 0]])
    assert (found.eta.value, found.eta.states, found.eta.agents) == (0.0, (0, 1), (1, 0))
    assert found.alpha.value == math.inf


@pytest.mark.parametrize(
    ("agent", "states", "message"),
    [
        ([0, 1], [[0, 0]], "states integers of shape"),
        ([0, 1], [[0], [0]], "H >= 2"),
        ([0, 1], [[0.0, 1.0], [0.0, 1.0]], "float64, was given"),
        ([0, 0], [[0, 0], [0, 1]], "at least two agents"),
        ([0, 1], [[0, 0], [0, -2]], "-2 was given"),
        ([0, 1], [[0, -1], [-1, 0]], "pair of consecutive states must be visited"),
    ],
)
def test_bad_input(agent, states, message):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
        empirical_assumptions(agent, states)
