"""One run: collect, fit with bounds chosen from the data, compare with the truth."""

from __future__ import annotations

import warnings
from typing import Any

from craftrl import CRAFT, CoordinateOracle
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import AssumptionWarning
from craftrl.evaluation import population_accuracy, population_state_accuracies, state_summary
from craftrl.paper import empirical_assumptions
from craftrl.paper.sweep import seed_of
from studies.collectors.agents import COLLECTORS, markov_twin
from studies.collectors.spec import Run
from studies.loud.run import told

__all__ = ["run_one"]


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy over h = 2..H and of single states, what `fit` warned of, and how far the agents differ in the data."""
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    agent = COLLECTORS[run.kind](world, run.seed)
    if run.twin:
        agent = markov_twin(world, agent, run.size, run.seed)
    data = collect(world, [world.persistence_policy(0.5), agent], run.size, _seed(run))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = CRAFT(CoordinateOracle(n_threads=1), coupling=run.coupling).fit(data.tau)
    known = empirical_assumptions(data.tau.agent, data.truth.states)
    return {
        "accuracy": float(population_accuracy(lambda h: [model.encoders_[h]], world)[1:].mean()),
        **state_summary(population_state_accuracies(lambda h: [model.encoders_[h]], world)),
        "alpha": known.alpha.value,
        "eta": known.eta.value,
        "warned": bool(caught),
        "told": told(model),
    }


def _seed(run: Run) -> Any:
    return seed_of("collectors", run.kind, run.size, run.horizon, run.n_features, run.seed, int(run.twin))
