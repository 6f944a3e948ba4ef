"""How trajectories move through the states: the latent graph over time, and how the agents differ in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.estimators.craft import CRAFT
from craftrl.report.names import agent_names
from craftrl.report.sample import Sample
from craftrl.report.tables import Table
from craftrl.states.graph import LatentGraph

__all__ = ["graph_of", "transitions", "visits"]

Ints = NDArray[np.integer]


def graph_of(model: CRAFT, sample: Sample | None) -> tuple[LatentGraph, tuple[str, ...]]:
    """The latent graph, and whose moves it counts: each agent's with data, all agents' together without."""
    if sample is not None:
        return LatentGraph.from_labels(sample.codes, sample.agent), agent_names(model)
    return LatentGraph.from_labels(model.labels_, np.zeros(len(model.labels_), dtype=np.int64)), ("all agents",)


def visits(graph: LatentGraph, h: int) -> Ints:
    """How often each of the graph's agents was in each state of h, (K, states)."""
    return graph.counts[h - 1].sum(axis=2) if h < graph.H else graph.counts[h - 2].sum(axis=1)


def transitions(graph: LatentGraph, who: tuple[str, ...]) -> Table:
    """One row for each move that was seen: how often each agent made it, and in what share of its visits."""
    columns = ("h", "state", "next state", *(f"moves of {w}" for w in who), *(f"share of {w}" for w in who))
    rows: list[tuple[Any, ...]] = []
    for h in range(1, graph.H):
        shares = graph.pi_emp(h)
        for s, t in zip(*np.nonzero(graph.edges(h))):
            share = [None if np.isnan(p) else float(p) for p in shares[:, s, t]]
            rows.append((h, int(s), int(t), *(int(c) for c in graph.counts[h - 1][:, s, t]), *share))
    caption = "Moves from state to state: how often they were made, and in what share of the visits to the state."
    return Table("transitions", caption, columns, tuple(rows))
