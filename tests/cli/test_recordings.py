"""Own videos from import to report, as a new user runs it: `fit`, `encode` of new ones, `render`, `report`."""

from __future__ import annotations

import csv
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from command_line import craftrl, started
from craftrl import load
from craftrl.data import TrajectoryDataset
from craftrl.deploy import videos as deploy

av = pytest.importorskip("av")
pytest.importorskip("torch")

CELLS, SIDE = 4, 32  # places of a square on a line, and pixels of a frame


def walk(agent: str, rng: np.random.Generator, steps: int) -> list[np.ndarray]:
    """A bright square that alice drives to the right and bob to the left, over a flickering ground."""
    cell, frames = 0, []
    for _ in range(steps):
        frame = rng.integers(0, 60, (SIDE, SIDE, 3)).astype(np.uint8)
        frame[12:20, 8 * cell : 8 * cell + 8] = 220
        frames.append(frame)
        right = rng.random() < (0.8 if agent == "alice" else 0.2)
        cell = (cell + (1 if right else -1)) % CELLS
    return frames


def write(path: Path, frames: list[np.ndarray]) -> None:
    path.parent.mkdir(exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = SIDE, SIDE, "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with videos of two agents; each begins again every five frames."""
    folder, rng = tmp_path_factory.mktemp("videos"), np.random.default_rng(0)
    for agent in ("alice", "bob"):
        for number in range(2):
            frames = [frame for _ in range(60) for frame in walk(agent, rng, 5)]
            write(folder / agent / f"take{number}.mp4", frames)
    write(folder / "carol" / "new.mp4", [frame for _ in range(4) for frame in walk("alice", rng, 5)])
    return folder


FIT = "fit alice bob --window 5 --resize 16 --epochs 2 --device cpu --out model.safetensors"


@pytest.fixture(scope="module")
def fitted(videos: Path) -> Path:
    """The same folder with a model; the command was stopped while it imported, and while it trained, and went on."""
    for there in ("model.data/unfinished.json", ".model.safetensors.unfinished/*/*.pt"):
        process = started(*FIT.split(), cwd=videos)
        while not list(videos.glob(there)) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        assert process.returncode == 143
        assert err.splitlines()[-1].endswith("the same command goes on from what was finished.")
    process = started(*FIT.split(), cwd=videos)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "2 + 2 trajectories of 2 agents (alice, bob), 300 steps, observations 16 x 16 x 3" in out
    assert "Traceback" not in err
    assert {path.name for path in videos.iterdir()} == {"alice", "bob", "carol", "model.data", "model.safetensors"}
    return videos


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_new_videos_are_read_as_those_of_the_fit(fitted: Path) -> None:
    """The same files give the same states as the dataset that they were imported into, with names, files and frames."""
    craftrl("encode", "model.safetensors", "model.data", "--out", "known.csv", cwd=fitted)
    craftrl("encode", "model.safetensors", "alice", "bob", "--out", "again.csv", cwd=fitted)
    known, again = rows(fitted / "known.csv"), rows(fitted / "again.csv")
    assert known == again
    assert list(known[0]) == ["trajectory", "agent", "file", "frame", "h", "state"]
    assert {row["agent"] for row in known} == {"alice", "bob"}
    assert [(row["file"], row["frame"], row["h"]) for row in known[298:302]] == [
        *(("take0.mp4", "298", "299"), ("take0.mp4", "299", "300")),
        *(("take1.mp4", "0", "1"), ("take1.mp4", "1", "2")),
    ]
    states = load(fitted / "model.safetensors").transform(TrajectoryDataset.open(fitted / "model.data"))
    assert [int(row["state"]) for row in known] == states.ravel().tolist()


@pytest.mark.parametrize("name", ["carol", "carol/new.mp4"])
def test_one_new_folder_or_file_will_do(fitted: Path, tmp_path: Path, name: str) -> None:
    out = craftrl("encode", "model.safetensors", name, "--out", tmp_path / "new.csv", cwd=fitted)
    assert out == f"20 states of 1 trajectories written to {tmp_path / 'new.csv'}\n"
    found = rows(tmp_path / "new.csv")
    assert {row["file"] for row in found} == {"new.mp4"}
    assert [int(row["frame"]) for row in found] == list(range(20))
    assert {row["agent"] for row in found} == {Path(name).stem}


def test_new_videos_as_arrays(fitted: Path, tmp_path: Path) -> None:
    craftrl("encode", "model.safetensors", "carol", "--out", tmp_path / "new.npz", cwd=fitted)
    craftrl("encode", "model.safetensors", "carol", "--out", tmp_path / "new.csv", cwd=fitted)
    lines = rows(tmp_path / "new.csv")
    with np.load(tmp_path / "new.npz") as columns:
        assert columns.files == ["trajectory", "agent", "file", "frame", "h", "state"]
        assert all(columns[name].astype(str).tolist() == [line[name] for line in lines] for name in columns.files)


def test_new_videos_of_another_kind_are_refused_by_name(fitted: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "dora.npy", np.zeros((1, 5, 16, 16, 1), np.uint8))
    text = (
        "New recordings must look like those fitted, (16, 16, 3); dora.npy[0] of dora has (16, 16, 1); convert it, or "
        "fit with --resize.\n"
    )
    out = tmp_path / "new.csv"
    craftrl("encode", "model.safetensors", tmp_path / "dora.npy", "--out", out, cwd=fitted, code=2, says=text)
    assert not out.exists()


def test_a_video_with_the_states_and_a_report(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = craftrl("render", "model.safetensors", "model.data", "--out", "states.gif", cwd=fitted)
    assert out == "Written to states.gif: trajectories 0, 2\n"
    said: list[str] = []
    monkeypatch.setattr(deploy, "_drawn", lambda x, heat, text, colour: said.append(text))
    list(deploy.rendered(load(fitted / "model.safetensors"), TrajectoryDataset.open(fitted / "model.data"), [0, 2]))
    assert re.fullmatch(r"state \d+   alice, take0\.mp4, frame 0", said[0])
    assert re.fullmatch(r"state \d+   bob, take0\.mp4, frame 4", said[304])
    craftrl("report", "model.safetensors", "model.data", "--out", "report.html", cwd=fitted)
    assert "alice" in (fitted / "report.html").read_text()


def test_an_exporter_that_has_nothing_to_say_says_nothing(fitted: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    out = craftrl("export", "model.safetensors", "--out", tmp_path / "encoder.onnx", cwd=fitted)
    assert out == f"Written to {tmp_path / 'encoder.onnx'}\n"


def test_nothing_is_to_be_chosen_in_a_video(fitted: Path, tmp_path: Path) -> None:
    says = (
        "keys (--key) choose among arrays, cameras or columns; these recordings have none to choose from; leave front "
        "out.\n"
    )
    craftrl("import", "alice", "bob", "--key", "front", "--out", tmp_path / "new", cwd=fitted, code=2, says=says)
    assert not list(tmp_path.iterdir())
