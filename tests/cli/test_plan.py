"""`craftrl plan`: from a model, videos and a few actions to a plan that is executed and drawn."""

import json
import re
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import craftrl as library
from cli.gridworld import CENTRE, ExactModel, frame, moved, videos
from command_line import complaint, craftrl, run

PLAN, ENV = "plan model data", "plan model data --env cli.gridworld:Grid --goal 8"


def path_of(line):
    """The states and the actions of a line such as Plan: state 4 -1-> 7 -3-> 8."""
    states = [int(s) for s in re.findall(r"(?:state|->) (\d+)", line)]
    return states, [int(a) for a in re.findall(r"-(\d)->", line)]


def leads(line, goals):
    """Whether this line's actions lead from state to state, from the centre to a goal."""
    states, actions = path_of(line)
    made = [moved(s, a) for s, a in zip(states, actions)]
    return states[0] == CENTRE and states[-1] in goals and made == states[1:]


def pairs(*moves):
    """Labels of one's own: frames of these moves from the centre and their actions."""
    rng = np.random.default_rng(0)
    np.savez("own.npz", x=[[frame(CENTRE, rng), frame(moved(CENTRE, a), rng)] for a in moves], actions=moves)


def test_exploring_grounds_every_move_and_the_plan_is_executed(grid):
    line = "plan model data --env cli.gridworld:Grid --goal 8 0 --explore 300 --episodes 2"
    out = craftrl(line)
    assert "Grounded: 32 of 32 moves" in out  # 24 between cells, 8 against walls
    lines = [text for text in out.splitlines() if text.startswith(("Plan", "Episode"))]
    assert len(lines) == 2 + 4
    assert all(leads(text, (0, 8)) and len(path_of(text)[1]) == 2 for text in lines)
    explored = int(re.search(r"Explored: (\d+) steps", out)[1])
    assert f"Goal reached in 4 of 4 episodes; used in all: {explored + 8} labels, {explored + 8} environment" in out


def test_the_plan_begins_where_the_environment_does(grid):
    out = craftrl("plan model data --env cli.gridworld:Corner --goal 8 --labels data")
    plan, episode = (text for text in out.splitlines() if text.startswith(("Plan", "Episode")))
    assert path_of(plan)[0][0] == path_of(episode)[0][0] == 0


def test_a_goal_that_is_not_read_is_not_claimed(grid):
    """Nobody gets into cell 8, where the labels of the videos lead: the encoder reads the cell before it."""
    out = craftrl("plan model data --env cli.gridworld:Blocked --goal 8 --labels data --episodes 4")
    assert "Goal reached in 0 of 4 episodes" in out
    ended = [line for line in out.splitlines() if line.startswith("Episode")]
    assert all("goal not" in line and 8 not in path_of(line)[0] for line in ended)
    assert len(ended) == 4


def test_same_seed_same_words_and_episodes_of_their_own(grid):
    line = f"{ENV} --env-arg slip=0.5 --stochastic --explore 60 --episodes 6 --seed 1"
    out = craftrl(line)
    assert craftrl(line) == out
    assert len({tuple(path_of(text)[0]) for text in out.splitlines() if text.startswith("Episode")}) > 1


@pytest.mark.parametrize("file", ["data", "own.npz"])
def test_labels_of_both_kinds_tell_the_same(grid, file):
    tau, actions = videos()
    x = np.stack([np.stack([tau.at(h)[0], tau.at(h + 1)[0]]) for h in range(1, 8)])
    np.savez("own.npz", x=x, actions=actions[0])
    goal = moved(CENTRE, actions[0, 0])
    out = craftrl(f"{PLAN} --dry-run --goal {goal} --labels {file} --label-count 7")
    assert "by 7 labels." in out
    assert f"Plan: state 4 -{actions[0, 0]}-> {goal} (1 move" in out


def test_too_few_labels_give_part_of_a_plan_and_name_what_is_missing(grid):
    pairs(3)
    line = "--goal 2 --labels own.npz --latent no"
    code, out, said = run(f"{PLAN} --dry-run {line}")
    assert (code, len(said)) == (2, 1)
    assert "Grounded: 1 of 32 moves that the videos show, by 1 label." in out
    assert "As near as labels lead: state 4 -3-> 5\n" in out
    assert "these are not: state 5 -> state 2; add labels of them, or let it try (--explore STEPS)." in said[0]
    out = craftrl(f"{PLAN} --env cli.gridworld:Grid {line}")  # acting, it tries what is missing
    assert "Warning: Every move on the way must be grounded" in out


def test_latent_actions_carry_labels_to_other_states_where_they_are_sure(grid, monkeypatch):
    """Four labels in the centre, one of each action: in a grid that says all; without sharing, next to nothing."""
    read = ExactModel.encode
    pairs(0, 1, 2, 3)
    for goal in (0, 2, 7):
        out = craftrl(f"{PLAN} --dry-run --goal {goal} --labels own.npz")
        assert "Latent actions: 4, each of one meaning in 9 of 9 states" in out
        assert "Grounded: 32 of 32 moves that the videos show, by 4 labels." in out
        assert leads(re.search("Plan: .*", out)[0], (goal,))
    assert "Grounded: 4 of 32 moves" in craftrl(f"{PLAN} --dry-run --goal 1 --labels own.npz --latent no")
    monkeypatch.setattr(ExactModel, "encode", lambda self, x, h=None: np.where(read(self, x) == 8, 0, read(self, x)))
    assert "Latent actions" not in craftrl(f"{PLAN} --dry-run --goal 1 --labels own.npz")  # two cells in one state
    assert "Latent actions" in craftrl(f"{PLAN} --dry-run --goal 1 --labels own.npz --latent yes")


def test_a_state_that_no_video_shows_cannot_be_reached(grid, monkeypatch):
    monkeypatch.setattr(library, "load", lambda path: ExactModel(extra=1))
    _, _, (said,) = run("plan model data --env cli.gridworld:Grid --goal 9 --explore 300")
    assert "The videos must show a way to the goal; none leads from state 4 to state 9" in said


def test_a_goal_may_be_a_picture_or_an_array(grid):
    x = frame(6, np.random.default_rng(5))
    np.save("goal.npy", x)
    Image.fromarray(x).save("goal.png")
    for goal in ("goal.npy", "goal.png"):
        assert leads(re.search("Plan: .*", craftrl(f"{PLAN} --dry-run --goal {goal} --labels data"))[0], (6,))


def test_what_was_grounded_is_kept_and_tied_to_the_model_and_the_environment(grid):
    first = craftrl(f"{ENV} --explore 300 --grounding known.json")
    kept = json.loads(Path("known.json").read_text())
    assert sum(times for *_, times in kept["labels"]) == int(re.search(r"Explored: (\d+)", first)[1]) + 2
    assert all(moved(s, a) == t for s, a, t, _ in kept["labels"])
    assert "Grounded: 32 of 32" in craftrl(f"{PLAN} --dry-run --goal 0 --grounding known.json")

    def refused(*more):
        code, _, (said,) = run(ENV, *more, "--grounding", "known.json")
        assert code == 2
        return said

    five = refused("--env-arg", "n_actions=5")
    assert "must be of the environment's 5 actions; known.json is of 4" in five
    Path("model").unlink()
    Path("model").write_text('{"another": 1}')
    assert "known.json is of another one" in refused()
    Path("model").write_text("{}")
    changed = {**kept, "labels": [[*kept["labels"][0][:2], 8, 1], *kept["labels"][1:]]}
    for damaged in (changed, {name: part for name, part in kept.items() if name != "labels"}):
        Path("known.json").write_text(json.dumps(damaged))
        assert "known.json must be a grounding" in refused()


def test_a_stochastic_environment_given_as_deterministic_is_told(grid):
    line = f"{ENV} --env-arg slip=0.5 --explore 400 --episodes 20"
    assert "\nWarning: Without --stochastic one action must have one successor" in craftrl(line)
    assert "Warning" not in craftrl(f"{line} --stochastic --by reliable")


def test_the_video_shows_the_frames_and_the_plan_beside_them(grid):
    out = craftrl(f"{ENV} --explore 300 --out plan.mkv --action-names up,down,left,right")
    assert re.search(r"Plan: state 4 -(right|down)-> \d -(right|down)-> 8 ", out)
    assert out.endswith("Written to plan.mkv\n")
    with av.open("plan.mkv") as container:
        shown = [image.to_ndarray(format="rgb24") for image in container.decode(video=0)]
    left = [image[:288, :288].reshape(6, 48, 6, 48, 3).mean(axis=(1, 3)) for image in shown]
    cells = [int(ExactModel().encode(x[None])[0]) for x in left]
    route = path_of(re.sub("-[a-z]+->", "->", re.search("Episode 1: .*", out)[0]))[0]
    assert list(dict.fromkeys(cells)) == route


@pytest.mark.parametrize(
    ("changed", "line", "sentence"),
    [
        ({"data_": {"dtype": "float32"}}, f"{ENV} --explore 9", "fitted to, float32 observations of shape (6, 6, 3);"),
        ({"obs_shape_": (6, 6, 1)}, f"{PLAN} --dry-run --goal 8 --labels data", "Videos must show what the model was"),
    ],
)
def test_a_model_of_other_data_is_refused(grid, monkeypatch, changed, line, sentence):
    for name, value in changed.items():
        monkeypatch.setattr(ExactModel, name, value, raising=False)
    assert sentence in complaint(line)


def test_a_missing_package_is_named_with_its_command(grid, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert "pip install 'craftrl[envs]'" in complaint(f"{ENV} --explore 9")
    monkeypatch.setitem(sys.modules, "av", None)
    assert "pip install 'craftrl[video]'" in complaint(f"{ENV} --explore 9 --out plan.gif")


def test_a_model_with_an_encoder_for_each_step(here):
    """Of bits: states are named h:state, and the labels of the dataset are enough."""
    line = f"{PLAN} --world bits --horizon 5 --features 12 --labels data --label-count 200 --goal"
    out = craftrl(line, "4:1", "4:0")
    assert re.search(r"Plan: state 1:0 -\d-> 2:\d -\d-> 3:\d -\d-> 4:1 \(3 moves", out)
    assert "Goal reached in 2 of 2 episodes" in out
    assert "at a step from 1 to 5; '6:0' is none" in run(line, "6:0")[2][0]
    assert "A video needs images" in complaint(line, "4:1", "--out", "plan.gif")


def test_latent_actions_of_videos_as_a_table(grid, monkeypatch):
    """Without a label: where one action makes a move, its latent action is the true one up to their names."""

    def transform(self, tau):
        return np.stack([self.encode(tau.at(h)) for h in range(1, tau.H + 1)], axis=1)

    monkeypatch.setattr(ExactModel, "transform", transform, raising=False)
    out = craftrl("actions model data --out actions.npz")
    assert out.startswith("4 latent actions, 32 moves, 9 states in 1 groups")
    assert out.endswith("2800 transitions of 400 trajectories written to actions.npz\n")
    with np.load("actions.npz") as arrays:
        columns = dict(arrays)
    true = videos()[1][columns["trajectory"], columns["h"] - 1]
    moving = columns["state"] != columns["successor"]
    assert len(set(zip(columns["action"][moving].tolist(), true[moving].tolist()))) == 4  # one to one
    assert (columns["certainty"][moving] == 1).all()
    assert (columns["group"] == 0).all()
