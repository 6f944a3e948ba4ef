"""Own videos from import to pictures of states, as a new user runs it: `fit`, `encode` of new ones, `render`."""

import csv
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import complaint, craftrl, started
from craftrl import TrajectoryDataset, load
from recordings import write_video

pytest.importorskip("torch")

CELLS, SIDE = 4, 32  # places of a square on a line, and pixels of a frame
FIT = (
    "fit alice bob --window 5 --resize 16 --stride 2 --epochs 1 --seed 3 --embedding 4 --device cpu "
    "--out model.safetensors"
)


def walk(agent, rng, steps):
    """A bright square that alice drives to the right and bob to the left, over a flickering ground."""
    cell, frames = 0, []
    for _ in range(steps):
        frame = rng.integers(0, 60, (SIDE, SIDE, 3)).astype(np.uint8)
        frame[12:20, 8 * cell : 8 * cell + 8] = 220
        frames += [frame, frame]
        right = rng.random() < (0.8 if agent == "alice" else 0.2)
        cell = (cell + (1 if right else -1)) % CELLS
    return frames


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with videos of two agents, each of which begins again every five steps, of a third, and a model."""
    folder, rng = tmp_path_factory.mktemp("videos"), np.random.default_rng(0)
    for name in ("alice/take0", "alice/take1", "bob/take0", "bob/take1", "carol/new"):
        walks = 20 if name.endswith("1") else 4
        frames = [frame for _ in range(walks) for frame in walk(name.split("/")[0], rng, 5)]
        write_video(folder / f"{name}.mp4", np.array(frames), "libx264", crf="10")
    out = craftrl(FIT, cwd=folder)
    assert "2 + 2 trajectories of 2 agents (alice, bob), 100 steps, observations 16 x 16 x 3" in out
    assert {path.name for path in folder.iterdir()} == {"alice", "bob", "carol", "model.data", "model.safetensors"}
    assert load(folder / "model.safetensors").oracle.embedding == 4
    return folder


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in fitted.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def test_new_videos_are_read_as_those_of_the_fit(here, monkeypatch):
    """The same files give the same states as the dataset that they were imported into, with names, files and frames."""
    craftrl("encode model.safetensors model.data --out known.csv")
    craftrl("encode model.safetensors alice bob --out again.csv")
    monkeypatch.setattr("craftrl.importing.reading.PART_BYTES", 30 * 16 * 16 * 3)
    monkeypatch.setattr("craftrl.cli.commands.AT_ONCE", 50 * 16 * 16 * 3)
    craftrl("encode model.safetensors alice bob --out parts.csv")
    known = rows("known.csv")
    assert known == rows("again.csv") == rows("parts.csv")
    assert list(known[0]) == ["trajectory", "agent", "file", "frame", "h", "state"]
    assert {row["agent"] for row in known} == {"alice", "bob"}
    assert [(row["file"], row["frame"], row["h"]) for row in known[18:22]] == [
        *(("take0.mp4", "36", "19"), ("take0.mp4", "38", "20")),
        *(("take1.mp4", "0", "1"), ("take1.mp4", "2", "2")),
    ]
    states = load("model.safetensors").transform(TrajectoryDataset.open("model.data"))
    assert [int(row["state"]) for row in known] == states[states >= 0].tolist()


@pytest.mark.parametrize("name", ["carol", "carol/new.mp4"])
def test_one_new_folder_or_file_will_do_and_the_table_may_be_arrays(here, name):
    for out in ("new.csv", "new.npz"):
        written = craftrl("encode model.safetensors", name, "--out", out)
        assert written == f"20 states of one trajectory written to {out}\n"
    found = rows("new.csv")
    assert {(row["file"], row["agent"]) for row in found} == {("new.mp4", Path(name).stem)}
    assert [int(row["frame"]) for row in found] == list(range(0, 40, 2))
    with np.load("new.npz") as columns:
        assert columns.files == list(found[0])
        assert all(columns[name].astype(str).tolist() == [row[name] for row in found] for name in columns.files)


def test_new_videos_of_another_kind_are_refused_by_name(here):
    np.save("dora.npy", np.zeros((1, 5, 16, 16, 1), np.uint8))
    assert complaint("encode model.safetensors dora.npy --out new.csv") == (
        "New recordings must look like those fitted, (16, 16, 3); dora.npy[0] of dora has (16, 16, 1); convert it, or "
        "fit with --resize."
    )
    assert not Path("new.csv").exists()


def test_a_video_with_the_states(here):
    line = "render model.safetensors model.data --out states.gif"
    assert craftrl(line) == "Written to states.gif: trajectories 0, 2\n"  # the first of each agent
    with Image.open("states.gif") as video:
        assert getattr(video, "n_frames", 1) == 40
    assert "is there already" in complaint(line)
    assert craftrl(line, "--trajectories", 2, "--force") == "Written to states.gif: trajectories 2\n"


@pytest.mark.slow
def test_stopped_while_it_imports_and_while_it_trains_it_goes_on_to_the_same_model(fitted, tmp_path):
    for name in ("alice", "bob"):
        (tmp_path / name).symlink_to(fitted / name)
    for there in ("model.data/unfinished.json", ".model.safetensors.unfinished/*/*.pt"):
        process = started(*FIT.split(), cwd=tmp_path)
        while not list(tmp_path.glob(there)) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        assert process.returncode == 143
        assert err.splitlines()[-1].endswith("the same command goes on from what was finished.")
        assert not (tmp_path / "model.safetensors").exists()
    out, err = started(*FIT.split(), cwd=tmp_path).communicate()
    bars = [text.partition(":")[0] for text in err.replace("\r", "\n").split("\n") if text.strip()]
    assert bars == ["telling the agents apart", "finding states"]  # in a log, one line for each
    assert "Learner: a network, since observations are images of shape (16, 16, 3), on the CPU." in out
    assert re.search(r"\nVerdict: (trust|check|do not trust)\. CRAFT found", out)
    assert {path.name for path in tmp_path.iterdir()} == {"alice", "bob", "model.data", "model.safetensors"}
    one, two = (load(folder / "model.safetensors") for folder in (fitted, tmp_path))
    assert one.oracle.training.seed == 3
    assert (one.labels_ == two.labels_).all()
    before = (tmp_path / "model.safetensors").read_bytes()  # as if it had been stopped before the verdict
    assert "\nVerdict: " in craftrl(FIT, cwd=tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    craftrl("report model.safetensors model.data --out report.html", cwd=tmp_path)
    assert "alice" in (tmp_path / "report.html").read_text()
