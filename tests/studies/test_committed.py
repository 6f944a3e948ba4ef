"""What is committed of each study: rows that the code still gives, tables that follow from rows, and who made them."""

import json
import re
import subprocess
import warnings
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from craftrl.cli.reproduce import parsed
from craftrl.errors import AssumptionWarning
from studies.study import STUDIES, read_rows, reports

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(readme.parent.name for readme in STUDIES.glob("*/README.md"))
FILES = [*STUDIES.glob("*/*.jsonl"), *(ROOT / "benchmarks" / "results").glob("*.json*")]
# Exact studies, and what tells their rows apart: the first row of each kind is made again, in the fast tests those that
# take a second or two. table1 has tests of its own; rows of networks depend on the machine.
EXACT = {"agents": "kind factor", "bounds": "agents", "collectors": "kind twin", "efficiency": "world"}
EXACT |= {"error_growth": "scenario learner", "loud": "kind encoders", "robustness": "world violation learner"}
EXACT |= {"worlds": "world coupling"}
QUICK = {"bounds": ("paper",), "loud": ("bits",), "worlds": ("lock",)}
QUICK |= {"efficiency": ("paper", "lock", "three agents", "guided by noise", "excess at h = 2", "excess at every h")}


def first_rows():
    for name, kind in EXACT.items():
        found = {}
        for row in read_rows(STUDIES / name / "rows.jsonl"):
            if row.get("factor") != "auto":  # bounds are chosen otherwise than when these rows were made
                found.setdefault(tuple(row[field] for field in kind.split()), row)
        for key, row in found.items():
            marks = [] if key[0] in QUICK.get(name, key) else [pytest.mark.slow]
            yield pytest.param(name, row, id=f"{name} {key}", marks=marks)


def rows_of(path):
    if path.suffix == ".jsonl":
        return read_rows(path)
    content = json.loads(path.read_text())
    return content if isinstance(content, list) else content["rows"]


@pytest.mark.parametrize(("name", "known"), list(first_rows()))
def test_the_code_still_gives_committed_rows(name, known):
    study = import_module(f"studies.{name}.run")
    settings = {field.name: known[field.name] for field in fields(study.Run)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        found = {**settings, **study.run_one(study.Run(**settings)), "commit": known["commit"]}
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
    def git(*words, **given):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, **given).stdout

    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("needs a whole clone")
    commits = sorted({row["commit"].rstrip("+") for path in FILES for row in rows_of(path)})
    said = git("cat-file", "--batch-check", input="".join(f"{commit}^{{commit}}\n" for commit in commits))
    assert [line for line in said.splitlines() if " commit " not in line] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_readme_names_commands_that_are_known_and_only_files_that_are_there(folder):
    page = (STUDIES / folder / "README.md").read_text()
    commands = re.findall(r"^\$ craftrl reproduce (.*?) *(?:#.*)?$", page, flags=re.M)
    assert commands or "`craftrl reproduce " in page
    for command in commands:
        parsed(command.split())
    named = re.findall(r"`(\S+\.(?:jsonl?|md|png))`", page)
    assert [name for name in named if not (STUDIES / folder / name).exists()] == []


def test_reports_follow_from_the_rows():
    for path, text in reports().items():
        assert path.read_text() == text


def test_every_folder_is_in_the_list_of_studies():
    listed = re.findall(r"\]\(([\w-]+)/README.md\)", (STUDIES / "README.md").read_text())
    assert sorted(listed) == FOLDERS


def test_all_rows_of_one_gpu_are_made_at_once_and_what_fails_is_told(tmp_path):
    """With a `python` that prints how it was called, and fails on the study of walkers."""
    (tmp_path / "python").write_text('#!/bin/sh\necho "$@"\ncase "$*" in *walkers) exit 3; esac\n')
    (tmp_path / "python").chmod(0o755)
    done = subprocess.run(
        ["sh", STUDIES / "on_one_gpu.sh", tmp_path / "out", "recordings"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    told = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line for line in told if not line.endswith(": done")] == ["walkers: failed, see its log"]
    assert len(told) == len(set(told)) == 17
    for log in (tmp_path / "out").glob("*.log"):
        args = parsed(log.read_text().split()[3:])[1]  # python -m craftrl reproduce ...
        assert (args.device, Path(args.out)) == ("cuda", tmp_path / "out" / log.stem)
