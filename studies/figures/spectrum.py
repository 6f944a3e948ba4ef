"""CRAFT's own figure, from a run on the combination lock: three states a step, some successors shared.

Paper: Section 3.2, its schematic of the algorithm
"""

from __future__ import annotations

from pathlib import Path

from craftrl import CRAFT, FiniteOracle
from craftrl.core.trace import Trace
from craftrl.envs import collect
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from craftrl.report.schematic import MOST_STATES, draw_schematic
from studies.worlds.lock import LockExBMDP

__all__ = ["draw_spectrum", "run_for_spectrum"]


def run_for_spectrum(n: int, seed: int) -> Trace:
    """What CRAFT did with n trajectories per agent, if that can be drawn."""
    world = LockExBMDP(horizon=4, n_features=8, seed=seed)
    policies = world.policies(alpha=1.0)
    known = population_assumptions(world, policies)
    oracle = FiniteOracle(world.encoders, world.n_values)
    model = CRAFT.paper(oracle, alpha=known.alpha.value, eta=known.eta.value, nu=known.nu.value)
    step = model.fit(collect(world, policies, n, seed).tau).trace_[2]
    if (most := max(len(step.spectra), step.n_states)) > MOST_STATES:
        raise InvalidParameterError(
            f"The schematic shows at most {MOST_STATES} states a step; the run with --seed {seed} and --n {n} has "
            f"{most}; give another seed, or more trajectories."
        )
    return model.trace_


def draw_spectrum(trace: Trace, path: Path, n: int) -> None:
    """What happened at h = 1 and h = 2."""
    draw_schematic(trace, path, h=2, subtitle=f"a combination lock, {n:,} action-free trajectories per agent")
