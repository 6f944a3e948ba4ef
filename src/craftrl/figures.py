"""One look for all figures: colours that colour-blind readers can tell apart, no pyplot state, whole files only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_target
from craftrl.data.files import check_suffix, written_whole
from craftrl.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
GREY, INK = "#8A8A8A", "#222222"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
WARM = np.array([255.0, 120.0, 0.0])  # what decides
FAINT = 0.1  # heat below this share of the largest is not drawn

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "mathtext.fontset": "cm",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
}


@contextmanager
def picture(path: str | os.PathLike[str], width: float, height: float) -> Iterator[Figure]:
    """An empty figure of this size in inches to draw on; at the end it is written to `path`, whole or not at all.

    A picture of that name, NAME.png, is replaced. Nothing else is.
    """
    if check_target("The picture", path).exists():
        check_suffix(path, "picture", (".png",))
    matplotlib = require("matplotlib", "plots")
    require("matplotlib.figure", "plots")
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
        yield figure
        with written_whole(path, "picture") as temporary:
            figure.savefig(temporary, format="png", metadata={"Software": None})


def chance_line(axes: Axes, accuracy: float, label: str | None = "chance") -> None:
    """What knowing nothing scores, as a thin dashed line across a picture of accuracies in percent."""
    axes.axhline(100 * accuracy, color=GREY, ls="--", lw=0.8, zorder=0, label=label)


def heat_of(encoder: Any, x: NDArray[Any]) -> NDArray[np.float64] | None:
    """Which pixels of images x decide on the state, (n, rows, columns), the largest of each being 1; None where the
    encoder is no network."""
    if not hasattr(encoder, "head"):
        return None
    from craftrl.oracles.network.encoder import deciding

    return deciding(encoder, x)


def heated(image: NDArray[np.uint8], heat: NDArray[np.float64], power: float = 1.0) -> NDArray[np.uint8]:
    """An image (rows, columns, 3), dimmed, with what is hot in a warm colour; a power below 1 shows more of it."""
    weight = np.where(heat > FAINT, heat**power, 0.0)[..., None]
    return np.asarray(weight * WARM + (1 - weight) * image / 3).round().astype(np.uint8)
