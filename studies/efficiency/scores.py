"""What is measured of every method of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT
from craftrl.envs.exbmdp import ExBMDP
from craftrl.evaluation import accuracy_by_step, state_accuracies_by_step, state_summary

__all__ = ["by_measure", "of_fit", "of_samples"]

MEASURES = ("accuracy", "state_mean", "state_worst", "right_counts", "assigned")
Scores = dict[str, float]


def of_samples(labels: NDArray[np.integer], states: NDArray[np.integer]) -> Scores:
    """Accuracy averaged over h = 1..H, and that of single states, of states (n, H) that were read off fresh data."""
    overall = float(accuracy_by_step(labels, states).mean())
    return {"accuracy": overall, **state_summary(state_accuracies_by_step(labels, states))}


def of_fit(model: CRAFT, world: ExBMDP) -> Scores:
    """How CRAFT fared: the share of steps with the right number of states, and of trajectories with a state at H."""
    right = [step.n_states == world.n_states(h) for h, step in enumerate(model.trace_.steps, start=2)]
    return {"right_counts": float(np.mean(right)), "assigned": model.trace_.steps[-1].assigned}


def by_measure(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """A row: for each measure its value for every method that has it."""
    return {measure: {name: of[measure] for name, of in scores.items() if measure in of} for measure in MEASURES}
