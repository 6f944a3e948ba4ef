"""How trajectories move through the states: the latent graph over time, and how the agents differ in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError
from craftrl.estimators.craft import CRAFT
from craftrl.evaluation import count_visits
from craftrl.planning.graph import StateGraph
from craftrl.report.names import agent_names
from craftrl.report.sample import Sample
from craftrl.report.tables import Table

__all__ = ["Labelled", "transitions", "visits"]

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Labelled:
    """Trajectories with their states, and whose they are.

    states  int (n, H), -1 for none
    agent   int (n,), an index into `who`
    who     names; one alone, for all agents together, where it is not known whose a trajectory is
    """

    states: Ints
    agent: Ints
    who: tuple[str, ...]

    @classmethod
    def of(cls, model: CRAFT, sample: Sample | None) -> Labelled:
        """What the encoders say of the data; without data, the states of the trajectories fitted."""
        if sample is not None:
            return cls(sample.codes, sample.agent, agent_names(model))
        if not hasattr(model, "labels_"):
            raise InvalidParameterError(
                "A report needs states of trajectories; this model was fitted on shards and holds none; give the data "
                "too: craftrl report MODEL DATA."
            )
        labels = model.labels_fitted()
        return cls(labels, np.zeros(len(labels), dtype=np.int64), ("all agents",))

    @property
    def graph(self) -> StateGraph:
        """States of different steps apart, whether or not one encoder serves them all."""
        return StateGraph.from_states(self.states, self.agent, min_share=0)


def visits(given: Labelled) -> Table:
    """One row for each step and state."""
    rows: list[tuple[Any, ...]] = []
    for h, states in enumerate(given.states.T, start=1):
        counts = count_visits(states, given.agent, sizes=(int(states.max(initial=-1)) + 1, len(given.who)))
        rows += [(h, s, *map(int, mine)) for s, mine in enumerate(counts) if mine.any()]
    columns = ("h", "state", *(f"visits of {name}" for name in given.who))
    return Table("visits", "How many trajectories are in each state.", columns, tuple(rows))


def transitions(given: Labelled) -> Table:
    """One row for each move that was seen: how often each agent made it, and in what share of its visits."""
    graph, counted = given.graph, ("moves of", "share of")
    columns = ("h", "state", "next state", *(f"{what} {name}" for what in counted for name in given.who))
    rows: list[tuple[Any, ...]] = []
    left = [counts.sum(axis=1) for counts in graph.counts]
    for s, t in graph.edges:
        (h, state), (_, after) = graph.name(s), graph.name(t)
        made = [int(counts[s, t]) for counts in graph.counts]
        share = [n / int(visits[s]) if visits[s] else None for n, visits in zip(made, left)]
        rows.append((h, state, after, *made, *share))
    caption = "Moves from state to state: how often they were made, and in what share of the visits to the state."
    return Table("transitions", caption, columns, tuple(rows))
