"""What knowing nothing scores, to set beside every accuracy.

Paper: Section 4 (the world, whose features are all related to the state)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_method
from craftrl.envs.exbmdp import ExBMDP, check_tables
from craftrl.envs.policies import MarkovPolicy
from craftrl.states.accuracy import KnowsFeatureAccuracy
from craftrl.theory.visits import population_visits

__all__ = ["chance_accuracy"]


def chance_accuracy(world: ExBMDP, policies: Sequence[MarkovPolicy]) -> NDArray[np.float64]:
    """Accuracy at h = 1..H, shape (H,), of somebody who has learned nothing.

    In a world that can tell how accurate each of its coordinates is, that is a coordinate drawn at random: encoders of
    such worlds are coordinates, and even a bad one may agree with the state more often than not. In all others it is
    one and the same state named at every observation of a step: the share of the state that the agents visit most.
    Where there is one state only, as at h = 1, both are right.
    """
    check_tables(world)
    check_kind("policies", policies, (list, tuple), "a list with the policy of each agent")
    for policy in policies:
        check_method("Each of policies", policy, "probabilities", "a policy, such as a MarkovPolicy")
    if isinstance(world, KnowsFeatureAccuracy):
        steps = range(1, world.H + 1)
        return np.array([1.0 if world.n_states(h) == 1 else float(world.feature_accuracy(h).mean()) for h in steps])
    return np.array([float(share.max()) for share in population_visits(world, policies).singles])
