"""Pages of the documentation as programmes: their blocks run in order, and what a page shows is what is printed.

A page is run in the folder one is in, from top to bottom, in one namespace:

- a block of `python` is executed, and a block of `text` right below it shows what it prints;
- in a block of `console`, every line `$ craftrl ...` is given to the command line, and the lines below show the answer.

What is shown is compared as doctest does: `...` stands for anything, such as seconds, paths, or digits that depend on
the machine. Warnings of the library are shown like prints. `<!-- not run: why -->` above a block leaves it out.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from craftrl import AssumptionWarning
from craftrl.cli import main

FENCE = re.compile(r"(?P<skip><!-- not run: [^\n]*-->\n)?^```(?P<kind>\w*)\n(?P<code>.*?)^```\n", re.S | re.M)
SIGNATURE = re.compile(r"\.\.\.[,)]")  # with dots it is a signature, not a programme


class Block(NamedTuple):
    """kind   the language after the fence
    code   what is between the fences
    shown  what the block of text right below shows; None where there is none
    line   of the page on which the code begins
    """

    kind: str
    code: str
    shown: str | None
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks of a page that are not left out."""
    found = list(FENCE.finditer(text))
    out = []
    for match, below in zip(found, [*found[1:], None]):
        adjoins = below is not None and below["kind"] == "text" and not text[match.end() : below.start()].strip()
        if not match["skip"]:
            shown = below["code"] if below is not None and adjoins else None
            out.append(Block(match["kind"], match["code"], shown, text[: match.start("code")].count("\n") + 1))
    return out


def run(page: Path, whole: bool = False) -> None:
    """Every block of Python; where the page shows what it prints, that is compared. Of a page that is run as a whole,
    as tutorials are, the commands as well; and it has to show everything that is printed."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        if whole:
            warnings.simplefilter("always", AssumptionWarning)
            warnings.showwarning = lambda message, kind, *place, **more: print(f"{kind.__name__}: {message}")
        for block in blocks(page.read_text()):
            where = f"{page.name}, line {block.line}"
            if block.kind == "python" and (whole or not SIGNATURE.search(block.code)):
                code = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the page
                with redirect_stdout(io.StringIO()) as out:
                    exec(compile(code, str(page), "exec"), namespace)
                if whole or block.shown is not None:
                    check(where, block.shown or "", out.getvalue())
            elif block.kind == "console" and whole:
                for command, shown in commands(block.code):
                    check(f"{where}: {command}", shown, run_command(command))


def commands(code: str) -> list[tuple[str, str]]:
    """The commands of a block of `console`, each with what is shown below it."""
    before, *parts = re.split(r"^\$ ", code, flags=re.M)
    assert not before, f"a block of console begins with a command; it begins with {before!r}"
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def run_command(command: str) -> str:
    """What a command prints; it has to succeed."""
    name, *arguments = shlex.split(command, comments=True)
    assert name == "craftrl", f"only craftrl's own commands are run; {command!r} is another"
    with redirect_stdout(io.StringIO()) as out:
        assert main(arguments) == 0, command
    return out.getvalue()


def check(where: str, shown: str, printed: str) -> None:
    """Raise with both texts, line by line, if what is printed is not what the page shows."""
    checker = doctest.OutputChecker()
    if not checker.check_output(shown, printed, doctest.ELLIPSIS):
        example = doctest.Example("", shown)
        raise AssertionError(f"{where}\n{checker.output_difference(example, printed, doctest.ELLIPSIS)}")
