"""HTML as values: whatever is not markup already is escaped, so that no name and no number can break a page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from craftrl.report.tables import Table, shown

__all__ = ["Markup", "el", "join", "listed", "table"]

VOID = {"img", "meta", "link", "br"}
MOST_ROWS = 200  # that a table shows; all are in its download


class Markup(str):
    """Text that is HTML already."""


def el(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element; a trailing underscore in an attribute's name is left out, other underscores become hyphens.

    An attribute that is None is left out, one that is True has no value.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    text = "".join(f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Markup(f"<{name}{text}>" + ("" if name in VOID else f"{join(children)}</{name}>"))


def join(children: Iterable[Any]) -> Markup:
    """Pieces one after the other, those that are no markup escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escape(str(child)) for child in children))


def listed(items: Iterable[Any], **attributes: Any) -> Markup:
    """A list with one entry for each item."""
    return el("ul", *(el("li", item) for item in items), **attributes)


def table(given: Table, download: bool = True) -> Markup:
    """A table with its caption, in a box that can be scrolled by keyboard; long ones are cut."""
    cut = f" The first {MOST_ROWS} of {len(given.rows):,} rows." if len(given.rows) > MOST_ROWS else ""
    head = el("tr", *(el("th", heading, scope="col") for heading in given.columns))
    body = [
        el("tr", el("th", shown(row[0]), scope="row"), *(el("td", shown(cell), class_=_kind(cell)) for cell in row[1:]))
        for row in given.rows[:MOST_ROWS]
    ]
    whole = el("table", el("caption", given.caption + cut), el("thead", head), el("tbody", *body))
    box = el("div", whole, class_="scroll", tabindex="0", role="region", aria_label=given.caption)
    return (
        join(
            [
                box,
                el(
                    "button", "CSV", el("span", f" of {given.name}", class_="quiet"), type="button", data_csv=given.name
                ),
            ]
        )
        if download
        else box
    )


def _kind(cell: Any) -> str | None:
    if not isinstance(cell, str):
        return "number"
    return "words" if len(cell) > 30 else None
