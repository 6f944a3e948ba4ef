"""Pictures of a report: frames as PNG, and the numbers from which the template draws in SVG."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.trace import StepTrace, Trace
from craftrl.errors import require

Bytes = NDArray[np.uint8]
LONGEST = 80  # pixels of the longer side; larger frames are thinned out
MAX_NODES = 16  # states of one step that are drawn
MIN_SHARE = 0.005  # of the moves of one step that a move must be to be drawn
ACROSS, DOWN, LEFT, TOP = 84, 46, 40, 44  # pixels between steps, between states, and around them


# -- frames -----------------------------------------------------------------------------------------------------


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether observations of this shape are pictures: rows, columns, and one or three channels."""
    return len(shape) == 3 and shape[-1] in (1, 3) and min(shape[:2]) > 1


def shrunk(x: NDArray[Any]) -> NDArray[Any]:
    """Every m-th row and column of (rows, columns, ...), so that the longer side fits."""
    every = -(-max(x.shape[:2]) // LONGEST)
    return x[::every, ::every]


def to_bytes(x: NDArray[Any], low: float, high: float) -> Bytes:
    """Pixels between low and high as bytes of three channels."""
    scaled = np.clip((np.asarray(x, dtype=float) - low) / max(high - low, 1e-12), 0, 1) * 255
    return np.broadcast_to(scaled.round().astype(np.uint8), (*x.shape[:2], 3))


def png(image: Bytes) -> str:
    """An image (rows, columns, 3), made small, as the address of a PNG picture that the page itself holds."""
    held = io.BytesIO()
    require("PIL.Image", "video").fromarray(np.ascontiguousarray(shrunk(image))).save(held, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode()}"


# -- states over time ---------------------------------------------------------------------------------------------


def flow(visits: NDArray[np.int64], moves: Sequence[NDArray[np.int64]], shared: bool) -> dict[str, Any]:
    """Where to draw states over time.

    visits  int (H, S): how many trajectories are in each state of each step
    moves   for h = 1..H-1 how many go from each state to each, (S, S)
    shared  whether a number means the same state at every step, which then keeps its row
    """
    kept = [np.sort(np.argsort(-own, kind="stable")[: min(MAX_NODES, int((own > 0).sum()))]) for own in visits]
    rows = np.unique(np.concatenate(kept)).tolist() if shared else list(range(max(map(len, kept))))
    place: dict[tuple[int, int], tuple[int, float]] = {}
    for h, states in enumerate(kept):
        for i, s in enumerate(states.tolist()):
            row = rows.index(s) + 0.5 if shared else len(rows) * (i + 0.5) / len(states)
            place[h, s] = LEFT + ACROSS * h, TOP + DOWN * row
    most = max(1, int(visits.max()))
    nodes = []
    for (h, s), (x, y) in place.items():
        radius = 4 + 13 * math.sqrt(visits[h, s] / most)
        nodes.append({"h": h + 1, "state": s, "n": int(visits[h, s]), "x": x, "y": round(y, 1), "r": round(radius, 1)})
    lines = []
    for h, table in enumerate(moves):
        for s, t in np.argwhere(table > max(MIN_SHARE * table.sum(), 0)).tolist():
            if (h, s) in place and (h + 1, t) in place:
                (x, y), (x_next, y_next) = place[h, s], place[h + 1, t]
                share, mid = float(table[s, t] / table.sum()), (x + x_next) / 2
                path = f"M{x} {y:.1f}C{mid:.0f} {y:.1f} {mid:.0f} {y_next:.1f} {x_next} {y_next:.1f}"
                lines.append({"h": h + 1, "from": s, "to": t, "share": share, "path": path})
    return {
        "width": 2 * LEFT + ACROSS * (len(visits) - 1),
        "height": TOP + DOWN * len(rows) + 8,
        "steps": [(h + 1, LEFT + ACROSS * h) for h in range(len(visits))],
        "nodes": nodes,
        "lines": lines,
        "hidden": int((visits > 0).sum()) - len(place),
    }


# -- spectra of log-odds ------------------------------------------------------------------------------------------


def spectrum(
    trace: Trace, step: StepTrace, s: int, pair: int, width: int = 340, height: int = 190
) -> Mapping[str, Any]:
    """Where to draw how many pairs that begin in state `s` have each log-odds: bars, clusters and the heavy line."""
    values, xi = trace.grid.values, trace.grid.xi
    counts = np.atleast_2d(step.spectra[s])[pair]
    ends = [(cluster, *cluster.bins[pair]) for cluster in step.clusters if cluster.s_pred == s]
    seen = [*np.flatnonzero(counts).tolist(), *(i for _, *pair_ends in ends for i in pair_ends), values.size // 2]
    low, high = values[min(seen)] - 2 * xi, values[max(seen)] + 2 * xi
    threshold = step.threshold if step.threshold > 0 else None
    top = 1.08 * max(1.0, float(counts.max()), threshold or 0.0)
    left, right, above, below = 44, width - 10, 30, height - 40

    def x(value: float) -> float:
        return round(left + (value - low) / (high - low) * (right - left), 1)

    def y(pairs: float) -> float:
        return round(below - pairs / top * (below - above), 1)

    bars = []
    for i in np.flatnonzero(counts).tolist():
        own = next((cluster.state for cluster, first, last in ends if first <= i <= last), None)
        wide = max(0.5, x(values[i] + 0.4 * xi) - x(values[i] - 0.4 * xi))
        bar = {"x": x(values[i] - 0.4 * xi), "width": round(wide, 1), "y": y(counts[i]), "state": own}
        bars.append({**bar, "height": round(below - y(counts[i]), 1)})
    shades = [
        {
            "state": cluster.state,
            "x": x(values[first] - xi / 2),
            "width": round(x(values[last] + xi / 2) - x(values[first] - xi / 2), 1),
        }
        for cluster, first, last in ends
    ]
    return {
        "box": (left, right, above, below, width, height),
        "bars": bars,
        "shades": shades,
        "threshold": None if threshold is None else y(threshold),
        "across": [(x(tick), f"{tick:g}") for tick in _ticks(low, high, 5)],
        "up": [(y(tick), f"{tick:g}") for tick in _ticks(0, top, 3)],
    }


def _ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two ends, about so many."""
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [round(i * step, 9) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
