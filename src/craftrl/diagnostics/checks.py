"""`diagnose`: run every check on a fitted model and say what asks for attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_whole
from craftrl.core.encoders import encode_dataset, named_states
from craftrl.core.oracle import CheckablePairFunction
from craftrl.core.trace import CONTRADICTED
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.closure import closure_test
from craftrl.diagnostics.diagnosis import Diagnosis
from craftrl.diagnostics.gaps import cluster_gaps
from craftrl.diagnostics.resamples import MOST_RESAMPLES, resample
from craftrl.diagnostics.residual import SIGNIFICANT, residual_information
from craftrl.diagnostics.shares import agent_shares
from craftrl.diagnostics.subject import Subject, check_subject
from craftrl.diagnostics.sufficiency import Sufficiency, sufficiency
from craftrl.oracles.counting import CountingOracle, check_counting

__all__ = ["diagnose"]

# What is worth a warning. None of these is a proof; docs/diagnostics.md says what each is worth.
LEAST_ASSIGNED = 0.5
LEAST_TRAJECTORIES = 20
LEAST_GAP = 2.5
LEAST_SAME_COUNT = 0.5  # in the mean over all steps: at single ones, resampling by itself makes light bins heavy
LEAST_STABILITY = 0.8  # at any step; the score asks for more in the mean
LEAST_CAPTURED, LARGEST_ERROR = 0.9, 0.15  # of what log-odds tell of the agents, and how well that must be known
LEAST_CLOSED, LEAST_READ = 0.95, 0.95  # at any step


def diagnose(
    model: Subject,
    tau: TrajectoryDataset,
    *,
    n_resamples: int,
    seed: int = 0,
    probe: CountingOracle | None = None,
) -> Diagnosis:
    """Every check of a fitted model against the data it was fitted to; see `CRAFT.diagnose`."""
    check_subject(model, tau)
    check_whole("n_resamples", n_resamples, 0, MOST_RESAMPLES)
    check_whole("seed", seed)
    if probe is not None:
        check_counting(probe, "diagnose")
    codes = encode_dataset(model.encoders, tau)
    alike = model.trace.at_chance()
    prepared = None if probe is None else probe.prepare(tau)
    plain = Diagnosis(
        n_states=model.n_states,
        assigned=(model.labels >= 0).sum(axis=0) / np.maximum([tau.present(h).sum() for h in _steps(tau)], 1),
        gap=cluster_gaps(model.trace),
        shares=agent_shares(codes, tau, None if "eta" in model.chosen else model.bounds.eta),
        resamples=resample(model, tau, n_resamples, seed, probe) if n_resamples else None,
        residual=None if prepared is None else residual_information(codes, tau, prepared),
        warnings=(),
        at_chance=model.trace.mostly_at_chance,
        closure=None if prepared is None else closure_test(named_states(codes, model.n_states), tau, prepared),
        sufficiency=(
            sufficiency(model.f, _from_the_start(codes, model.n_states), tau, alike, seed)
            if isinstance(model.f, CheckablePairFunction)
            else None
        ),
    )
    return replace(plain, warnings=tuple(_warnings(plain, model, tau)))


def _warnings(found: Diagnosis, model: Subject, tau: TrajectoryDataset) -> Iterator[str]:
    for outcome, steps in model.trace.outcomes().items():
        if outcome != "one state" or model.trace.mostly_one_state:  # at some steps one may be all there is
            yield f"CRAFT found {outcome} at h = {_list(steps)}."
    if model.trace.mostly_at_chance:
        yield f"The log-odds are no better than chance at h = {_list(model.trace.at_chance())}: states are guesses."
    if model.trace.start is not None:
        yield from model.trace.start.warnings()
    if (fewest := int(tau.counts.min())) < LEAST_TRAJECTORIES:
        yield (
            f"The agent with the fewest trajectories has {fewest} of them: refits and tests say little below "
            f"{LEAST_TRAJECTORIES}."
        )
    if found.assigned[-1] < LEAST_ASSIGNED:
        yield f"Only {found.assigned[-1]:.0%} of the trajectories still have a label at h = {len(found.assigned)}."
    if "alpha" not in model.chosen and (steps := _where(found.gap < LEAST_GAP)):
        yield f"Clusters lie closer than {LEAST_GAP} of the four bins that alpha promises at h = {_list(steps)}."
    if (same := float(found.same_count[1:].mean())) < LEAST_SAME_COUNT:
        steps = _where(found.same_count < LEAST_SAME_COUNT)
        yield f"Refits find as many states as the model at {same:.0%} of the steps; not so at h = {_list(steps)}."
    if found.closure is not None and (steps := model.trace.misread()):
        yield f"No encoder of the class reads the states found at h = {_list(steps)}: Line 46 has a large loss there."
    if steps := _where(found.stability < LEAST_STABILITY):
        yield f"Refits agree on less than {LEAST_STABILITY:.0%} of the states at h = {_list(steps)}: too little data?"
    if steps := _significant(found.shares.p_value):
        yield (
            f"Some agent visits a pair of states more rarely than eta = {model.bounds.eta:.2g} allows at the pairs "
            f"from h = {_list(steps)}: eta is too large, or the states name the agent."
        )
    if found.residual is not None and (steps := _significant(found.residual.p_value)):
        yield (
            f"Observations tell the agents apart beyond the learned states at the pairs from h = {_list(steps)}: "
            "wrong states, or policies that see the noise."
        )
    if found.closure is not None and (steps := _significant(found.closure.p_value, CONTRADICTED)):
        yield (
            f"Observations foretell the neighbouring state beyond their own at the pairs from h = {_list(steps)}: "
            "states that are fused or follow noise, or policies that see the noise."
        )

    if found.sufficiency is not None:
        yield from _insufficient(found.sufficiency)


def _insufficient(found: Sufficiency) -> Iterator[str]:
    share, error = found.captured, found.error
    if share < LEAST_CAPTURED and share + 2 * error < 1:
        yield (
            f"On {found.n_unseen} trajectories that were not learned from, the states hold {max(share, 0.0):.0%} "
            f"(standard error {error:.0%}) of what the log-odds tell of the agents: wrong states, or ones that follow "
            "noise."
        )
    if error > LARGEST_ERROR:
        yield (
            f"How much the states hold of what the log-odds tell of the agents is not known well (standard error "
            f"{error:.0%}): {found.n_unseen} trajectories that were not learned from are too few."
        )
    if steps := _where(found.closed < LEAST_CLOSED):
        yield (
            "What the log-odds know of an observation foretells the neighbouring state beyond its own at the pairs "
            f"from h = {_list(steps)}: states that are fused or misread."
        )
    if steps := _where(found.read < LEAST_READ):
        worst = int(np.nanargmin(found.read))
        yield (
            f"The log-odds do not tell all states apart at h = {_list(steps)}: of state {found.worst[worst]} at "
            f"h = {worst + 1} they know {found.read[worst]:.0%} of the observations. States are split by noise, or "
            "misread."
        )


def _from_the_start(codes: NDArray[np.integer], n_states: NDArray[np.int64]) -> NDArray[np.integer]:
    """Codes with one state at h = 1, where CRAFT knows of one: an encoder of all steps need not read it so."""
    return np.column_stack([np.zeros_like(codes[:, 0]), codes[:, 1:]]) if n_states[0] == 1 else codes


def _significant(p_value: NDArray[np.float64], level: float = SIGNIFICANT) -> list[int]:
    """The steps whose p-values are too small, all steps of one model taken together."""
    return _where(p_value * len(p_value) < level)


def _where(bad: NDArray[np.bool_]) -> list[int]:
    return [int(h) for h in np.flatnonzero(bad) + 1]


def _list(steps: list[int]) -> str:
    shown = [str(h) for h in steps]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:5], "..", shown[-1]])


def _steps(tau: TrajectoryDataset) -> range:
    return range(1, tau.H + 1)
