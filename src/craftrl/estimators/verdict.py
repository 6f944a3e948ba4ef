"""A fitted model in words: what to think of it, for the report, the command line and notebooks; and its summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from craftrl.core.encoders import ValueEncoder
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
    warnings, notes = ([one for one in findings if one.severity == severity] for severity in ("warning", "note"))
    to_do = [finding.advice for finding in (*warnings, *notes) if finding.advice]
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
    against, beside = (tuple(finding.found for finding in found) for found in (warnings, notes))
    return Verdict(level, _found(model), why, against, beside, tuple(dict.fromkeys(to_do)))


def _found(model: CRAFT) -> str:
    n, H = model.sizes_fitted()
    if hasattr(model, "windows_"):  # their steps mean nothing
        given = f"{n:,} windows of recordings of {len(model.agents_)} agents"
        return f"CRAFT found {_states(model.n_states_total_)}. It was given {given}."
    runs = [(count, [h for h, _ in steps]) for count, steps in groupby(enumerate(model.n_states_, 1), lambda at: at[1])]
    each = f"between {min(model.n_states_)} and {_states(max(model.n_states_))} at each of the {H} steps"
    if len(runs) <= 4:
        at = (f"step {h[0]}" if len(h) == 1 else f"each of steps {h[0]} to {h[-1]}" for _, h in runs)
        each = ", ".join(f"{_states(count)} at {where}" for (count, _), where in zip(runs, at))
    whole = f"{_states(model.n_states_total_)} in all: " if hasattr(model, "encoder_") else ""
    return f"CRAFT found {whole}{each}. It was given {n:,} trajectories of {len(model.agents_)} agents."


def _states(k: int) -> str:
    return "1 state" if k == 1 else f"{k} states"


def summary(model: CRAFT) -> str:
    """Choices, one line per step or state, and findings; see `CRAFT.summary`."""
    lines = [f"Chosen: {sentence}" for sentence in describe(model.choices_)]
    lines += [""] * bool(lines)
    if hasattr(model, "windows_"):
        lines += ["state  frames   share", *(f"{s:5d}  {n:6d}  {share:6.1%}" for s, n, share in _visits(model))]
    else:
        lines += _steps(model)
    if hasattr(model, "encoder_"):
        n = model.n_states_total_
        lines.append(f"One encoder for all steps {f'tells {n} states apart' if n > 1 else 'knows one state only'}.")
    lines += [f"{finding.severity.capitalize()}: {finding}" for finding in model.trace_.findings]
    return "\n".join(lines)


def _steps(model: CRAFT) -> Iterator[str]:
    yield "   h  states  encoder  assigned    loss  chance  outcome"
    at_chance = model.trace_.at_chance()
    for h, encoder in enumerate(model.encoders_, start=1):
        index = str(encoder.index) if isinstance(encoder, ValueEncoder) else "-"
        assigned, loss, chance, outcome = 1.0, "-", "-", "ok"
        if h > 1:
            step = model.trace_[h - 1]
            loss, chance = ("-" if x is None or np.isnan(x) else f"{x:.4f}" for x in (step.f_loss, step.chance))
            assigned, outcome = step.assigned, step.outcome + ", log-odds at chance" * (h - 1 in at_chance)
        yield f"{h:4d}  {model.n_states_[h]:6d}  {index:>7}  {assigned:8.1%}  {loss:>6}  {chance:>6}  {outcome}"


def _visits(model: CRAFT) -> list[tuple[int, int, float]]:
    """Each state of all steps, how many observations are in it, and what share that is."""
    visits = tally(model.labels_.ravel(), model.n_states_total_)
    return list(zip(range(len(visits)), visits.tolist(), (visits / max(int(visits.sum()), 1)).tolist()))


def as_html(model: CRAFT) -> str:
    """A fitted model as a notebook shows it: the verdict of `fit`, its states, and what the library chose."""
    said = verdict(model)
    head, rows = ["step", "states"], [[str(h), str(n)] for h, n in enumerate(model.n_states_, start=1)]
    if hasattr(model, "encoder_"):
        head = ["state", "observations", "share"]
        rows = [[str(s), f"{n:,}", f"{share:.1%}"] for s, n, share in _visits(model)]
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
