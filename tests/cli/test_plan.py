"""`craftrl plan`: from a model, videos and a few actions to a plan that is executed and drawn; every complaint."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import craftrl
from cli.gridworld import CENTRE, ExactModel, frame, moved, videos
from craftrl.cli import main
from craftrl.data import DatasetWriter

NAMES = ["up", "down", "left", "right"]
OWN_MODULE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from cli.gridworld import Grid, frame

def make(slip=0.0, n_actions=4):
    return Grid(slip, n_actions)

def broken():
    raise RuntimeError("no display")

def continuous():
    import gymnasium
    grid = Grid()
    grid.action_space = gymnasium.spaces.Box(-1, 1, (2,))
    return grid

class Blocked(Grid):
    def step(self, action):
        before = self.cell
        x, *rest = super().step(action)
        self.cell = before if self.cell == 8 else self.cell
        return frame(self.cell, self.np_random), *rest

def other():
    import gymnasium
    return gymnasium.make("craftrl.envs:craftrl/Bits-v0", horizon=5, n_features=12)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model, videos, labels and a module of the user's own; the model reads without error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(craftrl, "load", lambda path: ExactModel())
    (tmp_path / "model").write_text("{}")
    (tmp_path / "own_world.py").write_text(OWN_MODULE)
    tau, actions = videos()
    with DatasetWriter(tmp_path / "data") as writer:
        for i, own in enumerate(actions):
            writer.append(int(tau.agent[i]), tau.episode(i), actions=own)
    yield tmp_path
    sys.modules.pop("own_world", None)


def plan(*argv):
    return main(["plan", "model", "data", *map(str, argv)])


ENV = ("--env", "own_world:make")


def complaint(capsys, *argv):
    """What the command says on stderr: one line, exit code 2."""
    capsys.readouterr()
    assert plan(*argv) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    return err


def path_of(line):
    """The states and the actions of a line such as Plan: state 4 -1-> 7 -3-> 8."""
    states = [int(s) for s in re.findall(r"(?:state|->) (\d+)", line)]
    return states, [int(a) for a in re.findall(r"-(\d)->", line)]


def test_exploring_grounds_every_move_and_the_plan_is_executed(here, capsys):
    assert plan(*ENV, "--goal", 8, 0, "--explore", 300, "--episodes", 2) == 0
    out = capsys.readouterr().out
    assert "Grounded: 32 of 32 moves" in out  # 24 between cells, 8 against walls
    lines = [line for line in out.splitlines() if line.startswith(("Plan", "Episode"))]
    assert len(lines) == 2 + 4
    for line in lines:
        states, actions = path_of(line)
        assert states[0] == CENTRE
        assert states[-1] in (0, 8)
        assert len(actions) == 2
        assert [moved(s, a) for s, a in zip(states, actions)] == states[1:]
    explored = int(re.search(r"Explored: (\d+) steps", out)[1])
    assert f"Goal reached in 4 of 4 episodes; used in all: {explored + 8} labels, {explored + 8} environment" in out


def test_a_goal_that_is_not_read_is_not_claimed(here, capsys):
    """Nobody gets into cell 8, where the labels of the videos lead: the encoder reads the cell before it."""
    assert plan("--env", "own_world:Blocked", "--goal", 8, "--labels", "data", "--episodes", 4) == 0
    out = capsys.readouterr().out
    assert "Goal reached in 0 of 4 episodes" in out
    for line in out.splitlines():
        if line.startswith("Episode"):
            assert "goal not" in line
            assert 8 not in path_of(line)[0]


def test_a_model_of_other_data_is_refused(here, capsys, monkeypatch):
    monkeypatch.setattr(ExactModel, "data_", {"dtype": "float32"}, raising=False)
    said = complaint(capsys, *ENV, "--goal", 8, "--explore", 9)
    assert "fitted to, float32 observations of shape (6, 6, 3); uint8 of shape (6, 6, 3) was given" in said
    monkeypatch.setattr(ExactModel, "obs_shape_", (6, 6, 1))
    said = complaint(capsys, "--dry-run", "--goal", 8, "--labels", "data")
    assert "Videos must show what the model was fitted to" in said


def test_same_seed_same_words(here, capsys):
    said = []
    for seed in (1, 1):
        assert plan(*ENV, "--env-arg", "slip=0.2", "--stochastic", "--goal", 8, "--explore", 60, "--seed", seed) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


@pytest.mark.parametrize("file", ["data", "own.npz"])
def test_labels_of_both_kinds_tell_the_same(here, capsys, file):
    tau, actions = videos()
    x = np.stack([np.stack([tau.at(h)[0], tau.at(h + 1)[0]]) for h in range(1, 8)])
    np.savez(here / "own.npz", x=x, actions=actions[0])
    assert plan("--dry-run", "--goal", moved(CENTRE, actions[0, 0]), "--labels", file, "--label-count", 7) == 0
    out = capsys.readouterr().out
    assert "by 7 labels." in out
    assert f"Plan: state 4 -{actions[0, 0]}-> {moved(CENTRE, actions[0, 0])} (1 move" in out


def test_too_few_labels_give_part_of_a_plan_and_name_what_is_missing(here, capsys):
    rng = np.random.default_rng(0)
    pairs = np.stack([[frame(4, rng), frame(5, rng)]])
    np.savez(here / "own.npz", x=pairs, actions=[3])
    assert plan("--dry-run", "--goal", 2, "--labels", "own.npz", "--latent", "no") == 2
    out, err = capsys.readouterr()
    assert "Grounded: 1 of 32 moves that the videos show, by 1 label." in out
    assert "As near as labels lead: state 4 -3-> 5\n" in out
    assert "these are not: state 5 -> state 2; add labels of them, or let it try (--explore STEPS)." in err
    assert len(err.splitlines()) == 1
    assert plan(*ENV, "--goal", 2, "--labels", "own.npz", "--latent", "no") == 0  # acting, it tries what is missing
    assert "Warning: Every move on the way must be grounded" in capsys.readouterr().out


def test_latent_actions_carry_labels_to_other_states(here, capsys):
    """Four labels in the centre, one of each action: in a grid that says all; without sharing, next to nothing."""
    rng = np.random.default_rng(0)
    np.savez("own.npz", x=[[frame(4, rng), frame(moved(4, a), rng)] for a in range(4)], actions=range(4))
    for goal in range(9):
        assert plan("--dry-run", "--goal", goal, "--labels", "own.npz") == 0
        out = capsys.readouterr().out
        assert "Latent actions: 4, each of one meaning in 9 of 9 states" in out
        assert "Grounded: 32 of 32 moves that the videos show, by 4 labels." in out
        states, actions = path_of(re.search("Plan: .*", out)[0]) if goal != CENTRE else ([4], [])
        assert [moved(s, a) for s, a in zip(states, actions)] == states[1:]
    assert plan("--dry-run", "--goal", 1, "--labels", "own.npz", "--latent", "no") == 0
    assert "Grounded: 4 of 32 moves" in capsys.readouterr().out


def test_a_state_that_no_video_shows_cannot_be_reached(here, capsys, monkeypatch):
    monkeypatch.setattr(craftrl, "load", lambda path: ExactModel(extra=1))
    said = complaint(capsys, *ENV, "--goal", 9, "--explore", 300)
    assert "The videos must show a way to the goal; none leads from state 4 to state 9" in said


def test_a_goal_may_be_a_picture_or_an_array(here, capsys):
    x = frame(6, np.random.default_rng(5))
    np.save("goal.npy", x)
    Image.fromarray(x).save("goal.png")
    for goal in ("goal.npy", "goal.png"):
        assert plan("--dry-run", "--goal", goal, "--labels", "data") == 0
        assert path_of(re.search("Plan: .*", capsys.readouterr().out)[0])[0][-1] == 6


def test_what_was_grounded_is_kept_and_tied_to_the_model(here, capsys):
    assert plan(*ENV, "--goal", 8, "--explore", 300, "--grounding", "known.json") == 0
    first = capsys.readouterr().out
    kept = json.loads(Path("known.json").read_text())
    assert sum(times for *_, times in kept["labels"]) == int(re.search(r"Explored: (\d+)", first)[1]) + 2
    assert all(moved(s, a) == t for s, a, t, _ in kept["labels"])
    assert plan("--dry-run", "--goal", 0, "--grounding", "known.json") == 0
    assert "Grounded: 32 of 32" in capsys.readouterr().out
    said = complaint(capsys, *ENV, "--env-arg", "n_actions=5", "--goal", 8, "--grounding", "known.json")
    assert "must be of the environment's 5 actions; known.json is of 4" in said
    Path("model").write_text('{"another": 1}')
    assert "known.json is of another one" in complaint(capsys, *ENV, "--goal", 8, "--grounding", "known.json")


@pytest.mark.parametrize("part", ["labels", None])
def test_a_damaged_grounding_is_refused(here, capsys, part):
    assert plan(*ENV, "--goal", 8, "--explore", 30, "--grounding", "known.json") == 0
    content = json.loads(Path("known.json").read_text())
    if part is None:
        content["labels"][0][2] = (content["labels"][0][2] + 1) % 9  # edited
    else:
        del content[part]
    Path("known.json").write_text(json.dumps(content))
    assert "known.json must be a grounding" in complaint(capsys, *ENV, "--goal", 8, "--grounding", "known.json")


def test_a_stochastic_environment_given_as_deterministic_is_told(here, capsys):
    argv = (*ENV, "--env-arg", "slip=0.5", "--goal", 8, "--explore", 400, "--episodes", 20)
    assert plan(*argv) == 0
    assert "\nWarning: Without --stochastic one action must have one successor" in capsys.readouterr().out
    assert plan(*argv, "--stochastic", "--by", "reliable") == 0
    assert "Warning" not in capsys.readouterr().out


def test_the_video_shows_the_frames_and_the_plan_beside_them(here, capsys):
    assert plan(*ENV, "--goal", 8, "--explore", 300, "--out", "plan.mkv", "--action-names", ",".join(NAMES)) == 0
    out = capsys.readouterr().out
    assert re.search(r"Plan: state 4 -(right|down)-> \d -(right|down)-> 8 ", out)
    assert out.endswith("Written to plan.mkv\n")
    with av.open("plan.mkv") as container:
        shown = [image.to_ndarray(format="rgb24") for image in container.decode(video=0)]
    left = [image[:288, :288].reshape(6, 48, 6, 48, 3).mean(axis=(1, 3)) for image in shown]
    cells = [int(ExactModel().encode(x[None])[0]) for x in left]
    route = path_of(re.sub("-[a-z]+->", "->", re.search("Episode 1: .*", out)[0]))[0]
    assert list(dict.fromkeys(cells)) == route
    assert complaint(capsys, *ENV, "--goal", 8, "--explore", 9, "--out", "plan.mkv").startswith("The video must be a")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([*ENV, "--goal", 8], "Which action makes which move must be known"),
        (
            [*ENV, "--goal", 8, "--explore", 9, "--out", "plan.avi"],
            "The video must be named NAME.mp4 or NAME.mkv or NAME.gif",
        ),
        (["--goal", 8, "--explore", 9], "An environment must be named by --env or by --world; none was given"),
        ([*ENV, "--world", "bits", "--goal", 8, "--explore", 9], "by --env or by --world; both was given"),
        ([*ENV, "--size", 3, "--goal", 8, "--explore", 9], "write --env-arg size=3"),
        (["--world", "bits", "--env-arg", "a=1", "--goal", 8, "--explore", 9], "--env-arg goes with --env"),
        (["--world", "nowhere", "--goal", 8, "--explore", 9], "The world must be one of bits"),
        (["--env", "Nowhere-v0", "--goal", 8, "--explore", 9], "Nowhere-v0 does not (NameNotFound"),
        (["--env", "nowhere:make", "--goal", 8, "--explore", 9], "nowhere:make does not (ModuleNotFoundError"),
        (["--env", "own_world:lost", "--goal", 8, "--explore", 9], "own_world:lost does not (NameNotFound"),
        (
            ["--env", "own_world:broken", "--goal", 8, "--explore", 9],
            "own_world:broken does not (RuntimeError: no display)",
        ),
        ([*ENV, "--env-arg", "wind=1", "--goal", 8, "--explore", 9], "unexpected keyword argument 'wind'"),
        (
            ["--env", "own_world:other", "--goal", 8, "--explore", 9],
            "(6, 6, 3); uint8 of shape (12,) was given",
        ),
        (["--env", "own_world:continuous", "--goal", 8, "--explore", 9], "must have discrete actions, numbered from 0"),
        (
            [*ENV, "--goal", 8, "--labels", "contradicting.npz"],
            "Without --stochastic one action must have one",
        ),
        ([*ENV, "--goal", 9, "--explore", 9], "one of the states 0..8 of the model; '9' is none"),
        ([*ENV, "--goal", "nowhere.png", "--explore", 9], "'nowhere.png' is none of these"),
        ([*ENV, "--goal", "own_world.py", "--explore", 9], "own_world.py is neither"),
        ([*ENV, "--goal", "small.npy", "--explore", 9], "The goal must show what the model was fitted to"),
        ([*ENV, "--goal", 8, "--labels", "nowhere.npz"], "nowhere.npz"),
        ([*ENV, "--goal", 8, "--labels", "small.npy"], "Labels must be an NPZ file"),
        ([*ENV, "--goal", 8, "--labels", "none.npz"], "none.npz has none"),
        ([*ENV, "--goal", 8, "--labels", "large.npz"], "Actions must lie in 0..3"),
        ([*ENV, "--goal", 8, "--labels", "half.npz"], "each must be one whole number"),
        (
            [*ENV, "--goal", 8, "--labels", "short.npz"],
            "Labels must be an NPZ file with x (n, 2, ...) and actions (n,)",
        ),
        ([*ENV, "--goal", 8, "--explore", 9, "--label-count", 2], "--label-count counts labels; none were given"),
        (["--dry-run", "--goal", 8, "--explore", 9], "--explore needs the environment"),
        (["--dry-run", "--goal", 8, "--labels", "data", "--out", "plan.gif"], "--out draws what happens"),
    ],
)
def test_complaints_are_one_sentence(here, capsys, argv, sentence):
    np.save("small.npy", np.zeros((2, 2, 3), np.uint8))
    pair = np.zeros((1, 2, 6, 6, 3), np.uint8)
    np.savez("none.npz", x=pair, actions=[-1])
    np.savez("large.npz", x=pair, actions=[4])
    np.savez("half.npz", x=pair, actions=[0.5])
    np.savez("short.npz", actions=np.zeros((3, 7), int))
    ways = [[frame(4, rng), frame(then, rng)] for then in [5, 7] * 10 if (rng := np.random.default_rng(0))]
    np.savez("contradicting.npz", x=ways, actions=[0] * 20)
    assert sentence in complaint(capsys, *argv)
    assert not list(Path().glob("plan.*"))


def test_a_missing_package_is_named_with_its_command(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert "pip install 'craftrl[envs]'" in complaint(capsys, *ENV, "--goal", 8, "--explore", 9)
    monkeypatch.setitem(sys.modules, "av", None)
    assert "pip install 'craftrl[video]'" in complaint(capsys, *ENV, "--goal", 8, "--explore", 9, "--out", "plan.gif")


def test_a_model_with_an_encoder_for_each_step(tmp_path, monkeypatch, capsys):
    """Bits, fitted here: states are named h:state, and the store's own labels are enough."""
    monkeypatch.chdir(tmp_path)
    world = ["--world", "bits", "--horizon", "5", "--features", "12"]
    assert main(["collect", *world, "--n", "1500", "--out", "data"]) == 0
    bounds = ["--alpha", "1", "--eta", "1/5", "--nu", "5/32"]
    assert main(["fit", "data", *bounds, "--out", "model"]) == 0
    capsys.readouterr()
    argv = [*world, "--labels", "data", "--label-count", "200", "--goal", "4:1", "4:0"]
    assert plan(*argv) == 0
    out = capsys.readouterr().out
    assert re.search(r"Plan: state 1:0 -\d-> 2:\d -\d-> 3:\d -\d-> 4:1 \(3 moves", out)
    assert "Goal reached in 2 of 2 episodes" in out
    assert "at a step from 1 to 5; '6:0' is none" in complaint(capsys, *argv[:-2], "6:0")
    assert "A video needs images" in complaint(capsys, *argv, "--out", "plan.gif")


def test_latent_actions_of_videos_as_a_table(here, capsys, monkeypatch):
    """Without a label: where one action makes a move, its latent action is the true one up to their names."""
    monkeypatch.setattr(ExactModel, "transform", lambda self, tau: states_of(tau), raising=False)
    argv = ["actions", "model", "data", "--out", "actions.npz"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 latent actions, 32 moves, 9 states in 1 groups")
    assert out.endswith("2800 transitions of 400 trajectories written to actions.npz\n")
    with np.load("actions.npz") as arrays:
        columns = dict(arrays)
    true = videos()[1][columns["trajectory"], columns["h"] - 1]
    moving = columns["state"] != columns["successor"]
    pairs = set(zip(columns["action"][moving].tolist(), true[moving].tolist()))
    assert len(pairs) == 4  # one to one
    assert (columns["certainty"][moving] == 1).all()
    assert (columns["group"] == 0).all()
    assert main(argv) == 2
    assert "is there already" in capsys.readouterr().err


def states_of(tau):
    return np.stack([ExactModel().encode(tau.at(h)) for h in range(1, tau.H + 1)], axis=1)
