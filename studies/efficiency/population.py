"""Agents of the toy world that make the differences between couplings plain."""

from __future__ import annotations

import numpy as np

from craftrl.envs import BitsExBMDP, MarkovPolicy
from studies.worlds.policies import staying


def balanced_agents(world: BitsExBMDP) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Agents that visit both states equally often from h = 3 on, whoever they are, and differ by ln 2 or more.

    The first acts uniformly; the second starts out for state 0, makes up for it, and then persists. With the
    paper's agents the mimic is never quite as good as the state: B begins at 0 and is found there more often.
    """
    persist = np.array([[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
    evens_out = np.array([[2 / 3, 1 / 3], [1 / 6, 5 / 6]])
    tables = [np.array([[2 / 3, 1 / 3]]), evens_out, *[persist] * (world.H - 3)]
    return world.persistence_policy(0.5), MarkovPolicy(tables[: world.H - 1])


def sticky_agents(world: BitsExBMDP) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Agents that part at the first step and hardly move afterwards: the state itself keeps telling them apart."""
    return staying(world.H, 0.9, 0.9), staying(world.H, 0.1, 0.95)
