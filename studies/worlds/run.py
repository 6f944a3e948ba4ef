"""One run: collect, fit exact CRAFT at the population bounds, compare states and graph with the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl import CRAFT, FiniteOracle
from craftrl.core.encoders import encode_dataset
from craftrl.envs import collect
from craftrl.evaluation import accuracy_by_step, state_accuracies_by_step, state_summary
from craftrl.paper import chance_accuracy, population_assumptions
from craftrl.paper.sweep import seed_of
from studies.worlds.graphs import match_to_truth, recovery, tables_of
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP
from studies.worlds.spec import Run

__all__ = ["HELD_OUT", "run_one"]

WORLDS = {"lock": LockExBMDP, "multimaze": MultiMazeExBMDP}
HELD_OUT = 2000  # fresh trajectories per agent, for the encoders' accuracy
FEWEST = 10  # held-out observations of a state, of the 4000 at its step, for it to count by itself


def run_one(run: Run) -> dict[str, Any]:
    """Held-out accuracy, that of single states, states found, and the graph, as the encoders and as the labels make it.

    The world depends on the seed alone, the trajectories on seed and size, so both couplings see the same data.
    An edge counts as found if it has at least nu/2 of the transitions at its step: by assumption, true ones
    have nu or more.
    """
    world = WORLDS[run.world](run.horizon, seed=run.seed)
    policies = world.policies(run.alpha)
    bounds = population_assumptions(world, policies)
    alpha, eta, nu = bounds.alpha.value, bounds.eta.value, bounds.nu.value
    data = collect(world, policies, run.size, seed=_seed(run, run.size))
    model = CRAFT(
        FiniteOracle(world.encoders, world.n_values), alpha=alpha, eta=eta, nu=nu, coupling=run.coupling, relabel=False
    ).fit(data.tau)
    fresh = collect(world, policies, HELD_OUT, seed=_seed(run, "held out"))
    encoded, read = (encode_dataset(model.encoders_, of.tau) for of in (data, fresh))
    by_encoders, by_labels = (
        recovery(
            tables_of(labels, data.tau.agent),
            world.reachable_pairs(),
            match_to_truth(labels, data.truth.states),
            min_share=nu / 2,
        )
        for labels in (encoded, model.labels_)
    )
    found = np.array([model.n_states_[h] for h in range(1, world.H + 1)])
    true = np.array([world.n_states(h) for h in range(1, world.H + 1)])
    return {
        "accuracy": float(accuracy_by_step(read, fresh.truth.states).mean()),
        **state_summary(state_accuracies_by_step(read, fresh.truth.states, FEWEST)),
        "chance": float(chance_accuracy(world, policies).mean()),
        "steps_with_right_state_count": float((found == true).mean()),
        "graph_precision": by_encoders[0],
        "graph_recall": by_encoders[1],
        "label_graph_precision": by_labels[0],
        "label_graph_recall": by_labels[1],
        "assigned_at_end": model.trace_.steps[-1].assigned,
        "eta": eta,
        "nu": nu,
    }


def _seed(run: Run, part: int | str) -> Any:
    return seed_of("worlds", run.world, run.horizon, str(run.alpha), run.seed, part)
