"""The study of games, on a small recording that no game is needed for."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl.cli import main
from craftrl.envs import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.errors import InvalidDataError
from craftrl.oracles.network import Training
from studies.cells import READING
from studies.games import data
from studies.games.report import format_table
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


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_needs_no_game_where_recordings_are_there(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("studies.games.run._training", lambda run: Training(epochs=2, device="cpu"))
    argv = ["reproduce", "games", "--worlds", "freeway", "--n", "60", "--data", folder, "--device", "cpu", "--quiet"]
    argv += ["--techniques", "craft", "single", "--rates", "0.001", "--models", str(tmp_path / "models")]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert [row["technique"] for row in rows] == ["craft", "single"]
    assert all(row["n_states_true"] == [1, 3, 4] and row["table_loss"] < np.log(2) + 0.1 for row in rows)
    assert rows[1]["lr"] == 0.001
    printed = capsys.readouterr().out
    assert format_table(rows) in printed
    assert "freeway: true states 1, 3, 4; loss of their table 0." in printed
    assert NAMES["single"] in printed
    assert f"| {READING} | freeway |" in printed
    assert f"{rows[0]['found']} of 4 states" in printed

    from studies.games.picture import draw_episode

    draw_episode(tmp_path / "models" / "freeway-craft-0", tmp_path / "strip.png")
    assert (tmp_path / "strip.png").stat().st_size > 10_000


def test_recordings_must_be_on_a_disk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "games", "--data", "s3://bucket/name", "--out", "new"]) == 2
    said = capsys.readouterr().err
    assert "The folder of recordings must be on a disk of this machine; 's3://bucket/name' was given" in said
    assert not list(tmp_path.iterdir())
