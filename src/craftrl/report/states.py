"""The section on what each state looks like: cards with pictures, or tables of entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from craftrl.report.contents import Contents
from craftrl.report.entries import Entries
from craftrl.report.frames import Gallery, Picture, Portrait
from craftrl.report.markup import Markup, el, join, table
from craftrl.report.tables import Table, shown

__all__ = ["states_section"]


def states_section(contents: Contents) -> Markup:
    """Pictures for images, entries for other observations, a sentence without data."""
    if contents.gallery is not None:
        return _gallery(contents.gallery, contents.agents)
    if contents.entries is not None:
        return _entries(contents.entries)
    return el("p", "A model keeps no observations. Make the report with the data to see what each state looks like.")


def _panels(panels: dict[int | None, Markup]) -> Markup:
    """One part for each step, of which the script shows the chosen one."""
    if list(panels) == [None]:
        return panels[None]
    control = el("label", "Step ", el("select", id="states-h"), for_="states-h")
    parts = [el("div", part, data_h=h, class_="panel") for h, part in panels.items()]
    return join([el("div", control, class_="controls"), *parts])


def _gallery(given: Gallery, agents: tuple[str, ...]) -> Markup:
    decides = (
        "Orange are the pixels that decide on the state (the gradient of its log-odds, times how far the pixel is from "
        "the mean image of all data, in the mean over the examples). "
    )
    text = (
        f"First the mean of all frames of the state. {decides if given.decides else ''}Then where frames of the same "
        "state still differ: whatever changes there, the state ignores. Last come frames drawn at random."
    )
    steps = dict.fromkeys(portrait.group.h for portrait in given.portraits)
    cards = {h: el("div", *_cards(given, h, agents), class_="cards") for h in steps}
    return join([el("p", text), _panels(cards)])


def _cards(given: Gallery, h: int | None, agents: tuple[str, ...]) -> Iterable[Markup]:
    return (_card(portrait, agents) for portrait in given.portraits if portrait.group.h == h)


def _card(portrait: Portrait, agents: tuple[str, ...]) -> Markup:
    group = portrait.group
    shares = ", ".join(f"{share:.0%} of {name}'s" for name, share in zip(agents, group.by_agent))
    visits = el("p", f"{group.visits:,} frames, {group.share:.0%} of all ({shares})", class_="quiet")
    large, few = _figures(portrait.pictures, "frames large"), _figures(portrait.examples, "frames")
    return el("article", el("h3", group.name), visits, large, few, class_="card")


def _figures(pictures: Iterable[Picture], kind: str) -> Markup:
    return el(
        "div",
        *(el("figure", el("img", src=p.source, alt=p.alt), el("figcaption", p.label)) for p in pictures),
        class_=kind,
    )


def _entries(given: Entries) -> Markup:
    text = (
        "“Decides” is the share of observations whose state changes if the entry is replaced by that of another "
        "observation of the step. “Goes with the state” is the share of the entry's variance that lies between states: "
        "an entry may go with the state without deciding on it. Then the mean in each state, ± the deviation within "
        "it, which the state ignores."
    )
    panels = {h: join([el("p", _ignored(*counts)), _pivot(given.table, h)]) for h, counts in given.ignored.items()}
    if not panels:
        return el("p", "There is one state at every step, so that nothing decides.")
    button = el("button", "CSV", el("span", " of entries", class_="quiet"), type="button", data_csv="entries")
    return join([el("p", text), _panels(panels), button])


def _ignored(nothing: int, swapped: int, entries: int) -> str:
    which = "All" if swapped == entries else f"The {swapped} that differ most between states, of"
    return f"{which} {entries:,} entries were swapped; {nothing} of them made no difference: ignored."


def _pivot(given: Table, h: int | None) -> Markup:
    """One row for each entry, one column for each state."""
    by_entry: dict[tuple[Any, ...], dict[int, str]] = {}
    for step, entry, decides, goes, state, mean, deviation in given.rows:
        if step == h:
            by_entry.setdefault((entry, decides, goes), {})[state] = f"{shown(mean)} ± {shown(deviation)}"
    states = sorted({state for cells in by_entry.values() for state in cells})
    columns = ("entry", "decides", "goes with the state", *(f"state {s}" for s in states))
    rows = tuple(
        (str(entry), f"{decides:.0%}", f"{goes:.0%}", *(cells.get(s, "") for s in states))
        for (entry, decides, goes), cells in by_entry.items()
    )
    where = "all steps" if h is None else f"step {h}"
    return table(Table("entries", f"The entries that matter most at {where}.", columns, rows), download=False)
