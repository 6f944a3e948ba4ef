"""The store: what is written is read, a kill or a full disk loses nothing, and what is damaged is refused."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from craftrl import CRAFT, TrajectoryDataset
from craftrl.data import DatasetWriter, read_actions, read_true_states, store
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError

DAMAGES, KILLS = (int(os.environ.get(f"CRAFTRL_{name}", few)) for name, few in (("DAMAGES", 300), ("KILLS", 3)))
RNG = np.random.default_rng(0)
EPISODES = {name: [RNG.integers(256, size=(m, 4, 3), dtype=np.uint8) for m in (5, 2, 7)] for name in ("ann", "bob")}


def write(path, episodes=EPISODES, *, stop_after=None, **given):
    with DatasetWriter(path, **given) as writer:
        for agent, own in episodes.items():
            for i, x in enumerate(own):
                if stop_after == (agent, i):
                    raise KeyboardInterrupt
                actions = np.arange(len(x) - 1) if agent == "ann" else None
                writer.append(agent, x, source=f"{agent}.mp4", start=10 * i, actions=actions, states=np.arange(len(x)))
    return path


def content(path):
    return {file.name: file.read_bytes() for file in Path(path).iterdir()}


def everything(path):
    """All that can be read of a dataset, in plain values."""
    tau = TrajectoryDataset.open(path)
    frames = tau.rows(np.arange(tau.n)).tobytes(), tau.lengths.tolist(), tau.agent.tolist(), tau.names, tau.source
    actions = [[a.tolist() for a in agent] for agent in read_actions(path)]
    return frames, tau.start.tolist(), dict(tau.notes), actions, read_true_states(path).tolist()


def test_what_was_written_is_read(tmp_path):
    notes = {"reading": {"stride": 2, "crop": None}}
    tau = TrajectoryDataset.open(write(tmp_path / "data", notes=notes))
    assert (tau.n, tau.H, tau.K, tau.obs_shape, tau.dtype) == (6, 7, 2, (4, 3), np.uint8)
    assert tau.names == ("ann", "bob")
    assert tau.notes == notes
    assert (tau.source[4], tau.start.tolist()) == ("bob.mp4", [0, 10, 20] * 2)
    for i, x in enumerate(EPISODES["ann"] + EPISODES["bob"]):
        assert np.array_equal(tau.episode(i), x)
        assert np.array_equal(tau.rows([i])[0, : len(x)], x)
        assert not tau.rows([i])[0, len(x) :].any()
    ann, bob = read_actions(tmp_path / "data")
    assert [a.tolist() for a in ann] == [list(range(4)), [0], list(range(6))]
    assert [len(a) for a in bob] == [0, 0, 0]
    assert read_true_states(tmp_path / "data")[1].tolist() == [0, 1, -1, -1, -1, -1, -1]


def test_many_files_agents_in_turns_and_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 600)
    x = RNG.random((40, 3, 5))
    with DatasetWriter(tmp_path / "data") as writer:
        for i, episode in enumerate(x):
            writer.append(i % 3, episode)
    tau = TrajectoryDataset.open(tmp_path / "data")
    order = np.argsort(np.arange(40) % 3, kind="stable")
    assert len(list((tmp_path / "data").glob("*.npy"))) == 9
    for opened in (tau, pickle.loads(pickle.dumps(tau))):
        assert opened.names == (0, 1, 2)
        assert np.array_equal(np.concatenate([block for _, block in opened.blocks(500)]), x[order])
        assert np.array_equal(opened.rows([39, 0, 7]), x[order][[39, 0, 7]])
        assert np.array_equal(opened.at(2), x[order][:, 1])
        assert np.array_equal(opened.select([20, 3]).at(3, [1, 0]), x[order][[20, 3], 2])


def test_a_dataset_that_is_saved_again_is_the_same(tmp_path):
    tau = TrajectoryDataset.open(write(tmp_path / "data", notes={"a": 1}))
    tau.save(tmp_path / "again")
    again = TrajectoryDataset.open(tmp_path / "again")
    assert again.fingerprint() == tau.fingerprint()
    assert (again.names, again.source, again.start.tolist(), again.notes) == (
        tau.names,
        tau.source,
        tau.start.tolist(),
        tau.notes,
    )


def test_fit_from_disk_equals_fit_in_memory_and_copies_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 3000)
    world = BitsExBMDP(horizon=5, n_features=9, seed=0)
    tau = collect(world, world.paper_policies(), [300, 170], seed=1).tau
    tau.save(tmp_path / "data")
    labels = [CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(x).labels_ for x in (tau, tmp_path / "data")]
    assert np.array_equal(*labels)


def test_large_frames_are_read_one_by_one(tmp_path):
    x = RNG.integers(256, size=(2, 5, 3, 40, 40, 3), dtype=np.uint8)
    TrajectoryDataset.from_arrays(x).save(tmp_path / "data")
    tau = TrajectoryDataset.open(tmp_path / "data")
    assert np.array_equal(tau.at(2, [7, 0]), x.reshape(10, 3, 40, 40, 3)[[7, 0], 1])


def test_a_file_that_is_cut_short_while_it_is_open_is_refused(tmp_path):
    tau = TrajectoryDataset.open(write(tmp_path / "data"))
    tau.episode(0)
    os.truncate(tmp_path / "data" / "00000.npy", 200)
    with pytest.raises(InvalidDataError, match=r"00000.npy must be as it was written; .*it ends too soon"):
        tau.episode(2)


# -- interruptions ----------------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_and_another_one_starts_over(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", 80)
    whole = content(write(tmp_path / "whole", run="one"))

    for run, stop in (("other", ("bob", 2)), ("one", ("bob", 0)), ("one", ("bob", 2))):
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "data", run=run, stop_after=stop)
    with pytest.raises(InvalidDataError, match="it is unfinished, and the command that writes it goes on"):
        TrajectoryDataset.open(tmp_path / "data")
    writer = DatasetWriter(tmp_path / "data", run="one")
    assert writer.done == {("ann", "ann.mp4", start) for start in (0, 10, 20)} | {
        ("bob", "bob.mp4", start) for start in (0, 10)
    }
    assert not writer.finished
    assert content(write(tmp_path / "data", run="one")) == whole
    assert DatasetWriter(tmp_path / "data", run="one").finished
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()}
    write(tmp_path / "data", run="one")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()} == before
    for run in ("another", ""):
        with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
            DatasetWriter(tmp_path / "data", run=run)


def test_without_a_run_an_error_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "data", stop_after=("bob", 1))
    assert not (tmp_path / "data").exists()


WRITING = """
import sys
import numpy as np
from craftrl.data import DatasetWriter, store
store.FILE_BYTES = 20_000
rng = np.random.default_rng(0)
with DatasetWriter(sys.argv[1], run="x") as writer:
    print("begun", flush=True)
    for i in range(300):
        x = rng.integers(256, size=(3, 16, 16), dtype=np.uint8)
        writer.append("ab"[i % 2], x, source=str(i), actions=[i, i])
"""


def test_killed_at_any_moment_the_same_bytes_come_out(tmp_path):
    def run(path, kill_after=None):
        process = subprocess.Popen([sys.executable, "-c", WRITING, path], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        if kill_after is not None:
            time.sleep(kill_after)
            process.send_signal(signal.SIGKILL)
        process.communicate()
        return process.returncode

    assert run(tmp_path / "whole") == 0
    killed = 0
    for i, wait in enumerate(np.random.default_rng(0).uniform(0, 0.1, KILLS)):
        killed += run(tmp_path / str(i), wait) != 0
        assert run(tmp_path / str(i)) == 0
        assert content(tmp_path / str(i)) == content(tmp_path / "whole")
    assert killed > 0


def test_of_two_writers_at_once_one_is_refused(tmp_path):
    with DatasetWriter(tmp_path / "data", run="x") as writer:
        with pytest.raises(InvalidParameterError, match="another one is writing"), DatasetWriter(tmp_path / "data"):
            pass
        for agent, own in EPISODES.items():
            writer.append(agent, own[0])
    assert TrajectoryDataset.open(tmp_path / "data").n == 2


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    """A limit on the size of files has the system refuse to write more, as a full disk does."""
    code = f"""
        import resource, signal
        import numpy as np
        from craftrl.data import DatasetWriter, store
        from craftrl.errors import CraftError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        store.FILE_BYTES = 1000
        try:
            with DatasetWriter({str(tmp_path / "data")!r}, run="x") as writer:
                for i in range(9):
                    if i == 4:
                        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 10**9))
                    writer.append("ab"[i % 2], np.zeros((1000, 1), np.uint8), source=str(i))
        except CraftError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))
        print(sorted(DatasetWriter({str(tmp_path / "data")!r}, run="x").done))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    said, kept = done.stdout.splitlines()
    assert said.startswith("There must be room for the dataset; ")
    assert "free some space" in said
    assert kept == "[('a', '0', 0), ('a', '2', 0), ('b', '1', 0), ('b', '3', 0)]"
    assert not [file for file in (tmp_path / "data").iterdir() if file.suffix == ".tmp"]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match=r"The dataset's folder must be writable; .* choose another place"):
        write(tmp_path / "file" / "data")
    if os.getuid():
        tmp_path.chmod(0o500)
        with pytest.raises(InvalidParameterError, match="must be writable"):
            write(tmp_path / "data")


def test_what_lies_there_is_never_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "00000.npy").touch()
    (tmp_path / "file").touch()
    for name in ("photos", "file"):
        with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
            write(tmp_path / name)
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


def test_one_agent_is_no_dataset(tmp_path):
    with pytest.raises(InvalidDataError, match="at least two agents; those of 1 were given"):
        write(tmp_path / "data", {"ann": EPISODES["ann"]})


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: shutil.rmtree(path), "There must be a dataset at .*data; nothing is there; check the name"),
        (lambda path: (path / "dataset.json").unlink(), "something else is there"),
        (lambda path: (path / "00001.npy").unlink(), "00001.npy must be as it was written; it is missing"),
        (lambda path: os.truncate(path / "00000.npy", 200), "00000.npy must be as it was written; it has 200 bytes of"),
        (lambda path: os.rename(path / "00000.npy", path / "00001.npy"), "00000.npy must be .* missing"),
        (lambda path: (path / "dataset.json").write_text("{}"), "its index is damaged"),
    ],
)
def test_what_is_missing_or_short_is_found_when_it_is_opened(tmp_path, damage, message):
    damage(write(tmp_path / "data"))
    with pytest.raises(InvalidDataError, match=message) as told:
        TrajectoryDataset.open(tmp_path / "data")
    assert "\n" not in str(told.value)


def test_a_dataset_of_another_kind_is_named(tmp_path):
    write(tmp_path / "data")
    found = json.loads((tmp_path / "data" / "dataset.json").read_text())
    (tmp_path / "data" / "dataset.json").write_text(store.sealed_text({**found, "format": "craftrl dataset 9"}))
    with pytest.raises(InvalidDataError, match="it is a craftrl dataset 9"):
        TrajectoryDataset.open(tmp_path / "data")


def test_true_states_are_asked_of_data_that_has_them(tmp_path):
    TrajectoryDataset.from_episodes(list(EPISODES.values())).save(tmp_path / "data")
    assert read_actions(tmp_path / "data") == []
    with pytest.raises(InvalidDataError, match="must know the true states, as those of craftrl collect do"):
        read_true_states(tmp_path / "data")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("damage") / "whole")


@settings(
    max_examples=DAMAGES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_damaged_copy_is_read_with_other_numbers(whole, data, tmp_path_factory):
    """Bytes changed, lost, added, doubled or zeroed, anywhere in any file; files that exchange their names."""
    path = tmp_path_factory.mktemp("copy") / "whole"
    shutil.copytree(whole, path)
    names = sorted(file.name for file in path.iterdir())
    for _ in range(data.draw(st.integers(1, 3), label="how often")):
        name = data.draw(st.sampled_from(names), label="file")
        before = (path / name).read_bytes()
        start = data.draw(st.integers(0, max(0, len(before) - 1)), label="where")
        stop = start + data.draw(st.sampled_from([1, 2, 4, 17, 300]), label="how much")
        kind = data.draw(st.sampled_from(["bits", "zeros", "ones", "cut", "lost", "doubled", "noise", "name"]))
        part = before[start:stop]
        new = {
            "bits": bytes(byte ^ 1 << start % 8 for byte in part),
            "zeros": bytes(len(part)),
            "ones": b"\xff" * len(part),
            "lost": b"",
            "doubled": 2 * part,
            "noise": np.random.default_rng(start).bytes(len(part)),
        }.get(kind, part)
        (path / name).write_bytes(before[:start] if kind == "cut" else before[:start] + new + before[stop:])
        if kind == "name":
            other = data.draw(st.sampled_from(names), label="other")
            mine, theirs = (path / name).read_bytes(), (path / other).read_bytes()
            (path / name).write_bytes(theirs)
            (path / other).write_bytes(mine)
    try:
        found = everything(path)
    except CraftError as error:
        found = str(error)
    shutil.rmtree(path.parent)
    refused = isinstance(found, str) and found.endswith(".") and "\n" not in found and len(found) < 500
    assert refused or found == everything(whole)
