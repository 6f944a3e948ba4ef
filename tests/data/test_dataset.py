"""tau: whatever callers give becomes one dataset, rows keep the caller's order, and what is refused is said."""

import numpy as np
import pytest

from craftrl import CRAFT, InvalidDataError, InvalidParameterError, TrajectoryDataset, load
from craftrl.data.inputs import as_dataset, as_trajectories
from craftrl.envs import BitsExBMDP, collect

X = np.random.default_rng(0).integers(5, size=(7, 3, 2))
AGENT = np.array([0, 0, 0, 1, 1, 1, 1])
TAU = TrajectoryDataset.from_arrays([X[:3], X[3:]])
ZEROS = np.zeros((3, 4, 2))


def same(tau, expected):
    assert tau.agent.tolist() == expected.agent.tolist()
    assert tau.lengths.tolist() == expected.lengths.tolist()
    assert (tau.H, tau.dtype) == (expected.H, expected.dtype)
    assert all(np.array_equal(tau.at(h), expected.at(h)) for h in range(1, expected.H + 1))


# -- what is in a dataset ---------------------------------------------------------------------------------------------


def test_trajectories_are_grouped_by_agent():
    assert (TAU.n, TAU.H, TAU.K, TAU.obs_shape, TAU.counts.tolist()) == (7, 3, 2, (2,), [3, 4])
    assert np.array_equal(TAU.at(3)[TAU.agent_slice(1)], X[3:, 2])
    assert TAU.all_present
    chosen = TAU.select([5, 0, 3], agent=[1, 0, 0])
    assert chosen.agent.tolist() == [0, 0, 1]
    assert np.array_equal(chosen.at(1), X[[0, 3, 5], 0])


def test_trajectories_of_unequal_length_are_present_while_they_last():
    tau = TrajectoryDataset.from_episodes([[np.ones((2, 3)), np.ones((4, 3))], [np.ones((3, 3))]])
    assert (tau.H, tau.n, tau.all_present) == (4, 3, False)
    assert tau.present(3).tolist() == [False, True, True]
    assert tau.running(3).tolist() == [1, 1]
    assert tau.at(4)[0].tolist() == [0, 0, 0]
    assert TrajectoryDataset.from_arrays([np.ones((2, 3, 1)), np.ones((2, 5, 1))]).lengths.tolist() == [3, 3, 5, 5]
    tau = TrajectoryDataset.from_arrays([ZEROS + 1, ZEROS + 1], [1, 2, 3, 4, 1, 2])
    assert tau.running(2).tolist() == [2, 2]
    assert tau.rows(np.arange(6)).sum(axis=(1, 2)).tolist() == [2, 4, 6, 8, 2, 4]  # 0 where one is over


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32])
@pytest.mark.parametrize("obs", [(), (3,), (4, 4, 3)])
def test_any_shape_and_type(dtype, obs):
    x = np.ones((3, 2, *obs), dtype=dtype)
    tau = TrajectoryDataset.from_arrays([x, x])
    assert (tau.dtype, tau.at(2).shape) == (dtype, (6, *obs))


def test_a_step_of_many_episodes():
    tau = TrajectoryDataset.from_episodes([[np.array([[i], [10 * i]]) for i in range(k, k + 50)] for k in (0, 50)])
    assert tau.at(2, [70, 3]).tolist() == [[700], [30]]


def test_blocks_are_the_whole():
    x = np.random.default_rng(0).integers(0, 255, size=(500, 2, 7)).astype(np.uint8)
    tau = TrajectoryDataset.from_arrays([x, x])
    for data in (tau, tau.select(np.random.default_rng(1).permutation(tau.n))):
        whole = np.stack([data.at(1), data.at(2)], axis=1)
        for h, seen in ((None, whole), (2, whole[:, 1])):
            blocks = list(data.blocks(7 * 300, h))
            assert len(blocks) > 3
            assert {rows.start % 500 % 64 for rows, _ in blocks} == {0}
            assert np.array_equal(np.concatenate([np.arange(1000)[rows] for rows, _ in blocks]), np.arange(1000))
            assert all(np.array_equal(seen[rows], block) for rows, block in blocks)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda tau, h=h: tau.at(h), r"h must be one of 1..4; h = ") for h in (0, 5, -1)),
        *((lambda tau, i=i: tau.episode(i), r"i must be one of 0..5") for i in (-1, 6, 0.5, True)),
        *((lambda tau, H=H: tau.first_steps(H), r"horizon must lie in 2\.\.4") for H in (1, 5)),
        (lambda tau: tau.rows([6]), r"index must hold numbers in 0..5; \[6\] was given"),
        (lambda tau: tau.select(np.zeros(6, bool)), r"index must hold numbers of trajectories in 0..5, one at least"),
        (lambda tau: tau.select([True]), r"index must hold numbers of trajectories in 0..5"),
        *(
            (lambda tau, label=label: tau.select([0, 5], label), r"Each of the 2 .* must have an agent, 0\.\.K-1")
            for label in ([0, 2**40], [1, 2], [-1, 0], [0, 1, 1])
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
    same(data.tau, TAU)
    assert (data.rows.tolist(), data.names) == (list(range(7)), (0, 1))
    assert np.array_equal(as_trajectories(given[0], 1).rows(np.arange(7)), X)


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
    assert np.array_equal(data.as_given(data.tau.agent), AGENT[order])
    assert data.rows[:3].tolist() == [1, 2, 5]  # each agent's rows keep their order


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
    assert (data.names, data.tau.counts.tolist()) == (names, [4, 3])
    assert np.array_equal(data.tau.at(1)[:4], X[3:, 0])


def test_trajectories_of_unequal_length_with_and_without_labels():
    episodes = [row[: 1 + i % 3] for i, row in enumerate(X)]
    order = [4, 0, 6, 2, 5, 1, 3]
    data = as_dataset([episodes[i] for i in order], ["ab"[AGENT[i]] for i in order])
    same(data.tau, TrajectoryDataset.from_episodes([[episodes[i] for i in order if AGENT[i] == k] for k in (0, 1)]))
    assert data.as_given(data.tau.lengths).tolist() == [len(episodes[i]) for i in order]
    for form in ([X[0], X[1, :2], X[2]], [[X[0], X[1, :2]], [X[2]]], [X[0].tolist(), X[1, :2], X[2]]):
        tau = as_trajectories(form, 1)
        assert tau.lengths.tolist() == [3, 2, 3]
        assert np.array_equal(tau.at(2), X[:3, 1])


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
        ((X[0, 0], [0, 1]), r"must have shape \(trajectories, steps, ...\); shape \(2,\) was given"),
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
        (
            ([ZEROS, ZEROS.astype(str)],),
            "must be numbers in an array, none of them masked; those of agent 1 have dtype",
        ),
        (([np.zeros(3), np.zeros(3)],), r"shape \(trajectories, steps, ...\); agent 0's has shape \(3,\)"),
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


@pytest.mark.parametrize("lengths", [[4, 4], [0, 4, 4, 4, 4, 4], [5, 4, 4, 4, 4, 4], "long"])
def test_lengths_that_cannot_be_are_refused(lengths):
    with pytest.raises(InvalidDataError, match=r"lengths? "):
        TrajectoryDataset.from_arrays([ZEROS, ZEROS], lengths)


# -- the first steps, and what tells data apart -----------------------------------------------------------------------


def numbered(*lengths):
    """One agent's episodes, with observations that tell trajectory and step."""
    return [np.array([[10 * i + h] for h in range(length)]) for i, length in enumerate(lengths)]


def test_a_dataset_is_cut_wherever_it_lies(tmp_path):
    tau = TrajectoryDataset.from_episodes([numbered(5, 2), numbered(4, 5)])
    tau.save(tmp_path / "data")
    for whole in (tau, TrajectoryDataset.open(tmp_path / "data")):
        cut = whole.first_steps(3)
        assert (cut.H, cut.n, cut.lengths.tolist()) == (3, 4, [3, 2, 3, 3])
        assert np.array_equal(cut.at(3), tau.at(3))
        assert np.array_equal(cut.rows([3, 0]), tau.rows([3, 0])[:, :3])


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
    assert TrajectoryDataset.from_episodes([numbered(*first), numbered(*second)]).well_reached() == reached


@pytest.mark.parametrize("change", ["observation", "agent", "length"])
def test_fingerprint_and_digest_change_with_the_data_and_not_with_its_place(change, tmp_path):
    given = [[np.zeros((3, 2)) for _ in range(5)] for _ in range(2)]
    before = TrajectoryDataset.from_episodes(given)
    before.save(tmp_path / "data")
    assert TrajectoryDataset.open(tmp_path / "data").fingerprint() == before.fingerprint()
    marks = before.fingerprint(), before.digest()
    if change == "observation":
        given[1][4][2, 1] = 1
    elif change == "agent":
        given[0].append(given[1].pop())
    else:
        given[0][0] = given[0][0][:2]
    after = TrajectoryDataset.from_episodes(given)
    assert after.fingerprint() != marks[0]
    assert after.digest() != marks[1]


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


def test_a_model_says_what_it_was_fitted_to(tmp_path):
    world = BitsExBMDP(horizon=4, n_features=6, seed=0)
    tau = collect(world, world.paper_policies(), 500, seed=0).tau
    tau.notes = {"reading": {"stride": 2}}
    model = CRAFT(alpha=1.0, eta=0.1, nu=0.1).fit(tau)
    sizes = {"trajectories": [500, 500], "steps": 4, "observation": [6], "dtype": "uint8"}
    assert model.data_ == {**sizes, "fingerprint": tau.fingerprint(), "reading": {"stride": 2}}
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").data_ == model.data_
