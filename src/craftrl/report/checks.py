"""What was found at each step beside what the checks say of it, and the assumptions beside what the data attains."""

from __future__ import annotations

import numpy as np

from craftrl.core.encoders import ValueEncoder
from craftrl.diagnostics import Diagnosis
from craftrl.estimators.craft import CRAFT
from craftrl.paper import empirical_assumptions
from craftrl.report.sample import Sample
from craftrl.report.tables import Table

__all__ = ["assumptions", "steps"]

STEPS = (
    *("h", "states", "reads entry", "assigned", "loss", "chance", "p-value", "encoder loss"),
    *("same count", "stable", "explained", "trust", "outcome"),
)


def steps(model: CRAFT, found: Diagnosis | None) -> Table:
    """One row for each step, with the checks where there were any."""
    H = len(model.encoders_)
    nothing = np.full(H, np.nan)
    trace = [None, *model.trace_]
    at_chance = {h + 1 for h in model.trace_.at_chance()}
    checks = (nothing,) * 4
    if found is not None:
        trust = found.trust if found.checked else nothing
        checks = (found.same_count, found.stable, found.explained, trust)
    rows = []
    for h, *checked in zip(range(1, H + 1), *checks):
        step, encoder = trace[h - 1], model.encoders_[h]
        learned = (
            (1.0, None, None, None, None, "ok")
            if step is None
            else (step.assigned, step.f_loss, step.chance, step.p_value, step.encoder_loss, step.outcome)
        )
        outcome = learned[-1] + ", log-odds at chance" * (h in at_chance)
        reads = int(encoder.index) if isinstance(encoder, ValueEncoder) else None
        numbers = [None if v is None or np.isnan(v) else float(v) for v in (*learned[:-1], *checked)]
        rows.append((h, int(model.n_states_[h]), reads, *numbers, outcome))
    return Table("steps", "What was found at each step, and what the checks say of it.", STEPS, tuple(rows)).filled()


def assumptions(model: CRAFT, sample: Sample | None) -> Table:
    """The bounds that were counted on, beside those that the learned states attain."""
    seen = None
    if sample is not None:
        lengths = (sample.codes >= 0).sum(axis=1)
        seen = empirical_assumptions(sample.agent, sample.codes, n_agents=sample.tau.K, lengths=lengths)
    meaning = {
        "alpha": "how different the agents are: least gap between two successors of a state, in log-odds",
        "eta": "how rare an agent may be: its least share in the visits to a pair of states",
        "nu": "how rare a move may be: least share of trajectories that make it",
    }
    rows = []
    for name, text in meaning.items():
        found = None if seen is None else getattr(seen, name)
        value = None if found is None or not np.isfinite(found.value) else float(found.value)
        where = "" if found is None else str(found).partition(" at ")[2]
        rows.append((name, text, float(getattr(model.bounds_, name)), value, where))
    columns = ("bound", "meaning", "counted on", "found in the learned states", "where")
    return Table("assumptions", "The bounds of the paper's assumptions.", columns, tuple(rows))
