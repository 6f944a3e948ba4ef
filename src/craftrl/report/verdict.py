"""The verdict: what was found, how far to trust it, and what to record more of, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from craftrl.diagnostics import Diagnosis, Sufficiency
from craftrl.diagnostics.checks import LARGEST_ERROR, LEAST_READ
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.outcomes import exact_and_independent, failed_assumptions, ranges
from craftrl.oracles.counting import CountingOracle
from craftrl.report.guarantee import ERRORS, FAILURE, Guarantee
from craftrl.report.tables import power_of_ten
from craftrl.states.graph import LatentGraph

__all__ = ["Verdict", "verdict"]

FEW_ASSIGNED = 0.95  # below this share of trajectories with a state, a step is worth a word
HEAVY = 8  # Line 19 sees a move that nu/8 of the trajectories make


@dataclass(frozen=True)
class Verdict:
    """What a reader should know first.

    level     "trust", "check", "do not trust" or "not checked"
    found     the states, in a sentence
    why       what the level rests on, in a sentence
    warnings  what speaks against the states
    advice    what to record more of
    theorem   the sample size that the theorem asks for, beside the one given
    """

    level: str
    found: str
    why: str
    warnings: tuple[str, ...]
    advice: tuple[str, ...]
    theorem: str


def verdict(model: CRAFT, graph: LatentGraph, diagnosis: Diagnosis | None, theorem: Guarantee) -> Verdict:
    """The verdict on a model; without a diagnosis its own warnings remain."""
    told = _fit_warned(model) if diagnosis is None else list(diagnosis.warnings)
    hopeless = diagnosis is None and model.trace_.mostly_at_chance
    level = "do not trust" if hopeless else "not checked" if diagnosis is None else diagnosis.verdict
    return Verdict(
        level=level,
        found=_found(model),
        why=_why(model, diagnosis, hopeless),
        warnings=tuple(told),
        advice=tuple(_advice(model, graph, diagnosis)),
        theorem=_theorem(theorem),
    )


def _fit_warned(model: CRAFT) -> list[str]:
    """What `fit` warned of, from the trace."""
    reading = {"coupling": model.coupling} | {choice.parameter: choice.value for choice in model.choices_}
    exact = isinstance(model.oracle_, CountingOracle)
    return failed_assumptions(model.trace_, exact_and_independent(model.oracle_, reading), exact)


def _found(model: CRAFT) -> str:
    n, H = model.sizes_fitted()
    runs = [(n_states, [h for h, _ in steps]) for n_states, steps in groupby(enumerate(model.n_states_, 1), _second)]
    if len(runs) <= 4:
        counts = ", ".join(f"{_states(k)} at {_at(steps)}" for k, steps in runs)
    else:
        counts = f"between {min(model.n_states_)} and {_states(max(model.n_states_))} at each of the {H} steps"
    whole = f"{_states(model.n_states_total_)} in all: " if hasattr(model, "encoder_") else ""
    return f"CRAFT found {whole}{counts}. It was given {n:,} trajectories of {len(model.agents_)} agents."


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def _states(k: int) -> str:
    return "1 state" if k == 1 else f"{k} states"


def _at(steps: list[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"each of steps {steps[0]} to {steps[-1]}"


def _why(model: CRAFT, found: Diagnosis | None, hopeless: bool) -> str:
    if hopeless or (found is not None and found.at_chance):
        return "At most steps the data cannot tell the agents apart better than chance, so the states are guesses."
    if found is None:
        return f"Nothing was checked, for that needs the data: give it to the report. {_above_chance(model)}"
    if not found.checked:
        return (
            "Nothing tells right states from wrong ones yet: for this model only refits on resampled trajectories do. "
            f"Ask for some with --diagnose 3, each about as dear as a fit. {_above_chance(model)}"
        )
    parts: list[str] = []
    if found.sufficiency is not None:
        parts += _sufficient(found.sufficiency)
    if found.residual is not None:
        parts.append(f"the states explain {_least(found.explained)} of what observations tell of the agents")
    if found.resamples is not None:
        refits, agree = len(found.resamples.n_states), _least(found.stability[1:])
        parts.append(f"refits on resampled trajectories ({refits}) agree with them on {agree} at every step")
    elif found.sufficiency is None:
        parts.append("no refits on resampled trajectories were made, without which there is no trust (--diagnose 10)")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}. Together that is a score of {found.score:.2f}; 0.95 is needed for trust."


def _sufficient(found: Sufficiency) -> Iterator[str]:
    """What a network's own log-odds say of the states, nothing being trained again."""
    yield str(found)
    yield f"they hold {_least(found.closed)} of what the log-odds foretell of the neighbouring state at every step"
    known = ~np.isnan(found.read)
    if known.any():
        yield f"the log-odds in turn tell {_least(found.read)} of every state's observations from those of the others"
    if blind := [int(h) for h in np.flatnonzero(~known & found.several) + 1]:
        yield f"at h = {ranges(blind)} the agents do not differ, so nothing was checked there"


def _above_chance(model: CRAFT) -> str:
    """What the tests of `fit` say in favour of the log-odds that states were read off."""
    tested = [step.h for step in model.trace_ if step.p_value is not None]
    above = len(tested) - len(model.trace_.at_chance())
    if not tested:
        return ""
    return f"Known is that the agents are told apart better than chance at {above} of {len(tested)} pairs of steps."


def _least(shares: NDArray[np.float64]) -> str:
    least = f"{float(np.nanmin(shares)):.0%}"
    return least if least == "100%" else f"at least {least}"


def _advice(model: CRAFT, graph: LatentGraph, found: Diagnosis | None) -> Iterator[str]:
    if steps := model.trace_.at_chance():
        yield (
            f"Agents that act more differently: between step h and the next one, at h = {ranges(steps)}, the data "
            "does not show that they differ at all."
        )
    assigned = [step.assigned for step in model.trace_]
    if min(assigned) < FEW_ASSIGNED:
        worst = int(np.argmin(assigned))
        yield (
            f"More trajectories: at step {worst + 2} only {assigned[worst]:.0%} of them have a state; the others fell "
            "between the clusters on the way."
        )
    if found is not None and found.sufficiency is not None:
        yield from _least_known(found.sufficiency)
    yield from _rarest_move(model, graph)


def _least_known(found: Sufficiency) -> Iterator[str]:
    """Of a network: what it learned least of."""
    if found.error > LARGEST_ERROR:
        yield (
            f"More trajectories of every agent: {found.n_unseen:,} were kept from learning, and how much the states "
            f"hold is known to {found.error:.0%} only."
        )
    if np.nanmin(np.append(found.read, 1.0)) < LEAST_READ:
        worst = int(np.nanargmin(found.read))
        yield (
            f"Trajectories that visit state {found.worst[worst]} at step {worst + 1}: the log-odds tell only "
            f"{found.read[worst]:.0%} of its observations from those of other states."
        )


def _rarest_move(model: CRAFT, graph: LatentGraph) -> Iterator[str]:
    """The rarest move that CRAFT could see; rarer ones may be misread observations."""
    moves = [
        (count / total, h, int(s), int(t), int(count), int(total))
        for h, counts in enumerate((c.sum(axis=0) for c in graph.counts), start=1)
        if (total := counts.sum())
        for (s, t), count in np.ndenumerate(counts)
        if count >= max(1.0, model.bounds_.nu / HEAVY * total)
    ]
    if moves:
        share, h, s, t, count, total = min(moves)
        yield (
            f"Trajectories that go from state {s} at step {h} to state {t}: that is the rarest move, made by "
            f"{count:,} of {total:,} ({share:.1%}). What is seen least is learned worst."
        )


def _theorem(theorem: Guarantee) -> str:
    if theorem.asked is None:
        return f"The paper's theorem names no sample size here: {theorem.why}."
    return (
        f"The paper's theorem asks for {power_of_ten(theorem.asked)} trajectories to promise {1 - ERRORS:.0%} of every "
        f"state right with probability {1 - FAILURE:.0%}; {theorem.given:,} were given. That is a worst case over all "
        "worlds: in practice thousands often do, and the checks say whether they did."
    )
