"""tau: whoever gives it, and wherever it lies, a dataset is the list of its episodes; what is none is refused."""

import pickle
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.data import DatasetWriter, store
from craftrl.data.inputs import as_dataset, as_trajectories
from data.literal import assert_is, by_agent, trajectories

X = np.random.default_rng(0).integers(5, size=(7, 3, 2))
AGENT = np.array([0, 0, 0, 1, 1, 1, 1])
TAU = TrajectoryDataset.from_arrays([X[:3], X[3:]])
ZEROS = np.zeros((3, 4, 2))


# -- what is in a dataset ---------------------------------------------------------------------------------------------


def padded(agent, episodes, path):
    """One array for each agent, with what lies past the ends."""
    H, own = max(map(len, episodes)), by_agent(agent, episodes)
    filled = [np.stack([np.concatenate([x, np.ones((H, *x.shape[1:]), x.dtype)])[:H] for x in mine]) for mine in own]
    return TrajectoryDataset.from_arrays(filled, [len(x) for mine in own for x in mine])


def written(agent, episodes, path):
    """A folder of several files; agents take turns, and every third episode comes in parts."""
    with patch.object(store, "FILE_BYTES", 400), DatasetWriter(path) as writer:
        for i, x in enumerate(episodes):
            parts = np.array_split(x, min(1 + 2 * (i % 3 == 0), len(x)))
            for part in parts:
                writer.append(agent[i], part, source=str(i), goes_on=part is not parts[-1])
    return TrajectoryDataset.open(path)


def saved(agent, episodes, path):
    """And opened by another process."""
    TrajectoryDataset.from_episodes(by_agent(agent, episodes)).save(path)
    return pickle.loads(pickle.dumps(TrajectoryDataset.open(path)))


HOLDERS = {
    "lists": lambda agent, x, path: TrajectoryDataset.from_episodes(by_agent(agent, x)),
    "labels": lambda agent, x, path: as_dataset(x, agent).tau,
    "padded arrays": padded,
    "disk": written,
    "saved": saved,
}


@pytest.mark.parametrize("holder", HOLDERS)
@settings(max_examples=25)
@given(given=trajectories(), data=st.data())
def test_a_dataset_is_the_list_of_its_episodes(holder, given, data, tmp_path_factory):
    """And so is each choice, order, regrouping and cut of it."""
    agent, episodes = given
    tau = HOLDERS[holder](agent, episodes, tmp_path_factory.mktemp("data") / "data")
    assert_is(tau, agent, episodes)
    whole = [x for mine in by_agent(agent, episodes) for x in mine]
    order = data.draw(st.permutations(range(tau.n)))
    assert_is(tau.select(order), [int(tau.agent[i]) for i in order], [whole[i] for i in order])
    label = data.draw(st.permutations([i % 2 for i in range(tau.n)]))
    assert_is(tau.select(order, label), label, [whole[i] for i in order])
    assert_is(tau.select(np.ones(tau.n, bool)), agent, episodes)
    H = data.draw(st.integers(2, tau.H))
    assert_is(tau.first_steps(H), agent, [x[:H] for x in episodes])
    memory = TrajectoryDataset.from_episodes(by_agent(agent, episodes))
    assert tau.fingerprint() == memory.fingerprint()


def test_blocks_begin_at_multiples_of_64_of_an_agents_trajectories():
    x = np.random.default_rng(0).integers(0, 255, size=(500, 2, 7)).astype(np.uint8)
    for h in (None, 2):
        blocks = list(TrajectoryDataset.from_arrays([x, x]).blocks(7 * 300, h))
        assert len(blocks) > 3
        assert {rows.start % 500 % 64 for rows, _ in blocks} == {0}


def test_agents_arrays_of_unequal_length():
    x = [np.arange(24).reshape(3, 4, 2), np.arange(20).reshape(2, 5, 2)]
    assert_is(TrajectoryDataset.from_arrays(x), [0, 0, 0, 1, 1], [*x[0], *x[1]])


def test_single_frames_of_many_episodes():
    tau = TrajectoryDataset.from_episodes([[np.array([[i], [10 * i]]) for i in range(k, k + 50)] for k in (0, 50)])
    assert tau.at(2, [70, 3]).tolist() == [[700], [30]]


@pytest.mark.parametrize(
    ("first", "second", "reached"),
    [
        ([4] * 5, [4] * 5, 4),  # few trajectories, all of one length
        ([4] * 5, [4] * 3 + [3] * 2, 4),  # fewer than a hundred: half must reach it
        ([4] * 5, [4] * 2 + [3] * 3, 3),
        ([4] * 1000, [4] * 49 + [3] * 951, 3),  # many: fifty
        ([4] * 1000, [4] * 50 + [3] * 950, 4),
        ([4] * 5, [1] * 5, 2),
    ],
)
def test_the_last_step_that_enough_reach(first, second, reached):
    tau = TrajectoryDataset.from_episodes([[np.zeros((n, 1)) for n in lengths] for lengths in (first, second)])
    assert tau.well_reached() == reached


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda tau, h=h: tau.at(h), r"h must be one of 1..4; h = ") for h in (0, 5, -1)),
        *((lambda tau, i=i: tau.episode(i), r"i must be one of 0..5") for i in (-1, 6, 0.5, True)),
        *((lambda tau, H=H: tau.first_steps(H), r"horizon must lie in 2\.\.4") for H in (1, 5)),
        (lambda tau: tau.rows([6]), r"index must hold numbers in 0..5; \[6\] was given"),
        (lambda tau: tau.select(np.zeros(6, bool)), r"index must hold numbers in 0..5, one at least"),
        (lambda tau: tau.select([True]), r"index must hold numbers in 0..5"),
        (lambda tau: tau.select([0, 1], [0, 0]), "at least two agents; those of 1 were given"),
        *(
            (lambda tau, label=label: tau.select([0, 5], label), r"Each of the 2 .* must have an agent, 0\.\.K-1")
            for label in ([0, 2**40], [1, 2], [-1, 0], [0, 1, 1])
        ),
        *(
            (lambda tau, n=n: TrajectoryDataset.from_arrays([ZEROS, ZEROS], n), "lengths? ")
            for n in ([4, 4], [0, 4, 4, 4, 4, 4], [5, 4, 4, 4, 4, 4], "long")
        ),
    ],
)
def test_what_is_not_there_is_refused(call, message):
    with pytest.raises((InvalidParameterError, InvalidDataError), match=message):
        call(TrajectoryDataset.from_arrays([ZEROS, ZEROS]))


# -- what callers give ------------------------------------------------------------------------------------------------


FORMS = {
    "array and labels": lambda path: (X, AGENT),
    "list of trajectories and labels": lambda path: (list(X), AGENT.tolist()),
    "nested lists": lambda path: (X.tolist(), tuple(AGENT)),
    "one array per agent": lambda path: ([X[:3], X[3:]],),
    "one list of arrays per agent": lambda path: ([list(X[:3]), list(X[3:])],),
    "a tuple of arrays": lambda path: ((X[:3], X[3:]),),
    "nested lists per agent": lambda path: ([X[:3].tolist(), X[3:].tolist()],),
    "dataset": lambda path: (TAU,),
    "path": lambda path: (path,),
    "path as text": lambda path: (str(path),),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_dataset(form, tmp_path):
    TAU.save(tmp_path / "data")
    given = FORMS[form](tmp_path / "data")
    data = as_dataset(*given)
    assert_is(data.tau, AGENT.tolist(), list(X))
    assert (data.rows.tolist(), data.tau.names) == (list(range(7)), (0, 1))
    assert np.array_equal(as_trajectories(given[0], 1).rows(np.arange(7)), X)


@pytest.mark.parametrize("form", [[X[0], X[1, :2], X[2]], [[X[0], X[1, :2]], [X[2]]], [X[0].tolist(), X[1, :2], X[2]]])
def test_trajectories_without_an_agent_keep_their_order(form):
    assert_is(as_trajectories(form, 1), [0, 0, 0], [X[0], X[1, :2], X[2]])


def test_arrays_are_not_copied():
    x = np.zeros((6, 3, 2))
    for form in ((x, [1, 0, 1, 0, 1, 1]), ([x[:2], x[2:]],), ([list(x[:2]), list(x[2:])],)):
        tau = as_dataset(*form).tau
        assert all(np.shares_memory(tau.episode(i), x) for i in range(6))
        assert all(np.shares_memory(tau.select([5, 0]).first_steps(2).episode(i), x) for i in range(2))


def test_rows_in_any_order_are_grouped_and_put_back():
    order = np.array([6, 2, 0, 3, 5, 1, 4])
    data = as_dataset(X[order], AGENT[order])
    assert data.rows.tolist() == [1, 2, 5, 0, 3, 4, 6]  # each agent's rows keep their order
    values = np.arange(14).reshape(7, 2)
    assert np.array_equal(data.as_given(data.as_grouped(values)), values)
    assert np.array_equal(data.as_given(data.tau.agent), AGENT[order])


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
    assert data.tau.names == names
    assert_is(data.tau, (1 - AGENT).tolist(), list(X))


ENDLESS: list = []
ENDLESS.append(ENDLESS)


class Tensor:
    """As of torch, with a gradient."""

    def __array__(self, *given, **more):
        raise RuntimeError("call detach first")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, AGENT[:-1]), r"one agent label per trajectory; 7 trajectories and labels of shape \(6,\) were given"),
        ((X, [[0], [0, 1]]), "one agent label per trajectory; 7 trajectories and labels of unequal rows"),
        ((X, Tensor()), "one agent label per trajectory"),
        ((Tensor(), AGENT), "those of all trajectories have dtype object"),
        ((X, np.ma.masked_equal(AGENT, 1)), "one agent label per trajectory"),
        ((X, [0, 0, 0, 1, 1, 1, np.nan]), r"some are missing \(None, NaN\); drop those rows"),
        ((X, ["a", "a", "a", "b", "b", "b", None]), r"some are missing \(None, NaN\)"),
        ((X, ["a", "a", "a", 1, 1, 1, 1]), "all be numbers, or all be names; labels of type int, str were given"),
        ((X, np.array(["a", 1, 1, 1, 1, 1, 1], dtype=object)), "labels of type int, str were given"),
        ((X, np.zeros(7)), "at least two agents; those of 1 were given"),
        ((X,), r"needs the agent of each trajectory; shape \(7, 3, 2\) was given alone; call fit\(x, agent\)"),
        ((TAU, AGENT), "A dataset knows its agents; leave out the labels"),
        ((None,), "or the path of one; NoneType was given"),
        (({"a": X},), "or the path of one; dict was given"),
        ((None, AGENT), "those of all trajectories have dtype object; convert or fill them"),
        (("nowhere",), "There must be a dataset at nowhere; nothing is there"),
        ((ENDLESS,), "at least two agents"),
        ((X[0, 0], [0, 1]), r"shape \(trajectories, steps, ...\); those of all trajectories have shape \(2,\)"),
        ((X[:, :1], AGENT), "at least two steps; these have one"),
        ((np.where(X > 3, np.nan, X), AGENT), "must be finite; those of all trajectories contain NaN"),
        (([X[0], X[1, :, :1]], [0, 1]), r"must have one shape; shapes \(2,\) and \(1,\) were given"),
        (([[[1, 2], [3]], [[1, 2], [3, 4]]], [0, 1]), "those of trajectory 0 have dtype object"),
        (([X[0], np.zeros((0, 2))], [0, 1]), "at least one observation; an empty one was given"),
        (([[np.zeros((0, 2))], [np.zeros((3, 2))]],), "Each episode must hold at least one observation"),
        (([X],), "trajectories of at least two agents; those of 1 were given"),
        (([],), "trajectories of at least two agents; those of 0 were given"),
        (([1, 2],), "an array or a list with at least one trajectory; agent 0 has none, but 1; leave it out"),
        (([ZEROS, ZEROS[:0]],), "agent 1 has none, but array"),
        (([ZEROS, np.zeros((3, 4, 5))],), r"must have one shape; shapes \(2,\) and \(5,\) were given"),
        (([ZEROS, ZEROS * np.nan],), "those of agent 1 contain NaN or infinity"),
        (([ZEROS, ZEROS.astype(str)],), "must be numbers in an array, none of them masked; those of agent 1 have"),
        (([np.zeros(3), np.zeros(3)],), r"shape \(trajectories, steps, ...\); those of agent 0 have shape \(3,\)"),
        (([ZEROS[..., :0]] * 2,), "must have at least one entry"),
    ],
)
def test_bad_data_is_refused_in_one_sentence(given, message):
    with pytest.raises(InvalidDataError, match=message) as told:
        as_dataset(*given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("form", [[X[0, 0]], [X[0], X[1, :0]], [X[0], 3], ENDLESS])
def test_what_is_no_trajectory_is_refused(form):
    with pytest.raises(InvalidDataError, match=r"A trajectory must have 2 axes, \(steps, ...\), and at least one step"):
        as_trajectories(form, 1)


# -- what tells data apart --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["observation", "agent", "length", "nothing"])
def test_fingerprint_and_digest_change_with_the_data(change):
    given = [[np.zeros((3, 2)) for _ in range(5)] for _ in range(2)]
    before = TrajectoryDataset.from_episodes(given)
    before = before.fingerprint(), before.digest()
    if change == "observation":
        given[1][4][2, 1] = 1
    elif change == "agent":
        given[0].append(given[1].pop())
    elif change == "length":
        given[0][0] = given[0][0][:2]
    after = TrajectoryDataset.from_episodes(given)
    assert (after.fingerprint() == before[0]) == (after.digest() == before[1]) == (change == "nothing")


def test_a_digest_is_of_every_observation(tmp_path):
    x = np.zeros((2, 400, 3, 2), dtype=np.uint8)
    first = TrajectoryDataset.from_arrays(x)
    first.save(tmp_path / "first")
    changed = x.copy()
    changed[1, 30, 1, 1] = 1  # one of 800 trajectories, none of those that the fingerprint reads
    second = TrajectoryDataset.from_arrays(changed)
    second.save(tmp_path / "second")
    stored = [TrajectoryDataset.open(tmp_path / name) for name in ("first", "second")]
    assert first.fingerprint() == second.fingerprint()
    assert len({tau.digest() for tau in (first, second, *stored, stored[0].first_steps(2))}) == 5
    assert stored[0].digest() == TrajectoryDataset.open(tmp_path / "first").digest()
