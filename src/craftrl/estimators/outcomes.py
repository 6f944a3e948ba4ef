"""Tests of what was learned, and one warning for all steps at which the paper's assumptions seem not to hold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from craftrl.core.encoders import named_by_step
from craftrl.core.labels import Labels, tally
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import speaks
from craftrl.diagnostics.closure import closure_by_step
from craftrl.diagnostics.residual import residual_by_step
from craftrl.errors import AssumptionWarning
from craftrl.oracles.base import Oracle
from craftrl.oracles.counting import CountingOracle, PreparedCounting

__all__ = ["exact_and_independent", "failed_assumptions", "ranges", "run_out", "tested", "warn_of_failed_assumptions"]


def tested(trace: Trace, codes: Sequence[Labels], n_states: Sequence[int], prepared: PreparedCounting) -> Trace:
    """The trace with two tests of the states at every step, by every function of the class; no ground truth enters.

    Right states hold all that observations tell of the agent (`residual_information`) and of each other
    (`closure_test`). The states are taken at their word: a code that stands for none is a code of the commonest.
    """
    named = named_by_step(codes, n_states)
    p_residual = residual_by_step(named, prepared).p_value
    p_closure = closure_by_step(named, prepared).p_value
    both = zip(trace.steps, p_residual, p_closure)
    return replace(trace, steps=tuple(replace(s, p_residual=float(r), p_closure=float(c)) for s, r, c in both))


def warn_of_failed_assumptions(trace: Trace, may_chain: bool, exact: bool, lost: Sequence[int] = ()) -> None:
    """Say what speaks against the states, in one warning; `lost`: steps at which labels have run out (`run_out`)."""
    told = failed_assumptions(trace, may_chain, exact) + ([_lost(lost)] if lost else [])
    if told and speaks():
        warnings.warn(" ".join(told), AssumptionWarning, stacklevel=4)


def failed_assumptions(trace: Trace, may_chain: bool, exact: bool) -> list[str]:
    """What speaks against the states, one entry for each kind.

    Log-odds that know nothing at most steps; no state, or too many; one state at most steps; states that no encoder
    reads, or that the data contradicts; trajectories that seem to begin in several states.

    `may_chain`: whether choosing the encoders of all steps together could help; `exact`: whether the class is finite,
    so that Line 46 is exact.
    """
    told = [_at_chance(trace), _misread(trace) if exact else "", _contradicted(trace), _failed(trace, may_chain)]
    told += [] if trace.start is None else trace.start.warnings()
    return [text for text in told if text]


def run_out(labels: Any, tau: TrajectoryDataset, relabel: bool) -> list[int]:
    """The steps at which most trajectories have no state any more, up to the last step, where states were not read
    again: a trajectory that falls between clusters is then lost for good, and over many steps nearly all do."""
    if relabel:
        return []
    named = [tally(label) for label in labels.T]
    there = [int(tau.running(h).sum()) for h in range(1, tau.H + 1)]
    kept = [visits.sum() / n for visits, n in zip(named, there) if n]
    last = next((i for i, share in enumerate(reversed(kept)) if share >= 0.5), len(kept))
    return list(range(len(kept) - last + 1, len(kept) + 1))


def _lost(steps: Sequence[int]) -> str:
    return (
        f"Most trajectories have no state any more at h = {ranges(list(steps))}: those that fall between clusters are "
        "lost for good. relabel=True reads states off each encoder and keeps them; it is the default."
    )


def _at_chance(trace: Trace) -> str:
    if not trace.mostly_at_chance:
        return ""
    steps = trace.at_chance()
    loss, chance = (np.mean([getattr(trace[h], name) for h in steps]) for name in ("f_loss", "chance"))
    return (
        f"The log-odds are no better than chance at h = {ranges(steps)}, by a test at each step (trace_[h].p_value; "
        f"mean loss {loss:.4f} nats, chance {chance:.4f}): states found from them are guesses. Check that the agents "
        "act differently and that their labels are right; else more trajectories, more different agents, longer "
        "training, or a larger or another network or classifier usually help."
    )


def _failed(trace: Trace, may_chain: bool) -> str:
    failed = trace.outcomes()
    if not trace.mostly_one_state:
        failed.pop("one state", None)  # at some steps one state may be all there is
    if not failed:
        return ""
    what = "; ".join(f"{kind} at h = {ranges(steps)}" for kind, steps in failed.items())
    hint = "; with an exact class, try coupling='markov'" if may_chain else ""
    return (
        f"CRAFT found {what}. The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders "
        f"there are guesses. See trace_ for what was decided{hint}."
    )


def _misread(trace: Trace) -> str:
    steps = trace.misread()
    if not steps:
        return ""
    worst = max(trace[h - 1].encoder_loss for h in steps)
    return (
        f"No encoder of the class reads the states found at h = {ranges(steps)} (Line 46 loses up to {worst:.0%} of a "
        "state): the states are mixtures, or the class is too small; more trajectories, or a larger class, may help."
    )


def _contradicted(trace: Trace) -> str:
    closure, residual = trace.contradicted("p_closure"), trace.contradicted("p_residual")
    told = []
    if closure:
        told.append(f"observations foretell the neighbouring state beyond their own state at h = {ranges(closure)}")
    if residual:
        told.append(f"observations tell the agents apart beyond the states at h = {ranges(residual)}")
    if not told:
        return ""
    return (
        f"The data contradicts the states: {'; '.join(told)} (trace_[h].p_closure, p_residual). States are fused or "
        "follow noise, or policies see noise; more trajectories, smaller bounds, or agents that differ more may help."
    )


def exact_and_independent(oracle: Oracle, reading: Mapping[str, Any]) -> bool:
    """Whether the class is finite and its encoders were chosen step by step."""
    return isinstance(oracle, CountingOracle) and reading["coupling"] == "independent"


def ranges(steps: list[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
