"""What to think of a fitted model, in the words of its findings: for the report, the command line and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from craftrl.core.labels import tally
from craftrl.diagnostics import Diagnosis
from craftrl.estimators.choices import describe

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

MAX_ROWS = 12  # of states or steps that a notebook shows
# What each verdict means for whoever wants to use the states; and its colour in a notebook, on white and on black.
MEANING = {
    "trust": ("The states hold up on data that they were not found from.", "#2e8b57"),
    "check": ("The states may well be right: read what follows before you build on them.", "#b07000"),
    "do not trust": ("The states are wrong somewhere, or guesses: do not build on them.", "#d0453a"),
    "not checked": ("Nothing speaks against the states, but nothing was tried either.", "#7a828c"),
}


@dataclass(frozen=True)
class Verdict:
    """What a reader should know first.

    level     "trust", "check", "do not trust" or "not checked"
    found     the states, in a sentence
    why       what the level rests on, in a sentence or two, with its numbers
    warnings  what speaks against the states
    advice    what else is worth knowing
    to_do     what to do about either, nothing said twice
    """

    level: str
    found: str
    why: str
    warnings: tuple[str, ...]
    advice: tuple[str, ...]
    to_do: tuple[str, ...]

    @property
    def meaning(self) -> str:
        """What the level says to whoever wants to use the states."""
        return MEANING[self.level][0]


def verdict(model: CRAFT, diagnosis: Diagnosis | None = None) -> Verdict:
    """The verdict on a model; without a diagnosis, the findings of `fit` remain."""
    findings = model.trace_.findings if diagnosis is None else diagnosis.findings
    findings = tuple(sorted(findings, key=lambda finding: finding.severity != "warning"))
    to_do = [finding.advice for finding in findings if finding.advice]
    if diagnosis is None:
        level = "do not trust" if model.trace_.guesses else "not checked"
        tested = [step.h for step in model.trace_ if step.p_value is not None]
        above = len(tested) - len(model.trace_.at_chance())
        why = "Nothing was checked, for that needs the data."
        why += f" The agents are told apart at {above} of {len(tested)} pairs of steps." * bool(tested)
        to_do.append("Check the states with the data: model.diagnose(x), or craftrl report MODEL DATA.")
    else:
        level, why = diagnosis.verdict, diagnosis.why
        if not diagnosis.held_up and not diagnosis.at_chance:
            to_do.append("Let refits say whether other data gives the same states: --diagnose 10 (n_resamples=10).")
    return Verdict(
        level,
        _found(model),
        why,
        tuple(finding.found for finding in findings if finding.severity == "warning"),
        tuple(finding.found for finding in findings if finding.severity == "note"),
        tuple(dict.fromkeys(to_do)),
    )


def _found(model: CRAFT) -> str:
    n, H = model.sizes_fitted()
    if hasattr(model, "windows_"):  # their steps mean nothing
        given = f"{n:,} windows of recordings of {len(model.agents_)} agents"
        return f"CRAFT found {_states(model.n_states_total_)}. It was given {given}."
    runs = [(count, [h for h, _ in steps]) for count, steps in groupby(enumerate(model.n_states_, 1), lambda at: at[1])]
    if len(runs) <= 4:
        each = ", ".join(f"{_states(k)} at {_at(steps)}" for k, steps in runs)
    else:
        each = f"between {min(model.n_states_)} and {_states(max(model.n_states_))} at each of the {H} steps"
    whole = f"{_states(model.n_states_total_)} in all: " if hasattr(model, "encoder_") else ""
    return f"CRAFT found {whole}{each}. It was given {n:,} trajectories of {len(model.agents_)} agents."


def _states(k: int) -> str:
    return "1 state" if k == 1 else f"{k} states"


def _at(steps: list[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"each of steps {steps[0]} to {steps[-1]}"


def as_html(model: CRAFT) -> str:
    """A fitted model as a notebook shows it: the verdict of `fit`, its states, and what the library chose."""
    said = verdict(model)
    if hasattr(model, "encoder_"):
        visits = tally(model.labels_.ravel(), model.n_states_total_)
        head = ("state", "observations", "share")
        rows = [(str(s), f"{n:,}", f"{n / max(int(visits.sum()), 1):.1%}") for s, n in enumerate(visits.tolist())]
    else:
        head, rows = ("step", "states", ""), [(str(h), str(n), "") for h, n in enumerate(model.n_states_, start=1)]
    more = f"<p>and {len(rows) - MAX_ROWS} more</p>" if len(rows) > MAX_ROWS else ""
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[:MAX_ROWS])
    table = f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{cells}</table>{more}"

    def listed(name: str, sentences: tuple[str, ...] | list[str]) -> str:
        items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
        return f"<p><b>{name}</b></p><ul>{items}</ul>" if sentences else ""

    badge = f'<b style="color:{MEANING[said.level][1]};font-size:1.2em">{said.level.capitalize()}</b>'
    folded = {
        "States": table,
        "What the library chose, and why": listed("", describe(model.choices_)),
        "Settings": f"<pre>{escape(repr(model))}</pre>",
    }
    parts = [f"<details><summary>{name}</summary>{inside}</details>" for name, inside in folded.items()]
    said_of_it = listed("What speaks against it", said.warnings) + listed("What to do next", said.to_do)
    return f"<div><p>{badge} {escape(said.found)}</p>{said_of_it}<p>{escape(said.why)}</p>{''.join(parts)}</div>"
