"""Every Python block in README and docs runs as written, top to bottom of its page, in an empty folder.

In tutorials the commands run too, and everything that is printed has to be shown (`pages` says how).
"""

from pathlib import Path

import pytest

from pages import run

ROOT = Path(__file__).parents[2]
SLOW = {"how-it-works.md", "features.md", "videos.md"}  # they train networks
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in page.read_text()
]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES + TUTORIALS],
)
def test_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, whole=page in TUTORIALS)


PAGE = """\
```python
print("three", 3)
```

```text
three ...
```

<!-- not run: there is no such thing -->
```console
$ craftrl nonsense
```

```console
$ craftrl --version  # a comment
...
$ craftrl theory --help
Usage: ...
```
"""


@pytest.mark.parametrize(
    ("block", "other"),
    [
        ('print("three", 3)', 'print("four")'),
        ('print("three", 3)', 'import warnings\nwarnings.warn("other")'),
        ('print("three", 3)', "1 / 0"),
        ("Usage: ...", "Other: ..."),
        ("...\n$", "0.0.0\n$"),
        ("nonsense\n```\n", "nonsense\n```\n\n```console\n$ craftrl nonsense\n```\n"),
        ("three ...\n", "\n"),
    ],
)
def test_a_page_that_shows_something_else_fails(block, other, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    run(page, whole=True)
    page.write_text(PAGE.replace(block, other, 1))
    with pytest.raises((AssertionError, UserWarning, ZeroDivisionError)):
        run(page, whole=True)
