"""The README's picture: frames with five figures, the pixels that decide, and the states, placed by their moves.

    python -m studies.figures.walkers docs/img/pixels.png

takes a minute on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import networkx
import numpy as np

from craftrl import CRAFT
from craftrl.envs import PixelsExBMDP, collect
from craftrl.figures import BLUE, GREY, picture
from craftrl.oracles.network.encoder import NetworkEncoder, deciding
from craftrl.planning import StateGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


SIDE, WALKERS, HORIZON, N = 4, 4, 10, 1000
STEPS = (2, 3, 4, 5, 6)


def draw_walkers(path: Path, seed: int = 0) -> None:
    """Fit videos with four figures that nobody controls, and draw what was found in new ones."""
    world = PixelsExBMDP(horizon=HORIZON, size=SIDE, n_walkers=WALKERS, seed=seed)
    model = CRAFT().fit(tau := collect(world, world.policies(), N, seed=seed).tau)
    new = collect(world, world.policies(), 1, seed=seed + 1).tau
    with picture(path, 10, 3.7) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(1.75, 1))  # type: ignore[misc]
        _draw_frames(left, model, np.stack([new.at(h)[0] for h in STEPS]))
        _draw_states(right.subplots(), StateGraph.from_model(model, tau))


def _draw_frames(figure: SubFigure, model: CRAFT, frames: np.ndarray) -> None:
    encoder = model.encoder_
    assert isinstance(encoder, NetworkEncoder)
    rows = figure.subplots(2, len(STEPS))
    shown = zip(rows.T, STEPS, frames, deciding(encoder, frames), model.encode(frames))
    for (above, below), h, frame, heat, state in shown:
        above.imshow(frame)
        above.set(title=f"h = {h}", xticks=[], yticks=[])
        below.imshow(heat, cmap="inferno")
        below.set(title=f"state {state}", xticks=[], yticks=[])
    rows[0, 0].set_ylabel("what is seen")
    rows[1, 0].set_ylabel("what decides")


def _draw_states(axes: Axes, moves: StateGraph) -> None:
    graph = networkx.Graph((s, t) for s, t in moves.to_networkx().edges if s != t)
    places = networkx.kamada_kawai_layout(graph)
    networkx.draw_networkx(
        graph, places, ax=axes, node_color=BLUE, edge_color=GREY, width=1.5, node_size=260, font_size=8, font_color="w"
    )
    axes.set_title(f"{len(graph)} states, placed by learned moves alone")
    axes.set_aspect("equal")
    axes.axis("off")


if __name__ == "__main__":
    draw_walkers(Path(sys.argv[1]))
