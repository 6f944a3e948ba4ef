"""docs/theory.md names every public function of the theory and every lemma."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import lemmas
import pytest

import craftrl.paper
from craftrl.paper import baselines

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
LEMMAS = [name for name, of in inspect.getmembers(lemmas, inspect.isfunction) if of.__module__ == "lemmas"]


@pytest.mark.parametrize("name", [name for name in craftrl.paper.__all__ if name not in baselines.__all__])
def test_every_public_name_is_explained(name: str) -> None:
    assert re.search(rf"`{name}[`(]", PAGE)


@pytest.mark.parametrize("name", [name for name in LEMMAS if name[0] != "_"])
def test_every_lemma_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}[`(]", PAGE)
