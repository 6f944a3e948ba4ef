"""Policies that are not Markov: what they see, and when."""

import numpy as np

from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy, SwitchingPolicy

WORLD = BitsExBMDP(horizon=6, n_features=4, seed=0)


def certain(action: int) -> MarkovPolicy:
    return MarkovPolicy([np.eye(2)[[action] * WORLD.n_states(h)] for h in range(1, WORLD.H)])


def test_a_history_policy_sees_all_states_so_far() -> None:
    def opposite_of_two_ago(history: np.ndarray) -> np.ndarray:
        return np.eye(2)[1 - history[:, max(history.shape[1] - 2, 0)]]

    states = collect(WORLD, [HistoryPolicy(opposite_of_two_ago)] * 2, 3, seed=0).truth.states
    assert (states == [0, 1, 1, 0, 0, 1]).all()


def test_a_switching_policy_changes_from_episode_to_episode() -> None:
    policy = SwitchingPolicy([certain(0), certain(1)], schedule=[0, 1, 1])
    states = collect(WORLD, [policy, certain(0)], [6, 1], seed=0).truth.states
    assert states[:6, 1].tolist() == [0, 1, 1, 0, 1, 1]


def test_an_adaptive_policy_learns_from_its_own_earlier_episodes() -> None:
    seen = []

    def least_visited(past: np.ndarray) -> MarkovPolicy:
        seen.append(len(past))
        return certain(int(past[:, 1:].mean() < 0.5)) if len(past) else certain(0)

    states = collect(WORLD, [AdaptivePolicy(least_visited, batch=2), certain(0)], [6, 1], seed=0).truth.states
    assert seen == [0, 2, 4]
    assert states[:6, 1].tolist() == [0, 0, 1, 1, 0, 0]
