"""Spectra of f_h as tables: how many pairs have each log-odds, which of them became a state, and why.

Paper: Algorithm 2, Lines 13-44
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from craftrl.core.trace import StepTrace
from craftrl.estimators.craft import CRAFT
from craftrl.report.names import pairs_of_agents
from craftrl.report.tables import Table

__all__ = ["clusters", "comparisons", "kept_predecessors", "spectra"]

MOST_BARS = 20_000  # bars that a report holds; beyond, each step keeps its most frequent predecessors


def kept_predecessors(model: CRAFT) -> dict[int, list[int]]:
    """For each h, the predecessors whose spectra a report holds: all of them, or the most frequent."""
    trace = model.trace_
    width = trace.grid.size * (len(model.agents_) - 1)
    most = max(1, MOST_BARS // (width * max(1, len(trace))))
    return {step.h: _commonest(step, most) for step in trace}


def _commonest(step: StepTrace, most: int) -> list[int]:
    visits = step.spectra.reshape(len(step.spectra), -1).sum(axis=1)
    return sorted(np.argsort(-visits, kind="stable")[:most].tolist())


def spectra(model: CRAFT, kept: dict[int, list[int]]) -> Table:
    """One row for each log-odds that occurs."""
    values, pairs = model.trace_.grid.values.round(6), pairs_of_agents(model)
    rows = tuple(
        (step.h, str(s), pair, float(values[j]), int(margin[j]))
        for step in model.trace_
        for s in kept[step.h]
        for pair, margin in zip(pairs, np.atleast_2d(step.spectra[s]))
        for j in np.flatnonzero(margin)
    )
    caption = "How many pairs of observations have each log-odds, for each step and state that they begin in."
    return Table("spectra", caption, ("h", "state", "agents", "log-odds", "pairs"), rows)


def clusters(model: CRAFT, kept: dict[int, list[int]]) -> Table:
    """One row for each cluster and pair of agents: which log-odds it covers, and what became of it."""
    columns = ("h", "state", "cluster", "agents", "from", "to", "mean log-odds", "pairs", "next state")
    caption = "Clusters of log-odds: successors of one state that the agents reach with like odds."
    rows = tuple(row for step in model.trace_ for row in _clusters(model, step, kept[step.h]))
    return Table("clusters", caption, columns, rows)


def _clusters(model: CRAFT, step: StepTrace, kept: list[int]) -> Iterator[tuple[Any, ...]]:
    values = model.trace_.grid.values.round(6)
    for number, cluster in enumerate(step.clusters):
        if cluster.s_pred not in kept:
            continue
        margins = np.atleast_2d(step.spectra[cluster.s_pred])
        state, successor = str(cluster.s_pred), str(cluster.state)
        for pair, (first, last), margin in zip(pairs_of_agents(model), cluster.bins, margins):
            weights = margin[first : last + 1]
            mean = float(np.average(values[first : last + 1], weights=weights)) if weights.any() else None
            ends = (float(values[first]), float(values[last]))
            yield step.h, state, number, pair, *ends, mean, int(cluster.size), successor


def comparisons(model: CRAFT) -> Table:
    """One row for each answer of the separation oracle."""
    rows = tuple(
        (step.h, c.cluster, str(c.state), float(c.loss), "one state" if c.merged else "apart")
        for step in model.trace_
        for c in step.comparisons
    )
    caption = "Is a cluster a state that was found before? The loss of telling them apart: 1 is chance, 0 is certain."
    return Table("merging", caption, ("h", "cluster", "next state", "loss", "answer"), rows)
