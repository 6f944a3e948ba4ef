"""The graph of learned states as a picture: lines for moves, and what stands out of it, such as a plan.

All drawing is done at twice the size and made small once, which gives smooth edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.deploy.canvas import Bytes, in_colour
from craftrl.deploy.layout import in_layers, in_the_plane, turned
from craftrl.figures import BLUE, GREEN, ORANGE
from craftrl.planning.graph import StateGraph

__all__ = ["BLUE", "GREEN", "INKS", "ORANGE", "PAPER", "RED", "TEXT", "GraphPicture", "Highlights"]

Floats = NDArray[np.float64]
Point = tuple[float, float]
FINE = 2  # how much larger everything is drawn at first
PAPER, TEXT, PALE, DIM, TRAIL = "#ffffff", "#333333", "#e3e3e3", "#b4b4b4", "#9cc3dd"
RED = "#c1121f"  # far from the orange of plans
INKS = (BLUE, GREEN, ORANGE, RED, PAPER, TEXT, PALE, DIM, TRAIL)
MARGIN = 14  # pixels around the graph
ROOM_FOR_PICTURE, ROOM_FOR_NUMBER = 13, 7  # pixels of a node's half side
LARGEST = 30
PALER = 0.7  # how far what all states share is moved towards white


@dataclass(frozen=True)
class Highlights:
    """What stands out of the graph at one moment.

    here      where the marker is: a node, or a point on the way from one to the next
    path      nodes of the plan from here on
    goal      nodes that are looked for
    trail     nodes that were visited
    surprise  whether this is not where the plan said
    """

    here: tuple[int, int, float]
    path: Sequence[int] = ()
    goal: frozenset[int] = frozenset()
    trail: Sequence[int] = ()
    surprise: bool = False


class GraphPicture:
    """The graph of `moves` on width x height pixels.

    portraits  for each node the picture it stands for, (rows, columns, channels), or NaN: drawn where there is room.
               Where they differ from their mean also says which way the graph is turned
    grounded   for each of `moves.edges`, whether some action is known to make it; others are drawn in a paler grey
    needed     nodes that are drawn although no move leads there
    """

    def __init__(
        self,
        moves: StateGraph,
        width: int,
        height: int,
        portraits: NDArray[Any] | None = None,
        grounded: NDArray[np.bool_] | None = None,
        needed: Sequence[int] = (),
    ) -> None:
        self.width, self.height, self.two_ways = width, height, moves.shared
        edges = moves.edges
        self.numbers = np.union1d(np.unique(edges), np.asarray(needed, dtype=np.int64))
        self.names = {int(node): str(moves.name(int(node))[1]) for node in self.numbers}
        self.at = self._placed(_layout(moves, self.numbers, portraits), moves.shared)
        self.half = self._half_side()
        self.pictures = self._pictures(portraits)
        known = np.ones(len(edges), dtype=bool) if grounded is None else grounded
        self.base = self._drawn_base(edges, known)

    def drawn(self, now: Highlights) -> Bytes:
        """The graph with what stands out, (height, width, 3)."""
        from PIL import ImageDraw

        picture = self.base.copy()
        draw = ImageDraw.Draw(picture)
        for s, t in zip(now.trail, now.trail[1:]):
            self._line(draw, s, t, TRAIL, 3.0)
        for s, t in zip(now.path, now.path[1:]):
            self._line(draw, s, t, ORANGE, 4.0)
        for s, t in zip(now.path, now.path[1:]):
            self._arrow(draw, s, t, ORANGE)
        for node in {*now.path, *now.trail, *now.goal}:
            self._node(picture, draw, node)
        for node in now.path:
            self._ring(draw, self.at[node], ORANGE, 2.0, 2.0)
        for node in now.goal:
            self._ring(draw, self.at[node], GREEN, 3.0, 4.0)
        s, t, share = now.here
        (x, y), (x_next, y_next) = self.at[s], self.at[t]
        where = ((1 - share) * x + share * x_next, (1 - share) * y + share * y_next)
        at_goal = bool({s, t} & now.goal) and share in (0.0, 1.0)
        self._ring(draw, where, RED if now.surprise else BLUE, 4.0, 7.0 if at_goal else 4.0)
        return np.asarray(picture.reduce(FINE))

    # -- where things are ----------------------------------------------------------------------------------------

    def _placed(self, layout: Floats, square: bool) -> dict[int, Point]:
        """Positions in fine pixels, as large as there is room; `square`: lengths stay in proportion."""
        room = FINE * (np.array([self.width, self.height]) - 2 * MARGIN)
        span = np.maximum(np.ptp(layout, axis=0), 1e-9)
        cells = span + np.where(span > 1e-6, 0.8, 0.0)  # a node at the edge needs half its own room
        scale = room / np.maximum(cells, 1)
        if square:
            scale[:] = scale.min()
        centre = FINE * np.array([self.width, self.height]) / 2
        points = (layout - (layout.max(axis=0) + layout.min(axis=0)) / 2) * scale + centre
        return {int(node): (float(x), float(y)) for node, (x, y) in zip(self.numbers, points)}

    def _half_side(self) -> float:
        """Half the side of a node, in fine pixels: neighbours leave room for an arrow between them."""
        points = np.array(list(self.at.values()))
        if len(points) < 2:
            return FINE * LARGEST
        apart = np.abs(points[:, None] - points).max(axis=-1) + np.diag(np.full(len(points), np.inf))
        return float(np.clip(0.32 * apart.min(), FINE * 2, FINE * LARGEST))

    def _pictures(self, portraits: NDArray[Any] | None) -> dict[int, Any]:
        from PIL import Image

        if portraits is None or self.half < FINE * ROOM_FOR_PICTURE:
            return {}
        known = [node for node in self.numbers.tolist() if np.isfinite(portraits[node]).all()]
        out = {}
        for node, image in zip(known, _paled(portraits[known])):
            scale = 2 * self.half / max(image.shape[:2])
            size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
            out[node] = Image.fromarray(image).resize(size, Image.Resampling.BOX)
        return out

    # -- strokes ---------------------------------------------------------------------------------------------------

    def _drawn_base(self, edges: NDArray[np.int64], grounded: NDArray[np.bool_]) -> Any:
        from PIL import Image, ImageDraw

        picture = Image.new("RGB", (FINE * self.width, FINE * self.height), PAPER)
        draw = ImageDraw.Draw(picture)
        there = {(int(s), int(t)) for s, t in edges}
        for (s, t), known in sorted(zip(map(tuple, edges.tolist()), grounded.tolist()), key=lambda pair: pair[1]):
            if s != t:
                self._line(draw, s, t, DIM if known else PALE, 1.6)
                if self.two_ways and (t, s) not in there:
                    self._arrow(draw, s, t, DIM if known else PALE, 0.7)
        for node in self.numbers.tolist():
            self._node(picture, draw, node)
        return picture

    def _line(self, draw: Any, s: int, t: int, colour: str, width: float) -> None:
        draw.line([self.at[s], self.at[t]], fill=colour, width=round(FINE * width))

    def _arrow(self, draw: Any, s: int, t: int, colour: str, size: float = 1.0) -> None:
        """A head on the line from s to t, its tip where the node begins."""
        a, b = np.array(self.at[s]), np.array(self.at[t])
        length = float(np.abs(b - a).max())
        if s == t or length == 0:
            return
        along = (b - a) / np.linalg.norm(b - a)
        tip = b - (b - a) * (self.half + FINE * 3) / length  # where the line enters the square of the node
        head = FINE * min(11.0, max(5.0, self.half / FINE * 0.6)) * size
        across = np.array([-along[1], along[0]]) * head * 0.55
        draw.polygon([tuple(tip), tuple(tip - along * head + across), tuple(tip - along * head - across)], fill=colour)

    def _node(self, picture: Any, draw: Any, node: int) -> None:
        from PIL import ImageFont

        x, y = self.at[node]
        half = self.half
        if node in self.pictures:
            image = self.pictures[node]
            picture.paste(image, (round(x - image.width / 2), round(y - image.height / 2)))
            draw.rectangle([x - half, y - half, x + half, y + half], outline=DIM, width=FINE)
        else:
            draw.rounded_rectangle(
                [x - half, y - half, x + half, y + half], half * 0.5, fill="#f4f4f4", outline=DIM, width=FINE
            )
        if half < FINE * ROOM_FOR_NUMBER:
            return
        font = ImageFont.load_default(size=min(FINE * 12.0, half * 1.1))
        if node in self.pictures:  # beside the corner, where no line passes
            draw.text((x - half - FINE * 8, y - half - FINE), self.names[node], fill=TEXT, font=font, anchor="rt")
        else:
            draw.text((x, y), self.names[node], fill=TEXT, font=font, anchor="mm")

    def _ring(self, draw: Any, at: Point, colour: str, width: float, outside: float) -> None:
        """A frame around a node, so many pixels outside of it."""
        (x, y), side = at, self.half + FINE * outside
        draw.rounded_rectangle(
            [x - side, y - side, x + side, y + side], FINE * outside, outline=colour, width=round(FINE * width)
        )


def _layout(moves: StateGraph, nodes: NDArray[np.int64], portraits: NDArray[Any] | None) -> Floats:
    """Where the drawn nodes are, without a scale."""
    edges = np.searchsorted(nodes, moves.edges)
    if not moves.shared:
        layer = [moves.step(int(node)) or 1 for node in nodes]
        return in_layers(layer, edges)
    flat = in_the_plane(edges, len(nodes))
    return flat if portraits is None else turned(flat, anchors(portraits[nodes]))


def _paled(portraits: NDArray[Any]) -> list[Bytes]:
    """Portraits in colour, pale wherever they look as all others do: what is a state's own stands out."""
    if not len(portraits):
        return []
    low, high = float(portraits.min()), float(portraits.max())
    if low >= 0 and 1 < high <= 255:  # bytes keep their own brightness
        low, high = 0.0, 255.0
    own = np.abs(portraits - portraits.mean(axis=0)).max(axis=-1, keepdims=True)
    own = np.clip(own / max(float(np.median(own.max(axis=(1, 2, 3)))), 1e-12) * 2 - 0.5, 0, 1)
    bright = 255 * (portraits - low) / max(high - low, 1e-12)
    return [in_colour(image) for image in (bright + (1 - own) * PALER * (255 - bright)).round().astype(np.uint8)]


def anchors(portraits: NDArray[Any]) -> Floats:
    """Where each portrait differs most from the mean of all: (n, 2), x to the right and y down, NaN where unknown."""
    known = np.isfinite(portraits.reshape(len(portraits), -1)).all(axis=1)
    out = np.full((len(portraits), 2), np.nan)
    if not known.any():
        return out
    weight = ((portraits[known] - portraits[known].mean(axis=0)) ** 2).sum(axis=-1)
    weight = np.where(weight >= weight.max(axis=(1, 2), keepdims=True) / 2, weight, 0.0)
    total = np.maximum(weight.sum(axis=(1, 2)), 1e-12)
    rows, columns = np.indices(weight.shape[1:])
    out[known] = np.stack([(weight * part).sum(axis=(1, 2)) / total for part in (columns, rows)], axis=1)
    return out
