"""Pictures are written whole or not at all, and the schematic says what it cannot show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.core.grid import Grid
from craftrl.core.trace import Cluster, Comparison, StepTrace, Trace
from craftrl.errors import InvalidParameterError
from craftrl.figures import picture
from craftrl.report import draw_schematic

GRID = Grid.from_bounds(alpha=1.0, eta=0.1)


def step(h: int, n_pred: int, clusters: tuple[Cluster, ...], comparisons: tuple[Comparison, ...] = ()) -> StepTrace:
    spectra = np.zeros((n_pred, GRID.size), dtype=np.int64)
    for cluster in clusters:
        spectra[cluster.s_pred, cluster.bins[0][0] + 1] = cluster.size
    n_states = max(cluster.state for cluster in clusters) + 1
    return StepTrace(h, 5.0, spectra, clusters, comparisons, n_states, 1.0, "ok", 0.6, 0.0)


def trace(n_states: int) -> Trace:
    first = tuple(Cluster(0, ((3 * s, 3 * s + 2),), 50, s) for s in range(n_states))
    second = tuple(Cluster(s, ((2, 4),), 50, 0) for s in range(n_states))
    merged = tuple(Comparison(s, 0, 0.9, True) for s in range(1, n_states))
    return Trace(GRID, (step(1, 1, first), step(2, n_states, second, merged)))


def test_a_picture_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "picture.png"
    draw_schematic(trace(3), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(path.parent.iterdir()) == [path]


def test_an_error_while_drawing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "x.png", 2, 2):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        draw_schematic(trace(2), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match="The picture's folder must be writable"):
        draw_schematic(trace(2), tmp_path / "file" / "x.png")


def test_the_schematic_has_room_for_four_states(tmp_path: Path) -> None:
    draw_schematic(trace(4), tmp_path / "four.png")
    with pytest.raises(InvalidParameterError, match="two agents and at most 4 states a step"):
        draw_schematic(trace(5), tmp_path / "five.png")


def test_a_picture_replaces_nothing_but_a_picture(tmp_path: Path) -> None:
    (tmp_path / "data.h5").write_text("data")
    with pytest.raises(InvalidParameterError, match=r"must be named NAME.png; .*data.h5 was given"):
        draw_schematic(trace(2), tmp_path / "data.h5")
    assert (tmp_path / "data.h5").read_text() == "data"


@pytest.mark.parametrize("given", [{"trace": None}, {"trace": []}, {"h": 1}, {"h": None}, {"h": 9}, {"subtitle": None}])
def test_odd_arguments_of_the_schematic(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"{next(iter(given))} must be"):
        draw_schematic(**{"trace": trace(2), "path": tmp_path / "x.png", **given})
