"""Worlds that others made: the truth is what the image shows, and nothing but the action moves it, collisions apart."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.envs import collect
from craftrl.errors import InvalidDataError
from craftrl.testing import check_gym_world
from studies.games.data import world_of

gymnasium = pytest.importorskip("gymnasium")
pytestmark = pytest.mark.slow  # games are large packages, and slow to start
UP = 1
PACKAGES = {"freeway": "ale_py", "seaquest": "ale_py", "minigrid": "minigrid", "doom": "vizdoom"}


def actions_taken(env: Any, actions: list[int], seed: int) -> list[Any]:
    """The images of one episode, from reset on."""
    x, _ = env.reset(seed=seed)
    return [x, *(env.step(action)[0] for action in actions)]


@pytest.mark.parametrize("name", PACKAGES)
def test_the_world_keeps_the_contract_and_its_package_is_named_where_it_is_missing(name: str) -> None:
    package = PACKAGES[name]
    pytest.importorskip(package)
    check_gym_world(world_of(name))
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"try:\n    from studies.games.data import world_of\n    world_of({name!r})\n"
        f"except ImportError as error:\n    assert {package!r} in str(error) and 'craftrl[studies]' in str(error)\n"
        "else:\n    raise SystemExit('made without its package')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


# -- Atari ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chicken() -> Any:
    pytest.importorskip("ale_py")
    env = world_of("freeway").make()
    yield env
    env.close()


def test_the_image_shows_the_chicken_in_the_row_that_ram_says(chicken: Any) -> None:
    """The same traffic with and without a walk: what differs are the two places of the chicken, in its column.

    On the screen the chicken is eight rows high, and where RAM says y it ends in row 200 - y. A pixel is five rows.
    """
    for steps in (3, 5):
        idle = actions_taken(chicken, [0] * steps, seed=3)[-1]
        walk = actions_taken(chicken, [UP] * steps, seed=3)[-1]
        assert world_of("freeway").true_state(chicken) == steps
        rows, columns, _ = np.nonzero(idle != walk)
        there, back = ({row // 5 for row in range(193 - y, 201 - y)} for y in (6 + 4 * steps, 6))
        assert set(rows) == there | back
        assert set(columns) <= {11, 12}


def test_restoring_leaves_nothing_of_the_last_episode_on_the_screen(chicken: Any) -> None:
    first = actions_taken(chicken, [UP] * 4, seed=5)
    actions_taken(chicken, [UP] * 9, seed=6)
    again = actions_taken(chicken, [UP] * 4, seed=5)
    assert all((x == y).all() for x, y in zip(first, again))
    assert (first[0] != actions_taken(chicken, [], seed=6)[0]).any()


@pytest.mark.parametrize(("name", "share"), [("freeway", 0.06), ("seaquest", 0.1)])
def test_only_actions_and_collisions_move_the_figure(name: str, share: float) -> None:
    pytest.importorskip("ale_py")
    from studies.worlds import atari

    game = replace(getattr(atari, name.upper()), horizon=6)  # collisions are rare, and rarer in short episodes
    world, moves = atari.atari_world(game), game.moves()
    found = collect(world, world.agents, 8, seed=0)
    states, actions = found.truth.states, found.truth.actions
    assert (states[:, 0] == 0).all()
    assert (moves[states[:, :1], actions[:, :1]] == states[:, 1:2]).all()  # nothing is hit at once
    assert (moves[states[:, :-1], actions] != states[:, 1:]).mean() < share
    assert len(np.unique(states[:, -1])) > 2
    assert found.tau.dtype == np.uint8


def test_fish_do_not_care_about_the_submarine() -> None:
    pytest.importorskip("ale_py")
    env, seen = world_of("seaquest").make(), []
    for action in (0, UP):
        actions_taken(env, [action] * 4, seed=1)
        seen.append(env.unwrapped.ale.getRAM()[30:34])  # where the fish are
    env.close()
    assert (seen[0] == seen[1]).all()
    assert (seen[0] > 0).any()


def test_a_third_game_is_one_more_record() -> None:
    pytest.importorskip("ale_py")
    from studies.worlds.atari import FREEWAY, atari_world

    moves = {"NOOP": 0, "RIGHT": 1, "LEFT": -1}  # in Space Invaders the cannon moves a pixel every other frame
    cannon = replace(FREEWAY, game="SpaceInvaders", byte=28, first=35, places=21, actions=moves, frames=8)
    cannon = replace(cannon, chances=(0.2, 0.6, 0.2), horizon=5, phases=range(150, 160))
    world = atari_world(cannon)
    states = collect(world, world.agents, 5, seed=0).truth.states
    assert (np.abs(np.diff(states)) <= 1).all()
    assert states.max() >= 2
    broken = atari_world(replace(cannon, frames=24))
    with pytest.raises(InvalidDataError, match="must start in state 0 and obey its actions"):
        collect(broken, broken.agents, 1, seed=0)


@pytest.mark.parametrize(("size", "byte", "place"), [(5, 14, 1), (5, 255, 3), (5, 0, 0), (-10, 4, 1), (-10, 5, 1)])
def test_a_place_is_the_nearest_that_there_is(size: int, byte: int, place: int) -> None:
    pytest.importorskip("ale_py")
    from studies.worlds.atari import FREEWAY

    game = replace(FREEWAY, byte=1, first=10, size=size, places=4)
    assert game.state(np.array([99, byte], np.uint8)) == place
    assert game.moves().tolist() == [[0, 1, 0], [1, 2, 0], [2, 3, 1], [3, 3, 2]]


# -- MiniGrid and ViZDoom ------------------------------------------------------------------------------------------


def test_a_minigrid_does_what_its_table_says_and_shows_the_arrow_in_its_cell() -> None:
    pytest.importorskip("minigrid")
    from studies.worlds.minigrid import minigrid_world, start_and_moves

    world = minigrid_world(horizon=6, n_walkers=0, seed=2)
    start, moves = start_and_moves(world.make())
    found = collect(world, world.agents, 8, seed=0)
    states = found.truth.states
    assert (states[:, 0] == start).all()
    assert (moves[states[:, :-1], found.truth.actions] == states[:, 1:]).all()
    assert found.tau.obs_shape == (54, 54, 3)
    for h in range(1, 7):
        red = (found.tau.at(h) == [255, 0, 0]).all(axis=-1)
        for cell, shown in zip(states[:, h - 1] // 4, red):
            rows, columns = np.nonzero(shown)
            assert set(rows // 6) == {cell // 9}
            assert set(columns // 6) == {cell % 9}


def test_the_player_turns_as_told_and_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vizdoom")
    from studies.worlds.doom import doom_world

    monkeypatch.chdir(tmp_path)
    world = doom_world(horizon=6, n_walkers=0)
    found = collect(world, world.agents, 10, seed=0)
    states, actions = found.truth.states, found.truth.actions
    assert (states[:, 0] == 0).all()
    assert ((states[:, :-1] + actions - 1) % 12 == states[:, 1:]).all()
    x, s = np.concatenate([found.tau.at(h) for h in range(1, 7)]).astype(float), states.T.ravel()
    view = {k: x[s == k].mean(axis=0) for k in np.unique(s)}
    nearest = [min(view, key=lambda k: np.abs(image - view[k]).mean()) for image in x]
    assert (np.array(nearest) == s).mean() > 0.95
    again = collect(world, world.agents, 10, seed=0)
    assert all((found.tau.at(h) == again.tau.at(h)).all() for h in range(1, 7))
    assert list(tmp_path.iterdir()) == []  # Doom leaves no settings behind


def test_what_is_seen_tells_the_direction_and_not_the_way_there() -> None:
    pytest.importorskip("vizdoom")
    from studies.worlds.doom import DoomTurning

    env, rng, different = DoomTurning(), np.random.default_rng(0), 0
    for seed in range(10):
        seen: dict[tuple[int, int], np.ndarray] = {}  # by direction and step: all else is the same in both episodes
        for _ in range(6):
            env.reset(seed=seed)
            for h, action in enumerate(rng.integers(3, size=9)):
                screen = env.step(int(action))[0]
                first = seen.setdefault((h, env.direction()), screen.copy())
                different += int((first != screen).any())
    env.close()
    assert different == 0
