"""`craftrl collect` from an environment of one's own; worlds of the library are in test_commands.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.cli.options import Environment
from craftrl.data import TrajectoryDataset, read_actions, read_true_states

pytest.importorskip("gymnasium")

OWN_MODULE = """
import gymnasium
import numpy as np
from craftrl.envs import GymWorld


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (5,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, start=2):
        self.start = start

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.start
        return self.see(), {}

    def see(self):
        return np.uint8(np.arange(5) == self.place)

    def step(self, action):
        self.place = min(max(self.place + (-1, 1)[action], 0), 4)
        return self.see(), 0.0, False, False, {}


class Continuous(Line):
    action_space = gymnasium.spaces.Box(0, 1, (2,))


class Failing(Line):
    def step(self, action):
        raise KeyError("lost")


def world():
    return GymWorld(Line, lambda env: env.place, 5, H=3)


def nothing():
    pass
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_line", raising=False)
    (tmp_path / "own_line.py").write_text(OWN_MODULE)
    return tmp_path


def collect(line: str) -> int:
    return main(["collect", "--n", "6", "--out", "new", *line.split()])


@pytest.mark.parametrize("workers", [1, 2])
def test_an_environment_of_ones_own_is_collected_from(here: Path, workers: int) -> None:
    assert collect(f"--env own_line:Line --env-arg start=1 --horizon 4 --workers {workers}") == 0
    tau = TrajectoryDataset.open("new")
    assert (tau.n, tau.K, tau.H, tau.obs_shape) == (12, 2, 4, (5,))
    place = np.stack([tau.at(h).argmax(axis=1) for h in range(1, 5)], axis=1)
    moves = 2 * np.concatenate(read_actions("new")) - 1
    assert (place[:, 0] == 1).all()
    assert np.array_equal(place[:, 1:], np.clip(place[:, :1] + moves.cumsum(axis=1), 0, 4))


def test_the_agents_differ_and_come_from_the_seed_of_the_world(here: Path) -> None:
    assert main(["collect", "--env", "own_line:Line", "--n", "200", "--out", "new"]) == 0
    first, second = (np.concatenate(actions).mean() for actions in read_actions("new"))
    assert abs(first - second) > 0.1
    assert main(["collect", "--env", "own_line:Line", "--n", "200", "--world-seed", "3", "--out", "other"]) == 0
    turned, _ = (np.concatenate(actions).mean() for actions in read_actions("other"))
    assert abs(first - turned) > 0.1


def test_a_world_with_states_keeps_them(here: Path) -> None:
    assert collect("--env own_line:world") == 0
    tau = TrajectoryDataset.open("new")
    assert np.array_equal(read_true_states("new")[:, 2], tau.at(3).argmax(axis=1))


def test_what_is_collected_from_can_be_acted_in(here: Path) -> None:
    """`craftrl plan` takes the same options."""
    for options, length in ((Environment(env="own_line:world"), 3), (Environment(world="bits", horizon=4), 4)):
        env = options.environment()
        env.reset(seed=0)
        over = [any(env.step(1)[2:4]) for _ in range(length - 1)]
        assert over == [False] * (length - 2) + [True]
        env.close()


def test_an_id_of_gymnasiums_will_do(here: Path) -> None:
    assert collect("--env FrozenLake-v1 --env-arg is_slippery=False --horizon 3") == 0
    assert TrajectoryDataset.open("new").obs_shape == ()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--env own_line:Continuous", "The environment must have discrete actions; its actions are Box("),
        ("--env nowhere:make", "nowhere:make does not (ModuleNotFoundError: No module named 'nowhere')"),
        ("--env own_line:lost", "own_line:lost does not (NameNotFound"),
        ("--env own_line:nothing", "own_line:nothing gives None; have the function return one"),
        ("--env own_line:Failing", "The environment must run without errors; KeyError: 'lost', in episode 1"),
        ("--env own_line:Line --env-arg wind=1", "unexpected keyword argument 'wind'"),
        ("--env own_line:Line --env-arg wind", "--env-arg must be NAME=VALUE; 'wind' was given"),
        ("--env own_line:Line --size 3", "with --env write --env-arg size=3"),
        ("--env own_line:world --horizon 4", "Episodes of own_line:world have 3 steps; leave --horizon out"),
        ("--env own_line:Line --world bits", "by --env or by --world; both was given"),
        ("--world bits --size 3", "The world bits takes horizon, n_features and seed; size was given"),
        ("--world bits --env-arg a=1", "--env-arg goes with --env"),
        ("", "by --env or by --world; none was given"),
    ],
)
def test_a_refusal_is_one_sentence_and_leaves_nothing(
    line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert collect(line) == 2
    said = capsys.readouterr().err.splitlines()[-1]  # after the bar, where there is one
    assert sentence in said
    assert not Path("new").exists()
