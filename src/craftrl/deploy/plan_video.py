"""A video of plans as they are executed: what is seen on the left, the graph of learned states on the right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_number, shown
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_new
from craftrl.deploy.canvas import Bytes, check_images, check_video, enlarged, even, in_colour, write_video
from craftrl.deploy.plan_graph import BLUE, GREEN, INKS, ORANGE, PAPER, RED, TEXT, GraphPicture, Highlights
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.acting import Episode
from craftrl.planning.graph import StateGraph
from craftrl.planning.plan import Plan

__all__ = ["plan_frames", "portraits", "write_plan"]

SIDE = 288  # pixels that the longer side of a frame has at least
GRAPH = 340  # pixels of the graph's width
LINE = 34  # pixels of the line of text below
FPS, GLIDE = 12, 0.35  # frames a second, and the share of a step during which the marker is under way
STAY = 1.5  # steps that the last picture of an episode stays
MOST = 8  # states of a plan that the line names
SAMPLE = 500  # trajectories that portraits are made from


def write_plan(
    path: str | os.PathLike[str],
    episodes: Episode | Sequence[Episode],
    moves: StateGraph,
    *,
    goals: Sequence[frozenset[int]] = (),
    portraits: NDArray[Any] | None = None,
    grounded: NDArray[np.bool_] | None = None,
    action_names: Sequence[str] = (),
    seconds: float = 1.0,
    overwrite: bool = False,
) -> None:
    """Write episodes that a `Planner` ran with `keep=True`, one after the other, to a GIF or a video.

    On the right are all states that the videos show. Blue is the state that the encoder reads now, orange the plan from
    here on, green the goal, red a surprise: a state other than the planned one.

    goals         the nodes that each episode looked for; by default those of its plans
    portraits     what each state looks like, as `portraits` gives it; drawn into the graph where there is room
    grounded      which moves some action is known to make (`Grounding.grounded`); the others are paler
    action_names  what the line below calls the actions; by default their numbers
    seconds       how long a step takes in the video
    overwrite     whether a file that is there already is replaced
    """
    check_video(path)
    check_new(path, "video", overwrite)
    write_video(path, plan_frames(episodes, moves, goals, portraits, grounded, action_names, seconds), FPS, INKS)


def plan_frames(
    episodes: Episode | Sequence[Episode],
    moves: StateGraph,
    goals: Sequence[frozenset[int]] = (),
    portraits: NDArray[Any] | None = None,
    grounded: NDArray[np.bool_] | None = None,
    action_names: Sequence[str] = (),
    seconds: float = 1.0,
) -> Iterator[Bytes]:
    """The frames of that video, (rows, columns, 3)."""
    check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    check_number("seconds", seconds, "a number above 0, up to 60", lambda value: 0 < value <= 60)
    played = [episodes] if isinstance(episodes, Episode) else _listed("episodes", episodes, Episode)
    if not played:
        raise InvalidDataError("There must be an episode to draw; none was given.")
    for episode in played:
        if not episode.observations or len(episode.observations) != len(episode.nodes):
            raise InvalidDataError(
                "An episode to draw must hold its observations; this one does not; run the planner with keep=True."
            )
        check_images(np.shape(episode.observations[0]))
    aims = _listed("goals", goals, (set, frozenset))
    if portraits is not None:
        shape = _shape("portraits", portraits)
        if len(shape) != 4 or shape[0] != moves.n or shape[-1] not in (1, 3):
            raise InvalidDataError(
                f"portraits must be one image for each of {moves.n} states; shape {shape} was given; make them "
                "with craftrl.deploy.plan_video.portraits."
            )
    if grounded is not None and _shape("grounded", grounded) != (len(moves.edges),):
        raise InvalidDataError(
            f"grounded must say yes or no of each of {len(moves.edges)} moves; {shown(grounded)} was given."
        )
    names = _listed("action_names", action_names, str)
    return _drawn(played, moves, aims, portraits, grounded, names, seconds)


def _shape(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise InvalidDataError(f"{name} must be numbers in an array; {shown(value)} was given.")
    return value.shape


def _listed(name: str, values: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """A list of things of one kind; a text is no list."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, kind) for value in values):
        what = {Episode: "episodes, as Planner.run gives them", str: "texts"}.get(kind, "sets of nodes")  # type: ignore[arg-type]
        raise InvalidParameterError(f"{name} must be a list of {what}; {shown(values)} was given.")
    return list(values)


def portraits(model: Any, tau: TrajectoryDataset, moves: StateGraph, n: int = SAMPLE) -> NDArray[np.float64]:
    """The mean frame of every state, (N, *observation), NaN where none was seen: from up to n trajectories.

    What the state decides is sharp in it, and what it does not is blurred.
    """
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    total, count = np.zeros((moves.n, *tau.obs_shape)), np.zeros(moves.n)
    for h, k in product(range(1, tau.H + 1), range(tau.K)):
        rows = tau.agent_slice(k)
        stop = min(rows.stop, rows.start + -(-n // tau.K))
        there = tau.lengths[rows.start : stop] >= h
        x = tau.at(h, slice(rows.start, stop))[there]
        nodes = np.array([moves.node(state, h) for state in model.encode(x, h).tolist()] if len(x) else [], int)
        np.add.at(total, nodes[nodes >= 0], x[nodes >= 0])
        count += np.bincount(nodes[nodes >= 0], minlength=len(count))
    return total / np.where(count > 0, count, np.nan).reshape(-1, *(1,) * len(tau.obs_shape))


@dataclass(frozen=True)
class Moment:
    """One step of an episode: what is seen, where that is, and the plan from there on.

    node    the likeliest state
    read    the state that the encoder reads, which a misread frame makes another one; -1 for none
    path    nodes of the plan, this one first
    action  what is done here; None at the end
    trail   nodes visited before, and this one
    wanted  the planned node, where another one was read
    """

    x: NDArray[Any]
    node: int
    read: int
    path: tuple[int, ...]
    goal: frozenset[int]
    action: int | None
    trail: tuple[int, ...]
    wanted: int | None = None


def _drawn(
    episodes: Sequence[Episode],
    moves: StateGraph,
    goals: Sequence[frozenset[int]],
    pictures: NDArray[Any] | None,
    grounded: NDArray[np.bool_] | None,
    action_names: Sequence[str],
    seconds: float,
) -> Iterator[Bytes]:
    height = max(enlarged(in_colour(np.asarray(e.observations[0])), SIDE).shape[0] for e in episodes)
    needed = [node for e in episodes for node in (*e.nodes, *(n for plan in e.plans for n in plan.nodes)) if node >= 0]
    graph = GraphPicture(moves, GRAPH, height, pictures, grounded, needed)
    step, glide = max(2, round(FPS * seconds)), max(1, round(FPS * seconds * GLIDE))
    for i, episode in enumerate(episodes):
        moments = list(_moments(episode, goals[i] if i < len(goals) else None))
        for k, (now, then) in enumerate(zip(moments, [*moments[1:], None])):
            line = _text(moves, k + 1, now, action_names, None if then else episode)
            still = _whole(now, graph.drawn(_highlights(now, now.node, 0.0)), line)
            if then is None:
                yield from [still] * round(STAY * step)
                break
            yield from [still] * (step - glide)
            for share in np.arange(1, glide + 1) / glide:
                eased = float(share * share * (3 - 2 * share))
                yield _whole(now, graph.drawn(_highlights(now, then.node, eased)), line)


def _highlights(now: Moment, then: int, share: float) -> Highlights:
    surprise = now.wanted is not None and share == 0
    return Highlights((now.node, then, share), now.path, now.goal, now.trail, surprise)


def _whole(now: Moment, graph: Bytes, line: Sequence[tuple[str, str]]) -> Bytes:
    """What is seen, the graph beside it, and the line below."""
    from PIL import Image, ImageDraw, ImageFont

    seen = enlarged(in_colour(np.asarray(now.x)), SIDE)
    picture = Image.new("RGB", (seen.shape[1] + graph.shape[1], graph.shape[0] + LINE), PAPER)
    picture.paste(Image.fromarray(seen), (0, 0))
    picture.paste(Image.fromarray(graph), (seen.shape[1], 0))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=16)
    x = 8.0
    for text, colour in line:
        draw.text((x, graph.shape[0] + 8), text, fill=colour, font=font)
        x += draw.textlength(text, font=font) + 14
    return even(np.asarray(picture))


def _moments(episode: Episode, goal: frozenset[int] | None) -> Iterator[Moment]:
    """The steps of an episode, each with the plan that was in force there.

    A plan is followed as long as it leads where one is; then the next one begins, or something is tried first.
    """
    coming, done = list(episode.plans), 0
    plan: Plan | None = None
    trail: list[int] = []
    for k, (read, x) in enumerate(zip(episode.nodes, episode.observations)):
        node = (episode.believed or episode.nodes)[k]
        node = node if node >= 0 else trail[-1] if trail else -1
        trail += [node] if node >= 0 else []
        action = episode.actions[k] if k < len(episode.actions) else None
        ahead: tuple[int, ...] = plan.nodes[done:] if plan is not None else ()
        wanted = ahead[0] if ahead and k + 1 in episode.surprises else None
        if ahead[:1] != (node,) or (len(ahead) == 1 and action is not None):
            plan, done = None, 0
            if coming and coming[0].nodes[0] == node and coming[0].actions[:1] == (action,):
                plan = coming.pop(0)
            ahead = plan.nodes if plan is not None else ()
        aim = goal if goal is not None else episode.plans[-1].goal if episode.plans else frozenset()
        yield Moment(x, node, read, tuple(ahead), frozenset(aim), action, tuple(trail), wanted)
        done += 1


def _text(
    moves: StateGraph, step: int, now: Moment, names: Sequence[str], ended: Episode | None
) -> list[tuple[str, str]]:
    """The line below, in parts of one colour each."""

    def name(node: int) -> str:
        return str(moves.name(node)[1])

    misread = "" if now.read in (now.node, -1) else f" (read as {name(now.read)})"
    parts = [(f"step {step}", TEXT), (f"state {name(now.node) if now.node >= 0 else '?'}{misread}", BLUE)]
    if now.wanted is not None:
        parts.append((f"surprise, {name(now.wanted)} was planned", RED))
    if now.action is not None:
        parts.append((f"action {names[now.action] if now.action < len(names) else now.action}", TEXT))
    if len(now.path) > 1:
        ways = [name(node) for node in now.path[1:]]
        parts.append((f"plan {', '.join(ways if len(ways) <= MOST else [*ways[:MOST], '...'])}", ORANGE))
    if ended is not None:
        parts.append(("goal reached", GREEN) if ended.reached else (f"goal missed: {ended.stopped}", RED))
    elif now.goal:
        parts.append((f"goal {' or '.join(name(node) for node in sorted(now.goal)[:3])}", GREEN))
    return parts
