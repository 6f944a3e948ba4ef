"""Damaged files: every format, many seeds."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from campaign.format import Format
from campaign.formats import FORMATS
from campaign.mutations import mutate
from campaign.processes import Case, answers, table
from craftrl.errors import CraftError

__all__ = ["COLUMNS", "FAULTS", "damage", "run_case", "summary"]

FAULTS = ("foreign", "changed", "hang", "crash")
COLUMNS = ("same", "read", "refused", *FAULTS)
PATIENCE = 300.0  # seconds for one file: the first of a format is made whole before


def damage(formats: Sequence[str], seeds: Sequence[int], workers: int = 2) -> list[Case]:
    """Read every format once for each seed, damaged as the seed says."""
    cases = [{"format": name, "seed": seed} for name in formats for seed in seeds]
    return answers("files", cases, workers, lambda case: PATIENCE)


def summary(cases: Sequence[Case]) -> str:
    """One line per format."""
    return table(cases, "format", COLUMNS)


def run_case(case: Case, folder: Path) -> Case:
    """Damage one file of a format, read it, and say what came of it."""
    name, rng = case["format"], random.Random(case["seed"])
    place = folder / name
    right = _whole(name, place)
    damaged = place / "damaged"
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(place / "whole", damaged)
    file = rng.choice(sorted(path for path in damaged.rglob("*") if path.is_file()))
    done = mutate(file, rng)
    outcome, said = _outcome(FORMATS[name], damaged, right)
    return {"outcome": outcome, "file": file.name, "done": done, "said": said[:300]}


@cache
def _whole(name: str, place: Path) -> str:
    """Makes the files of a format where they are not there yet; what a user sees in them."""
    if not (place / "whole").exists():
        (place / "whole").mkdir(parents=True)
        FORMATS[name].make(place / "whole")
    return FORMATS[name].read(place / "whole")


def _outcome(form: Format, folder: Path, right: str) -> tuple[str, str]:
    """same: as from the whole file; refused: one of our errors; foreign: any other error; changed, or read where
    nothing protects a file of others: other numbers."""
    try:
        got = form.read(folder)
    except CraftError as error:
        return "refused", str(error)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    if got == right:
        return "same", ""
    return ("changed" if form.sealed else "read"), ""
