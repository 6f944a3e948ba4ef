"""Videos of plans: the graph looks as the frames do, and what stands out is where it should be."""

import dataclasses
from itertools import combinations, pairwise

import numpy as np
import pytest
from PIL import Image, ImageColor

from cli.gridworld import CENTRE, ExactModel, Grid, videos
from craftrl.deploy import write_plan
from craftrl.deploy.plan_video import BLUE, GREEN, ORANGE, RED, GraphPicture, Moment, plan_frames, portraits
from craftrl.envs.pixels import floor_plan
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning import Grounding, Planner, StateGraph, explore

SIDE = 288  # where the graph begins


@pytest.fixture(scope="module")
def played():
    """Moves, portraits, a planner, the videos, and an episode from the centre to the lower right corner."""
    model, (tau, _) = ExactModel(), videos()
    moves = StateGraph.from_model(model, tau)
    grounding = Grounding(moves, 4)
    explore(Grid(), model, grounding, steps=300)
    planner = Planner(model, grounding, learn=False)
    return moves, portraits(model, tau, moves), planner, tau, planner.run(Grid(), 8, seed=0, keep=True)


def where(picture, colour):
    """The middle of all pixels of this colour, (x, y); None where there are none."""
    hit = np.argwhere((np.abs(picture.astype(int) - ImageColor.getrgb(colour)) < 8).all(axis=-1))
    return None if not len(hit) else hit.mean(axis=0)[::-1]


def test_portraits_show_what_a_state_is_and_blur_the_rest(played):
    faces = played[1]
    for cell in range(9):
        row, column = divmod(cell, 3)
        red = faces[cell, ..., 0]
        assert (red[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] == 200).all()
        assert red.sum() == 800
    assert np.abs(faces[..., 1] - 49.5).max() < 25  # the noise is nearly its mean


def test_the_graph_lies_as_the_frames_do(played):
    moves, faces, *_ = played
    graph = GraphPicture(moves, 340, 288, faces)
    for cell in range(9):
        marked = graph.drawn(Moment(None, cell))
        x, y = where(marked, BLUE)
        assert abs((x - 170) / 85 - (cell % 3 - 1)) < 0.35
        assert abs((y - 144) / 85 - (cell // 3 - 1)) < 0.35


def test_four_rooms_are_drawn_side_by_side_and_not_folded_over_one_another():
    moves = floor_plan(7, "rooms").moves
    pairs = np.stack([np.repeat(np.arange(len(moves)), 4), moves.ravel()], axis=1)
    graph = StateGraph.from_states(pairs, np.zeros(len(pairs), int), shared=True)
    places = GraphPicture(graph, 340, 340).at
    apart = {pair: np.linalg.norm(places[pair[0]] - places[pair[1]]) for pair in combinations(places, 2)}
    lines = [apart[min(s, t), max(s, t)] for s, t in graph.edges.tolist() if s != t]
    assert min(apart.values()) > 0.6 * np.mean(lines)


def test_states_of_single_steps_lie_from_left_to_right():
    """Without portraits; a move that no action is known to make is paler."""
    states = np.array([[0, 0, 1, 1, 0], [0, 1, 0, 2, 1], [0, 1, 2, 0, 0], [0, 0, 0, 1, 1]])
    graph = StateGraph.from_states(states, [0, 0, 1, 1], min_share=0)
    drawing = GraphPicture(graph, 340, 288, grounded=np.arange(len(graph.edges)) > 0)
    places = np.array([where(drawing.drawn(Moment(None, node)), BLUE) for node in range(graph.n)])
    steps = np.array([graph.name(node)[0] for node in range(graph.n)])
    for h in range(1, 5):
        assert places[steps == h, 0].max() + 40 < places[steps == h + 1, 0].min()
        assert np.ptp(places[steps == h, 0]) < 3
    planned = drawing.drawn(Moment(None, 0, path=(0, 1), goal=frozenset({1})))
    assert np.linalg.norm(where(planned, GREEN) - places[1]) < 8
    assert (drawing.drawn(Moment(None, 0)) == drawing.drawn(Moment(None, 0))).all()  # nothing of before is left


def test_the_plan_and_the_goal_stand_out_and_the_marker_moves(played):
    _, _, planner, tau, episode = played
    frames = list(plan_frames(episode, planner, tau))
    assert len(frames) == 12 * 2 + 18  # two steps of a second, and the end
    graphs = [image[:SIDE, SIDE:] for image in (frames[0], frames[12], frames[-1])]
    places = [where(graph, BLUE) for graph in graphs]
    assert np.linalg.norm(places[1] - places[0]) > 40
    assert np.linalg.norm(places[2] - places[1]) > 40
    assert all(np.linalg.norm(where(graph, GREEN) - places[2]) < 8 for graph in graphs)
    assert all(where(graph, ORANGE) is not None for graph in graphs[:2])  # what is left of the plan
    assert where(graphs[-1], RED) is None
    between = [where(image[:SIDE, SIDE:], BLUE) for image in frames[8:12]]
    steps = [np.linalg.norm(b - a) for a, b in pairwise(between)]
    assert all(step > 1 for step in steps)


def test_a_surprise_is_red_and_named(played):
    _, _, planner, tau, episode = played
    other = next(node for node in (3, 1) if node not in episode.nodes)
    first = dataclasses.replace(episode.plans[0], nodes=(CENTRE, other, *episode.plans[0].nodes[2:]))
    then = dataclasses.replace(episode.plans[0], nodes=episode.plans[0].nodes[1:], actions=episode.plans[0].actions[1:])
    surprised = dataclasses.replace(episode, plans=(first, then), surprises=(2,))
    frames = list(plan_frames(surprised, planner, tau))
    assert where(frames[0][:SIDE, SIDE:], RED) is None
    assert where(frames[12][:SIDE, SIDE:], RED) is not None
    assert where(frames[12][SIDE:], RED) is not None  # in the line below
    assert where(frames[12][:SIDE, SIDE:], ORANGE) is not None  # the new plan


def test_a_gif_is_written_whole_with_its_colours(played, tmp_path):
    _, _, planner, tau, episode = played
    write_plan(tmp_path / "plan.gif", [episode, episode], planner, tau, action_names=["up"])
    with Image.open(tmp_path / "plan.gif") as image:
        assert image.size == (SIDE + 340, SIDE + 30)
        shown = np.asarray(image.convert("RGB"))
    for colour in (BLUE, GREEN, ORANGE):
        assert where(shown, colour) is not None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda one: {"episodes": dataclasses.replace(one, observations=())}, "keep=True"),
        (
            lambda one: {"episodes": dataclasses.replace(one, observations=tuple(x.ravel() for x in one.observations))},
            "A video needs images",
        ),
        (lambda one: {"episodes": []}, "must be an episode to draw"),
        (lambda one: {"planner": None}, "planner must be a Planner"),
        (lambda one: {"tau": np.zeros((3, 6, 6, 3))}, "tau must be a TrajectoryDataset"),
        (lambda one: {"action_names": "up"}, "action_names must be a list of texts"),
        (lambda one: {"path": "plan.png"}, r"NAME\.mp4 or NAME\.mkv or NAME\.gif"),
    ],
)
def test_what_cannot_be_drawn_is_said(played, tmp_path, monkeypatch, given, sentence):
    monkeypatch.chdir(tmp_path)
    _, _, planner, _, episode = played
    with pytest.raises((InvalidDataError, InvalidParameterError), match=sentence):
        write_plan(**{"path": "plan.gif", "episodes": episode, "planner": planner, **given(episode)})
    assert not list(tmp_path.iterdir())
