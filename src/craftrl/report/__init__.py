"""A fitted model as one HTML page that needs no network: what was found, how far to trust it, what it looks like.

Data flows one way: a model, and its data where it is given, become `Contents` (numbers, sentences, pictures), and those
become a page. `contents` knows no HTML, `page` no model.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from craftrl.report.schematic import draw_schematic

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["check_report", "draw_schematic", "write_report"]


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
    from craftrl.data.files import written_whole
    from craftrl.estimators.craft import CRAFT
    from craftrl.report.contents import contents
    from craftrl.report.page import page

    check_report(path, overwrite)
    check_kind("model", model, CRAFT, "a fitted CRAFT model")
    check_kind("title", title, str, "a text")
    text = page(contents(model, x, agent, title=title, n_resamples=n_resamples))
    with written_whole(path, "report") as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_report(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Whether a report may be written there; asked before the work is done."""
    from craftrl.arguments import check_target
    from craftrl.data.files import check_new
    from craftrl.errors import InvalidParameterError

    if check_target("The report", path).suffix.lower() not in (".html", ".htm"):
        raise InvalidParameterError(f"A report must be named NAME.html; {os.fspath(path)} was given; choose that name.")
    check_new(path, "report", overwrite)
