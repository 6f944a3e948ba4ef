"""An import that was stopped, by whatever means, goes on; what was read once is not read again."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from craftrl import CraftError, InvalidParameterError
from craftrl.importing import import_data, log
from craftrl.importing.log import ImportLog
from craftrl.importing.videos import VideoReader
from recordings import assert_same, episodes, stored, write_videos

LENGTHS = (5, 3, 4, 6)

KILLED = """
import os, signal, sys
import craftrl.importing.log as log
import craftrl.importing.videos as videos
from craftrl.importing import import_data

log.COMMIT_SECONDS = 0.0
taken, pixels = [], videos._pixels

def until_the_kill(frame):
    taken.append(frame)
    if len(taken) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return pixels(frame)

videos._pixels = until_the_kill
import_data(["ann", "ben"], "data.h5")
"""


@pytest.fixture
def agents(tmp_path):
    given = [episodes(k, lengths=LENGTHS) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        write_videos(tmp_path / agent, x)
    return tmp_path, given


@pytest.fixture
def reads(monkeypatch):
    """The files that are decoded from now on."""
    found, read = [], VideoReader.read

    def counted(self, steps):
        found.append(self.path.name)
        return read(self, steps)

    monkeypatch.setattr(VideoReader, "read", counted)
    return found


def log_lines(folder):
    return (folder / "data.h5.importing/episodes.jsonl").read_bytes().split(b"\n")


def test_killed_in_the_middle_of_an_episode(agents, reads):
    """SIGKILL while the fifth episode is decoded: four are kept, four are read afterwards."""
    folder, given = agents
    killed_at = 5 + 5 + 3 + 4 + 2  # first episodes of both, then the others of the first
    code = subprocess.run([sys.executable, "-c", KILLED, str(killed_at)], cwd=folder, check=False).returncode
    assert code == -signal.SIGKILL
    assert not (folder / "data.h5").exists()
    assert len(log_lines(folder)) == 1 + 4 + 1  # a header, four episodes, and the end of the last line
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert_same(stored(folder / "data.h5"), given)
    assert len(reads) == 4
    assert not (folder / "data.h5.importing").exists()


def test_killed_while_the_store_is_written(agents, reads):
    """Nothing is read again, and what the kill left half-written is gone."""
    folder, given = agents
    script = """
import os, signal
from craftrl.importing import import_data, importer
importer._append = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
import_data(["ann", "ben"], "data.h5")
"""
    code = subprocess.run([sys.executable, "-c", script], cwd=folder, check=False).returncode
    assert code == -signal.SIGKILL
    assert len(list(folder.glob(".data.h5.*.tmp"))) == 1
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert_same(stored(folder / "data.h5"), given)
    assert sorted(path.name for path in folder.iterdir()) == ["ann", "ben", "data.h5"]
    assert reads == []


@pytest.fixture
def stopped(agents, monkeypatch):
    """An import that was interrupted by hand when all episodes were read."""
    folder, given = agents

    def interrupt(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("craftrl.importing.importer._write_store", interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    return folder, given


@pytest.mark.parametrize("damage", ["half a line", "bytes without a line", "lines without bytes"])
def test_what_a_kill_leaves_is_cut_off(stopped, reads, damage):
    folder, given = stopped
    lines, data = folder / "data.h5.importing/episodes.jsonl", folder / "data.h5.importing/data"
    if damage == "half a line":
        lines.write_bytes(lines.read_bytes()[:-20])
    elif damage == "bytes without a line":
        data.write_bytes(data.read_bytes() + b"half an episode")
    else:
        os.truncate(data, data.stat().st_size - 1)
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert_same(stored(folder / "data.h5"), given)
    assert len(reads) == (0 if damage == "bytes without a line" else 1)


def test_new_and_changed_videos_are_read_and_no_others(stopped, reads):
    folder, (ann, ben) = stopped
    extra = episodes(2)
    write_videos(folder / "ann", extra[:1])  # another episode 0
    (folder / "new").mkdir()
    write_videos(folder / "new", extra[1:2])
    (folder / "new/episode0.mkv").rename(folder / "ann/episode4.mkv")
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert reads == ["episode0.mkv", "episode4.mkv"]
    assert_same(stored(folder / "data.h5"), [[extra[0], *ann[1:], extra[1]], ben])


def test_other_options_read_again(stopped, reads):
    """As after frames of unequal size, which a crop makes equal."""
    folder, given = stopped
    import_data([folder / "ann", folder / "ben"], folder / "data.h5", crop=(0, 0, 8, 8))
    assert_same(stored(folder / "data.h5"), [[x[:, :8, :8] for x in agent] for agent in given])
    assert len(reads) == 8


def test_a_foreign_folder_is_left_alone(agents):
    folder, _ = agents
    (folder / "data.h5.importing").mkdir()
    (folder / "data.h5.importing/episodes.jsonl").write_text("my own notes\n")
    with pytest.raises(InvalidParameterError, match="it is something else, or of another version"):
        import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert (folder / "data.h5.importing/episodes.jsonl").read_text() == "my own notes\n"


def test_a_second_import_at_once_is_refused(agents):
    folder, _ = agents
    with (
        ImportLog(folder / "data.h5.importing"),
        pytest.raises(InvalidParameterError, match="another one is at work"),
    ):
        import_data([folder / "ann", folder / "ben"], folder / "data.h5")


def test_finished_imports_are_found_and_others_refused(agents, reads):
    folder, _ = agents
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    reads.clear()
    assert import_data([folder / "ann", folder / "ben"], folder / "data.h5").K == 2
    assert reads == []
    with pytest.raises(InvalidParameterError, match="holds other data than these sources"):
        import_data([folder / "ann", folder / "ben"], folder / "data.h5", stride=2)


@pytest.mark.parametrize("limit", [6000, 40000])
def test_a_disk_that_fills_up(agents, reads, limit):
    """While episodes are read, or while the store is written from them: nothing half-written, and the rerun goes on."""
    import resource

    folder, given = agents
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(CraftError, match=r"There must be room .*(is kept)"):
            import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(path.name for path in folder.iterdir()) == ["ann", "ben", "data.h5.importing"]
    n_kept = len(log_lines(folder)) - 2
    reads.clear()
    import_data([folder / "ann", folder / "ben"], folder / "data.h5")
    assert_same(stored(folder / "data.h5"), given)
    assert len(reads) == 8 - n_kept
    assert n_kept == {6000: 1, 40000: 8}[limit]


def test_arrays_come_back_from_the_log(tmp_path):
    x, actions = np.arange(24).reshape(4, 3, 2), np.linspace(0, 1, 4)
    with ImportLog(tmp_path / "log") as book:
        book.add(("a", "1"), x, actions, "JPEG")
    with ImportLog(tmp_path / "log") as book:
        record = book.records["a", "1"]
        assert np.array_equal(book.array(record.observations), x)
        assert record.actions is not None
        assert np.array_equal(book.array(record.actions), actions)
        assert record.lossy == "JPEG"
    assert json.loads(log_header(tmp_path)) == log.HEADER


def log_header(folder):
    return (folder / "log/episodes.jsonl").read_text().splitlines()[0]
