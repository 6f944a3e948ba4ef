"""Which studies there are: the paper's own in the package, all others in the folder `studies` of a clone.

A study of a clone is a folder `studies/NAME` whose `spec.py` defines `STUDY`, a `craftrl.reproduce.study.Study`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from craftrl.errors import InvalidParameterError
from craftrl.reproduce.error_growth.spec import STUDY as ERROR_GROWTH
from craftrl.reproduce.study import Study
from craftrl.reproduce.table1.spec import STUDY as TABLE1

__all__ = ["available_studies", "refuse_unknown_study"]

SOURCE = Path(__file__).parents[2]  # `src` of a clone, or where pip installs packages
PAPER = (TABLE1, ERROR_GROWTH)
FIGURES = ("craftrl.reproduce.figures", "the paper's three figures, drawn from real runs")


def available_studies() -> dict[str, tuple[Any, str]]:
    """By name the command of each study that can be run here, and what it shows.

    A command has `add_arguments(parser)` and `main(args)`: a `Study`, or the module of the figures, which are no
    sweep. The paper's studies come first, then those of the clone in the order of their names.
    """
    found: dict[str, tuple[Any, str]] = {study.name: (study, study.summary) for study in PAPER}
    found["figures"] = FIGURES
    for study in _studies_of_clone():
        found.setdefault(study.name, (study, study.summary))  # the paper's names are taken
    return found


def refuse_unknown_study(name: str) -> None:
    """Say in one sentence why there is no study of this name here."""
    advice = "craftrl reproduce --help says what each shows."
    if _studies_folder() is None:
        advice = "all others are in the folder studies/ of a clone of craftrl: change into one and try again."
    names = ", ".join(available_studies())
    raise InvalidParameterError(f"The study must be one of {names}; {name!r} was given; {advice}")


def _studies_of_clone() -> list[Study]:
    """The records of all studies in the folder, each imported as `studies.NAME.spec`, in workers as well."""
    folder = _studies_folder()
    if folder is None:
        return []
    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))  # workers start with a copy of this list
    return [import_module(f"studies.{name}.spec").STUDY for name in _study_names(folder)]


def _studies_folder() -> Path | None:
    """`studies` beside the `src` that this package runs from, or else in the current directory."""
    clone = [SOURCE.parent] if SOURCE.name == "src" else []
    folders = [root / "studies" for root in (*clone, Path.cwd())]
    return next((folder for folder in folders if _study_names(folder)), None)


def _study_names(folder: Path) -> list[str]:
    specs = sorted(folder.glob("*/spec.py"))
    return [spec.parent.name for spec in specs if "\nSTUDY = " in spec.read_text()]
