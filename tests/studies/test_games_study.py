"""The study of games, on a small recording that no game is needed for."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl.cli import main
from craftrl.envs import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.errors import InvalidDataError
from craftrl.oracles.network import Training
from studies.cells import HEAD
from studies.games import data
from studies.games.report import markdown
from studies.games.run import bounds_of
from studies.games.spec import NAMES


@pytest.fixture(scope="module")
def played():
    world = PixelsExBMDP(3, 2, 1, seed=0)
    return collect(world, world.policies(), 80, seed=0)


@pytest.fixture
def folder(played, tmp_path):
    data.write(data.file_of(str(tmp_path), "freeway"), played)
    return str(tmp_path)


def test_a_recording_is_read_as_it_was_played_and_held_out_episodes_are_the_last(played, folder):
    train, test = data.read(folder, "freeway", 50)
    assert (train.tau.n, test.tau.n) == (100, 40)
    for part, rows in ((train, [*range(50), *range(80, 130)]), (test, [*range(60, 80), *range(140, 160)])):
        assert np.array_equal(part.tau.at(2), played.tau.at(2)[rows])
        assert np.array_equal(part.tau.agent, played.tau.agent[rows])
        assert np.array_equal(part.truth.states, played.truth.states[rows])
        assert np.array_equal(part.truth.actions, played.truth.actions[rows])
    with pytest.raises(InvalidDataError, match="n must be at most 60, since 20 of the episodes are held out; 61"):
        data.read(folder, "freeway", 61)
    with pytest.raises(InvalidDataError, match="must be a recording of this study"):
        data.read(folder, "doom", 50)


def test_bounds_of_the_true_states_leave_rare_pairs_out():
    world = PixelsExBMDP(3, 2, 0, seed=0)
    found = bounds_of(collect(world, world.policies(2, 0.8), 20_000, seed=0))
    assert found.alpha == pytest.approx(0.8, abs=0.15)
    assert 0.05 < found.eta < 0.5
    assert found.nu == 10 / 40_000


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_needs_no_game_where_recordings_are_there(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("studies.games.run._training", lambda run: Training(epochs=2, plateau=0, device="cpu"))
    argv = ["reproduce", "games", "--worlds", "freeway", "--n", "60", "--data", folder, "--device", "cpu", "--quiet"]
    argv += ["--techniques", "craft-bounds", "single", "--rates", "0.001", "--models", str(tmp_path / "models")]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert [row["technique"] for row in rows] == ["craft-bounds", "single"]
    assert all(row["n_states_true"] == [1, 3, 4] and row["table_loss"] < np.log(2) + 0.1 for row in rows)
    assert rows[1]["lr"] == 0.001
    printed = capsys.readouterr().out
    assert "freeway: states 1, 3, 4; one state named at every step" in printed
    assert NAMES["single"] in printed
    assert markdown(rows).splitlines()[0] == f"| {HEAD} | freeway |"

    from studies.games.picture import draw_episode

    draw_episode(tmp_path / "models" / "freeway-craft-bounds-0", tmp_path / "strip.png")
    assert (tmp_path / "strip.png").stat().st_size > 10_000


def test_the_page_has_the_table_of_the_committed_rows():
    root = Path(__file__).parents[2]
    rows = [json.loads(line) for line in (root / "studies" / "games" / "rows.jsonl").read_text().splitlines()]
    assert markdown(rows) in (root / "docs" / "worlds.md").read_text()


def test_recordings_must_be_on_a_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "games", "--data", "s3://bucket/name", "--out", "new"]) == 2
    said = capsys.readouterr().err
    assert "The folder of recordings must be on a disk of this machine; 's3://bucket/name' was given" in said
    assert not list(tmp_path.iterdir())
