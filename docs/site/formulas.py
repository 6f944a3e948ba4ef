"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, nothing from the network."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.S)
SCRIPT = re.compile(r'<mi mathvariant="script">(\w)</mi>')
PRIMED = re.compile(r"<(msup|msubsup)>(<mi>[^<]*</mi>)((?:(?!<msubsup>).)*?)<mi>(&#x0203[23];)</mi></\1>", flags=re.S)


def on_page_content(content: str, **_: Any) -> str:
    """Every formula that Markdown found, converted; one that cannot be is an error of its page."""
    return FORMULA.sub(lambda match: as_mathml(match[1], html.unescape(match[2])), content)


def as_mathml(element: str, latex: str) -> str:
    """MathML that Chromium, Firefox and Safari draw alike.

    None of them reads `mathvariant="script"`, so script letters become characters of their own. Fonts disagree on
    whether a prime is raised by itself; as text, which is never set in a font for formulas, it is.
    """
    mathml = convert(latex, display="block" if element == "div" else "inline")
    mathml = SCRIPT.sub(lambda match: f"<mi>{script_letter(match[1])}</mi>", mathml)
    mathml = PRIMED.sub(primed, mathml).replace(r"\_", "_")
    return f'<div class="formula">{mathml}</div>' if element == "div" else mathml


def primed(match: re.Match[str]) -> str:
    """A letter with its prime beside it, and below both what stands below the letter."""
    kind, letter, below, prime = match.groups()
    both = f'<mrow>{letter}<mtext class="prime">{prime}</mtext></mrow>'
    return both if kind == "msup" else f"<msub>{both}{below}</msub>"


def script_letter(letter: str) -> str:
    """The script form of a letter; Unicode has eleven of them under older names, such as SCRIPT CAPITAL L."""
    name = f"SCRIPT {'CAPITAL' if letter.isupper() else 'SMALL'} {letter}"
    try:
        return unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        return unicodedata.lookup(name)
