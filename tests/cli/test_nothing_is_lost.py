"""What lies at the place of an output already is never lost, whatever the command and the kind of file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from craftrl import load
from craftrl.cli import main
from craftrl.data import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.importing import import_data

# Every command that writes a file and can replace one: its line, the option and the ending.
WRITERS = {
    "encode": (["encode", "model", "data.h5"], "--out", ".csv"),
    "actions": (["actions", "model", "data.h5"], "--out", ".npz"),
    "report": (["report", "model", "data.h5", "--diagnose", "0"], "--out", ".html"),
    "inspect": (["inspect", "data.h5"], "--sheet", ".png"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    world = ["--world", "bits", "--horizon", "3", "--features", "4", "--n", "60"]
    assert main(["collect", *world, "--out", str(folder / "data.h5")]) == 0
    bounds = ["--alpha", "1", "--eta", "1/5", "--nu", "1/10", "--coupling", "independent"]
    assert main(["fit", str(folder / "data.h5"), *bounds, "--out", str(folder / "model")]) == 0
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes | str]:
    files = sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes() for path in files
    }


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("there", ["the data itself", "link to the data", "link to the model", "folder", "loop"])
def test_force_replaces_no_data_no_model_and_no_link(
    here: Path, capsys: pytest.CaptureFixture[str], writer: str, there: str
) -> None:
    line, option, ending = WRITERS[writer]
    out = Path("data.h5") if there == "the data itself" else Path(f"out{ending}")
    links = {"link to the data": "data.h5", "link to the model": "model", "loop": out.name}
    if there in links:
        out.symlink_to(links[there])
    elif there == "folder":
        out.mkdir()
    before = contents(here)
    assert main([*line, option, str(out), "--force"]) == 2
    assert "choose" in capsys.readouterr().err
    assert contents(here) == before


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_on_request_alone(here: Path, capsys: pytest.CaptureFixture[str], writer: str) -> None:
    line, option, ending = WRITERS[writer]
    out = Path(f"out{ending}")
    out.write_text("mine")
    assert main([*line, option, str(out)]) == 2
    assert "is there already; choose another name, or replace it with --force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main([*line, option, str(out), "--force"]) == 0
    assert out.read_bytes() != b"mine"


def test_a_fit_replaces_a_model_and_nothing_else(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(here)
    assert main(["fit", "data.h5", "--out", "data.h5", "--force"]) == 2
    assert "data.h5 exists and is no model of craftrl; choose another name" in capsys.readouterr().err
    assert main(["fit", "data.h5", "--out", "model"]) == 2
    assert "model is there already; choose another name, or replace it with --force" in capsys.readouterr().err
    assert contents(here) == before
    load("model").save("model", overwrite=True)


def test_a_link_that_leads_nowhere_is_not_written_through(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("new.h5").symlink_to("elsewhere.h5")
    before = contents(here)
    world = ["--world", "bits", "--horizon", "3", "--features", "4", "--n", "5"]
    assert main(["collect", *world, "--out", "new.h5"]) == 2
    assert "new.h5 exists already" in capsys.readouterr().err
    assert contents(here) == before


def test_a_study_goes_into_a_folder_of_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(here)
    assert main(["reproduce", "table1", "--seeds", "1", "--sizes", "20", "--out", str(here)]) == 2
    assert "holds other files, such as data.h5; choose another folder" in capsys.readouterr().err
    assert contents(here) == before


def test_an_import_keeps_the_files_of_others(tmp_path: Path) -> None:
    """Actions of other data, and a folder that has the name of the import's own."""
    for agent in "ab":
        x = np.full((6, 3, 2), agent == "b", dtype=np.uint8)
        np.savez(tmp_path / f"{agent}.npz", observations=x, actions=np.zeros((6, 3), int))
    sources = [tmp_path / "a.npz", tmp_path / "b.npz"]
    (tmp_path / "data.actions.npz").write_bytes(b"mine")
    with pytest.raises(InvalidParameterError, match=r"data.actions.npz; that file exists already and is of other data"):
        import_data(sources, tmp_path / "data.h5")
    assert (tmp_path / "data.actions.npz").read_bytes() == b"mine"
    (tmp_path / "data.actions.npz").unlink()
    (tmp_path / "data.h5.importing" / "notes.txt").write_text("mine")
    import_data(sources, tmp_path / "data.h5")
    assert [p.name for p in (tmp_path / "data.h5.importing").iterdir()] == ["notes.txt"]
    assert TrajectoryDataset.open(tmp_path / "data.h5").n == 12
