"""The small commands: collect, import, inspect, evaluate, encode, actions and theory."""

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.gridworld import CENTRE, Grid
from command_line import complaint, craftrl
from craftrl import load
from craftrl.cli.options import Environment
from craftrl.data import TrajectoryDataset, read_actions, read_true_states

# Every command that writes a file and can replace one: its line, the option and the ending.
WRITERS = {
    "encode": ("encode model data", "--out", ".csv"),
    "actions": ("actions model data", "--out", ".npz"),
    "report": ("report model data --diagnose 0", "--out", ".html"),
    "inspect": ("inspect data", "--sheet", ".png"),
}


def split(*names):
    """The agents of `data` in files of these names."""
    tau = TrajectoryDataset.open("data")
    for k, name in enumerate(names):
        np.savez(name, x=tau.rows(np.flatnonzero(tau.agent == k)))


# -- collect ----------------------------------------------------------------------------------------------------------


def test_collect_keeps_the_truth_apart_and_depends_on_its_seeds_alone(here):
    tau = TrajectoryDataset.open("data")
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (3000, 5, 2, (12,))
    assert read_true_states("data").shape == (3000, 5)
    for name, seed in (("same", 0), ("other", 1)):
        craftrl(f"collect --world bits --horizon 5 --features 12 --n 1500 --seed {seed} --out {name}")
    assert (tau.at(5) == TrajectoryDataset.open("same").at(5)).all()
    assert (tau.at(5) != TrajectoryDataset.open("other").at(5)).any()


def test_collect_goes_on_and_finds_its_work_done(here):
    line = "collect --world bits --horizon 3 --features 4 --out new --n"
    craftrl(line, 50)
    before = {path.name: path.stat().st_mtime_ns for path in Path("new").iterdir()}
    craftrl(line, 50)
    assert {path.name: path.stat().st_mtime_ns for path in Path("new").iterdir()} == before
    assert "new exists already; remove it, or choose another name" in complaint(line, 60)


OWN_MODULE = """
import gymnasium
import numpy as np


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (5,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, start=2):
        self.start = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.start
        return np.uint8(np.arange(5) == self.place), {}

    def step(self, action):
        self.place = min(max(self.place + (-1, 1)[action], 0), 4)
        return np.uint8(np.arange(5) == self.place), 0.0, False, False, {}
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_environment_of_a_module_in_this_folder_is_collected_from(tmp_path, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_line", raising=False)
    Path("own_line.py").write_text(OWN_MODULE)
    line = "collect --env own_line:Line --n 100 --out"
    craftrl(line, "new", *f"--env-arg start=1 --horizon 4 --workers {workers}".split())
    tau, actions = TrajectoryDataset.open("new"), np.concatenate(read_actions("new"))
    assert (tau.n, tau.K, tau.H, tau.obs_shape) == (200, 2, 4, (5,))
    place = np.stack([tau.at(h).argmax(axis=1) for h in range(1, 5)], axis=1)
    assert (place[:, 0] == 1).all()
    expected = place[:, 0]
    for h, move in enumerate(2 * actions.T - 1, start=1):
        expected = np.clip(expected + move, 0, 4)
        assert np.array_equal(place[:, h], expected)
    if workers == 1:  # the agents differ, by preferences that the world's seed draws
        for more in ([], ["--world-seed", 3]):
            craftrl(line, f"other{len(more)}", *more)
        means = [np.concatenate(own).mean() for name in ("other0", "other2") for own in read_actions(name)]
        assert abs(means[0] - means[1]) > 0.1
        assert abs(means[0] - means[2]) > 0.1


def test_a_world_with_states_keeps_them_and_an_id_of_gymnasiums_will_do(here):
    craftrl("collect --env cli.gridworld:world --n 6 --out new")
    assert (read_true_states("new")[:, 0] == CENTRE).all()
    red = TrajectoryDataset.open("new").at(3)[..., 0].reshape(-1, 3, 2, 3, 2).sum(axis=(2, 4)).reshape(-1, 9)
    assert np.array_equal(read_true_states("new")[:, 2], red.argmax(axis=1))
    craftrl("collect --env FrozenLake-v1 --env-arg is_slippery=False --horizon 3 --n 6 --out lake")
    assert TrajectoryDataset.open("lake").obs_shape == ()


def test_every_environment_that_was_made_is_closed(here, monkeypatch):
    made, closed, make = [], [], Grid.__init__
    monkeypatch.setattr(Grid, "__init__", lambda self, *given: (made.append(self), make(self, *given))[1])
    monkeypatch.setattr(Grid, "close", lambda self: closed.append(self))
    craftrl("collect --env cli.gridworld:Grid --n 2 --horizon 3 --out new")
    assert len(made) > 1
    assert made == closed


@pytest.mark.parametrize(
    ("options", "length"), [({"env": "cli.gridworld:world"}, 3), ({"world": "bits", "horizon": 4}, 4)]
)
def test_what_is_collected_from_can_be_acted_in(options, length):
    """`craftrl plan` takes the same options."""
    env = Environment(**options).environment()
    env.reset(seed=0)
    over = [any(env.step(1)[2:4]) for _ in range(length - 1)]
    assert over == [False] * (length - 2) + [True]
    env.close()


# -- what is in data --------------------------------------------------------------------------------------------------


def test_import_says_what_it_found_and_inspect_draws_it_and_compares_the_agents(here):
    split("ann.npz", "ben.npz")
    assert "2 agents, 3000 episodes of up to 3 steps" in craftrl("import ann.npz ben.npz --stride 2 --out new")
    out = craftrl("inspect data --pairs --seed 1")
    assert "contact sheet: data.sheet.png" in out
    assert Path("data.sheet.png").stat().st_size > 100
    assert re.search(r"0 and 1 +1,500 \+ 1,500 +\d+% +4 of 4 .*worth comparing", out)
    assert "Compare 0 with 1 first" in out
    assert "contact sheet: data.sheet.png" in craftrl("inspect data")  # in place of the earlier one
    assert "contact sheet" not in craftrl("inspect data --no-sheet")


def test_evaluate_with_and_without_truth(here):
    """In the world that was fitted all is right; in another one, what is printed below the table is its means."""
    craftrl("collect --world bits --horizon 5 --features 12 --world-seed 1 --n 300 --out other")
    for data in ("data", "other"):
        out = craftrl(f"evaluate model {data} --truth")
        table = np.array(re.findall(r"^ +\d" + r" +([\d.]+)%" * 4, out, flags=re.MULTILINE), float)
        said = re.findall(r"([\d.]+)%", out.partition("mean over")[2])
        means = [table[:, 0].mean(), *table[1:, :2].mean(axis=0), table[1:, 2].min(), table[1:, 3].mean()]
        assert [float(x) for x in said] == pytest.approx(means, abs=0.011)
        assert (table[1:, 0].min() > 99) == (table[1:, 2].min() > 99) == (data == "data")
    assert "share of trajectories in each" in craftrl("evaluate model data")


# -- tables -----------------------------------------------------------------------------------------------------------


def test_encode_writes_what_the_model_says(here):
    assert craftrl("encode model data --out states.csv").startswith("15000 states of 3000 trajectories")
    with open("states.csv") as file:
        lines = list(csv.DictReader(file))
    states = load("model").transform("data")
    assert lines[0].keys() == {"trajectory", "agent", "h", "state"}
    assert [int(line["state"]) for line in lines] == states.ravel().tolist()
    assert [line["agent"] for line in lines[::5]] == ["0"] * 1500 + ["1"] * 1500


def test_new_recordings_may_be_longer_than_those_fitted_and_come_in_parts(here, monkeypatch):
    """A model with an encoder for each step then reads the steps that it has encoders for."""
    x = TrajectoryDataset.open("data").rows(np.arange(40))
    np.savez("longer.npz", x=np.concatenate([x, x], axis=1))
    assert craftrl("encode model longer.npz --out states.npz").startswith("200 states of 40 trajectories")
    with np.load("states.npz") as columns:
        assert columns["state"].tolist() == load("model").transform(x).ravel().tolist()
    monkeypatch.setattr("craftrl.cli.commands.AT_ONCE", 100)
    craftrl("encode model longer.npz --out parts.npz")
    assert Path("parts.npz").read_bytes() == Path("states.npz").read_bytes()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_on_request_alone_and_never_data_a_model_or_a_link(here, writer):
    line, option, ending = WRITERS[writer]
    out = Path(f"out{ending}")
    for there in ("data", "model", out.name, "folder"):
        out.mkdir() if there == "folder" else out.symlink_to(there)
        before = {path.name: path.lstat().st_mtime_ns for path in here.iterdir()}
        assert "choose" in complaint(line, option, out, "--force")
        assert {path.name: path.lstat().st_mtime_ns for path in here.iterdir()} == before
        out.rmdir() if there == "folder" else out.unlink()
    out.write_text("mine")
    assert "is there already; choose another name, or replace it with --force" in complaint(line, option, out)
    assert out.read_text() == "mine"
    craftrl(line, option, out, "--force")
    assert out.read_bytes() != b"mine"


# -- theory -----------------------------------------------------------------------------------------------------------


def test_theory_gives_the_papers_values_and_those_of_data(here):
    found = dict(re.findall(r"(alpha|eta|nu)\s+= ([\d.]+)", craftrl("theory assumptions --world bits")))
    expected = {"alpha": np.log(3), "eta": 1 / 5, "nu": 5 / 32}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(expected, rel=1e-5)
    assert "alpha = " in craftrl("theory assumptions --data data")


def test_sample_size_and_its_inverse():
    line = "theory sample-size --world bits"
    (total,) = re.findall(r"([\d.e+]+) trajectories in all", craftrl(line))
    assert "guarantees epsilon_0 = 0.049" in craftrl(line, "--trajectories", f"{float(total) * 1.01:.0f}")
    assert "guarantees nothing" in craftrl(line, "--trajectories", 1000)
    assert craftrl(line, "--states", 2) == craftrl(line)  # the world's own states
    assert craftrl(line, "--states", 3) != craftrl(line)
    assert craftrl(line, "--class-size", 256) == craftrl(line)  # each of 128 bits, or its complement
