"""Docs and code agree: names resolve, links lead somewhere, citations of the paper are possible, lines are short."""

import importlib
import inspect
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import lemmas
import pytest

import craftrl.paper

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

# What the paper has: sections, its two algorithms, Lines of the second, numbered equations, statements of Appendix C.
SECTIONS = {"1", "2", "2.1", "2.2", "2.3", "2.4", "2.5", "3", "3.1", "3.1.1", "3.2", "3.3", "4", "5", "6"}
STATEMENTS = {"Theorem 3.1", "Lemma C.1", "Corollary C.2", "Proposition C.3", *(f"Lemma C.{i}" for i in range(4, 8))}
N_LINES, N_EQUATIONS = 48, 119


def resolve(name: str) -> None:
    """Import the longest module prefix and walk the rest; annotated attributes and those that methods set count."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                known = {field.name for field in fields(found)} if is_dataclass(found) else set()
                known |= set(get_type_hints(found)) if isinstance(found, type) else set()
                home = getattr(found, "__module__", None)
                known |= set(re.findall(r"self\.(\w+)", Path(sys.modules[home].__file__).read_text() if home else ""))
                assert part in known, f"{name}: no {part}"
                return
            found = getattr(found, part)
        return
    raise AssertionError(f"{name} cannot be imported")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_name_in_the_pages_exists(page):
    """Full names in backticks, of the package and of the studies, and files of the repository."""
    text = page.read_text()
    for name in re.findall(r"`((?:craftrl|studies)\.[a-z]\w*(?:\.\w+)*)(?:\(.*?\))?`", text):
        resolve(name)
    for name in re.findall(r"`([\w-]+/[\w/-]+\.py)`", text):  # of the repository, or of the package
        assert (ROOT / name).exists() or (ROOT / "src/craftrl" / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_that_docstrings_name_exist():
    for source in (path for room in ("src", "studies", "tests") for path in (ROOT / room).rglob("*.py")):
        for page in re.findall(r"\bdocs/[\w/-]+\.md", source.read_text()):
            assert (ROOT / page).exists(), f"{source.name} names {page}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped(page):
    prose = re.sub(r"```.*?```|^(?:\||!\[|\$\$|- .*https).*?$", "", page.read_text(), flags=re.S | re.M)
    assert [line for line in prose.splitlines() if len(line) > 120] == []


def test_every_page_of_the_site_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text()
    menu = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(menu)
    assert [page for page in pages - {"index.md"} if f"]({page})" not in index] == []


def test_symbols_and_lines_of_algorithm_2_name_real_code():
    text = (ROOT / "docs/algorithm.md").read_text()
    covered: set[int] = set()
    for cell in re.findall(r"^\| ([\d, -]+) \|", text, flags=re.M):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", cell):
            covered |= set(range(int(first), int(last or first) + 1))
    assert covered == set(range(1, N_LINES + 1))
    for name in re.findall(r"\[`([a-z]\w*\.[\w.]+)`\]\(\.\./src", text):
        resolve(f"craftrl.{name}")
    assert len(re.findall(r"^\|.*`craftrl\.[\w.]+`", text, flags=re.M)) > 20  # rows of symbols


def test_the_page_of_the_theory_has_every_public_name_and_every_lemma():
    text = (ROOT / "docs/theory.md").read_text()
    of_lemmas = [name for name, of in inspect.getmembers(lemmas, inspect.isfunction) if of.__module__ == "lemmas"]
    baselines = {name for name in craftrl.paper.__all__ if hasattr(craftrl.paper.baselines, name)}
    public = set(craftrl.paper.__all__) - baselines
    assert [name for name in (*public, *of_lemmas) if not re.search(rf"`{name}[`(]", text)] == []


def test_citations_of_the_paper_are_possible_and_every_line_of_algorithm_2_is_cited():
    cited: set[int] = set()
    for source in (ROOT / "src").rglob("*.py"):
        for line in re.findall(r"^\s*Paper: (.+)$", source.read_text(), flags=re.M):
            for words in re.findall(r"Sections? ([\d., -]+(?:and [\d.]+)?)", line):
                assert set(re.findall(r"\d+(?:\.\d+)*", words)) <= SECTIONS, f"{source.name}: {line}"
            statements = set(re.findall(r"(?:Theorem|Lemma|Corollary|Proposition) [\dC.]*\d", line))
            assert statements <= STATEMENTS, f"{source.name}: {line}"
            for kind, most in (("Lines?", N_LINES), ("Equations?", N_EQUATIONS)):
                for words in re.findall(rf"\b{kind} ([\d, -]+(?:and [\d]+)?)", line):
                    assert all(1 <= int(number) <= most for number in re.findall(r"\d+", words)), f"{source}: {line}"
                    for first, last in re.findall(r"(\d+)(?:-(\d+))?", words if kind == "Lines?" else ""):
                        cited |= set(range(int(first), int(last or first) + 1))
    assert set(range(1, 47)) - cited <= {5, 6, 7}, "the loop's own lines are comments in core/craft.py"
