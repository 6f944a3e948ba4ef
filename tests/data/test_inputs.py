"""Whatever `fit` accepts is the same dataset; rows keep the caller's order; what it does not accept, it says."""

from pathlib import Path

import numpy as np
import pytest

from craftrl import InvalidDataError, TrajectoryDataset
from craftrl.data.inputs import as_dataset, as_trajectories

RNG = np.random.default_rng(0)
X = RNG.integers(5, size=(7, 3, 2))
AGENT = np.array([0, 0, 0, 1, 1, 1, 1])
TAU = TrajectoryDataset.from_arrays([X[:3], X[3:]])


def same(tau, expected):
    assert tau.agent.tolist() == expected.agent.tolist()
    assert tau.lengths.tolist() == expected.lengths.tolist()
    assert tau.H == expected.H
    assert tau.dtype == expected.dtype
    assert all(np.array_equal(tau.at(h), expected.at(h)) for h in range(1, expected.H + 1))


FORMS = {
    "array and labels": lambda folder: (X, AGENT),
    "list of trajectories and labels": lambda folder: (list(X), AGENT.tolist()),
    "nested lists": lambda folder: (X.tolist(), tuple(AGENT)),
    "one array per agent": lambda folder: ([X[:3], X[3:]],),
    "one list of arrays per agent": lambda folder: ([list(X[:3]), list(X[3:])],),
    "a tuple of arrays": lambda folder: ((X[:3], X[3:]),),
    "nested lists per agent": lambda folder: ([X[:3].tolist(), X[3:].tolist()],),
    "dataset": lambda folder: (TAU,),
    "path of a folder": lambda folder: (saved(folder / "data"),),
    "path as text": lambda folder: (str(saved(folder / "text")),),
}


def saved(path):
    TAU.save(path)
    return Path(path)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_dataset(form, tmp_path):
    data = as_dataset(*FORMS[form](tmp_path))
    same(data.tau, TAU)
    assert data.rows.tolist() == list(range(7))
    assert data.names == (0, 1)


def test_arrays_are_not_copied():
    x = np.zeros((6, 3, 2))
    for given in ((x, [1, 0, 1, 0, 1, 1]), ([x[:2], x[2:]],), ([list(x[:2]), list(x[2:])],)):
        tau = as_dataset(*given).tau
        assert all(np.shares_memory(tau.episode(i), x) for i in range(6))
        assert all(np.shares_memory(tau.select([5, 0]).first_steps(2).episode(i), x) for i in range(2))


def test_rows_in_any_order_are_grouped_and_put_back():
    order = np.array([6, 2, 0, 3, 5, 1, 4])
    data = as_dataset(X[order], AGENT[order])
    assert data.tau.agent.tolist() == AGENT.tolist()
    assert np.array_equal(data.tau.at(2), X[order][data.rows][:, 1])
    values = np.arange(14).reshape(7, 2)
    assert np.array_equal(data.as_given(data.as_grouped(values)), values)
    assert np.array_equal(data.as_grouped(data.as_given(values)), values)
    assert np.array_equal(data.as_given(data.tau.agent), AGENT[order])
    first = [i for i in range(7) if AGENT[order][i] == 0]
    assert data.rows[:3].tolist() == first  # each agent's rows keep their order


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["b", "b", "b", "a", "a", "a", "a"], ("a", "b")),
        ([7, 7, 7, -2, -2, -2, -2], (-2, 7)),
        ([1.5, 1.5, 1.5, 0.5, 0.5, 0.5, 0.5], (0.5, 1.5)),
        ([True, True, True, False, False, False, False], (False, True)),
        (np.array(["b", "b", "b", "a", "a", "a", "a"], dtype=object), ("a", "b")),
        ([np.int64(3), 3, 3, np.int8(1), 1, 1, 1], (1, 3)),
    ],
)
def test_agents_may_be_called_anything_and_are_sorted_by_name(labels, names):
    data = as_dataset(X, labels)
    assert data.names == names
    assert data.tau.counts.tolist() == [4, 3]
    assert np.array_equal(data.tau.at(1)[:4], X[3:, 0])


def test_episodes_of_unequal_length_with_labels():
    episodes = [row[: 1 + i % 3] for i, row in enumerate(X)]
    order = [4, 0, 6, 2, 5, 1, 3]
    data = as_dataset([episodes[i] for i in order], ["ab"[AGENT[i]] for i in order])
    expected = TrajectoryDataset.from_episodes([[episodes[i] for i in order if AGENT[i] == k] for k in (0, 1)])
    same(data.tau, expected)
    assert data.as_given(data.tau.lengths).tolist() == [len(episodes[i]) for i in order]
    same(as_dataset([episodes[:3], episodes[3:]]).tau, TrajectoryDataset.from_episodes([episodes[:3], episodes[3:]]))


def test_trajectories_without_labels(tmp_path):
    TAU.save(tmp_path / "data")
    by_agent = [X[:3], X[3:]]
    for form in (
        X,
        list(X),
        X.tolist(),
        by_agent,
        tuple(by_agent),
        [list(x) for x in by_agent],
        TAU,
        tmp_path / "data",
    ):
        tau = as_trajectories(form, 1)
        assert np.array_equal(tau.rows(np.arange(7)), X)
        assert tau.all_present
    short = TrajectoryDataset.from_episodes([[X[0], X[1, :2]], [X[2]]])
    assert as_trajectories(short, 1).present(3).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, AGENT[:-1]), r"one agent label per trajectory; 7 trajectories and labels of shape \(6,\) were given"),
        ((X, AGENT[:, None]), r"labels of shape \(7, 1\)"),
        ((X, 3), r"labels of shape \(\)"),
        ((X, [[0], [0, 1]]), "one agent label per trajectory; 7 trajectories and labels of unequal rows"),
        ((X, np.ma.masked_equal(AGENT, 1)), "one agent label per trajectory"),
        ((X, [0, 0, 0, 1, 1, 1, np.nan]), r"some are missing \(None, NaN\); drop those rows"),
        ((X, ["a", "a", "a", "b", "b", "b", None]), r"some are missing \(None, NaN\)"),
        ((X, ["a", "a", "a", "b", "b", "b", float("nan")]), r"some are missing \(None, NaN\)"),
        ((X, ["a", "a", "a", 1, 1, 1, 1]), "all be numbers, or all be names; labels of type int, str were given"),
        ((X, np.array(["a", 1, 1, 1, 1, 1, 1], dtype=object)), "labels of type int, str were given"),
        ((X, [(0, 1)] * 7), r"labels of shape \(7, 2\)"),
        ((X, np.zeros(7)), "at least two agents; those of 1 were given"),
        ((X[:0], AGENT[:0]), "at least two agents; those of 0 were given"),
        (([X],), "at least two agents; those of 1 were given"),
        ((X,), r"needs the agent of each trajectory; shape \(7, 3, 2\) was given alone; call fit\(x, agent\)"),
        ((TAU, AGENT), "A dataset knows its agents; leave out the labels"),
        (("data.h5", AGENT), "A dataset knows its agents; leave out the labels"),
        ((None,), "or the path of one; NoneType was given"),
        ((7,), "or the path of one; int was given"),
        (({"a": X},), "or the path of one; dict was given"),
        (
            (None, AGENT),
            "those of all trajectories have dtype object; convert or fill them",
        ),
        (("nowhere", None), "nowhere"),
        ((X[0, 0], [0, 1]), r"must have shape \(trajectories, steps, ...\); shape \(2,\) was given"),
        (([], []), r"shape \(0,\) was given"),
        ((X[:, :1], AGENT), "at least two steps; these have one"),
        ((np.where(X[0, 0, 0] == X, np.nan, X), AGENT), "must be finite; those of all trajectories contain NaN"),
        (([X[0], X[1, :, :1]], [0, 1]), r"must have one shape; shapes \(2,\) and \(1,\) were given"),
        (([X[0], X[1, :2, :1]], [0, 1]), r"must have one shape; shapes \(2,\) and \(1,\) were given"),
        (([[[1, 2], [3]], [[1, 2], [3, 4]]], [0, 1]), "those of trajectory 0 have dtype object"),
        (
            ([["a", "b"], ["c", "d"]], [0, 1]),
            "must be numbers in an array, none of them masked; those of all",
        ),
        (([X[0], np.zeros((0, 2))], [0, 1]), "at least one observation; an empty one was given"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(given, message):
    with pytest.raises(InvalidDataError, match=message):
        as_dataset(*given)


@pytest.mark.parametrize("form", [[X[0], X[1, :2], X[2]], [[X[0], X[1, :2]], [X[2]]], [X[0].tolist(), X[1, :2], X[2]]])
def test_trajectories_of_unequal_length_without_labels(form):
    tau = as_trajectories(form, 1)
    assert tau.lengths.tolist() == [3, 2, 3]
    assert np.array_equal(tau.at(2), X[:3, 1])


@pytest.mark.parametrize("form", [[X[0, 0]], [X[0], X[1, :0]], [X[0], 3]])
def test_what_is_no_trajectory_is_refused(form):
    with pytest.raises(InvalidDataError, match=r"A trajectory must have 2 axes, \(steps, ...\), and at least one step"):
        as_trajectories(form, 1)


def test_a_tensor_with_a_gradient_is_no_array():
    tensor = pytest.importorskip("torch").ones(2, requires_grad=True)
    for given in ((X[:2], tensor), (tensor, [0, 1])):
        with pytest.raises(InvalidDataError, match="must"):
            as_dataset(*given)
    with pytest.raises(InvalidDataError, match="Every agent must have an array or a list"):
        TrajectoryDataset.from_arrays(tensor)


def test_a_list_that_holds_itself_is_no_data():
    endless = []
    endless.append(endless)
    with pytest.raises(InvalidDataError, match="at least two agents"):
        as_dataset(endless)
    with pytest.raises(InvalidDataError, match="A trajectory must have 2 axes"):
        as_trajectories(endless, 1)


@pytest.mark.parametrize("label", [[0, 2**40], [1, 2], [-1, 0], [0, 1, 1]])
def test_agents_that_are_left_out(label):
    with pytest.raises(InvalidDataError, match=r"Each of the 2 trajectories must have an agent, 0\.\.K-1, and each of"):
        TAU.select([0, 5], label)
