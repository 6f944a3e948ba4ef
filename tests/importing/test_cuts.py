"""Episodes cut out of recordings: by a table, into clips, with a stride; always the very frames that were asked for."""

import numpy as np
import pytest
from craftrl.data.hdf5 import read_notes

from craftrl import InvalidDataError
from craftrl.importing import import_data, read_actions
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
    import_data([folder / "ann", folder / "ben"], folder / "data.h5", boundaries=folder / "cuts.csv", **options)
    return stored(folder / "data.h5")


def test_boundaries_in_frames(videos):
    folder, (a, b) = videos
    found = imported(folder, ["ann/long.mp4,3,9", "ann/long.mp4,20,30", "ben/long.mp4,0,5", "ann/long.mp4,1,4"])
    assert_same(found, [[a[3:9], a[20:30], a[1:4]], [b[:5]]])


def test_boundaries_in_seconds(videos):
    folder, (a, b) = videos
    rows = [f"ann/long.mp4,{5 / FPS},{12 / FPS}", f"ben/long.mp4,0.25,{30 / FPS}"]
    assert_same(imported(folder, rows, "file,start_seconds,stop_seconds"), [[a[5:12]], [b[3:]]])


def test_boundaries_name_the_agents(videos):
    """One video may hold several agents' episodes."""
    folder, (a, b) = videos
    rows = ["ann/long.mp4,0,4,cat", "ann/long.mp4,4,8,dog", "ben/long.mp4,2,6,cat"]
    assert_same(imported(folder, rows, "file,start,stop,agent"), [[a[:4], b[2:6]], [a[4:8]]])
    assert read_notes(folder / "data.h5")["agents"] == ["cat", "dog"]


def test_clips_and_stride(videos):
    """Clips count steps after the stride; what is left over is dropped, and the store says that these are clips."""
    folder, given = videos
    import_data([folder / "ann", folder / "ben"], folder / "data.h5", clip=4, stride=3)
    assert_same(stored(folder / "data.h5"), [[x[0:12:3], x[12:24:3]] for x in given])
    assert read_notes(folder / "data.h5")["clip"] == 4


def test_stride_alone(videos):
    folder, given = videos
    import_data([folder / "ann", folder / "ben"], folder / "data.h5", stride=7)
    assert_same(stored(folder / "data.h5"), [[x[::7]] for x in given])


def test_clips_of_boundaries(videos):
    folder, (a, b) = videos
    found = imported(folder, ["ann/long.mp4,10,21", "ben/long.mp4,0,5"], clip=5)
    assert_same(found, [[a[10:15], a[15:20]], [b[:5]]])


def test_actions_follow_their_observations(tmp_path):
    given = [episodes(k, lengths=(6, 9)) for k in (0, 1)]
    actions = [[np.full((len(x), 2), 10 * k + np.arange(len(x))[:, None]) for x in given[k]] for k in (0, 1)]
    paths = [write_lerobot(tmp_path / agent, given[k], actions[k]) for k, agent in enumerate(("ann", "ben"))]
    import_data(paths, tmp_path / "data.h5", clip=2, stride=2)
    expected = [[x[i : i + 4 : 2] for x in agent for i in range(0, len(x) - 2, 4)] for agent in given]
    assert_same(stored(tmp_path / "data.h5"), expected)
    labels = [[a[i : i + 4 : 2] for a in agent for i in range(0, len(a) - 2, 4)] for agent in actions]
    assert_same(read_actions(tmp_path / "data.h5"), labels)


def test_folders_of_frames_can_be_cut_too(tmp_path):
    given = [episodes(k, lengths=(12,)) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        write_frames(tmp_path / agent, x)
    found = imported(tmp_path, ["ann/run 0,2,11", "ben/run 0,0,3"])
    assert_same(found, [[given[0][0][2:11]], [given[1][0][:3]]])


@pytest.mark.parametrize(
    ("row", "header", "reason"),
    [
        ("ann/long.mp4,20,31", "file,start,stop", "has 30 steps, and line 2 of .*cuts.csv asks for 20 to 31"),
        ("ann/long.mp4,9,9", "file,start,stop", "start before stop"),
        ("ann/long.mp4,-1,4", "file,start,stop", "inside of the recording"),
        ("ann/long.mp4,0,3.5", "file,start_seconds,stop_seconds", "has 3 s, and line 2"),
        ("long.mp4,0,4", "file,start,stop", "is one of ann and ben; write ann/long.mp4"),
        ("other.mp4,0,4", "file,start,stop", "other.mp4 in line 2 .* such as ann/long.mp4"),
        ("ann/long.mp4,0,x", "file,start,stop", "line 2 of .*cuts.csv has not; correct it"),
        ("ann/long.mp4,0", "file,begin", "`start` and `stop` in whole frames"),
    ],
)
def test_wrong_boundaries(videos, row, header, reason):
    with pytest.raises(InvalidDataError, match=reason):
        imported(videos[0], [row], header)
    assert not (videos[0] / "data.h5").exists()


def test_seconds_need_a_clock(tmp_path):
    for k, agent in enumerate(("ann", "ben")):
        write_frames(tmp_path / agent, episodes(k))
    with pytest.raises(InvalidDataError, match="such as videos"):
        imported(tmp_path, ["ann/run 0,0,1"], "file,start_seconds,stop_seconds")


def test_clips_longer_than_everything(tmp_path):
    paths = [write_videos(tmp_path / agent, episodes(k)) for k, agent in enumerate(("ann", "ben"))]
    with pytest.raises(InvalidDataError, match="an episode of 6 steps; ann has none; leave it out, or choose"):
        import_data(paths, tmp_path / "data.h5", clip=6)
