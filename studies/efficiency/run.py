"""One run: all methods on one dataset, scored against the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.core.craft import Bounds
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder, Encoder
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.evaluation import population_summary
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.efficiency.excess import run_excess
from studies.efficiency.others import run_other
from studies.efficiency.references import PairLosses
from studies.efficiency.scores import by_measure, of_fit
from studies.efficiency.spec import EXCESS, FRESH, LEARNERS, OTHERS, Run
from studies.efficiency.worlds import make_agents, make_world

__all__ = ["run_one"]

# The toy world's population values (Appendix D); the control world has the same latent dynamics and agents.
TOY = Bounds(alpha=math.log(3), eta=1 / 5, nu=5 / 32)


def run_one(run: Run) -> dict[str, Any]:
    """What every method scored, and what CRAFT met on the way: by measure, then by method.

    accuracy      averaged over h = 1..H as in Table 1
    state_mean    of single states: averaged over the states of a step, then over h = 2..H
    state_worst   the least of all states at all steps
    right_counts  share of steps at which the learner found as many states as there are
    assigned      share of trajectories that still have a state at H
    """
    if run.world in EXCESS:
        return run_excess(run)
    if run.world in OTHERS:
        return run_other(run)
    world = make_world(run)
    assert isinstance(world, BitsExBMDP)
    agents = make_agents(run, world)
    bounds = _bounds(run, world, agents)
    # The data of Table 1; in the control world the same states and the same noise, shown in another way.
    rng = np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))
    tau = collect(world, agents, run.size, seed=rng).tau
    scores: dict[str, dict[str, float]] = {}
    for name, options in LEARNERS.items():
        model = CRAFT(CoordinateOracle(), **vars(bounds), **options).fit(tau)
        scores[name] = {**population_summary(_learned(model), world), **of_fit(model, world)}
        if options["coupling"] != "independent":  # two independent f_h need not agree on a feature
            codes = _reading([f.j for f in model.trace_.models])
            scores[f"{options['coupling']}, raw"] = population_summary(codes, world)
    losses = PairLosses(tau, Grid.from_bounds(bounds.alpha, bounds.eta))
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    references = {
        "genie": losses.genie(truth),
        "hub": losses.hub(),
        "conditional, raw": losses.conditional_chain(),
    }
    return by_measure(
        scores | {name: population_summary(_reading(features), world) for name, features in references.items()}
    )


def _bounds(run: Run, world: BitsExBMDP, agents: Sequence[MarkovPolicy]) -> Bounds:
    """The bounds that hold for the agents of a world."""
    if FRESH.get(run.world, run.world) != "sticky":
        return TOY
    known = population_assumptions(world, agents)
    return Bounds(known.alpha.value, known.eta.value, known.nu.value)


def _learned(model: CRAFT) -> Callable[[int], Sequence[Encoder]]:
    return lambda h: [model.encoders_[h]]


def _reading(features: Sequence[int]) -> Callable[[int], Sequence[Encoder]]:
    """The encoders that read these features at steps 2..H; the first is constant and always right."""
    return lambda h: [ConstantEncoder() if h == 1 else CoordinateEncoder(features[h - 2], np.arange(2))]
