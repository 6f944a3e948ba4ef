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
from craftrl.paper import Assumptions, empirical_assumptions, population_assumptions
from studies.worlds.policies import HistoryPolicy


def values(assumptions: Assumptions) -> dict[str, float]:
    return {name: getattr(assumptions, name).value for name in ("alpha", "eta", "nu", "nu_prime")}


class TestPopulation:
    @pytest.mark.parametrize("horizon", [3, 4, 30])
    def test_the_toy_world_has_the_papers_values(self, horizon: int) -> None:
        world = BitsExBMDP(horizon, 4)
        found = population_assumptions(world, world.paper_policies())
        assert found.alpha.value == pytest.approx(math.log(3), rel=1e-15)
        assert found.eta.value == 1 / 5
        assert found.nu.value == 5 / 32
        assert found.nu_prime.value == 3 / 8

    def test_they_are_attained_at_h_2_where_agent_b_rarely_left_the_start(self) -> None:
        world = BitsExBMDP(30, 4)
        found = population_assumptions(world, world.paper_policies())
        assert (found.eta.h, found.eta.states, found.eta.agents) == (2, (1, 0), (1, 0))
        assert (found.nu.h, found.nu.states) == (2, (1, 0))
        assert (found.nu_prime.h, found.nu_prime.states) == (2, (1,))
        assert (found.alpha.h, found.alpha.states) == (1, (0, 0, 1))  # the same everywhere: the first

    def test_one_step_alone_is_easier(self) -> None:
        world = BitsExBMDP(2, 4)
        found = population_assumptions(world, world.paper_policies())
        assert values(found) == pytest.approx({"alpha": math.log(3), "eta": 1 / 3, "nu": 3 / 8, "nu_prime": 3 / 8})

    def test_weights_are_shares_of_the_trajectories(self) -> None:
        world = BitsExBMDP(3, 4)
        found = population_assumptions(world, world.paper_policies(), weights=[3, 1])
        assert found.nu.value == pytest.approx(3 / 4 * 1 / 4 + 1 / 4 * 1 / 16)
        assert found.eta.value == pytest.approx((1 / 16) / (3 / 4 + 1 / 16))
        assert found.alpha.value == pytest.approx(math.log(3))

    def test_a_possible_pair_that_nobody_takes_has_no_coverage(self) -> None:
        world = BitsExBMDP(3, 4)
        stay = world.persistence_policy(1.0)
        found = population_assumptions(world, [stay, stay])
        assert (found.nu.value, found.nu.h, found.nu.states) == (0.0, 1, (0, 1))
        assert (found.nu_prime.value, found.nu_prime.h, found.nu_prime.states) == (0.0, 2, (1,))
        assert found.eta.value == 0.5
        assert found.alpha.value == math.inf
        assert found.alpha.h is None
        assert "no state has two successors" in str(found)

    def test_large_samples_approach_it(self) -> None:
        world = BitsExBMDP(5, 2)
        data = collect(world, world.paper_policies(), 100_000, seed=3)
        empirical = values(empirical_assumptions(data.tau.agent, data.truth.states))
        population = values(population_assumptions(world, world.paper_policies()))
        assert empirical == pytest.approx(population, rel=0.03)

    def test_only_markov_policies_have_population_values(self) -> None:
        world = BitsExBMDP(3, 4)
        uniform = HistoryPolicy(lambda history: np.full((len(history), 2), 0.5))
        with pytest.raises(InvalidParameterError, match="Markov policies of at least two agents"):
            population_assumptions(world, [uniform, uniform])
        with pytest.raises(InvalidParameterError, match="one positive number per policy"):
            population_assumptions(world, world.paper_policies(), weights=[1, 0])

    def test_policies_of_another_world(self) -> None:
        world, shorter = BitsExBMDP(4, 4), BitsExBMDP(3, 4)
        with pytest.raises(InvalidParameterError, match=r"a table of shape \(2, 2\) for h = 3; none was given"):
            population_assumptions(world, shorter.paper_policies())


def literal_two_agents(agent: np.ndarray, states: np.ndarray) -> dict[str, float]:
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
    return {"alpha": alpha, "eta": eta, "nu": nu, "nu_prime": nu_prime}


class TestEmpirical:
    @settings(max_examples=150)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 4), st.integers(1, 3))
    def test_agrees_with_the_definitions(self, seed: int, n: int, H: int, n_states: int) -> None:
        rng = np.random.default_rng(seed)
        agent = np.concatenate([[0, 1], rng.integers(0, 2, n)])
        states = rng.integers(0, n_states, (n + 2, H))
        states[:, 0] = 0
        found = values(empirical_assumptions(agent, states))
        assert found == pytest.approx(literal_two_agents(agent, states))

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 4))
    def test_agents_and_states_may_be_renamed(self, seed: int, K: int) -> None:
        rng = np.random.default_rng(seed)
        agent, states = np.arange(40) % K, rng.integers(0, 3, (40, 4))
        renamed = rng.permutation(K)[agent], rng.permutation(3)[states]
        assert values(empirical_assumptions(agent, states)) == pytest.approx(values(empirical_assumptions(*renamed)))

    def test_unknown_states_count_nowhere_but_in_the_total(self) -> None:
        agent = np.array([0, 0, 1, 1, 1])
        states = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [0, -1]])
        found = empirical_assumptions(agent, states)
        assert found.nu.value == pytest.approx(2 / 5)
        assert found.eta.value == 1 / 2
        assert found.alpha.value == 0.0

    def test_trajectories_that_are_over_are_not_counted_as_lost(self) -> None:
        rng = np.random.default_rng(0)
        long, agent = rng.integers(0, 2, (60, 4)), np.arange(60) % 2
        alone = values(empirical_assumptions(agent, long))
        clips = np.concatenate([rng.integers(0, 2, (4000, 2)), np.full((4000, 2), -1)], axis=1)
        both, agents = np.concatenate([long, clips]), np.concatenate([agent, np.arange(4000) % 2])
        lengths = np.repeat([4, 2], [60, 4000])
        beside = values(empirical_assumptions(agents, both, lengths=lengths))
        assert beside["nu"] == pytest.approx(alone["nu"], rel=0.5)
        assert beside["nu"] > 10 * values(empirical_assumptions(agents, both))["nu"]
        for odd in (lengths[:-1], lengths - 2, 4):
            with pytest.raises(InvalidDataError, match="lengths must be one integer of at least 1 for each of 4060"):
                empirical_assumptions(agents, both, lengths=odd)

    def test_a_transition_that_one_agent_never_takes(self) -> None:
        agent = np.array([0, 0, 0, 1, 1])
        states = np.array([[0, 0], [0, 0], [0, 1], [0, 0], [0, 0]])
        found = empirical_assumptions(agent, states)
        assert (found.eta.value, found.eta.states, found.eta.agents) == (0.0, (0, 1), (1, 0))
        assert found.alpha.value == math.inf

    def test_a_readable_account(self) -> None:
        world = BitsExBMDP(3, 4)
        lines = str(population_assumptions(world, world.paper_policies())).splitlines()
        assert lines[1] == "eta   = 0.2 at h = 2, state 1 -> 0, agents 1 and 0"
        assert lines[0].startswith("alpha = 1.09861 at h = 1, state 0 -> 0 | 1")

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
    def test_bad_input(self, agent: list, states: list, message: str) -> None:
        with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
            empirical_assumptions(agent, states)


class TestManyAgents:
    def test_three_agents_separate_what_no_two_do(self) -> None:
        """Agents 0 and 1 differ in state 0 alone, agents 0 and 2 in state 1 alone."""
        world = BitsExBMDP(3, 2)
        uniform = [0.5, 0.5]
        a = MarkovPolicy([[uniform], [uniform, uniform]])
        b = MarkovPolicy([[[0.75, 0.25]], [[0.8, 0.2], uniform]])
        c = MarkovPolicy([[uniform], [uniform, [0.1, 0.9]]])
        for pair in ([a, b], [a, c]):
            assert population_assumptions(world, pair).alpha.value == pytest.approx(0, abs=1e-12)
        found = population_assumptions(world, [a, b, c])
        assert found.alpha.value == pytest.approx(min(math.log(3), math.log(4), math.log(9)))
        assert (found.alpha.h, found.alpha.states, set(found.alpha.agents)) == (1, (0, 0, 1), {1, 0})

    @settings(max_examples=60)
    @given(st.integers(0, 2**32 - 1))
    def test_alpha_is_the_best_pairs_and_eta_the_worst_pairs(self, seed: int) -> None:
        """With one state and two successors, K agents are as good as their best pair and as rare as their worst."""
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 9, (3, 2))
        agent = np.repeat([0, 0, 1, 1, 2, 2], counts.ravel())
        states = np.stack([np.zeros_like(agent), np.repeat([0, 1] * 3, counts.ravel())], axis=1)
        found = empirical_assumptions(agent, states)
        pairs = []
        for i, j in combinations(range(3), 2):
            rows = np.isin(agent, [i, j])
            pairs.append(empirical_assumptions((agent[rows] == j).astype(int), states[rows]))
        assert found.alpha.value == pytest.approx(max(p.alpha.value for p in pairs))
        assert found.eta.value == pytest.approx(min(p.eta.value for p in pairs))
