"""Which studies are found: the paper's in the package, the others in a clone or in the current directory."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from command_line import complaint, craftrl, run
from craftrl.cli import reproduce as catalogue

ROOT = Path(__file__).parents[2]
STUDY = """'how often a coin shows heads'
from dataclasses import dataclass

from studies.study import Study


@dataclass(frozen=True)
class Toss:
    seed: int


def run_one(toss):
    return {"heads": toss.seed % 2}


def report(rows):
    return f"{sum(row['heads'] for row in rows)} heads"


STUDY = Study("coins", lambda args: [Toss(seed) for seed in range(args.seeds)], run_one, report, seeds=4)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder without a clone."""
    monkeypatch.setattr(catalogue, "SOURCE", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_clone_has_the_papers_table_first_and_every_study_of_its_folders():
    found = catalogue.available_studies()
    folders = {module.parent.name for module in ROOT.glob("studies/*/run.py")}
    assert next(iter(found)) == "table1"
    assert {name.replace("-", "_") for name in list(found)[1:]} == folders
    listed = craftrl("reproduce --help")
    assert all(f"    {name}" in listed for name in found)


def test_without_a_clone_the_others_are_refused_in_a_sentence(installed):
    assert list(catalogue.available_studies()) == ["table1"]
    assert complaint("reproduce agents --seeds 2") == (
        "craftrl reproduce: argument STUDY: invalid choice: 'agents' (choose from 'table1'); see craftrl reproduce "
        "--help."
    )
    assert "all other studies are in the\nfolder studies/ of a clone of craftrl" in craftrl("reproduce --help")


def test_somebody_elses_folder_is_left_alone(installed):
    (installed / "studies" / "mine").mkdir(parents=True)
    (installed / "studies" / "mine" / "run.py").write_text("raise AssertionError('imported')\n")
    assert list(catalogue.available_studies()) == ["table1"]


def test_an_installed_package_runs_the_studies_of_the_current_directory(tmp_path):
    """With two workers, which have to import the study as well."""
    shutil.copytree(ROOT / "src" / "craftrl", tmp_path / "site" / "craftrl")
    study = tmp_path / "here" / "studies" / "coins"
    study.mkdir(parents=True)
    for folder in (study, study.parent):
        (folder / "__init__.py").touch()
    shutil.copy(ROOT / "studies" / "study.py", study.parent)
    (study / "run.py").write_text(STUDY)
    line = [sys.executable, "-m", "craftrl", *["reproduce", "coins", "--workers", "2", "--quiet"]]
    given = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(line, cwd=tmp_path / "here", env=given, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("2 heads\n"), done.stderr
    assert (tmp_path / "here" / "results" / "coins" / "rows.jsonl").exists()


def test_a_study_that_is_interrupted_goes_on(tmp_path, monkeypatch):
    def interrupted(given):
        raise KeyboardInterrupt

    monkeypatch.setattr("craftrl.paper.table1.run_one", interrupted)
    code, _, said = run("reproduce table1 --seeds 1 --quiet --out", tmp_path / "t")
    assert code == 130
    assert "the same command goes on" in said[0]


def test_a_wheel_is_small_and_holds_no_study():
    """What setuptools packs is what lies in src; packed as a wheel is, it stays small."""
    package = ROOT / "src" / "craftrl"
    files = [path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    assert not [path for path in files if "studies" in path.relative_to(ROOT).parts]
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in files:
            wheel.write(path, path.relative_to(package))
    assert len(buffer.getvalue()) < 415_000
