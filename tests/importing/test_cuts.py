"""Episodes cut out of recordings: by a table, with a stride; always the very frames that were asked for."""

import numpy as np
import pytest

from craftrl import InvalidDataError
from craftrl.data import TrajectoryDataset, read_actions
from craftrl.importing import import_data
from recordings import FPS, assert_same, episodes, stored, write_frames, write_lerobot, write_video


@pytest.fixture
def videos(tmp_path):
    """A video of thirty frames of each of two agents, under the same name, in a codec that looks ahead and back."""
    frames = [episodes(k, lengths=(30,))[0] for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), frames):
        write_video(tmp_path / agent / "long.mp4", x, "libx264rgb", "rgb24", qp="0", bf="2", g="5")
    return tmp_path, frames


def imported(folder, rows, header="file,start,stop", **options):
    (folder / "cuts.csv").write_text("\n".join([header, *rows]) + "\n")
    import_data([folder / "ann", folder / "ben"], folder / "data", boundaries=folder / "cuts.csv", **options)
    return stored(folder / "data")


def test_boundaries_in_frames(videos):
    """They may overlap, and come in any order; the dataset says where each episode begins."""
    folder, (a, b) = videos
    found = imported(folder, ["ann/long.mp4,3,9", "ann/long.mp4,20,30", "ben/long.mp4,0,5", "ann/long.mp4,1,4"])
    assert_same(found, [[a[1:4], a[3:9], a[20:30]], [b[:5]]])
    assert TrajectoryDataset.open(folder / "data").start.tolist() == [1, 3, 20, 0]


def test_boundaries_in_seconds(videos):
    folder, (a, b) = videos
    rows = [f"ann/long.mp4,{5 / FPS},{12 / FPS}", f"ben/long.mp4,0.25,{30 / FPS}"]
    assert_same(imported(folder, rows, "file,start_seconds,stop_seconds"), [[a[5:12]], [b[3:]]])


def test_boundaries_name_the_agents(videos):
    """One video may hold several agents' episodes."""
    folder, (a, b) = videos
    rows = ["ann/long.mp4,0,4,cat", "ann/long.mp4,4,8,dog", "ben/long.mp4,2,6,cat"]
    assert_same(imported(folder, rows, "file,start,stop,agent"), [[a[:4], b[2:6]], [a[4:8]]])
    assert TrajectoryDataset.open(folder / "data").names == ("cat", "dog")


def test_stride(videos):
    """One of so many frames is kept, and the dataset says how it was read."""
    folder, given = videos
    tau = import_data([folder / "ann", folder / "ben"], folder / "data", stride=7)
    assert_same(stored(folder / "data"), [[x[::7]] for x in given])
    plain = {"standardise": None, "light": None}
    assert tau.notes["reading"] == {"stride": 7, "crop": None, "resize": None, "grey": False, "keys": [], **plain}
    assert tau.source == ["long.mp4"] * 2


@pytest.mark.parametrize("rows", [None, ["ann/long.mp4,3,28", "ann/long.mp4,10,30", "ben/long.mp4,0,5"]])
def test_long_recordings_are_written_in_parts(videos, rows, monkeypatch):
    """What memory cannot hold at once is written bit by bit, and comes out as one episode, frame by frame."""
    folder, (a, b) = videos
    monkeypatch.setattr("craftrl.importing.reading.PART_BYTES", 4 * a[0].nbytes)
    expected = [[a[3:28:2], a[10:30:2]], [b[:5:2]]] if rows else [[a[::2]], [b[::2]]]
    if rows:
        assert_same(imported(folder, rows, stride=2), expected)
    else:
        import_data([folder / "ann", folder / "ben"], folder / "data", stride=2)
        assert_same(stored(folder / "data"), expected)
    assert not list((folder / "data").glob(".*"))


def test_actions_follow_their_observations(tmp_path, monkeypatch):
    given = [episodes(k, lengths=(6, 9)) for k in (0, 1)]
    actions = [[np.full((len(x), 2), 10 * k + np.arange(len(x))[:, None]) for x in given[k]] for k in (0, 1)]
    paths = [write_lerobot(tmp_path / agent, given[k], actions[k]) for k, agent in enumerate(("ann", "ben"))]
    monkeypatch.setattr("craftrl.importing.reading.PART_BYTES", 2 * given[0][0][0].nbytes)
    import_data(paths, tmp_path / "data", stride=2)
    assert_same(stored(tmp_path / "data"), [[x[::2] for x in agent] for agent in given])
    assert_same(read_actions(tmp_path / "data"), [[a[::2] for a in agent] for agent in actions])


def test_folders_of_frames_can_be_cut_too(tmp_path):
    given = [episodes(k, lengths=(12,)) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        write_frames(tmp_path / agent, x)
    found = imported(tmp_path, ["ann/run 0,2,11", "ben/run 0,0,3"])
    assert_same(found, [[given[0][0][2:11]], [given[1][0][:3]]])


@pytest.mark.parametrize(
    ("row", "header", "reason"),
    [
        ("ann/long.mp4,20,31", "file,start,stop", "ends at 30, and line 3 of .*cuts.csv asks for 20 to 31"),
        ("ann/long.mp4,40,50", "file,start,stop", "ends at 30, and line 3 of .*cuts.csv asks for 40 to 50"),
        ("ann/long.mp4,9,9", "file,start,stop", "`start` before `stop`"),
        ("ann/long.mp4,-1,4", "file,start,stop", "correct line 3 of .*cuts.csv"),
        ("ann/long.mp4,0,2.5", "file,start,stop", "in whole frames"),
        ("ann/long.mp4,0,3.5", "file,start_seconds,stop_seconds", "ends at 3, and line 3"),
        ("ann/long.mp4,0.51,0.58", "file,start_seconds,stop_seconds", "ann/long.mp4 has none for line 3 of"),
        ("long.mp4,0,4", "file,start,stop", "line 3 .* names 2; write .* such as ann/long.mp4 or ben/long.mp4"),
        ("other.mp4,0,4", "file,start,stop", "other.mp4 in line 3 .* names 0; .* such as ann/long.mp4"),
        ("ann/long.mp4,0,x", "file,start,stop", "correct line 3 of .*cuts.csv"),
        ("ann/long.mp4,0", "file,begin", "`file`, and `start` before `stop` in whole frames"),
    ],
)
def test_wrong_boundaries(videos, row, header, reason):
    with pytest.raises(InvalidDataError, match=reason):
        imported(videos[0], ["ben/long.mp4,0,1", row], header)
    assert not (videos[0] / "data/dataset.json").exists()


def test_seconds_need_a_clock(tmp_path):
    for k, agent in enumerate(("ann", "ben")):
        write_frames(tmp_path / agent, episodes(k))
    with pytest.raises(InvalidDataError, match=r"are for videos; .*ann/run 0 knows no time"):
        imported(tmp_path, ["ann/run 0,0,1", "ben/run 0,0,1"], "file,start_seconds,stop_seconds")
