"""What is committed of each study: rows that the code still gives, tables that follow from rows, and who made them."""

import json
import re
import subprocess
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from studies.study import STUDIES, read_rows, reports

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(readme.parent.name for readme in STUDIES.glob("*/README.md"))
FILES = [*STUDIES.glob("*/*.jsonl"), *(ROOT / "benchmarks" / "results").glob("*.json*")]
# table1 has tests of its own; rows of networks depend on the machine.
EXACT = ["agents", "bounds", "collectors", "efficiency", "error_growth", "loud", "robustness", "worlds"]
# Rows that ask for more: an agent with memory, a state that was not found, the default learner in the lock.
MORE = {"collectors": 2, "loud": 12, "robustness": -1}


def rows_of(path):
    if path.suffix == ".jsonl":
        return read_rows(path)
    content = json.loads(path.read_text())
    return content if isinstance(content, list) else content["rows"]


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
@pytest.mark.parametrize(("name", "i"), [*((name, 0) for name in EXACT), *MORE.items()])
def test_the_code_still_gives_committed_rows(name, i):
    known = rows_of(STUDIES / name / "rows.jsonl")[i]
    Run = import_module(f"studies.{name}.spec").Run
    settings = {field.name: known[field.name] for field in fields(Run)}
    found = {**settings, **import_module(f"studies.{name}.run").run_one(Run(**settings)), "commit": known["commit"]}
    assert {name: found[name] for name in known} == known  # rows may be older than the last measure


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_row_names_the_commit_that_made_it_and_no_state_is_worse_than_the_worst(path):
    rows = rows_of(path)
    assert rows
    for row in rows:
        assert re.fullmatch(r"[0-9a-f]{8}\+?", row["commit"])
        if "state_worst" in row and "state_mean" in row:
            assert np.all(leaves(row["state_worst"]) <= leaves(row["state_mean"]))


def leaves(value):
    """A measure of a row as numbers, whether it is one or one for each method."""
    nested = [leaves(v) for v in value.values()] if isinstance(value, dict) else [np.atleast_1d(value)]
    return np.concatenate(nested)


def test_the_commits_of_rows_are_in_the_history():
    if (
        subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True).stdout
        != b"false\n"
    ):
        pytest.skip("needs a whole clone")
    commits = sorted({row["commit"].rstrip("+") for path in FILES for row in rows_of(path)})
    asked = "".join(f"{commit}^{{commit}}\n" for commit in commits)
    said = subprocess.run(["git", "cat-file", "--batch-check"], cwd=ROOT, input=asked, capture_output=True, text=True)
    assert [line for line in said.stdout.splitlines() if " commit " not in line] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_readme_names_the_command_and_only_files_that_are_there(folder):
    page = (STUDIES / folder / "README.md").read_text()
    assert "craftrl reproduce " in page
    named = re.findall(r"`(\S+\.(?:jsonl?|md|png))`", page)
    assert [name for name in named if not (STUDIES / folder / name).exists()] == []


def test_reports_follow_from_the_rows():
    for path, text in reports().items():
        assert path.read_text() == text


def test_every_folder_is_in_the_list_of_studies():
    listed = re.findall(r"\]\(([\w-]+)/README.md\)", (STUDIES / "README.md").read_text())
    assert sorted(listed) == FOLDERS
