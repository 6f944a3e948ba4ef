"""The sections of the page, each from contents to HTML."""

from __future__ import annotations

from craftrl.report.contents import Contents
from craftrl.report.markup import Markup, el, join, listed, table
from craftrl.report.states import states_section
from craftrl.report.tables import Table

__all__ = ["SECTIONS", "section"]

SECTIONS = {
    "verdict": "Verdict",
    "time": "States over time",
    "states": "What each state looks like",
    "agents": "How the agents differ",
    "spectra": "Spectra of the log-odds",
    "checks": "Checks and assumptions",
    "fit": "How it was fitted",
    "numbers": "All numbers",
}
SIGNS = {"trust": "✓", "check": "!", "do not trust": "✕", "not checked": "?"}
COLUMNS = {
    "states": "how many were found",
    "reads entry": "the entry of the observation that the encoder reads, or the number of its function",
    "assigned": "share of the trajectories that have a state",
    "loss": "of the log-odds that lead to the step, in nats; less than chance is better",
    "chance": "the loss of knowing only how often each agent occurs",
    "p-value": "how likely so small a loss is by chance",
    "encoder loss": "how much of the states found the encoder does not read",
    "gap": "least distance of two clusters, in bins; alpha promises four",
    "rarest agent": "the least share of an agent in the visits to a pair of states",
    "same count": "share of the refits that find as many states",
    "stable": "how far the refits' states agree with the model's",
    "explained": "of what observations tell of the agents, the share that the states hold",
    "trust": "stable times explained, the least so far; for networks times what their states hold of what was asked",
}


def section(name: str, contents: Contents) -> Markup:
    """One of `SECTIONS`, with its heading."""
    make = {
        "verdict": _verdict,
        "time": _time,
        "states": states_section,
        "agents": _agents,
        "spectra": _spectra,
        "checks": _checks,
        "fit": _fit,
        "numbers": _numbers,
    }[name]
    heading = f"{name}-heading"
    return el("section", el("h2", SECTIONS[name], id=heading), make(contents), id=name, aria_labelledby=heading)


def _verdict(contents: Contents) -> Markup:
    said = contents.verdict
    badge = el(
        "p", el("span", SIGNS[said.level], class_="sign", aria_hidden="true"), said.level.capitalize(), class_="badge"
    )
    parts = [badge, el("p", said.found, class_="found"), el("p", said.why)]
    if said.warnings:
        parts += [el("h3", "What speaks against it"), listed(said.warnings)]
    parts += [el("h3", "What else to know"), listed([*said.advice, said.theorem])]
    if contents.notes:
        parts += [el("h3", "About this report"), listed(contents.notes)]
    return el("div", *parts, class_="card", data_level=said.level)


def _select(name: str, label: str) -> Markup:
    """A choice that the script fills."""
    return el("label", label, el("select", id=name), for_=name)


def _controls(*choices: Markup) -> Markup:
    noscript = el("noscript", el("p", "The picture needs scripts; the tables below do not."))
    return join([noscript, el("div", *choices, class_="controls")])


def _more(summary: str, *inside: Markup) -> Markup:
    return el("details", el("summary", summary), *inside)


def _time(contents: Contents) -> Markup:
    text = (
        "Each column is a step, each circle a state, as large as its visits; lines are moves, as wide as they are "
        "frequent. Moves that fewer than one in two hundred make are not drawn."
    )
    return join(
        [
            el("p", text),
            _controls(_select("time-agent", "Moves of ")),
            el(
                "div",
                id="time-picture",
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label="Picture of states over time",
            ),
            el("p", id="time-note", class_="quiet", aria_live="polite"),
            _more("Moves as a table", table(contents.tables["transitions"])),
            _more("Visits as a table", table(contents.tables["visits"])),
        ]
    )


def _agents(contents: Contents) -> Markup:
    moves = (
        "In a chosen state, how often does each agent move on to each next state? CRAFT learns from these differences "
        "alone; where there are none, next states cannot be told apart."
    )
    odds = (
        "A model does not keep which trajectory is whose, so that without the data the moves of single agents are not "
        "known. What it keeps are the log-odds of each move, here as how many times as often one agent made it as the "
        "other. Compare the moves from one state with each other: an agent that is in the state more often makes all "
        "of them more often."
    )
    known = len(contents.moves_of) > 1
    choices = [_select("agents-h", "Step "), _select("agents-state", "State ")]
    choices += [] if known else [_select("agents-pair", "Agents ")]
    return join(
        [
            el("p", moves if known else odds),
            _controls(*choices),
            el("p", id="agents-note", aria_live="polite"),
            el("div", id="agents-picture"),
        ]
    )


def _spectra(contents: Contents) -> Markup:
    heavy = (
        "A bar that reaches the dashed line is heavy enough to count."
        if contents.scan
        else "States were found for all steps at once; a cluster is all moves from one state to another."
    )
    text = (
        "For every pair of neighbouring observations, f says how much likelier one agent is than another, on a "
        "logarithmic scale (log-odds). Among pairs that begin in one state its values form clusters, one for each next "
        f"state. {heavy} Coloured bars belong to a cluster; above it stands the state that it became."
    )
    choices = [_select("spectra-h", "Step h "), _select("spectra-state", "From state ")]
    return join(
        [
            el("p", text),
            _controls(*choices, _select("spectra-pair", "Agents ")),
            el(
                "div",
                id="spectra-picture",
                class_="scroll",
                tabindex="0",
                role="region",
                aria_label="Picture of a spectrum",
            ),
            el("p", id="spectra-note", aria_live="polite"),
            _more("All clusters as a table", table(contents.tables["clusters"])),
            _more("Which clusters are one state", table(contents.tables["merging"])),
        ]
    )


def _checks(contents: Contents) -> Markup:
    there = contents.tables["steps"].columns
    meaning = [join([el("dt", name), el("dd", text)]) for name, text in COLUMNS.items() if name in there]
    return join(
        [
            el("h3", "Step by step"),
            table(contents.tables["steps"]),
            _more("What the columns mean", el("dl", *meaning)),
            el("h3", "Assumptions"),
            el(
                "p",
                "CRAFT counts on three bounds. With the data, those that the learned states attain stand beside them; "
                "a few misread observations make these smaller than they are.",
            ),
            table(contents.tables["assumptions"]),
            el("p", contents.verdict.theorem),
        ]
    )


def _fit(contents: Contents) -> Markup:
    facts = Table("facts", "What the model was fitted to, and with what.", ("what", "value"), contents.facts)
    chosen = [el("h3", "What the library chose, and why"), listed(contents.choices)] if contents.choices else []
    return join([*chosen, el("h3", "Facts"), table(facts, download=False)])


def _numbers(contents: Contents) -> Markup:
    buttons = [
        el(
            "li",
            el("button", f"{name}.csv", type="button", data_csv=name),
            " ",
            el("span", given.caption, class_="quiet"),
        )
        for name, given in contents.tables.items()
    ]
    whole = el("li", el("button", "report.json", type="button", data_json=True), " Everything in one file.")
    return join(
        [
            el("p", "Every number of this report, to be downloaded from this file itself."),
            el("ul", whole, *buttons, class_="files"),
        ]
    )
