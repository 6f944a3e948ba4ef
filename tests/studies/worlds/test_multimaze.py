"""Nine mazes, one of them the agent's."""

import numpy as np
import pytest

from craftrl.envs import collect
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from studies.worlds.multimaze import CELLS, NEXT_CELL, MultiMazeExBMDP


def test_four_rooms_and_four_doors() -> None:
    assert len(CELLS) == 68
    in_wall_lines = (CELLS == 4).any(axis=1)
    assert in_wall_lines.sum() == 4  # the doors
    doors = np.flatnonzero(in_wall_lines)
    assert [len(set(NEXT_CELL[d]) - {d}) for d in doors] == [2, 2, 2, 2]


def test_moves_are_reversible_and_every_cell_can_be_reached() -> None:
    for a, back in ((0, 1), (1, 0), (2, 3), (3, 2)):
        moved = NEXT_CELL[:, a] != np.arange(68)
        assert np.array_equal(NEXT_CELL[NEXT_CELL[moved, a], back], np.flatnonzero(moved))
    assert MultiMazeExBMDP(horizon=40).n_states(40) == 68


def test_states_are_the_cells_reachable_by_then() -> None:
    world = MultiMazeExBMDP(horizon=8)
    assert [world.n_states(h) for h in range(1, 9)] == [1, 3, 6, 10, 13, 16, 19, 23]
    assert np.array_equal(world.cells(2), [0, 1, np.flatnonzero((CELLS == [1, 0]).all(axis=1))[0]])
    for h in range(1, 8):
        assert set(world.T(h).ravel()) == set(range(world.n_states(h + 1)))


def test_each_image_shows_one_walker_per_maze_and_mine_is_among_them() -> None:
    world = MultiMazeExBMDP(horizon=5, seed=4)
    data = collect(world, world.policies(), 100, seed=0)
    assert [len(world.encoders(h)) for h in range(1, 6)] == [1, 9, 9, 9, 9]
    assert not world.encoders(1)[0](data.tau.at(1)).any()
    for h in range(2, 6):
        x = data.tau.at(h)
        assert (x.reshape(len(x), 3, 9, 3, 9).sum(axis=(2, 4)) == 1).all()
        values = np.stack([phi(x) for phi in world.encoders(h)])
        mine = world.cells(h)[data.truth.states[:, h - 1]]
        assert [np.array_equal(v, mine) for v in values] == [i == world.mine for i in range(9)]


def test_the_order_of_the_mazes_depends_on_the_seed() -> None:
    assert len({MultiMazeExBMDP(seed=seed).mine for seed in range(30)}) > 4


def test_the_picture_shows_walls_floor_and_walkers() -> None:
    world = MultiMazeExBMDP(horizon=3)
    x = collect(world, world.policies(), 1, seed=0).tau.at(1)[0]
    image = world.render(x)
    assert image.shape == (27, 27, 3)
    assert {value: int((image[..., 0] == value).sum()) for value in (0, 128, 255)} == {
        0: 9,
        128: 9 * (81 - 68),
        255: 9 * 67,
    }


def test_policies_walk_everywhere_and_differ_in_every_cell() -> None:
    world = MultiMazeExBMDP(horizon=6)
    found = population_assumptions(world, world.policies(alpha=1.0))
    assert found.alpha.value == pytest.approx(1)
    assert found.nu.value > 0.01
    assert found.eta.value > 0.04


def test_a_horizon_of_one_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"horizon must be an integer from 2 to \d+; 1 was given"):
        MultiMazeExBMDP(horizon=1)
