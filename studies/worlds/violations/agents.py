"""Agents that act alike where the paper asks them to differ.

Paper: Equation 5 (policy diversity), which this breaks
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from craftrl.arguments import check_whole
from craftrl.envs.agents import MarkovPolicy, check_policies
from craftrl.envs.collection import Collection, collect
from craftrl.envs.exbmdp import ExBMDP
from studies.worlds.violations.stream import Seed, stream

__all__ = ["agree_at_steps", "agree_somewhere", "collect_agreeing", "collect_alike"]


def collect_agreeing(
    world: ExBMDP, policies: Sequence[MarkovPolicy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Agents that act alike in a share `size` of all (h, s); see `agree_somewhere`."""
    return collect(world, agree_somewhere(policies, size, seed), n, seed)


def collect_alike(
    world: ExBMDP, policies: Sequence[MarkovPolicy], n: int | Sequence[int], size: float, seed: Seed, like: int = 0
) -> Collection:
    """Agents that act alike in every state at a share `size` of the steps; see `agree_at_steps`."""
    return collect(world, agree_at_steps(policies, size, seed, like), n, seed)


def agree_somewhere(policies: Sequence[MarkovPolicy], size: float, seed: Seed) -> list[MarkovPolicy]:
    """The same agents, but in a random share `size` of all (h, s) every agent acts as agent 0 does."""
    check_policies(policies, MarkovPolicy)
    rng = stream(size, seed)
    alike = [rng.random(len(table)) < size for table in policies[0].tables]
    return [
        MarkovPolicy(
            [
                np.where(same[:, None], shared, own)
                for same, shared, own in zip(alike, policies[0].tables, policy.tables)
            ]
        )
        for policy in policies
    ]


def agree_at_steps(policies: Sequence[MarkovPolicy], size: float, seed: Seed, like: int = 0) -> list[MarkovPolicy]:
    """The same agents, but at a random share `size` of the steps every agent acts as agent `like` does.

    It matters whose habits they share. If those carry the state over to the next step, the next state can still be told
    from the one before; if they forget it, as an agent that acts at random does, nothing ties the two.
    """
    check_policies(policies, MarkovPolicy)
    check_whole("like", like, 0, len(policies) - 1, "agents are numbered from 0")
    rng = stream(size, seed)
    alike = rng.random(len(policies[0].tables)) < size
    return [
        MarkovPolicy([shared if same else own for same, shared, own in zip(alike, policies[like].tables, mine.tables)])
        for mine in policies
    ]
