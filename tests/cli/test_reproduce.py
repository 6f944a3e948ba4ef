"""Which studies are found: the paper's in the package, the others in a clone or in the current directory."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from craftrl.cli import main
from craftrl.cli import reproduce as catalogue

ROOT = Path(__file__).parents[2]
PAPER = ["table1"]
OTHERS = [
    *(
        "ablations",
        "agents",
        "bounds",
        "collectors",
        "efficiency",
        "error-growth",
        "figures",
        "games",
        "loud",
        "pixels",
    ),
    *("planning", "robustness", "worlds"),
]

SPEC = """
from dataclasses import dataclass

from studies.study import Study


@dataclass(frozen=True)
class Toss:
    seed: int


def run_one(toss):
    return {"heads": toss.seed % 2}


STUDY = Study(
    name="coins",
    summary="how often a coin shows heads",
    seeds=4,
    runs=lambda args: [Toss(seed) for seed in range(args.seeds)],
    run_one=run_one,
    report=lambda rows, out, args: f"{sum(row['heads'] for row in rows)} heads",
)
"""


def test_a_clone_has_all_studies_the_papers_first() -> None:
    assert list(catalogue.available_studies()) == PAPER + OTHERS


def test_every_study_is_listed_and_made_of_the_modules_of_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for name, study in catalogue.available_studies().items():
        if name in ("table1", "figures"):  # in the package; no sweep
            continue
        folder = name.replace("-", "_")
        for part, module in ((study.run_one, "run"), (study.report, "report"), (study.draw, "picture")):
            assert part is None or part.module == f"studies.{folder}.{module}"
    assert main(["reproduce", "--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"    {name}" in listed for name in PAPER + OTHERS)


def test_without_a_clone_the_others_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalogue, "SOURCE", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    assert list(catalogue.available_studies()) == PAPER
    assert main(["reproduce", "agents", "--seeds", "2"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "craftrl reproduce: argument STUDY: invalid choice: 'agents' (choose from 'table1'); see craftrl reproduce "
        "--help.\n"
    )
    assert main(["reproduce", "--help"]) == 0
    assert "all other studies are in the\nfolder studies/ of a clone of craftrl" in capsys.readouterr().out


def test_somebody_elses_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "studies" / "mine").mkdir(parents=True)
    (tmp_path / "studies" / "mine" / "spec.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.setattr(catalogue, "SOURCE", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    assert list(catalogue.available_studies()) == PAPER


def test_an_installed_package_runs_the_studies_of_the_current_directory(tmp_path: Path) -> None:
    """With two workers, which have to import the study as well."""
    shutil.copytree(ROOT / "src" / "craftrl", tmp_path / "site" / "craftrl")
    study = tmp_path / "here" / "studies" / "coins"
    study.mkdir(parents=True)
    for folder in (study, study.parent):
        (folder / "__init__.py").touch()
    shutil.copy(ROOT / "studies" / "study.py", study.parent)
    (study / "spec.py").write_text(SPEC)
    run = [sys.executable, "-c", "from craftrl.cli import main; raise SystemExit(main())"]
    done = subprocess.run(
        [*run, "reproduce", "coins", "--workers", "2", "--quiet"],
        cwd=tmp_path / "here",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("2 heads\n"), done.stderr
    assert (tmp_path / "here" / "results" / "coins" / "rows.jsonl").exists()


def test_a_wheel_is_small_and_holds_no_study() -> None:
    """What setuptools packs is what lies in src; packed as a wheel is, it stays under a megabyte."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["packages"]["find"] == {"where": ["src"]}
    files = [p for p in (ROOT / "src" / "craftrl").rglob("*") if p.suffix == ".py" or p.name == "py.typed"]
    assert not {part for p in files for part in p.parts if part == "studies"}
    assert not [p for p in files if p.name == "spec.py"]
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for p in files:
            wheel.write(p)
    assert len(buffer.getvalue()) < 1_000_000
