"""The verdict: what was found, how far to trust it, and what to record more of, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from craftrl.diagnostics import Diagnosis
from craftrl.estimators.craft import CRAFT
from craftrl.report.guarantee import ERRORS, FAILURE, Guarantee
from craftrl.report.tables import power_of_ten

__all__ = ["Verdict", "verdict"]


@dataclass(frozen=True)
class Verdict:
    """What a reader should know first.

    level     "trust", "check", "do not trust" or "not checked"
    found     the states, in a sentence
    why       what the level rests on, in a sentence
    warnings  what speaks against the states
    advice    what else is worth knowing, and what to record more of
    theorem   the sample size that the theorem asks for, beside the one given
    """

    level: str
    found: str
    why: str
    warnings: tuple[str, ...]
    advice: tuple[str, ...]
    theorem: str


def verdict(model: CRAFT, diagnosis: Diagnosis | None, theorem: Guarantee) -> Verdict:
    """The verdict on a model; without a diagnosis, the findings of `fit` remain."""
    findings = model.trace_.findings if diagnosis is None else diagnosis.findings
    return Verdict(
        level=_level(model) if diagnosis is None else diagnosis.verdict,
        found=_found(model),
        why=_unchecked(model) if diagnosis is None else diagnosis.why,
        warnings=tuple(str(finding) for finding in findings if finding.severity == "warning"),
        advice=tuple(str(finding) for finding in findings if finding.severity == "note"),
        theorem=_theorem(theorem),
    )


def _level(model: CRAFT) -> str:
    return "do not trust" if model.trace_.guesses else "not checked"


def _unchecked(model: CRAFT) -> str:
    """What is known without the data: the tests of `fit`."""
    tested = [step.h for step in model.trace_ if step.p_value is not None]
    above = len(tested) - len(model.trace_.at_chance())
    known = f" The agents are told apart at {above} of {len(tested)} pairs of steps."
    return "Nothing was checked, for that needs the data: give it to the report." + known * bool(tested)


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


def _theorem(theorem: Guarantee) -> str:
    if theorem.asked is None:
        return f"The paper's theorem names no sample size here: {theorem.why}."
    return (
        f"The paper's theorem asks for {power_of_ten(theorem.asked)} trajectories to promise {1 - ERRORS:.0%} of every "
        f"state right with probability {1 - FAILURE:.0%}; {theorem.given:,} were given. That is a worst case over all "
        "worlds: in practice thousands often do, and the checks say whether they did."
    )
