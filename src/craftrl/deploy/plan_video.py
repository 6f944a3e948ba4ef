"""A video of plans as they are executed: what is seen on the left, the graph of learned states on the right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_number, quoted
from craftrl.arrays import Floats
from craftrl.data.dataset import TrajectoryDataset
from craftrl.deploy.video import Bytes, check_images, check_video, enlarged, in_colour, on_paper, write_video
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.figures import BLUE, GREEN, ORANGE
from craftrl.planning.acting import Episode
from craftrl.planning.graph import StateGraph

RED = "#c1121f"  # far from the orange of plans
TEXT, PALE, DIM, TRAIL = "#333333", "#e3e3e3", "#b4b4b4", "#9cc3dd"
SIDE = 288  # pixels that the longer side of a frame has at least
GRAPH, MARGIN = 340, 14  # pixels of the graph's width, and around it
LARGEST, ROOM_FOR_PICTURE, ROOM_FOR_NUMBER = 30, 13, 7  # pixels of a node's half side
FPS, GLIDE = 12, 0.35  # frames a second, and the share of a step during which the marker is under way
STAY = 1.5  # steps that the last picture of an episode stays
MAX_NAMED = 8  # states of a plan that the line names
SAMPLE = 500  # trajectories that portraits are made from
DOTS = 100  # pixels of an inch, for matplotlib
POINT = 72 / DOTS  # of a pixel


@dataclass(frozen=True)
class Moment:
    """One step of an episode: what is seen, where that is, and the plan from there on.

    node    the likeliest state
    read    the state that the encoder reads, which a misread frame makes another one; -1 for none
    path    nodes of the plan, this one first
    goal    nodes that are looked for
    action  what is done here; None at the end
    trail   nodes visited before, and this one
    wanted  the planned node, where another one was read
    """

    x: NDArray[Any]
    node: int
    read: int = -1
    path: tuple[int, ...] = ()
    goal: frozenset[int] = frozenset()
    action: int | None = None
    trail: tuple[int, ...] = ()
    wanted: int | None = None


def write_plan(
    path: str | os.PathLike[str],
    episodes: Episode | Sequence[Episode],
    graph: StateGraph,
    *,
    goals: Sequence[frozenset[int]] = (),
    portraits: NDArray[Any] | None = None,
    grounded: NDArray[np.bool_] | None = None,
    action_names: Sequence[str] = (),
    seconds: float = 1.0,
    overwrite: bool = False,
) -> None:
    """Write episodes that a `Planner` ran with `keep=True`, one after the other, to a GIF or a video.

    On the right are all states that the videos show. Blue is the likeliest state now, orange the plan from here on,
    green the goal, red a surprise: a state other than the planned one.

    goals         the nodes that each episode looked for; by default those of its plans
    portraits     what each state looks like, as `portraits` gives it; drawn into the graph where there is room
    grounded      which moves some action is known to make (`Grounding.grounded`); the others are paler
    action_names  what the line below calls the actions; by default their numbers
    seconds       how long a step takes in the video
    overwrite     whether a file that is there already is replaced
    """
    check_video(path, overwrite)
    write_video(path, plan_frames(episodes, graph, goals, portraits, grounded, action_names, seconds), FPS)


def plan_frames(
    episodes: Episode | Sequence[Episode],
    graph: StateGraph,
    goals: Sequence[frozenset[int]] = (),
    portraits: NDArray[Any] | None = None,
    grounded: NDArray[np.bool_] | None = None,
    action_names: Sequence[str] = (),
    seconds: float = 1.0,
) -> Iterator[Bytes]:
    """The frames of that video, (rows, columns, 3)."""
    check_kind("graph", graph, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    check_number("seconds", seconds, "a number above 0, up to 60", lambda value: 0 < value <= 60)
    played = [episodes] if isinstance(episodes, Episode) else episodes
    _check_list("episodes", played, Episode, "episodes")
    _check_list("goals", goals, (set, frozenset), "sets of nodes")
    _check_list("action_names", action_names, str, "texts")
    if not played:
        raise InvalidDataError("There must be an episode to draw; none was given.")
    for episode in played:
        if not episode.observations or len(episode.observations) != len(episode.nodes):
            raise InvalidDataError(
                "An episode to draw must hold its observations; this one does not; run the planner with keep=True."
            )
        check_images(np.shape(episode.observations[0]))
    image = "one image for each state, as craftrl.deploy.plan_video.portraits makes them"
    for name, array, what, axes, length in (
        ("portraits", portraits, image, 4, graph.n),
        ("grounded", grounded, "yes or no of each move, as Grounding.grounded", 1, len(graph.edges)),
    ):
        if array is not None and (np.ndim(array) != axes or len(array) != length or array.dtype.kind not in "biuf"):
            raise InvalidDataError(f"{name} must be {what} ({length}); {quoted(array)} was given.")
    height = max(_seen(episode.observations[0]).shape[0] for episode in played)
    needed = [node for e in played for node in chain(e.nodes, *(plan.nodes for plan in e.plans)) if node >= 0]
    drawing = GraphPicture(graph, GRAPH, height, portraits, grounded, needed)
    step, glide = max(2, round(FPS * seconds)), max(1, round(FPS * seconds * GLIDE))
    for episode, goal in zip_longest(played, goals[: len(played)]):
        moments = list(_moments(episode, goal))
        for k, (now, then) in enumerate(zip_longest(moments, moments[1:]), start=1):
            line = _text(graph, k, now, action_names, None if then else episode)
            seen = _seen(now.x)
            still = on_paper([seen, drawing.drawn(now)], line, "white")
            yield from [still] * (step - glide if then else round(STAY * step))
            for share in np.arange(1, glide + 1) / glide if then else ():
                eased = float(share * share * (3 - 2 * share))
                yield on_paper([seen, drawing.drawn(now, then.node, eased)], line, "white")


def _check_list(name: str, values: Any, kind: type | tuple[type, ...], what: str) -> None:
    """A list of things of one kind; a text is no list."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, kind) for value in values):
        raise InvalidParameterError(f"{name} must be a list of {what}; {quoted(values)} was given.")


def _seen(x: NDArray[Any]) -> Bytes:
    return enlarged(in_colour(np.asarray(x)), SIDE)


def portraits(model: Any, tau: TrajectoryDataset, graph: StateGraph, n: int = SAMPLE) -> Floats:
    """The mean frame of every state, (N, *observation), NaN where none was seen: from up to n trajectories.

    What the state decides is sharp in it, and what it does not is blurred.
    """
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    total, count = np.zeros((graph.n, *tau.obs_shape)), np.zeros(graph.n)
    first = (tau.agent_slice(k).start for k in range(tau.K))
    rows = np.concatenate([start + np.arange(min(-(-n // tau.K), m)) for start, m in zip(first, tau.counts)])
    for h in range(1, tau.H + 1):
        some = rows[tau.lengths[rows] >= h]
        x = tau.at(h, some)
        node = graph.nodes(model.encode(x, h)[:, None], h)[:, 0] if len(x) else some
        np.add.at(total, node[node >= 0], x[node >= 0])
        count += np.bincount(node[node >= 0], minlength=len(count))
    return total / np.where(count > 0, count, np.nan).reshape(-1, *(1,) * len(tau.obs_shape))


def _moments(episode: Episode, goal: frozenset[int] | None) -> Iterator[Moment]:
    """The steps of an episode, each with the plan that was in force there.

    A plan is followed as long as it leads where one is; then the next one begins, or something is tried first.
    """
    coming, ahead, trail = list(episode.plans), tuple[int, ...](), tuple[int, ...]()
    aim = goal if goal is not None else episode.plans[-1].goal if episode.plans else frozenset[int]()
    for k, (read, x) in enumerate(zip(episode.nodes, episode.observations)):
        node = (episode.believed or episode.nodes)[k]
        node = node if node >= 0 else trail[-1] if trail else -1
        trail += (node,) if node >= 0 else ()
        action = episode.actions[k] if k < len(episode.actions) else None
        wanted = ahead[0] if ahead and k + 1 in episode.surprises else None
        if ahead[:1] != (node,) or (len(ahead) == 1 and action is not None):
            begins = coming and coming[0].nodes[0] == node and coming[0].actions[:1] == (action,)
            ahead = coming.pop(0).nodes if begins else ()
        yield Moment(x, node, read, ahead, frozenset(aim), action, trail, wanted)
        ahead = ahead[1:]


def _text(
    graph: StateGraph, step: int, now: Moment, names: Sequence[str], ended: Episode | None
) -> list[tuple[str, str]]:
    """The line below, in parts of one colour each."""

    def name(node: int) -> str:
        return str(graph.name(node)[1])

    misread = "" if now.read in (now.node, -1) else f" (read as {name(now.read)})"
    parts = [(f"step {step}", TEXT), (f"state {name(now.node) if now.node >= 0 else '?'}{misread}", BLUE)]
    if now.wanted is not None:
        parts.append((f"surprise, {name(now.wanted)} was planned", RED))
    if now.action is not None:
        parts.append((f"action {names[now.action] if now.action < len(names) else now.action}", TEXT))
    if len(now.path) > 1:
        ways = [name(node) for node in now.path[1:]]
        parts.append((f"plan {', '.join(ways if len(ways) <= MAX_NAMED else [*ways[:MAX_NAMED], '...'])}", ORANGE))
    if ended is not None:
        parts.append(("goal reached", GREEN) if ended.reached else (f"goal missed: {ended.stopped}", RED))
    elif now.goal:
        parts.append((f"goal {' or '.join(name(node) for node in sorted(now.goal)[:3])}", GREEN))
    return parts


# -- the graph ----------------------------------------------------------------------------------------------------


class GraphPicture:
    """The graph of states on width x height pixels, drawn once; then what stands out of it at a moment.

    portraits  for each node the picture it stands for, (rows, columns, channels), or NaN: drawn where there is room.
               Where they differ from their mean also says which way the graph is turned
    grounded   for each of `graph.edges`, whether some action is known to make it; others are drawn in a paler grey
    needed     nodes that are drawn although no move leads there
    """

    def __init__(
        self,
        graph: StateGraph,
        width: int,
        height: int,
        portraits: NDArray[Any] | None = None,
        grounded: NDArray[np.bool_] | None = None,
        needed: Sequence[int] = (),
    ) -> None:
        figure = require("matplotlib.figure", "plots").Figure(figsize=(width / DOTS, height / DOTS), dpi=DOTS)
        self.lines, self.patches = require("matplotlib.lines", "plots"), require("matplotlib.patches", "plots")
        self.canvas = require("matplotlib.backends.backend_agg", "plots").FigureCanvasAgg(figure)
        self.axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")
        nodes = np.union1d(np.unique(graph.edges), np.asarray(needed, dtype=np.int64))
        self.at = dict(zip(nodes.tolist(), _placed(_layout(graph, nodes, portraits), width, height, graph.shared)))
        points = np.array(list(self.at.values()))
        apart = np.abs(points[:, None] - points).max(axis=-1) + np.diag(np.full(len(points), np.inf))
        self.half = float(np.clip(0.32 * apart.min(initial=np.inf), 2, LARGEST))
        known = np.ones(len(graph.edges), dtype=bool) if grounded is None else grounded
        there = set(map(tuple, graph.edges.tolist()))
        for (s, t), sure in sorted(zip(map(tuple, graph.edges.tolist()), known.tolist()), key=lambda edge: edge[1]):
            if s != t:
                colour = DIM if sure else PALE
                self.axes.add_artist(self._line((s, t), colour, 1.6))
                if graph.shared and (t, s) not in there:
                    self.axes.add_artist(self._arrow(s, t, colour, 8))
        seen = [] if portraits is None else [n for n in nodes.tolist() if np.isfinite(portraits[n]).all()]
        pictures = dict(zip(seen, _paled(portraits[seen]))) if portraits is not None and seen else {}
        numbers = {node: str(graph.name(node)[1]) for node in nodes.tolist()}
        self.drawn_nodes = {node: self._node(node, number, pictures.get(node)) for node, number in numbers.items()}
        self.canvas.draw()
        self.base = self.canvas.copy_from_bbox(figure.bbox)

    def drawn(self, now: Moment, then: int | None = None, share: float = 0.0) -> Bytes:
        """The graph with what stands out, (height, width, 3); `then` and `share`: how far the marker is on its way."""
        self.canvas.restore_region(self.base)
        self._once(self._line(now.trail, TRAIL, 3), self._line(now.path, ORANGE, 4))
        self._once(*(self._arrow(s, t, ORANGE, 13) for s, t in pairwise(now.path) if s != t))
        goal = sorted(now.goal & set(self.at))
        for node in sorted({*now.path, *now.trail, *goal} & set(self.at)):
            for artist in self.drawn_nodes[node]:
                self.axes.draw_artist(artist)
        self._once(*(self._ring(self.at[node], ORANGE, 2, 2) for node in now.path))
        self._once(*(self._ring(self.at[node], GREEN, 3, 4) for node in goal))
        if now.node >= 0:
            end = now.node if then is None or then < 0 else then
            at_goal = bool({now.node, end} & now.goal) and share in (0.0, 1.0)
            where = (1 - share) * self.at[now.node] + share * self.at[end]
            colour = RED if now.wanted is not None and share == 0 else BLUE
            self._once(self._ring(where, colour, 4, 7 if at_goal else 4))
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def _once(self, *artists: Any) -> None:
        """Draw what is gone at the next moment."""
        for artist in artists:
            self.axes.add_artist(artist)
            self.axes.draw_artist(artist)
            artist.remove()

    def _line(self, nodes: Sequence[int], colour: str, width: float) -> Any:
        points = np.array([self.at[node] for node in nodes]).reshape(-1, 2)
        return self.lines.Line2D(*points.T, color=colour, linewidth=width * POINT)

    def _arrow(self, s: int, t: int, colour: str, size: float) -> Any:
        """A head on the line from s to t, its tip where the node begins."""
        way = self.at[t] - self.at[s]
        tip = self.at[t] - way * (self.half + 3) / max(np.abs(way).max(), 1e-9)  # where the node's square begins
        head = tip - 0.1 * (way / max(np.linalg.norm(way), 1e-9))
        look = {"arrowstyle": "-|>", "mutation_scale": size, "color": colour, "shrinkA": 0, "shrinkB": 0}
        return self.patches.FancyArrowPatch(head, tip, **look)

    def _ring(self, at: Floats, colour: str, width: float, outside: float) -> Any:
        """A frame around a node, so many pixels outside of it."""
        return self._square(at, outside, fill=False, edgecolor=colour, linewidth=width * POINT)

    def _square(self, at: Floats, outside: float = 0, **look: Any) -> Any:
        side = self.half + outside
        return self.patches.Rectangle(at - side, 2 * side, 2 * side, **look)

    def _node(self, node: int, number: str, picture: Bytes | None) -> list[Any]:
        """What a node is drawn with: its picture where there is room, and its number."""
        (x, y), half = self.at[node], self.half
        drawn = [self.axes.add_artist(self._square(self.at[node], facecolor="#f4f4f4", edgecolor=DIM, zorder=3))]
        at, where = (x, y), {"ha": "center", "va": "center"}
        if picture is not None and half >= ROOM_FOR_PICTURE:
            extent = (x - half, x + half, y + half, y - half)
            drawn.append(self.axes.imshow(picture, extent=extent, aspect="auto", interpolation="nearest", zorder=4))
            # beside the corner, where no line passes, and outside of the frames that may be around it
            at, where = (x - half - max(4, half / 3), y - half - 2), {"ha": "right", "va": "top"}
        if half >= ROOM_FOR_NUMBER:
            size = min(12.0, 1.1 * half) * POINT
            drawn.append(self.axes.text(*at, number, fontsize=size, color=TEXT, zorder=5, **where))
        return drawn


def _placed(layout: Floats, width: int, height: int, square: bool) -> Floats:
    """Positions in pixels, as large as there is room; `square`: lengths stay in proportion."""
    size = np.array([width, height])
    span = np.maximum(np.ptp(layout, axis=0), 1e-9)
    scale = (size - 2 * MARGIN) / np.maximum(span + np.where(span > 1e-6, 0.8, 0.0), 1)  # nodes at the edge need room
    middle = (layout.max(axis=0) + layout.min(axis=0)) / 2
    return (layout - middle) * (scale.min() if square else scale) + size / 2


def _layout(graph: StateGraph, nodes: NDArray[np.int64], portraits: NDArray[Any] | None) -> Floats:
    """Where the drawn nodes are, neighbours about 1 apart: from the moves alone, turned as the portraits lie."""
    networkx = require("networkx", "graphs")
    drawn = networkx.Graph()
    drawn.add_nodes_from((node, {"h": graph.step(node) or 1}) for node in nodes.tolist())
    drawn.add_edges_from(edge for edge in graph.edges.tolist() if edge[0] != edge[1])
    if not graph.shared:
        places = networkx.multipartite_layout(drawn, subset_key="h")
        rows = np.array([places[node] for node in nodes.tolist()])
        return rows / np.maximum(np.ptp(rows, axis=0) / max(1, len(graph.sizes) - 1), 1e-9)
    far = np.asarray(networkx.floyd_warshall_numpy(drawn))
    far = np.where(np.isfinite(far), far, far.max(where=np.isfinite(far), initial=0) + 2)  # parts lie apart
    # Classical scaling is where to begin: from a circle, four rooms would end up folded over one another.
    inner = far**2 - (far**2).mean(axis=0)
    value, vector = np.linalg.eigh(np.pad(inner.mean(axis=1, keepdims=True) - inner, (0, 1)))
    begin = (vector * np.sqrt(np.maximum(value, 0)))[:-1, -2:]
    named = nodes.tolist()
    distances = {s: dict(zip(named, own)) for s, own in zip(named, far.tolist())}
    places = networkx.kamada_kawai_layout(drawn, dist=distances, pos=dict(zip(named, begin)))
    x = np.array([places[node] for node in named]).reshape(-1, 2)
    lines = np.searchsorted(nodes, np.array(drawn.edges, dtype=np.int64).reshape(-1, 2))
    along = (x[lines[:, 1]] - x[lines[:, 0]]) @ np.array([1, 1j])
    angle = np.angle((along**4).sum()) / 4 if len(along) else 0.0  # lines point right, left, up or down
    x = (x - x.mean(axis=0)) @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    x /= max(float(np.abs(along).mean()) if len(along) else 1.0, 1e-9)
    return x if portraits is None else _turned(x, _where_they_differ(portraits[nodes]))


def _turned(x: Floats, anchors: Floats) -> Floats:
    """Positions, mirrored or turned by quarters, as they fit best to where the nodes should be; NaN where unknown."""
    known = np.isfinite(anchors).all(axis=1)
    if not known.any():
        return x
    target = anchors[known] - anchors[known].mean(axis=0)
    flips = [np.diag([a, b]) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    centred = x - x[known].mean(axis=0)
    return centred @ max(flips + [flip[::-1] for flip in flips], key=lambda way: (centred[known] @ way * target).sum())


def _where_they_differ(portraits: NDArray[Any]) -> Floats:
    """Where each portrait differs most from the mean of all: (n, 2), x to the right and y down, NaN where unknown."""
    weight = ((portraits - np.nanmean(portraits, axis=0)) ** 2).sum(axis=-1)
    weight = np.where(weight >= weight.max(axis=(1, 2), keepdims=True) / 2, weight, 0.0 * weight)
    rows, columns = np.indices(weight.shape[1:])
    total = np.maximum(weight.sum(axis=(1, 2)), 1e-12)
    return np.stack([(weight * part).sum(axis=(1, 2)) / total for part in (columns, rows)], axis=1)


def _paled(portraits: NDArray[Any]) -> list[Bytes]:
    """Portraits in colour, pale wherever they look as all others do: what is a state's own stands out."""
    low, high = float(portraits.min()), float(portraits.max())
    if low >= 0 and 1 < high <= 255:  # bytes keep their own brightness
        low, high = 0.0, 255.0
    own = np.abs(portraits - portraits.mean(axis=0)).max(axis=-1, keepdims=True)
    own = np.clip(own / max(float(np.median(own.max(axis=(1, 2, 3)))), 1e-12) * 2 - 0.5, 0, 1)
    bright = 255 * (portraits - low) / max(high - low, 1e-12)
    return [in_colour(image) for image in (bright + 0.7 * (1 - own) * (255 - bright)).round().astype(np.uint8)]
