"""Docs and code agree: names resolve, links lead somewhere, citations of the paper are possible ones."""

import importlib
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# What the paper has: sections, its two algorithms, Lines of the second, numbered equations, statements of Appendix C.
SECTIONS = {"1", "2", "2.1", "2.2", "2.3", "2.4", "2.5", "3", "3.1", "3.1.1", "3.2", "3.3", "4", "5", "6"}
STATEMENTS = {"Theorem 3.1", "Lemma C.1", "Corollary C.2", "Proposition C.3", *(f"Lemma C.{i}" for i in range(4, 8))}
N_LINES, N_EQUATIONS = 48, 119


def resolve(name: str) -> None:
    """Import the longest module prefix and walk the rest; annotated attributes and properties count."""
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
                source = Path(sys.modules[home].__file__).read_text() if home else ""
                known |= set(re.findall(r"self\.(\w+)", source))
                assert part in known, f"{name}: no {part}"
                return
            found = getattr(found, part)
        return
    raise AssertionError(f"{name} cannot be imported")


def test_every_code_name_in_the_symbol_table_exists():
    names = re.findall(r"`(craftrl\.[\w.]+)`", (ROOT / "docs/algorithm.md").read_text())
    assert len(names) > 40
    for name in names:
        resolve(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_name_in_the_pages_exists(page):
    """Full names in backticks, of the package and of the studies."""
    for name in re.findall(r"`((?:craftrl|studies)\.[a-z]\w*(?:\.\w+)*)(?:\(.*?\))?`", page.read_text()):
        resolve(name)


def test_every_page_of_the_site_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text()
    for place in re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M):
        if (ROOT / "docs" / place).exists() and place != "index.md":
            assert f"]({place})" in index, place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_algorithm_page_covers_every_line_and_names_real_code():
    text = (ROOT / "docs/algorithm.md").read_text()
    covered: set[int] = set()
    for cell in re.findall(r"^\| ([\d, -]+) \|", text, flags=re.M):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", cell):
            covered |= set(range(int(first), int(last or first) + 1))
    assert covered == set(range(1, N_LINES + 1))
    for name, link in re.findall(r"\[`([\w.]+)`\]\(\.\./(src[^)]+)\)", text):
        assert (ROOT / link).exists()
        if name[0].islower() and "." in name:
            resolve(f"craftrl.{name}")


def paper_citations():
    for source in SOURCES:
        for line in re.findall(r"^\s*Paper: (.+)$", source.read_text(), flags=re.M):
            yield source.name, line


def test_citations_of_the_paper_are_possible():
    citations = list(paper_citations())
    assert len(citations) > 60
    for source, line in citations:
        for words in re.findall(r"Sections? ([\d., -]+(?:and [\d.]+)?)", line):
            for number in re.findall(r"\d+(?:\.\d+)*", words):
                assert number in SECTIONS, f"{source}: Section {number}"
        for statement in re.findall(r"(?:Theorem|Lemma|Corollary|Proposition) [\dC.]*\d", line):
            assert statement in STATEMENTS, f"{source}: {statement}"
        for kind, most in (("Lines?", N_LINES), ("Equations?", N_EQUATIONS)):
            for words in re.findall(rf"\b{kind} ([\d, -]+(?:and [\d]+)?)", line):
                assert all(1 <= int(number) <= most for number in re.findall(r"\d+", words)), f"{source}: {line}"


def test_every_line_of_algorithm_2_is_cited_by_code():
    cited: set[int] = set()
    for _, line in paper_citations():
        for words in re.findall(r"\bLines? ([\d, -]+(?:and [\d]+)?)", line):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", words):
                cited |= set(range(int(first), int(last or first) + 1))
    assert set(range(1, 47)) - cited <= {5, 6, 7}, "the loop's own lines are comments in core/craft.py"
