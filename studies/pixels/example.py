"""What CRAFT saw: frames, the pixels that its encoder looks at, and the grid that it recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from craftrl import CRAFT
from craftrl.evaluation import count_visits
from craftrl.figures import BLUE, GREY, picture
from craftrl.oracles.network.saliency import saliency
from studies.pixels.run import data_of, fitted
from studies.pixels.spec import Run
from studies.rivals import Data

__all__ = ["draw_example", "grid_layout", "transitions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
SHOWN = 5  # frames
RARE = 0.02  # a transition that follows a state less often than this is not drawn


def draw_example(run: Run, path: Path) -> None:
    """One held-out trajectory with saliency below it, and the learned states placed by their transitions."""
    data, model = data_of(run), fitted(run).model
    assert isinstance(model, CRAFT)
    with picture(path, 9.6, 3.6) as figure:
        halves: Any = figure.subfigures(1, 2, width_ratios=[SHOWN, 3.2])
        _draw_frames(halves[0], model, data)
        _draw_grid(halves[1], model)


def _draw_frames(figure: Any, model: CRAFT, data: Data) -> None:
    shown = min(SHOWN, data.test.tau.H - 1)
    panels = figure.subplots(2, shown, squeeze=False)
    trajectory = int(np.argmax([len(set(path[1 : shown + 1])) for path in data.test.truth.states]))
    x = np.stack([data.test.tau.at(h)[trajectory] for h in range(2, 2 + shown)])
    heat = saliency(model.encoder_, x)  # type: ignore[arg-type]
    for i in range(shown):
        panels[0, i].imshow(x[i])
        panels[0, i].set_title(f"h = {i + 2}", fontsize=9)
        panels[1, i].imshow(heat[i], cmap="magma")
        panels[1, i].set_title(f"state {model.encode(x[i : i + 1])[0]}", fontsize=9)
    for panel in panels.ravel():
        panel.set_xticks([])
        panel.set_yticks([])
    panels[0, 0].set_ylabel("what is seen")
    panels[1, 0].set_ylabel("what decides")


def _draw_grid(figure: Any, model: CRAFT) -> None:
    panel = figure.subplots()
    follows = transitions(model.labels_, model.n_states_total_)
    place = grid_layout(follows)
    for a, b in zip(*np.nonzero(follows)):
        if a < b:
            panel.plot(*place[[a, b]].T, color=GREY, lw=1.5, zorder=1)
    panel.scatter(*place.T, s=190, color=BLUE, zorder=2)
    for s, (x, y) in enumerate(place):
        panel.text(x, y, str(s), color="white", ha="center", va="center", fontsize=8)
    panel.set_aspect("equal")
    panel.axis("off")
    panel.set_title(f"{model.n_states_total_} states, placed by learned transitions alone", fontsize=9)


def transitions(labels: Ints, n_states: int) -> NDArray[np.bool_]:
    """Which learned state follows which, over all steps; shape (n_states, n_states)."""
    counts = count_visits(labels[:, :-1].ravel(), labels[:, 1:].ravel(), sizes=(n_states, n_states))
    return counts > RARE * counts.sum(axis=1, keepdims=True)


def grid_layout(follows: NDArray[np.bool_]) -> Floats:
    """Places in the plane whose distances are those along the graph (classical multidimensional scaling)."""
    if len(follows) < 3:
        return np.column_stack([np.arange(len(follows)), np.zeros(len(follows))])
    distance = shortest_path(follows | follows.T, unweighted=True)
    distance[~np.isfinite(distance)] = distance[np.isfinite(distance)].max() + 1
    n = len(distance)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
