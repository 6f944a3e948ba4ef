"""Policies for any world: coverage by a linear programme, agents alpha apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, MarkovPolicy, contrasting_policies
from craftrl.envs.agents import coverage_policy, successor_ranks, tilted
from craftrl.envs.exbmdp import ExBMDP
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP


def uniform(world: ExBMDP) -> MarkovPolicy:
    shapes = [(world.n_states(h), world.n_actions) for h in range(1, world.H)]
    return MarkovPolicy([np.full(shape, 1 / world.n_actions) for shape in shapes])


def least_pair(world: ExBMDP, policy: MarkovPolicy) -> float:
    return population_assumptions(world, [policy, policy]).nu.value


def test_coverage_of_the_lock_is_the_best_possible() -> None:
    # What is alive at h = 2 feeds two falls, (0, 2) and (1, 2), at each of the H - 2 later steps and two survivors
    # at the end; one more fall happens at the first step: 1 = nu + 2 nu (H - 2) + 2 nu.
    world = LockExBMDP(horizon=8)
    assert least_pair(world, coverage_policy(world)) == pytest.approx(1 / (2 * 8 - 1))


def test_coverage_is_far_better_than_uniform_play_and_never_worse() -> None:
    maze = MultiMazeExBMDP(horizon=8)
    assert least_pair(maze, coverage_policy(maze)) > 50 * least_pair(maze, uniform(maze))
    bits = BitsExBMDP(horizon=5, n_features=4)
    assert least_pair(bits, coverage_policy(bits)) == pytest.approx(0.25)


@given(data=st.data())
@settings(max_examples=25)
def test_on_any_dynamics_coverage_beats_uniform_play_and_agents_are_alpha_apart(data: st.DataObject) -> None:
    world = RandomTables(data.draw(st.integers(2, 4)), data.draw(st.integers(0, 10_000)))
    cover = coverage_policy(world)
    assert least_pair(world, cover) >= least_pair(world, uniform(world)) - 1e-9
    alpha = population_assumptions(world, contrasting_policies(world, 0.5, base=cover)).alpha.value
    assert alpha >= 0.5 - 1e-9


class RandomTables(LockExBMDP):
    """Random latent dynamics, with the lock's observations, which nobody looks at here."""

    def __init__(self, horizon: int, seed: int) -> None:
        super().__init__(horizon)
        rng = np.random.default_rng(seed)
        self.sizes = [1, *rng.integers(1, 5, size=horizon - 1)]
        self._T = [rng.integers(after, size=(n, 4)) for n, after in zip(self.sizes, self.sizes[1:])]

    def n_states(self, h: int) -> int:
        return int(self.sizes[h - 1])


def test_a_tilt_is_shared_by_all_actions_with_one_successor() -> None:
    p = tilted(np.full(4, 0.25), successor_ranks(np.array([5, 2, 5, 0]), np.arange(6.0)))
    assert p[0] == p[2]
    assert np.log(p[0] / p[1]) == pytest.approx(1)
    assert np.log(p[1] / p[3]) == pytest.approx(1)
    assert p.sum() == pytest.approx(1)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0])
def test_agents_are_alpha_apart_with_a_base_of_ones_own(alpha: float) -> None:
    world = LockExBMDP(horizon=5)
    found = population_assumptions(world, contrasting_policies(world, alpha, base=uniform(world)))
    assert found.alpha.value == pytest.approx(alpha)


def test_alpha_must_be_positive() -> None:
    with pytest.raises(InvalidParameterError, match="alpha must be a positive number"):
        contrasting_policies(LockExBMDP(horizon=3), alpha=0.0)
