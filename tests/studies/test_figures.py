"""The paper's figures from real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from craftrl.cli import main


def test_all_three_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "figures", "--n", "1500", "--out", str(tmp_path / "new")]) == 0
    names = ["composition.png", "recursive_draft.png", "spectrum.png"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == names
    assert all((tmp_path / "new" / name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_an_unwritable_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["reproduce", "figures", "--out", str(tmp_path / "file" / "x")]) == 2
    assert "The output folder must be writable" in capsys.readouterr().err


def test_a_run_that_cannot_be_drawn_is_told_and_leaves_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("studies.figures.run.MAX_STATES", 2)
    assert main(["reproduce", "figures", "--n", "1500", "--out", str(tmp_path / "new")]) == 2
    assert "shows at most 2 states a step; the run with --seed 1 and --n 1500 has 3" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
