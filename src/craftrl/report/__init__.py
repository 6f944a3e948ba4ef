"""A fitted model as one HTML page that needs no network: what was found, how far to trust it, what it looks like.

A model, and its data where it is given, become numbers, sentences and pictures (`contents`); a template makes a page of
them. `contents` knows no HTML, the template no model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from craftrl.report.schematic import draw_schematic

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["draw_schematic", "write_report"]


def write_report(
    model: CRAFT,
    path: str | os.PathLike[str],
    x: Any = None,
    agent: Any = None,
    *,
    title: str = "CRAFT model",
    n_resamples: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write a report on a fitted model to an HTML file, whole or not at all.

    x, agent     the data that it was fitted to, as given to `fit`; other data is refused. Without it the report has
                 neither pictures of the states nor a diagnosis, for a model keeps no observations
    title        what the model is called
    n_resamples  refits for the diagnosis, as in `CRAFT.diagnose`; None asks the oracle, 0 is none
    overwrite    whether a file that is there already is replaced
    """
    from craftrl.arguments import check_kind
    from craftrl.data.files import check_new, written_whole
    from craftrl.estimators.craft import CRAFT
    from craftrl.report.contents import contents

    check_new(path, "report", overwrite, (".html", ".htm"))
    check_kind("model", model, CRAFT, "a fitted CRAFT model")
    check_kind("title", title, str, "a text")
    text = _page(contents(model, x, agent, title=title, n_resamples=n_resamples))
    with written_whole(path, "report") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _page(said: dict[str, Any]) -> str:
    """The whole file as text; whatever comes from a model or from data is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from craftrl.report.tables import cell_text

    loader = PackageLoader("craftrl.report", ".")
    page = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page.filters |= {"cell_text": cell_text, "percent": _percent, "base64": _base64, "json": _json}
    style, _, _ = loader.get_source(page, "report.css")
    style_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    tables = {name: {"columns": table.columns, "rows": table.rows} for name, table in said["tables"].items()}
    plain = {name: said[name] for name in ("title", "made_by", "theorem", "agents", "choices", "facts")}
    held = {**plain, "verdict": vars(said["verdict"]), "tables": tables}
    given = {**said, "numbers": held, "style": style, "style_hash": style_hash}
    return page.get_template("report.html.j2").render(given) + "\n"


def _percent(share: float) -> str:
    return "–" if share != share else f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
