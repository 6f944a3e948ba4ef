"""One run: all methods on one dataset, scored against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.core.craft import Bounds
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.reproduce.runner import seed_of
from craftrl.states.accuracy import population_accuracy
from craftrl.theory import population_assumptions
from studies.efficiency.excess import run_excess
from studies.efficiency.others import run_other
from studies.efficiency.population import sticky_agents
from studies.efficiency.references import PairLosses
from studies.efficiency.spec import EXCESS, FRESH, LEARNERS, OTHERS, Run

__all__ = ["run_one"]

# The toy world's population values (Appendix D); the control world has the same latent dynamics and agents.
TOY = Bounds(alpha=math.log(3), eta=1 / 5, nu=5 / 32)
TEMPERATURE = 2.0


def run_one(run: Run) -> dict[str, Any]:
    """`accuracy` of every method, averaged over h = 1..H as in Table 1, and what CRAFT met on the way.

    right_counts  share of steps at which the learner found as many states as there are
    assigned      share of trajectories that still have a state at H
    """
    if run.world in EXCESS:
        return run_excess(run)
    if run.world in OTHERS:
        return run_other(run)
    kind = FRESH.get(run.world, run.world)
    world = BitsExBMDP(run.horizon, run.n_features, run.seed, entangled=kind == "paper")
    agents, bounds = _agents(kind, world)
    # The data of Table 1; in the control world the same states and the same noise, shown in another way.
    rng = np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))
    tau = collect(world, agents, run.size, seed=rng).tau
    accuracy: dict[str, float] = {}
    right_counts, assigned = {}, {}
    for name, options in LEARNERS.items():
        model = CRAFT(CoordinateOracle(), **vars(bounds), **options).fit(tau)
        accuracy[name] = _encoder_accuracy(model, world)
        right_counts[name] = float(np.mean([step.n_states == 2 for step in model.trace_.steps]))
        assigned[name] = model.trace_.steps[-1].assigned
        if options["coupling"] != "independent":  # two independent f_h need not agree on a feature
            accuracy[f"{options['coupling']}, raw"] = _accuracy(world, [f.j for f in model.trace_.models])
    losses = PairLosses(tau, Grid.from_bounds(bounds.alpha, bounds.eta))
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    references = {
        "genie": losses.genie(truth),
        "hub": losses.hub(),
        "tempered, raw": losses.consensus(TEMPERATURE),
        "conditional, raw": losses.conditional_chain(),
    }
    accuracy |= {name: _accuracy(world, features) for name, features in references.items()}
    return {"accuracy": accuracy, "right_counts": right_counts, "assigned": assigned}


def _agents(kind: str, world: BitsExBMDP) -> tuple[tuple[MarkovPolicy, MarkovPolicy], Bounds]:
    """The agents of a world, and the bounds that hold for them."""
    if kind != "sticky":
        return world.paper_policies(), TOY
    agents = sticky_agents(world)
    known = population_assumptions(world, agents)
    return agents, Bounds(known.alpha.value, known.eta.value, known.nu.value)


def _encoder_accuracy(model: CRAFT, world: BitsExBMDP) -> float:
    return float(population_accuracy(lambda h: [model.encoders_[h]], world).mean())


def _accuracy(world: BitsExBMDP, features: Sequence[int]) -> float:
    """Of the features of steps 2..H, averaged over h = 1..H; h = 1 is always right."""
    by_step = [world.feature_accuracy(h)[feature] for h, feature in enumerate(features, start=2)]
    return float(np.mean([1.0, *by_step]))
