"""A fitted model in a few lines: what was chosen, what was found at each step, what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from craftrl.core.encoders import ValueEncoder
from craftrl.core.labels import tally
from craftrl.estimators.choices import describe

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT


def summary(model: CRAFT) -> str:
    """Choices, one line per step, and findings; see `CRAFT.summary`.

    The line of a step has h, how many states, which entry or function is the state (for finite classes), who has a
    state, the loss of the log-odds that lead to h beside that of chance ("-" where no pair was held out), what
    happened. Steps of windows mean nothing: lines are then of states, with how many frames are in each.
    """
    lines = [f"Chosen: {sentence}" for sentence in describe(model.choices_)]
    lines += [""] * bool(lines) + [*(_by_state(model) if hasattr(model, "windows_") else _by_step(model))]
    if hasattr(model, "encoder_"):
        n = model.n_states_total_
        states = f"tells {n} states apart" if n > 1 else "knows one state only"
        lines.append(f"One encoder for all steps {states}.")
    lines += [f"{finding.severity.capitalize()}: {finding}" for finding in model.trace_.findings]
    return "\n".join(lines)


def _by_step(model: CRAFT) -> Iterator[str]:
    yield "   h  states  encoder  assigned    loss  chance  outcome"
    at_chance = model.trace_.at_chance()
    for h, encoder in enumerate(model.encoders_, start=1):
        index = str(encoder.index) if isinstance(encoder, ValueEncoder) else "-"
        assigned, loss, chance, outcome = 1.0, "-", "-", "ok"
        if h > 1:
            step = model.trace_[h - 1]
            loss, chance = ("-" if x is None or np.isnan(x) else f"{x:.4f}" for x in (step.f_loss, step.chance))
            assigned, outcome = step.assigned, str(step.outcome) + ", log-odds at chance" * (h - 1 in at_chance)
        yield f"{h:4d}  {model.n_states_[h]:6d}  {index:>7}  {assigned:8.1%}  {loss:>6}  {chance:>6}  {outcome}"


def _by_state(model: CRAFT) -> Iterator[str]:
    yield "state  frames   share"
    visits = tally(model.labels_.ravel(), model.n_states_total_)
    for s, n in enumerate(visits):
        yield f"{s:5d}  {n:6d}  {n / max(int(visits.sum()), 1):6.1%}"
