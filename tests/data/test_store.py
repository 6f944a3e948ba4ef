"""The store: what is written is read, an interruption or a full disk loses nothing, and damage is refused."""

import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import CRAFT, TrajectoryDataset, load
from craftrl.data import DatasetWriter, read_actions, read_true_states, store
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError

DAMAGES = int(os.environ.get("CRAFTRL_DAMAGES", "100"))
RNG = np.random.default_rng(0)
EPISODES = {name: [RNG.integers(256, size=(m, 4, 3), dtype=np.uint8) for m in (5, 2, 7)] for name in ("ann", "bob")}


def write(path, episodes=EPISODES, *, at_each=lambda agent, i: None, **given):
    with DatasetWriter(path, **given) as writer:
        for agent, own in episodes.items():
            for i, x in enumerate(own):
                at_each(agent, i)
                actions = np.arange(len(x) - 1) if agent == "ann" else None
                writer.append(agent, x, source=f"{agent}.mp4", start=10 * i, actions=actions, states=np.arange(len(x)))
    return path


def stop_at(*place):
    def at_each(*here):
        if here == place:
            raise KeyboardInterrupt

    return at_each


def content(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


def everything(path):
    """All that can be read of a dataset, in plain values."""
    tau = TrajectoryDataset.open(path)
    frames = tau.rows(np.arange(tau.n)).tobytes(), tau.lengths.tolist(), tau.agent.tolist(), tau.names, tau.source
    actions = [[a.tolist() for a in agent] for agent in read_actions(path)]
    return frames, tau.start.tolist(), dict(tau.notes), actions, read_true_states(path).tolist()


def test_what_lies_beside_the_frames_is_read_and_saved_again(tmp_path):
    notes = {"reading": {"stride": 2, "crop": None}}
    tau = TrajectoryDataset.open(write(tmp_path / "data", notes=notes))
    tau.save(tmp_path / "again")
    for opened in (tau, TrajectoryDataset.open(tmp_path / "again")):
        assert (opened.names, opened.notes, opened.start.tolist()) == (("ann", "bob"), notes, [0, 10, 20] * 2)
        assert (opened.source[4], opened.fingerprint()) == ("bob.mp4", tau.fingerprint())
    ann, bob = read_actions(tmp_path / "data")
    assert [a.tolist() for a in ann] == [list(range(4)), [0], list(range(6))]
    assert [len(a) for a in bob] == [0, 0, 0]
    assert read_true_states(tmp_path / "data")[1].tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert read_actions(tmp_path / "again") == []
    with pytest.raises(InvalidDataError, match="must know the true states, as those of craftrl collect do"):
        read_true_states(tmp_path / "again")


def test_an_episode_may_come_in_parts_beside_others_of_the_same_agent(tmp_path):
    x, y = RNG.random((9, 2)), RNG.random((4, 2))
    with DatasetWriter(tmp_path / "data") as writer:
        writer.append("a", y, actions=np.arange(3))
        writer.append("a", x[:4], start=5, actions=np.arange(4), goes_on=True)
        writer.append("a", y[:2], start=1)
        writer.append("a", x[4:], start=5, actions=np.arange(4, 8))
        writer.append("b", x[:6], goes_on=True)
    tau = TrajectoryDataset.open(tmp_path / "data")
    for i, expected in enumerate((y, x, y[:2], x[:6])):  # what came before a long episode lies before it
        assert np.array_equal(tau.episode(i), expected)
    assert tau.agent.tolist() == [0, 0, 0, 1]
    assert list(map(len, read_actions(tmp_path / "data")[0])) == [3, 8, 0]


def test_a_fit_from_disk_is_that_from_memory_and_says_what_it_was_fitted_to(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 3000)
    world = BitsExBMDP(horizon=5, n_features=9, seed=0)
    tau = collect(world, world.paper_policies(), [300, 170], seed=1).tau
    tau.notes = {"reading": {"stride": 2}}
    tau.save(tmp_path / "data")
    memory, disk = (CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(x) for x in (tau, tmp_path / "data"))
    assert np.array_equal(memory.labels_, disk.labels_)
    sizes = {"trajectories": [300, 170], "steps": 5, "observation": [9], "dtype": "uint8"}
    assert memory.data_ == disk.data_ == {**sizes, "fingerprint": tau.fingerprint(), **tau.notes}
    disk.save(tmp_path / "model")
    assert load(tmp_path / "model").data_ == disk.data_


def test_large_frames_are_read_one_by_one(tmp_path):
    x = RNG.integers(256, size=(2, 5, 3, 40, 40, 3), dtype=np.uint8)
    TrajectoryDataset.from_arrays(x).save(tmp_path / "data")
    tau = TrajectoryDataset.open(tmp_path / "data")
    assert np.array_equal(tau.at(2, [7, 0]), x.reshape(10, 3, 40, 40, 3)[[7, 0], 1])


# -- interruptions ----------------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_and_another_one_starts_over(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 80)
    whole = content(write(tmp_path / "whole", run="one"))
    for run, place in (("", ("bob", 1)), ("other", ("bob", 2)), ("one", ("bob", 0)), ("one", ("bob", 2))):
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "data", run=run, at_each=stop_at(*place))
        assert (tmp_path / "data").exists() == (run != "")  # nobody could go on with it
    with pytest.raises(InvalidDataError, match="it is unfinished, and the command that writes it goes on"):
        TrajectoryDataset.open(tmp_path / "data")
    writer = DatasetWriter(tmp_path / "data", run="one")
    assert ({agent for agent, _, _ in writer.done}, writer.finished) == ({"ann", "bob"}, False)
    assert content(write(tmp_path / "data", run="one")) == whole
    assert DatasetWriter(tmp_path / "data", run="one").finished
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}
    write(tmp_path / "data", run="one")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()} == before
    for run in ("another", ""):
        with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
            DatasetWriter(tmp_path / "data", run=run)


def test_what_a_kill_leaves_at_any_moment_ends_with_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 80)
    left = []

    def keep(agent, i):
        left.append(tmp_path / f"left{len(left)}")
        shutil.copytree(tmp_path / "data", left[-1])

    whole = content(write(tmp_path / "data", run="x", at_each=keep))
    for path in left:
        assert content(write(path, run="x")) == whole


def test_of_two_writers_at_once_one_is_refused(tmp_path):
    with DatasetWriter(tmp_path / "data", run="x") as writer:
        with pytest.raises(InvalidParameterError, match="another one is writing"), DatasetWriter(tmp_path / "data"):
            pass
        for agent, own in EPISODES.items():
            writer.append(agent, own[0])
    assert TrajectoryDataset.open(tmp_path / "data").n == 2


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path, monkeypatch):
    """A limit on the size of files has the system refuse to write more, as a full disk does."""
    monkeypatch.setattr(store, "FILE_BYTES", 100)
    episodes = {"a": [np.zeros((n, 1), np.uint8) for n in (200, 300, 9000, 200)], "b": [np.ones((200, 1), np.uint8)]}
    whole, limit = content(write(tmp_path / "whole", episodes, run="x")), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limit[1]))
    try:
        with pytest.raises(CraftError, match=r"There must be room for the dataset; .*; free some space"):
            write(tmp_path / "data", episodes, run="x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert len(DatasetWriter(tmp_path / "data", run="x").done) == 2
    assert not list((tmp_path / "data").glob(".*"))
    assert content(write(tmp_path / "data", episodes, run="x")) == whole


# -- what is refused --------------------------------------------------------------------------------------------------


def test_what_lies_there_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "00000.npy").touch()
    (tmp_path / "file").touch()
    for name in ("photos", "file"):
        with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
            write(tmp_path / name)
    with pytest.raises(InvalidParameterError, match=r"The dataset's folder must be writable; .* choose another place"):
        write(tmp_path / "file" / "data")
    assert [file.name for file in (tmp_path / "photos").iterdir()] == ["00000.npy"]
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty")


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        ({"x": np.zeros((0, 4, 3), np.uint8)}, r"at least one observation; shape \(0, 4, 3\) of agent ann"),
        ({"x": 3}, r"at least one observation|shape \(\)"),
        ({"x": np.zeros((2, 4, 2), np.uint8)}, r"one shape and type; \(4, 3\) uint8 and, of agent ann, \(4, 2\) uint8"),
        ({"x": np.zeros((2, 4, 3))}, r"\(4, 3\) float64 were given; crop, resize or convert"),
        ({"x": np.full((2, 4, 3), np.nan)}, "must be finite; those of agent ann"),
        ({"x": [["a"]]}, "must be numbers in an array"),
        ({"agent": None}, "An agent must have a name, a text or a number; None was given"),
        ({"actions": [1]}, r"The actions of an episode must be 4 to 5 numbers; \[1\] was given"),
        ({"states": np.zeros(6)}, "The states of an episode must be 5 to 5 numbers"),
        ({"start": 0}, r"must differ in source or start, .* \('ann', 'a', 0\) was given twice; name them"),
    ],
)
def test_what_does_not_belong_into_a_dataset(tmp_path, episode, message):
    given = {"agent": "ann", "x": EPISODES["ann"][0], "source": "a", "start": 1, **episode}
    with DatasetWriter(tmp_path / "data", run="x") as writer:
        writer.append("ann", EPISODES["ann"][0], source="a")
        with pytest.raises(InvalidDataError, match=message):
            writer.append(given.pop("agent"), given.pop("x"), **given)
        writer.append("bob", EPISODES["bob"][0])
    assert TrajectoryDataset.open(tmp_path / "data").counts.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ((np.zeros(5), np.zeros((2, 3))), "The actions of agent ann must be numbers of one shape"),
        ((None, None), "at least two agents; those of 1 were given"),
    ],
)
def test_episodes_that_make_no_dataset_together(tmp_path, actions, message):
    writer = DatasetWriter(tmp_path / "data").__enter__()
    for x, own in zip(EPISODES["ann"], actions):
        writer.append("ann", x, actions=own)
    with pytest.raises(InvalidDataError, match=message):
        writer.__exit__(None, None, None)
    assert not (tmp_path / "data").exists()


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: shutil.rmtree(path), "There must be a dataset at .*data; nothing is there; check the name"),
        (lambda path: (path / "dataset.json").unlink(), "something else is there"),
        (lambda path: (path / "00001.npy").unlink(), "00001.npy must be as it was written; it is missing"),
        (lambda path: os.truncate(path / "00000.npy", 200), "00000.npy must be as it was written; it has 200 bytes of"),
        (lambda path: (path / "dataset.json").write_text("{}"), "the index of a dataset of craftrl; it cannot be read"),
        (
            lambda path: (path / "dataset.json").write_text(store.sealed_text({"format": "craftrl dataset 9"})),
            "it is a craftrl dataset 9",
        ),
    ],
)
def test_what_is_missing_or_short_is_found_when_it_is_opened(tmp_path, damage, message):
    damage(write(tmp_path / "data"))
    with pytest.raises(InvalidDataError, match=message) as told:
        TrajectoryDataset.open(tmp_path / "data")
    assert "\n" not in str(told.value)


def test_a_file_that_is_cut_short_while_it_is_open_is_refused(tmp_path):
    tau = TrajectoryDataset.open(write(tmp_path / "data"))
    tau.episode(0)
    os.truncate(tmp_path / "data" / "00000.npy", 200)
    with pytest.raises(InvalidDataError, match=r"00000.npy must be as it was written; .*it ends too soon"):
        tau.episode(2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("damage") / "whole")


@settings(max_examples=DAMAGES)
@given(data=st.data())
def test_no_damaged_copy_is_read_with_other_numbers(whole, data, tmp_path_factory):
    """Bytes changed, lost, added or zeroed, anywhere in any file, the index too; files that exchange their names."""
    path = tmp_path_factory.mktemp("copy") / "whole"
    shutil.copytree(whole, path)
    names = sorted(file.name for file in path.iterdir())
    for _ in range(data.draw(st.integers(1, 3), label="how often")):
        name, other = (data.draw(st.sampled_from(names)) for _ in range(2))
        before = (path / name).read_bytes()
        start = data.draw(st.integers(0, max(0, len(before) - 1)), label="where")
        stop = start + data.draw(st.sampled_from([1, 2, 4, 17, 300]), label="how much")
        part = before[start:stop]
        kinds = {
            "bits": before[:start] + bytes(byte ^ 1 << start % 8 for byte in part) + before[stop:],
            "zeros": before[:start] + bytes(len(part)) + before[stop:],
            "cut": before[:start],
            "lost": before[:start] + before[stop:],
            "doubled": before[:stop] + before[start:],
            "noise": before[:start] + np.random.default_rng(start).bytes(len(part)) + before[stop:],
            "name": (path / other).read_bytes(),
        }
        kind = data.draw(st.sampled_from(sorted(kinds)))
        (path / name).write_bytes(kinds[kind])
        if kind == "name" and name != other:
            (path / other).write_bytes(before)
    try:
        found = everything(path)
    except CraftError as error:
        found = str(error)
    shutil.rmtree(path.parent)
    refused = isinstance(found, str) and found.endswith(".") and "\n" not in found and len(found) < 500
    assert refused or found == everything(whole)
