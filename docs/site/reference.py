"""The reference, written from the code: a page for every part of the package, and one with every command's help."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from importlib import import_module
from typing import Any

from mkdocs.structure.files import File, Files

from craftrl.cli import app, main

# The modules that users import from: these, and no others, say in `__all__` what they offer. A name that several parts
# offer, such as `craftrl.NeuralOracle`, is shown with the last of them.
PARTS = {
    "craftrl": ["craftrl"],
    "oracles": ["craftrl.oracles"],
    "data": ["craftrl.data", "craftrl.importing"],
    "diagnostics": ["craftrl.diagnostics"],
    "evaluation": ["craftrl.evaluation"],
    "planning": ["craftrl.planning"],
    "deploy": ["craftrl.deploy", "craftrl.report"],
    "envs": ["craftrl.envs"],
    "paper": ["craftrl.paper"],
    "testing": ["craftrl.testing"],
    "core": ["craftrl.core.grid", "craftrl.core.trace"],
}


def on_files(files: Files, config: Any) -> Files:
    """Adds `api/*.md`, one page for each part, their index, and the commands."""
    for part, modules in PARTS.items():
        files.append(File.generated(config, f"api/{part}.md", content=part_page(part, modules)))
    files.append(File.generated(config, "api/index.md", content=index_page()))
    files.append(File.generated(config, "command-line.md", content=commands_page()))
    return files


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Docstrings name pages as `docs/settings.md`; here that is a link."""
    if not page.file.src_uri.startswith("api/"):
        return html
    return re.sub(r"(?<![\w/])docs/([\w-]+)\.md", r'<a href="../\1.html">\1</a>', html)


def public_names(module: Any) -> list[str]:
    """What a module offers, without its version."""
    return [name for name in module.__all__ if not name.startswith("__")]


def home(module: Any, name: str) -> str:
    """Where a name is defined: `craftrl.estimators.craft.CRAFT` for `craftrl.CRAFT`."""
    found = getattr(module, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        return f"{found.__module__}.{found.__name__}"
    return f"{module.__name__}.{name}"


PLACES = {
    home(module, name): part
    for part, modules in PARTS.items()
    for module in map(import_module, modules)
    for name in public_names(module)
}


def first_sentence(module: Any) -> str:
    return inspect.cleandoc(module.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def part_page(part: str, modules: list[str]) -> str:
    """Every public name of a part, with its docstring, signature and source."""
    lines = [f"# {part}", ""]
    for module in map(import_module, modules):
        lines += [f"`{module.__name__}`: {first_sentence(module)}", ""]
        homes = [home(module, name) for name in public_names(module)]
        lines += [f"::: {place}\n" for place in homes if PLACES[place] == part]
    return "\n".join(lines)


def index_page() -> str:
    """A table: part, what it is, what is in it."""
    lines = ["# Python", "", "Signatures, docstrings and source, written from the code.", ""]
    lines += ["| import from | what it is for | names |", "|---|---|---|"]
    for part, modules in PARTS.items():
        for module in map(import_module, modules):
            homes = {name: home(module, name) for name in public_names(module)}
            names = ", ".join(f"[`{name}`]({PLACES[place]}.md#{place})" for name, place in homes.items())
            lines.append(f"| [`{module.__name__}`]({part}.md) | {first_sentence(module)} | {names} |")
    return "\n".join(lines)


def commands_page() -> str:
    """What every command says with --help."""
    lines = ["# Command line", "", "What each command says with `--help`.", ""]
    commands = [name for name in app() if not name.startswith("-")]
    for command in ["", *commands, "theory assumptions", "theory sample-size"]:
        lines += [f"## craftrl {command}".rstrip(), "", "```text", help_of(command).strip(), "```", ""]
    return "\n".join(lines)


def help_of(command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return printed.getvalue()
