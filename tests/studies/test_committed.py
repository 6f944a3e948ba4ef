"""What is committed of each study: rows that the code still gives, tables that follow from rows, and a README."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.cli.reproduce import available_studies
from studies.study import Study

STUDIES = Path(__file__).parents[2] / "studies"
FOLDERS = sorted(readme.parent.name for readme in STUDIES.glob("*/README.md"))
TABLES = {
    "agents": "table.json",
    "bounds": "table.json",
    "collectors": "table.json",
    "efficiency": "curves.json",
    "error_growth": "curves.json",
    "loud": "table.json",
    "robustness": "tables.json",
    "worlds": "table.json",
}  # table1 has tests of its own, and the rows of pixels were made on other machines


def rows_of(folder: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STUDIES / folder / "rows.jsonl").read_text().splitlines()]


def study_of(name: str) -> Study:
    study: Study = available_studies()[name.replace("_", "-")]
    return study


STALE = {"robustness"}  # rows of bounds chosen by the search that the nine settings replaced; its README says so


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
@pytest.mark.parametrize("name", [name for name in TABLES if name not in STALE])
def test_the_code_still_gives_the_first_row(name: str) -> None:
    known, run_one = rows_of(name)[0], study_of(name).run_one
    Run = import_module(run_one.module).Run  # type: ignore[attr-defined]
    settings = {field.name: known[field.name] for field in fields(Run)}
    found = {**settings, **run_one(Run(**settings))}
    assert {name: found[name] for name in known} == known  # rows may be older than the last measure


@pytest.mark.parametrize("name", TABLES)
def test_the_committed_table_follows_from_its_rows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, known = rows_of(name), (STUDIES / name / TABLES[name]).read_text()
    # No rows, but computed for the table: this is tested by itself.
    monkeypatch.setattr("studies.robustness.distractor.planted_distractors", lambda *_: json.loads(known)["planted"])
    study_of(name).report(rows, tmp_path, argparse.Namespace(seeds=len({row["seed"] for row in rows})))
    assert (tmp_path / TABLES[name]).read_text() == known


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if (STUDIES / folder / "rows.jsonl").exists()])
def test_no_state_of_a_run_is_worse_than_its_worst(folder: str) -> None:
    for row in rows_of(folder):
        if "state_worst" in row:
            assert np.all(leaves(row["state_worst"]) <= leaves(row["state_mean"]))
            assert np.all(leaves(row["state_worst"]) >= 0)


def leaves(value: Any) -> np.ndarray:
    """A measure of a row as numbers, whether it is one or one for each method."""
    nested = [leaves(v) for v in value.values()] if isinstance(value, dict) else [np.atleast_1d(value)]
    return np.concatenate(nested)


def test_every_folder_has_a_readme_and_is_in_the_list() -> None:
    listed = re.findall(r"\]\(([\w-]+)/README.md\)", (STUDIES / "README.md").read_text())
    assert sorted(listed) == FOLDERS
    assert sorted(p.name for p in STUDIES.iterdir() if p.is_dir() and p.name != "__pycache__") == FOLDERS
