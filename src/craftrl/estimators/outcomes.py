"""One warning for all steps at which the paper's assumptions seem not to hold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from craftrl.core.trace import Trace
from craftrl.errors import AssumptionWarning
from craftrl.oracles.base import Oracle
from craftrl.oracles.counting import CountingOracle

__all__ = ["exact_and_independent", "warn_of_failed_assumptions"]


def warn_of_failed_assumptions(trace: Trace, may_chain: bool) -> None:
    """Say where the log-odds know nothing, if that is so at most steps; where no state, or too many, were found; and
    whether trajectories seem to begin in several states.

    `may_chain`: whether choosing the encoders of all steps together could help.
    """
    told = [sentence for sentence in (_at_chance(trace), _failed(trace, may_chain)) if sentence]
    told += [] if trace.start is None else trace.start.warnings()
    if told:
        warnings.warn(" ".join(told), AssumptionWarning, stacklevel=3)


def _at_chance(trace: Trace) -> str:
    if not trace.mostly_at_chance:
        return ""
    steps = trace.at_chance()
    loss, chance = (np.mean([getattr(trace[h], name) for h in steps]) for name in ("f_loss", "chance"))
    return (
        f"The log-odds are no better than chance at h = {_ranges(steps)}, by a test at each step (trace_[h].p_value; "
        f"mean loss {loss:.4f} nats, chance {chance:.4f}): states found from them are guesses. Check that the agents "
        "act differently and that their labels are right; else more trajectories, more different agents, longer "
        "training, or a larger or another network or classifier usually help."
    )


def _failed(trace: Trace, may_chain: bool) -> str:
    failed = trace.outcomes()
    if len(failed.get("one state", [])) < len(trace):
        failed.pop("one state", None)  # at some steps one state may be all there is
    if not failed:
        return ""
    what = "; ".join(f"{kind} at h = {_ranges(steps)}" for kind, steps in failed.items())
    hint = "; with an exact class, try coupling='markov'" if may_chain else ""
    return (
        f"CRAFT found {what}. The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders "
        f"there are guesses. See trace_ for what was decided{hint}."
    )


def exact_and_independent(oracle: Oracle, reading: Mapping[str, Any]) -> bool:
    """Whether the class is finite and its encoders were chosen step by step."""
    return isinstance(oracle, CountingOracle) and reading["coupling"] == "independent"


def _ranges(steps: list[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
