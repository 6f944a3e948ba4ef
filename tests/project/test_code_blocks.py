"""Every Python block in README and docs runs as written, top to bottom of its page, in an empty folder.

In tutorials the commands run too, and everything that is printed has to be shown (`pages` says how).
"""

from pathlib import Path

import pytest

from pages import blocks, check, commands, run_python, run_tutorial

ROOT = Path(__file__).parents[2]
SLOW = {"how-it-works.md", "features.md", "videos.md"}  # they train networks


def marked(pages):
    return [pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in pages]


PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```python" in page.read_text()
]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))


@pytest.mark.parametrize("page", marked(PAGES))
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(page)


@pytest.mark.parametrize("page", marked(TUTORIALS))
def test_tutorials_print_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_tutorial(page)


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
$ craftrl encode model data --out states.csv  # a comment
4800 states
of 1200 trajectories
$ craftrl --version
```
"""


def test_what_a_page_shows_is_found_beside_what_it_does():
    python, text, console = blocks(PAGE)
    assert (python.kind, python.shown, python.line) == ("python", "three ...\n", 2)
    assert (text.kind, console.kind, console.shown) == ("text", "console", None)
    (first, shown), last = commands(console.code)
    assert first == "craftrl encode model data --out states.csv  # a comment"
    assert shown == "4800 states\nof 1200 trajectories\n"
    assert last == ("craftrl --version", "")


@pytest.mark.parametrize("block", ['print("four")', 'import warnings\nwarnings.warn("other")', "1 / 0"])
def test_a_page_that_shows_something_else_fails(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.partition("<!--")[0].replace('print("three", 3)', block))
    with pytest.raises((AssertionError, UserWarning, ZeroDivisionError)):
        run_tutorial(page)


def test_what_is_shown_may_leave_things_out():
    check("here", "a ... c\n", "a b c\n")
    with pytest.raises(AssertionError, match="here"):
        check("here", "", "a print that is not shown\n")
