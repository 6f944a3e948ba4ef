"""What CRAFT saw in a game: frames, the pixels that decide, and the learned state over time.

    python -m studies.games.picture MODEL_FOLDER PNG [EPISODE]

draws it from a model and the frames that the study kept beside it (`craftrl reproduce games --models DIR`). Of these
episodes the first, 0, has the most states. It is for games whose figure moves along a line: a chicken's row, a
submarine's depth.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import craftrl
from craftrl import CRAFT
from craftrl.evaluation import count_visits
from craftrl.figures import BLUE, GREY, INK, picture
from craftrl.oracles.network.saliency import deciding
from studies.games.run import FRAMES

__all__ = ["draw_episode", "order_of_states"]

Ints = NDArray[np.integer]
SHOWN = 6  # frames
FAINT = 0.08  # heat below this share of the largest is not drawn
STRIP = 3.4  # inches, height of the picture


def draw_episode(folder: Path, path: Path, episode: int = 0) -> None:
    """One held-out episode: frames, heat over the same frames, and the path of the learned state."""
    model = craftrl.load(folder / "model")
    assert isinstance(model, CRAFT)
    with np.load(folder / FRAMES) as kept:
        x, true = kept["x"][episode], kept["states"][episode]
    state = model.encode(x)
    steps = np.unique(np.linspace(1, len(x) - 1, SHOWN).round().astype(int))
    heat = deciding(model.encoder_, x[steps])  # type: ignore[arg-type]
    aspect = x.shape[2] / x.shape[1]
    with picture(path, len(steps) * aspect * STRIP / 2.4 + 3, STRIP) as figure:
        halves: Any = figure.subfigures(1, 2, width_ratios=[len(steps) * aspect * STRIP / 2.4, 3])
        _draw_frames(halves[0], x[steps], heat, steps, state[steps])
        _draw_path(halves[1], state, true, order_of_states(model), steps)


def _draw_frames(figure: Any, x: NDArray[Any], heat: NDArray[np.float64], steps: Ints, state: Ints) -> None:
    panels = figure.subplots(2, len(x), squeeze=False)
    for i, h in enumerate(steps + 1):
        for panel in panels[:, i]:
            panel.imshow(_shown(x[i]), cmap="gray", vmin=0, vmax=255)
        panels[1, i].imshow(_shown(x[i]) // 3, cmap="gray", vmin=0, vmax=255)
        panels[1, i].imshow(np.ma.masked_less(heat[i], FAINT), cmap="magma", vmin=0, vmax=0.8)
        panels[0, i].set_title(f"h = {h}", fontsize=9)
        panels[1, i].set_title(f"state {state[i]}", fontsize=9, color=BLUE)
    for panel in panels.ravel():
        panel.set_xticks([])
        panel.set_yticks([])
    panels[0, 0].set_ylabel("what is seen")
    panels[1, 0].set_ylabel("what decides")


def _draw_path(figure: Any, state: Ints, true: Ints, place: NDArray[np.float64], steps: Ints) -> None:
    """The learned state over time beside the true one; the states of the episode stand in the order of `place`."""
    panel = figure.subplots()
    h = np.arange(1, len(state) + 1)
    visited = np.unique(state)
    names = visited[np.argsort(place[visited])]
    learned = _rank(names, state)
    if (learned - learned.mean()) @ (true - true.mean()) < 0:  # a chain of states has no up and down of its own
        names = names[::-1]
        learned = _rank(names, state)
    panel.step(h, true - true.min(), where="mid", color=GREY, lw=5, alpha=0.5, label="true row")
    panel.step(h, learned, where="mid", color=BLUE, lw=1.6, label="learned state")
    panel.plot(h[steps], learned[steps], "o", color=BLUE, ms=4)
    panel.set_yticks(range(len(names)), [str(name) for name in names], fontsize=7)
    panel.tick_params(axis="y", labelcolor=BLUE)
    panel.set_xlabel("step h")
    panel.legend(loc="upper left", fontsize=8)
    panel.set_title("states placed by learned transitions alone", fontsize=9, color=INK)


def _rank(names: Ints, state: Ints) -> Ints:
    """Where each state stands in the list of names."""
    return np.argmax(state[:, None] == names, axis=1)


def order_of_states(model: CRAFT) -> NDArray[np.float64]:
    """A place on a line for each learned state: states that often follow each other stand close together.

    It is the second eigenvector of how often states are neighbours in time, scaled by how often they occur (spectral
    ordering).
    """
    n = model.n_states_total_
    follows = count_visits(model.labels_[:, :-1].ravel(), model.labels_[:, 1:].ravel(), sizes=(n, n))
    near = follows + follows.T - 2 * np.diag(np.diag(follows))
    often = np.sqrt(np.maximum(near.sum(axis=1), 1))
    return np.asarray(np.linalg.eigh(near / np.outer(often, often))[1][:, max(n - 2, 0)] / often)


def _shown(image: NDArray[Any]) -> NDArray[Any]:
    return image[..., 0] if image.shape[-1] == 1 else image


if __name__ == "__main__":
    draw_episode(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
