"""A fitted model in a few lines: what was chosen, what was found at each step, what was asked of the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from craftrl.core.encoders import ValueEncoder
from craftrl.core.trace import OracleUse, StepTrace
from craftrl.estimators.choices import describe

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["summary"]


def summary(model: CRAFT) -> str:
    """Choices, one line per step, and the oracle's share of the work; see `CRAFT.summary`."""
    lines = [f"Chosen: {sentence}" for sentence in describe(model.choices_)]
    lines += ["" for _ in lines[:1]] + _steps(model)
    if hasattr(model, "encoder_"):
        n = model.n_states_total_
        told = f"tells {n} states apart" if n > 1 else "knows one state only"
        lines.append(f"One encoder for all steps {told}.")
    lines += [f"{finding.severity.capitalize()}: {finding}" for finding in model.trace_.findings]
    bounds = ", ".join(f"{name} = {value:.4g}" for name, value in vars(model.bounds_).items())
    return "\n".join([*lines, "", f"With {bounds}.", _use(model.trace_.oracle_use)])


def _steps(model: CRAFT) -> list[str]:
    """h, how many states, which entry or function is the state (for finite classes), who has a state, the loss of the
    log-odds that lead to h beside that of chance, what happened."""
    lines = ["   h  states  encoder  assigned    loss  chance  outcome"]
    at_chance = set(model.trace_.at_chance())
    for h, encoder in enumerate(model.encoders_, start=1):
        index = str(encoder.index) if isinstance(encoder, ValueEncoder) else "-"
        assigned, loss, chance, outcome = (1.0, "-", "-", "ok") if h == 1 else _found(model.trace_[h - 1])
        outcome += ", log-odds at chance" * (h - 1 in at_chance)
        lines.append(f"{h:4d}  {model.n_states_[h]:6d}  {index:>7}  {assigned:8.1%}  {loss:>6}  {chance:>6}  {outcome}")
    return lines


def _found(step: StepTrace) -> tuple[float, str, str, str]:
    """Share assigned, loss of f_h and of chance, outcome."""
    chance = "-" if step.chance is None else f"{step.chance:.4f}"
    return step.assigned, f"{step.f_loss:.4f}", chance, step.outcome


def _use(uses: Iterable[OracleUse]) -> str:
    parts = [
        f"{use.question} {use.asked - use.reused}" + f" (and {use.reused} from memory)" * (use.reused > 0)
        for use in uses
    ]
    seconds = sum(use.seconds for use in uses)
    return f"Asked of the oracle: {', '.join(parts)}; {f'{seconds:.2g}' if seconds < 10 else f'{seconds:.0f}'} s."
