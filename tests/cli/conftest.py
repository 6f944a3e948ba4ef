"""Small collections and models of them, made once; no test changes them."""

import sys

import numpy as np
import pytest

import craftrl as library
from cli.gridworld import ExactModel, frame, videos
from command_line import BOUNDS, craftrl
from craftrl.data import DatasetWriter

BITS = "collect --world bits --horizon 5 --features 12 --n 1500 --out data"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a dataset of bits, `data`, and a model of it, `model`."""
    folder = tmp_path_factory.mktemp("made")
    assert craftrl(BITS, cwd=folder).endswith("Written to data\n")
    out = craftrl("fit data --out model", *BOUNDS, cwd=folder)
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder of the test's own, in which `data` and `model` are those of `made`."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "model"):
        (tmp_path / name).symlink_to(made / name)
    return tmp_path


@pytest.fixture(scope="session")
def walks(tmp_path_factory):
    """A folder with videos of the grid and their actions, `data`, and files of labels."""
    folder, (tau, actions) = tmp_path_factory.mktemp("walks"), videos()
    with DatasetWriter(folder / "data") as writer:
        for i, own in enumerate(actions):
            writer.append(int(tau.agent[i]), tau.episode(i), actions=own)
    black = np.zeros((1, 2, 6, 6, 3), np.uint8)
    for name, labels in {"none": [-1], "large": [4], "half": [0.5]}.items():
        np.savez(folder / f"{name}.npz", x=black, actions=labels)
    np.savez(folder / "short.npz", actions=np.zeros((3, 7), int))
    centre, right, down = (frame(cell, np.random.default_rng(0)) for cell in (4, 5, 7))
    np.savez(folder / "contradicting.npz", x=[[centre, right], [centre, down]] * 10, actions=[0] * 20)
    np.save(folder / "small.npy", np.zeros((2, 2, 3), np.uint8))
    (folder / "notes.txt").write_text("notes")
    (folder / "model").write_text("{}")
    return folder


@pytest.fixture
def grid(walks, tmp_path, monkeypatch):
    """A folder with the videos of the grid; whatever model is loaded, it reads them without error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(library, "load", lambda path: ExactModel())
    for path in walks.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path
