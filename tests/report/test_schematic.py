"""Pictures are written whole or not at all, and the schematic says what it cannot show."""

import numpy as np
import pytest

from craftrl.core.grid import Grid
from craftrl.core.trace import Cluster, Comparison, StepTrace, Trace
from craftrl.errors import InvalidParameterError
from craftrl.figures import picture
from craftrl.report import draw_schematic

GRID = Grid.from_bounds(alpha=1.0, eta=0.1)


def step(h, n_pred, clusters, comparisons=()):
    spectra = np.zeros((n_pred, GRID.size), dtype=np.int64)
    for cluster in clusters:
        spectra[cluster.s_pred, cluster.bins[0][0] + 1] = cluster.size
    n_states = max(cluster.state for cluster in clusters) + 1
    return StepTrace(h, 5.0, spectra, clusters, comparisons, n_states, 1.0, "ok", 0.6, 0.0)


def trace(n_states):
    first = tuple(Cluster(0, ((3 * s, 3 * s + 2),), 50, s) for s in range(n_states))
    second = tuple(Cluster(s, ((2, 4),), 50, 0) for s in range(n_states))
    merged = tuple(Comparison(s, 0, 0.9, True) for s in range(1, n_states))
    return Trace(GRID, (step(1, 1, first), step(2, n_states, second, merged)))


def test_a_picture_is_written_whole_and_the_same_numbers_give_the_same_file(tmp_path):
    paths = [tmp_path / "deep" / name for name in ("a.png", "b.png")]
    for path in paths:
        draw_schematic(trace(4), path)
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "deep" / "x.png", 2, 2):
        raise ZeroDivisionError
    assert sorted((tmp_path / "deep").iterdir()) == paths


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"trace": None}, "trace must be"),
        ({"trace": []}, "trace must be"),
        ({"trace": trace(5)}, "two agents and at most 4 states a step"),
        *(({"h": h}, "h must be") for h in (1, None, 9)),
        ({"subtitle": None}, "subtitle must be"),
        ({"path": "data.h5/x.png"}, "The picture's folder must be writable"),
        ({"path": "data.h5"}, "must be named NAME.png; data.h5 was given"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch, given, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.h5").write_text("data")
    with pytest.raises(InvalidParameterError, match=sentence):
        draw_schematic(**{"trace": trace(2), "path": "x.png", **given})
    assert [path.read_text() for path in tmp_path.iterdir()] == ["data"]
