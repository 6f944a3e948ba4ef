"""docs/theory.md names every public function, and its example prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import craftrl.theory
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", craftrl.theory.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    assert re.search(rf"`{name}[`(]", PAGE)


def test_the_example_prints_what_the_page_shows() -> None:
    code, shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", PAGE, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown
