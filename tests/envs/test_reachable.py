"""Which states and pairs can be reached, against a search path by path; and tilted probabilities."""

import numpy as np
import pytest

from craftrl.envs.agents import tilted
from craftrl.envs.exbmdp import reachable_states
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP


class RandomDynamics(LockExBMDP):
    """Any tables T, such that some states can never be reached."""

    def __init__(self, seed: int) -> None:
        super().__init__(horizon=5)
        rng = np.random.default_rng(seed)
        self.sizes = [1, *rng.integers(1, 6, size=4)]
        self.tables = [rng.integers(after, size=(n, 4)) for n, after in zip(self.sizes, self.sizes[1:])]

    def n_states(self, h: int) -> int:
        return int(self.sizes[h - 1])

    def T(self, h: int) -> np.ndarray:
        return self.tables[h - 1]


def literal_pairs(world):
    """How many actions make each transition, walking from every state found so far."""
    found, tables = {0}, []
    for h in range(1, world.H):
        table = np.zeros((world.n_states(h), world.n_states(h + 1)), dtype=int)
        for s in found:
            for a in range(world.n_actions):
                table[s, world.T(h)[s, a]] += 1
        tables.append(table)
        found = {int(world.T(h)[s, a]) for s in found for a in range(world.n_actions)}
    return tables


@pytest.mark.parametrize("world", [*map(RandomDynamics, range(15)), MultiMazeExBMDP(4)])
def test_pairs_are_those_of_a_search(world):
    truth = literal_pairs(world)
    assert [table.tolist() for table in world.reachable_pairs()] == [table.tolist() for table in truth]
    assert [r.tolist() for r in reachable_states(world)[1:]] == [table.any(axis=0).tolist() for table in truth]


def test_tilted_probabilities_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    base, tilt = rng.dirichlet(np.ones(3), size=(2, 4)), rng.normal(size=(2, 4, 3))
    found = tilted(base, tilt)
    for i, j in np.ndindex(2, 4):
        weight = [base[i, j, a] * np.exp(tilt[i, j, a]) for a in range(3)]
        assert found[i, j] == pytest.approx([w / sum(weight) for w in weight])
    assert tilted(base[0, 0], np.zeros(3)) == pytest.approx(base[0, 0])
