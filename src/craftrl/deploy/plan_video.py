"""A video of plans as they are executed: what is seen on the left, the graph of learned states on the right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from craftrl.arguments import check_kind, quoted
from craftrl.arrays import Floats
from craftrl.data.dataset import TrajectoryDataset
from craftrl.deploy.video import Bytes, check_images, check_video, enlarged, in_colour, on_paper, write_video
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.figures import BLUE, GREEN, ORANGE
from craftrl.planning.acting import Episode, Planner
from craftrl.planning.graph import StateGraph

RED = "#c1121f"  # far from the orange of plans
TEXT, PALE, DIM, TRAIL = "#333333", "#e3e3e3", "#b4b4b4", "#9cc3dd"
SIDE = 288  # pixels that the longer side of a frame has at least
GRAPH, MARGIN = 340, 14  # pixels of the graph's width, and around it
LARGEST, ROOM_FOR_PICTURE, ROOM_FOR_NUMBER = 30, 13, 7  # pixels of a node's half side
FPS = 12  # frames a second
STILL, GLIDE, LAST = 8, 4, 18  # frames of a step, of which the marker is under way, and of the end of an episode
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
    planner: Planner,
    tau: TrajectoryDataset | None = None,
    *,
    goals: Sequence[frozenset[int]] = (),
    action_names: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Write episodes that a planner ran with `keep=True`, one after the other, to a GIF or a video.

    On the right are all states that the videos show, moves that no action is known to make paler. Blue is the likeliest
    state now, orange the plan from here on, green the goal, red a surprise: a state other than the planned one.

    planner       that ran them
    tau           videos, of which the mean frame of each state is drawn into the graph where there is room
    goals         the nodes that each episode looked for; by default those of its plans
    action_names  what the line below calls the actions; by default their numbers
    overwrite     whether a file that is there already is replaced
    """
    check_video(path, overwrite)
    write_video(path, plan_frames(episodes, planner, tau, goals, action_names), FPS)


def plan_frames(
    episodes: Episode | Sequence[Episode],
    planner: Planner,
    tau: TrajectoryDataset | None = None,
    goals: Sequence[frozenset[int]] = (),
    action_names: Sequence[str] = (),
) -> Iterator[Bytes]:
    """The frames of that video, (rows, columns, 3)."""
    check_kind("planner", planner, Planner, "a Planner")
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
    graph = planner.grounding.graph
    faces = None if tau is None else portraits(planner.model, tau, graph)
    height = max(_seen(episode.observations[0]).shape[0] for episode in played)
    needed = [node for e in played for node in chain(e.nodes, *(plan.nodes for plan in e.plans)) if node >= 0]
    drawing = GraphPicture(graph, GRAPH, height, faces, planner.grounding.grounded, needed)
    for episode, goal in zip_longest(played, goals[: len(played)]):
        moments = list(_moments(episode, goal))
        for k, (now, then) in enumerate(zip_longest(moments, moments[1:]), start=1):
            line = _text(graph, k, now, action_names, None if then else episode)
            seen = _seen(now.x)
            still = on_paper([seen, drawing.drawn(now)], line, "white")
            yield from [still] * (STILL if then else LAST)
            for share in np.arange(1, GLIDE + 1) / GLIDE if then else ():
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
        self.patches = require("matplotlib.patches", "plots")
        self.canvas = require("matplotlib.backends.backend_agg", "plots").FigureCanvasAgg(figure)
        self.axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.axis("off")
        nodes = np.union1d(np.unique(graph.edges), np.asarray(needed, dtype=np.int64))
        at = _layout(graph, nodes, portraits)
        room, span = np.array([width, height]) - 2 * MARGIN, np.ptp(at, axis=0)
        scale = room / np.maximum(span + np.where(span > 1e-6, 0.8, 0.0), 1)  # nodes at the edge need room
        middle = (at.max(axis=0) + at.min(axis=0)) / 2
        at = (at - middle) * (scale.min() if graph.shared else scale) + np.array([width, height]) / 2
        self.at = dict(zip(nodes.tolist(), at))
        apart = np.abs(at[:, None] - at).max(axis=-1) + np.diag(np.full(len(at), np.inf))
        self.half = float(np.clip(0.32 * apart.min(initial=np.inf), 2, LARGEST))
        moves = list(map(tuple, graph.edges.tolist()))
        sure = [True] * len(moves) if grounded is None else grounded.tolist()
        for known, (s, t) in sorted(zip(sure, moves)):
            one_way = graph.shared and (t, s) not in moves
            self.axes.add_artist(self._move(s, t, DIM if known else PALE, 1.6, 8 * one_way))
        self.canvas.draw()
        self.base = self.canvas.copy_from_bbox(figure.bbox)
        seen = [] if portraits is None else [node for node in self.at if np.isfinite(portraits[node]).all()]
        pictures = {} if portraits is None else dict(zip(seen, _paled(portraits[seen])))
        self.nodes = [a for n in self.at for a in self._node(self.at[n], str(graph.name(n)[1]), pictures.get(n))]

    def drawn(self, now: Moment, then: int | None = None, share: float = 0.0) -> Bytes:
        """The graph with what stands out, (height, width, 3); `then` and `share`: how far the marker is on its way."""
        goal = sorted(now.goal & self.at.keys())
        lines = [self._move(s, t, TRAIL, 3) for s, t in pairwise(now.trail)]
        lines += [self._move(s, t, ORANGE, 4, 13) for s, t in pairwise(now.path)]
        rings = [self._square(self.at[node], 2, ORANGE, 2) for node in now.path]
        rings += [self._square(self.at[node], 4, GREEN, 3) for node in goal]
        if now.node >= 0:
            end = now.node if then is None or then < 0 else then
            at_goal = bool({now.node, end} & now.goal) and share in (0.0, 1.0)
            where = (1 - share) * self.at[now.node] + share * self.at[end]
            surprise = now.wanted is not None and share == 0
            rings.append(self._square(where, 7 if at_goal else 4, RED if surprise else BLUE, 4))
        self.canvas.restore_region(self.base)
        for artist in (*lines, *rings):
            self.axes.add_artist(artist)
        for artist in (*lines, *self.nodes, *rings):
            self.axes.draw_artist(artist)
        for artist in (*lines, *rings):
            artist.remove()
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def _move(self, s: int, t: int, colour: str, width: float, head: float = 0) -> Any:
        """A line from s to t; with a head its tip is where the node's square begins."""
        way = self.at[t] - self.at[s]
        tip = self.at[t] - bool(head) * way * (self.half + 3) / max(np.abs(way).max(), self.half + 3)
        look = {"arrowstyle": "-|>" if head else "-", "mutation_scale": max(head, 1), "linewidth": width * POINT}
        return self.patches.FancyArrowPatch(self.at[s], tip, color=colour, shrinkA=0, shrinkB=0, **look)

    def _square(self, at: Floats, outside: float, colour: str, width: float, **look: Any) -> Any:
        """The frame of a node, so many pixels outside of it."""
        side, look = self.half + outside, {"fill": False, **look}
        return self.patches.Rectangle(at - side, 2 * side, 2 * side, edgecolor=colour, linewidth=width * POINT, **look)

    def _node(self, at: Floats, number: str, picture: Bytes | None) -> list[Any]:
        """What a node is drawn with: its picture where there is room, and its number."""
        (x, y), half = at, self.half
        square, where = self._square(at, 0, DIM, 1.4, fill=True, facecolor="#f4f4f4"), {"ha": "center", "va": "center"}
        drawn = [self.axes.add_artist(square)]
        if picture is not None and half >= ROOM_FOR_PICTURE:
            extent = (x - half, x + half, y + half, y - half)
            drawn.append(self.axes.imshow(picture, extent=extent, aspect="auto", interpolation="nearest"))
            # beside the corner, where no line passes, and outside of the frames that may be around it
            x, y, where = x - half - max(4, half / 3), y - half - 2, {"ha": "right", "va": "top"}
        if half >= ROOM_FOR_NUMBER:
            drawn.append(self.axes.text(x, y, number, fontsize=min(12.0, 1.1 * half) * POINT, color=TEXT, **where))
        return drawn


def _layout(graph: StateGraph, nodes: NDArray[np.int64], portraits: NDArray[Any] | None) -> Floats:
    """Where the drawn nodes are, neighbours about 1 apart: from the moves alone, turned as the portraits lie."""
    if not graph.shared:  # a column for each step
        h = np.array([graph.step(node) for node in nodes.tolist()])
        first, size = np.searchsorted(h, h), np.bincount(h)[h]
        at = np.stack([h, np.arange(len(h)) - first - (size - 1) / 2], axis=1)
        return at / np.maximum(np.ptp(at, axis=0) / max(1, len(graph.sizes) - 1), 1e-9)
    far = shortest_path(graph.total, directed=False, unweighted=True)[np.ix_(nodes, nodes)]
    far = np.where(np.isfinite(far), far, far.max(where=np.isfinite(far), initial=0) + 2)  # parts lie apart
    # Classical scaling is where to begin: from a circle, four rooms would end up folded over one another.
    inner = far**2 - (far**2).mean(axis=0)
    value, vector = np.linalg.eigh(np.pad(inner.mean(axis=1, keepdims=True) - inner, (0, 1)))
    begin = (vector * np.sqrt(np.maximum(value, 0)))[:-1, -2:]
    distances = {i: dict(enumerate(row)) for i, row in enumerate(far.tolist())}
    layout = require("networkx", "graphs").kamada_kawai_layout
    placed = layout(range(len(nodes)), dist=distances, pos=dict(enumerate(begin)))
    z = np.array([complex(*placed[i]) for i in range(len(nodes))])
    s, t = np.searchsorted(nodes, graph.edges).T
    along = (z[t] - z[s])[s != t]
    z = (z - z.mean()) * np.exp(-0.25j * np.angle((along**4).sum()))  # lines point right, left, up or down
    z /= max(float(np.abs(along).mean()) if len(along) else 1.0, 1e-9)
    if portraits is not None:  # mirrored or turned by quarters
        meant = _where_they_differ(portraits[nodes])
        known = np.isfinite(meant)
        ways = [turn * way for way in (z, z.conj()) for turn in (1, 1j, -1, -1j)]
        off = np.where(known, meant - meant[known].mean() if known.any() else 0, 0)
        z = max(ways, key=lambda way: (way * off.conj()).real.sum())
    return np.stack([z.real, z.imag], axis=1)


def _where_they_differ(portraits: NDArray[Any]) -> NDArray[np.complex128]:
    """Where each portrait differs most from the mean of all: x to the right + 1j y down, NaN where unknown."""
    weight = ((portraits - np.nanmean(portraits, axis=0)) ** 2).sum(axis=-1)
    weight = np.where(weight >= weight.max(axis=(1, 2), keepdims=True) / 2, weight, 0.0 * weight)
    rows, columns = np.indices(weight.shape[1:])
    return (weight * (columns + 1j * rows)).sum(axis=(1, 2)) / np.maximum(weight.sum(axis=(1, 2)), 1e-12)


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
    return [in_colour(image) for image in (bright + 0.7 * (1 - own) * (255 - bright)).round().astype(np.uint8)]
