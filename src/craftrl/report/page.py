"""The page: contents as one HTML file with everything in it, and nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from craftrl.report.contents import Contents
from craftrl.report.markup import Markup, el, listed
from craftrl.report.sections import SECTIONS, section
from craftrl.report.tables import Table, plain

__all__ = ["page"]


def page(contents: Contents) -> str:
    """The whole file as text."""
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),
        el("title", f"Report on {contents.title}"),
        el("style", Markup(style)),
    )
    body = el(
        "body",
        el("a", "Skip to the verdict", href="#verdict", class_="skip"),
        el(
            "header", el("p", "CRAFT: what the agents control", class_="quiet"), el("h1", f"Report on {contents.title}")
        ),
        el("nav", listed(el("a", text, href=f"#{name}") for name, text in SECTIONS.items()), aria_label="Sections"),
        el("main", *(section(name, contents) for name in SECTIONS)),
        el("footer", el("p", f"Made by {contents.made_by}. This file needs no network.")),
        el("script", Markup(_data(contents)), type="application/json", id="data"),
        el("script", Markup(script)),
    )
    return "<!DOCTYPE html>\n" + el("html", head, body, lang="en") + "\n"


def _asset(name: str) -> str:
    return (files("craftrl.report") / "assets" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is fetched, and no script runs but ours."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


def _data(contents: Contents) -> str:
    """What the script draws and what is downloaded; "<" cannot end the element."""
    known = {
        "title": contents.title,
        "made_by": contents.made_by,
        "agents": contents.agents,
        "moves_of": contents.moves_of,
        "pairs": contents.pairs,
        "thresholds": contents.thresholds,
        "bin_width": contents.bin_width,
        "scan": contents.scan,
        "stationary": contents.stationary,
        "verdict": vars(contents.verdict),
        "choices": contents.choices,
        "facts": dict(contents.facts),
        "tables": {name: _plain(given) for name, given in contents.tables.items()},
    }
    return json.dumps(known, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _plain(given: Table) -> dict[str, Any]:
    rows = [[plain(cell) for cell in row] for row in given.rows]
    return {"caption": given.caption, "columns": given.columns, "rows": rows}
