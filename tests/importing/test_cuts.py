"""Episodes cut out of recordings: by a table, into clips, with a stride; always the very frames that were asked for."""

import numpy as np
import pytest

from craftrl import InvalidDataError
from craftrl.data import TrajectoryDataset, read_actions
from craftrl.importing import import_data
from recordings import FPS, assert_same, episodes, stored, write_frames, write_lerobot, write_video, write_videos


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


@pytest.mark.parametrize("stride", [1, 3])
def test_clips_and_stride(videos, stride):
    """Clips count steps after the stride; what is left over is dropped, and the dataset says how it was read."""
    folder, given = videos
    tau = import_data([folder / "ann", folder / "ben"], folder / "data", clip=4, stride=stride)
    length = 4 * stride
    expected = [[x[i : i + length : stride] for i in range(0, 30 - length + stride, length)] for x in given]
    assert_same(stored(folder / "data"), expected)
    assert tau.notes["reading"] == {
        "stride": stride,
        "crop": None,
        "resize": None,
        "grey": False,
        "keys": [],
        "clip": 4,
    }
    assert tau.source == ["long.mp4"] * tau.n
    assert tau.start[: tau.counts[0]].tolist() == list(range(0, length * tau.counts[0], length))


def test_stride_alone(videos):
    folder, given = videos
    import_data([folder / "ann", folder / "ben"], folder / "data", stride=7)
    assert_same(stored(folder / "data"), [[x[::7]] for x in given])


def test_clips_of_boundaries(videos):
    folder, (a, b) = videos
    found = imported(folder, ["ann/long.mp4,10,21", "ben/long.mp4,0,5"], clip=5)
    assert_same(found, [[a[10:15], a[15:20]], [b[:5]]])


def test_actions_follow_their_observations(tmp_path):
    given = [episodes(k, lengths=(6, 9)) for k in (0, 1)]
    actions = [[np.full((len(x), 2), 10 * k + np.arange(len(x))[:, None]) for x in given[k]] for k in (0, 1)]
    paths = [write_lerobot(tmp_path / agent, given[k], actions[k]) for k, agent in enumerate(("ann", "ben"))]
    import_data(paths, tmp_path / "data", clip=2, stride=2)
    expected = [[x[i : i + 4 : 2] for x in agent for i in range(0, len(x) - 2, 4)] for agent in given]
    assert_same(stored(tmp_path / "data"), expected)
    labels = [[a[i : i + 4 : 2] for a in agent for i in range(0, len(a) - 2, 4)] for agent in actions]
    assert_same(read_actions(tmp_path / "data"), labels)


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


def test_clips_longer_than_everything(tmp_path):
    paths = [write_videos(tmp_path / agent, episodes(k)) for k, agent in enumerate(("ann", "ben"))]
    with pytest.raises(InvalidDataError, match="an episode of 6 steps; ann has none; leave it out"):
        import_data(paths, tmp_path / "data", clip=6)
