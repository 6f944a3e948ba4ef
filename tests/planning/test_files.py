"""Labels and groundings as files."""

import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.data import DatasetWriter
from craftrl.planning import Grounding, StateGraph, load_grounding, read_labels, save_grounding
from planning.line_world import LEFT, RIGHT, Reads, grounded

CELLS = [[1, 2, 3, 2, 1], [1, 0, 1], [2, 3]]
ACTIONS = [[RIGHT, RIGHT, LEFT, LEFT], [LEFT, RIGHT, RIGHT], None]  # one less than frames, as many, none at all


@pytest.fixture
def data(tmp_path):
    with DatasetWriter(tmp_path / "data") as writer:
        for agent, (cells, actions) in enumerate(zip(CELLS, ACTIONS)):
            own = None if actions is None else np.array(actions)
            writer.append(agent % 2, np.array(cells)[:, None], actions=own)
    return tmp_path / "data"


def graph(shared=True):
    rows = np.array([[1, 2, 3, 2, 1], [1, 0, 1, 0, 1]] * 30)
    return StateGraph.from_states(rows, np.zeros(60, int), sizes=(4,) if shared else (4,) * 5, shared=shared)


def test_labels_of_a_dataset_are_those_between_two_frames(data):
    tau = TrajectoryDataset.open(data)
    labels = read_labels(data, tau)
    assert (labels.actions.shape, labels.n_actions) == ((3, 4), 2)
    assert sorted(labels.actions.tolist()) == sorted([[1, 1, 0, 0], [0, 1, -1, -1], [-1, -1, -1, -1]])
    g = Grounding(graph(), labels.n_actions)
    assert labels.add_to(g, Reads(range(4))) == 6
    assert g.labels == [(0, 1, 1, 1), (1, 0, 0, 1), (1, 1, 2, 1), (2, 0, 1, 1), (2, 1, 3, 1), (3, 0, 2, 1)]
    few = Grounding(graph(), 2)
    assert read_labels(data, tau, 3).add_to(few, Reads(range(4))) == 3


def test_pairs_of_ones_own_may_say_their_step(data, tmp_path):
    tau = TrajectoryDataset.open(data)
    x = np.array([[[1], [2]], [[2], [3]], [[1], [2]]])
    np.savez(tmp_path / "own.npz", x=x, actions=[1.0, 1.0, -1.0], h=[1, 2, 1])
    g = Grounding(graph(shared=False), 2)
    assert read_labels(tmp_path / "own.npz", tau).add_to(g, Reads(range(4))) == 2
    named = [(g.graph.name(s), a, g.graph.name(t)) for s, a, t, _ in g.labels]
    assert named == [((1, 1), RIGHT, (2, 2)), ((2, 2), RIGHT, (3, 3))]


def test_labels_of_other_data_are_refused(data, tmp_path):
    tau = TrajectoryDataset.open(data)
    with DatasetWriter(tmp_path / "other") as writer:
        for agent in (0, 1):
            writer.append(agent, np.array([[1], [2]]), actions=np.array([1]))
    with pytest.raises(InvalidDataError, match="its episodes are not those of the data"):
        read_labels(tmp_path / "other", tau)
    with DatasetWriter(tmp_path / "silent") as writer:
        for agent, cells in enumerate(CELLS):
            writer.append(agent % 2, np.array(cells)[:, None])
    with pytest.raises(InvalidDataError, match="it has no actions"):
        read_labels(tmp_path / "silent", tau)
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 2, 5)), actions=[0, 0, 0])
    with pytest.raises(InvalidDataError, match=r"x has shape \(3, 2, 5\)"):
        read_labels(tmp_path / "own.npz", tau)


def test_a_grounding_comes_back_as_it_was(tmp_path):
    g = grounded(range(5), start=2, labels=40)
    save_grounding(tmp_path / "known.json", g, "model")
    again = load_grounding(tmp_path / "known.json", g.graph, "model")
    assert again.labels == g.labels
    assert again.n_labels == 40
    save_grounding(tmp_path / "known.json", again, "model")  # replaces an earlier one
    with pytest.raises(InvalidDataError, match="is of another one"):
        load_grounding(tmp_path / "known.json", g.graph, "other")
    small = StateGraph.from_states([[0, 1]], [0], shared=True)
    with pytest.raises(InvalidDataError, match=r"must name states 0..1, as in this data"):
        load_grounding(tmp_path / "known.json", small, "model")
    with pytest.raises(InvalidParameterError, match="model must be a text"):
        save_grounding(tmp_path / "known.json", g, None)


def test_a_grounding_replaces_nothing_but_a_grounding(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(InvalidDataError, match="must be a grounding that craftrl plan wrote"):
        save_grounding(tmp_path / "notes.txt", grounded(range(3), start=1, labels=3), "model")
    assert (tmp_path / "notes.txt").read_text() == "notes"
