"""Links that leave `docs/`: whatever a page links to in this repository becomes part of the site.

Pages are written so that their links work in a clone: `../src/craftrl/core/craft.py`, `../studies/README.md`. The site
has no clone beside it. So linked Markdown becomes a page, linked source a page with line numbers, and everything else
is copied. A link to source whose text names a function or class goes to the line where that is defined.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ALWAYS = ["CHANGELOG.md", "studies/README.md"]  # the navigation asks for them
LINK = re.compile(r"(?P<text>!?\[(?:[^\]\[]|\[[^\]]*\])*\])\((?P<target>[^)#\s]+)(?P<anchor>#[^)]*)?\)")
CODE = re.compile(r"(```.*?```)", flags=re.S)


def on_files(files: Files, config: Any) -> Files:
    """Adds every file of the repository that a page links to, and those that the added pages link to."""
    todo = [(page.src_uri, Path(page.abs_src_path).read_text()) for page in files.documentation_pages()]
    todo += [("index.md", "".join(f"[]({posixpath.join('..', path)})" for path in ALWAYS))]
    known: set[str] = set()
    while todo:
        uri, text = todo.pop()
        for path in sorted(leaving(uri, text) - known):
            known.add(path)
            files.append(as_file(path, config))
            if path.endswith(".md"):
                todo.append((path, (ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with the links that left `docs/` led to their places on the site; blocks of code stay as they are."""
    uri = page.file.src_uri

    def led(match: re.Match[str]) -> str:
        path = repository_path(uri, match["target"])
        if path is None or not (ROOT / path).is_file():
            return match[0]
        place = posixpath.relpath(site_place(path), posixpath.dirname(uri) or ".")
        anchor = match["anchor"] or line_anchor(path, match["text"])
        return f"{match['text']}({place}{anchor})"

    parts = CODE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(led, part) for part in parts)


def repository_path(uri: str, target: str) -> str | None:
    """Where a link leads, from the repository's root; None for addresses and absolute paths."""
    if re.match(r"[a-z]+:|/", target):
        return None
    inside = (ROOT / "docs" / uri).exists()
    return posixpath.normpath(posixpath.join("docs" if inside else "", posixpath.dirname(uri), target))


def leaving(uri: str, text: str) -> set[str]:
    """The files outside `docs/` that a page links to."""
    paths = {repository_path(uri, match["target"]) for part in CODE.split(text)[::2] for match in LINK.finditer(part)}
    return {path for path in paths if path and not path.startswith("docs/") and (ROOT / path).is_file()}


def site_place(path: str) -> str:
    """The place of a file of the repository among the pages."""
    return path.removeprefix("docs/") if not path.endswith(".py") else f"{path}.md"


def as_file(path: str, config: Any) -> File:
    """A file of the repository as a file of the site; source becomes a page."""
    if not path.endswith(".py"):
        return File.generated(config, path, abs_src_path=str(ROOT / path))
    fence = "`" * 4
    title = f"---\nhide: [navigation, toc]\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    text = f'{title}{fence} {{.python linenums="1"}}\n{(ROOT / path).read_text()}\n{fence}\n'
    return File.generated(config, site_place(path), content=text)


def line_anchor(path: str, text: str) -> str:
    """The anchor of the line where what the link's text names is defined: `core.craft.craft`, or `Grid.from_bounds`."""
    names = re.sub(r"[`\[\]()]", "", text).split(".")
    if not path.endswith(".py"):
        return ""
    defined: dict[str, int] = {}
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, node.lineno)
    return f"#__codelineno-0-{defined[names[-1]]}" if names[-1] in defined else ""
