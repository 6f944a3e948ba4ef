"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, nothing from the network."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.S)
SCRIPT = re.compile(r'<mi mathvariant="script">(\w)</mi>')
PRIME = "<mi>&#x02032;</mi>"


def on_page_content(content: str, **_: Any) -> str:
    """Every formula that Markdown found, converted; one that cannot be is an error of its page."""
    return FORMULA.sub(lambda match: as_mathml(match[1], html.unescape(match[2])), content)


def as_mathml(element: str, latex: str) -> str:
    """MathML that Chromium, Firefox and Safari draw alike.

    None of them reads `mathvariant="script"`, so script letters become characters of their own. A prime is small
    already and is not made smaller as a superscript.
    """
    mathml = convert(latex, display="block" if element == "div" else "inline")
    mathml = SCRIPT.sub(lambda match: f"<mi>{script_letter(match[1])}</mi>", mathml)
    return mathml.replace(PRIME, PRIME.replace("<mi>", '<mi class="prime">')).replace(r"\_", "_")


def script_letter(letter: str) -> str:
    """The script form of a letter; Unicode has eleven of them under older names, such as SCRIPT CAPITAL L."""
    name = f"SCRIPT {'CAPITAL' if letter.isupper() else 'SMALL'} {letter}"
    try:
        return unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        return unicodedata.lookup(name)
