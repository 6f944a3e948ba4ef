"""CRAFT's own figure, from a run on the combination lock: three states a step, some successors shared.

Paper: Section 3.2, its schematic of the algorithm
"""

from __future__ import annotations

from craftrl import CRAFT, FiniteOracle
from craftrl.data.places import Place
from craftrl.envs import LockExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.plots.spectra import MOST_STATES, draw_schematic
from craftrl.theory import population_assumptions

__all__ = ["draw_spectrum"]


def draw_spectrum(path: Place, n: int, seed: int) -> None:
    """Fit CRAFT to n trajectories per agent and draw what it did at h = 1 and h = 2."""
    world = LockExBMDP(horizon=4, n_features=8, seed=seed)
    policies = world.policies(alpha=1.0)
    known = population_assumptions(world, policies)
    oracle = FiniteOracle(world.encoders, world.n_values)
    model = CRAFT.paper(oracle, alpha=known.alpha.value, eta=known.eta.value, nu=known.nu.value)
    model.fit(collect(world, policies, n, seed).tau)
    if (most := max(len(model.trace_[2].spectra), model.trace_[2].n_states)) > MOST_STATES:
        raise InvalidParameterError(
            f"The schematic shows at most {MOST_STATES} states a step; the run with --seed {seed} and --n {n} has "
            f"{most}; give another seed, or more trajectories."
        )
    draw_schematic(model.trace_, path, h=2, subtitle=f"a combination lock, {n:,} action-free trajectories per agent")
