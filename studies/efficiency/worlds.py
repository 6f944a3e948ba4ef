"""Which world a run is about and who acts in it; reports need this as well, for what chance scores there."""

from __future__ import annotations

from collections.abc import Sequence

from craftrl.envs import BitsExBMDP, MarkovPolicy
from studies.efficiency.population import balanced_agents, sticky_agents
from studies.efficiency.spec import EXCESS, FRESH, Run
from studies.worlds.lock import LockExBMDP
from studies.worlds.turn_taking import turn_taking_policies

__all__ = ["make_agents", "make_world"]


def make_world(run: Run) -> BitsExBMDP | LockExBMDP:
    """The world of a run, from its settings alone; only the paper's own and those of excess capacity are entangled."""
    if run.world == "lock":
        return LockExBMDP(run.horizon, run.n_features, seed=run.seed)
    entangled = FRESH.get(run.world, run.world) == "paper" or run.world in EXCESS
    return BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=entangled)


def make_agents(run: Run, world: BitsExBMDP | LockExBMDP) -> Sequence[MarkovPolicy]:
    """The agents of a run."""
    if isinstance(world, LockExBMDP):
        return world.policies()
    if run.world in EXCESS:
        return balanced_agents(world)
    if run.world == "three agents":
        return turn_taking_policies(world, 3)
    return sticky_agents(world) if FRESH.get(run.world, run.world) == "sticky" else world.paper_policies()
