"""A fitted model in a few lines: what was chosen, what was found at each step, what was asked of the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from craftrl.core.encoders import ValueEncoder
from craftrl.core.trace import OracleUse
from craftrl.estimators.choices import describe

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["summary"]


def summary(model: CRAFT) -> str:
    """Choices, one line per step, and the oracle's share of the work; see `CRAFT.summary`."""
    lines = [f"Chosen: {sentence}" for sentence in describe(model.choices_)]
    lines += ["" for _ in lines[:1]] + _steps(model)
    if model.stationary:
        lines.append(f"One encoder for all steps tells {model.n_states_total_} states apart.")
    bounds = ", ".join(f"{name} = {value:.4g}" for name, value in vars(model.bounds_).items())
    return "\n".join([*lines, "", f"With {bounds}.", _use(model.trace_.oracle_use)])


def _steps(model: CRAFT) -> list[str]:
    """h, how many states, which entry or function is the state (for finite classes), who has a state, what happened."""
    lines = ["   h  states  encoder  assigned  outcome"]
    for h, encoder in enumerate(model.encoders_, start=1):
        index = str(encoder.index) if isinstance(encoder, ValueEncoder) else "-"
        assigned, outcome = (1.0, "ok") if h == 1 else (model.trace_[h - 1].assigned, model.trace_[h - 1].outcome)
        lines.append(f"{h:4d}  {model.n_states_[h]:6d}  {index:>7}  {assigned:8.1%}  {outcome}")
    return lines


def _use(uses: Iterable[OracleUse]) -> str:
    parts = [
        f"{use.question} {use.asked - use.reused}" + f" (and {use.reused} from memory)" * (use.reused > 0)
        for use in uses
    ]
    seconds = sum(use.seconds for use in uses)
    return f"Asked of the oracle: {', '.join(parts)}; {seconds:.2g} s."
