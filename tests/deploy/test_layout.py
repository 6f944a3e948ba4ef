"""Where states are drawn: a grid comes out as a grid, layers from left to right, the right way up."""

import numpy as np
import pytest

from craftrl.deploy.layout import in_layers, in_the_plane, turned


def grid(size):
    """Moves between the cells of a square, and where the cells are."""
    cells = np.array([(x, y) for y in range(size) for x in range(size)], dtype=float)
    apart = np.abs(cells[:, None] - cells).sum(axis=-1)
    return np.argwhere(apart == 1), cells


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_grid_comes_out_as_a_grid(size):
    edges, cells = grid(size)
    order = np.random.default_rng(size).permutation(size * size)  # names of states mean nothing
    names = np.argsort(order)
    found = turned(in_the_plane(names[edges], size * size), cells[order])
    ideal = (cells - cells.mean(axis=0))[order]
    scale = (found * ideal).sum() / (ideal**2).sum()
    assert np.abs(found / scale - ideal).max() < 0.15  # of the width of a cell
    assert (found == turned(in_the_plane(names[edges], size * size), cells[order])).all()


def test_lines_lie_along_the_axes_and_parts_lie_apart():
    chain = in_the_plane([(i, i + 1) for i in range(5)], 6)
    assert np.abs(chain[:, 1]).max() < 1e-4 * np.ptp(chain[:, 0])
    two = in_the_plane([(0, 1), (2, 3)], 4)
    within = max(np.linalg.norm(two[0] - two[1]), np.linalg.norm(two[2] - two[3]))
    between = min(np.linalg.norm(two[a] - two[b]) for a in (0, 1) for b in (2, 3))
    assert between > 1.5 * within


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_states_have_places(n):
    places = in_the_plane(np.empty((0, 2), int), n)
    assert places.shape == (n, 2)
    assert len(np.unique(places.round(6), axis=0)) == n


def test_layers_go_from_left_to_right_and_are_untangled():
    layer = [1, 2, 2, 3, 3]
    places = in_layers(layer, [(0, 1), (0, 2), (1, 4), (2, 3)])
    assert places[:, 0].tolist() == layer
    for a, b in ((1, 2), (3, 4)):
        assert places[a, 1] != places[b, 1]
    assert (places[1, 1] < places[2, 1]) == (places[4, 1] < places[3, 1])  # the two lines do not cross


def test_without_anchors_nothing_is_turned():
    places = np.random.default_rng(0).normal(size=(4, 2))
    assert (turned(places, np.full((4, 2), np.nan)) == places).all()
