"""How recordings become episodes: cut by a table, with a stride, cropped, in one light; new ones alike."""

import numpy as np
import pytest

from craftrl.data import TrajectoryDataset, read_actions
from craftrl.importing import import_data, read_episodes
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


def test_folders_of_frames_can_be_cut_too(tmp_path):
    given = [episodes(k, lengths=(12,)) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        write_frames(tmp_path / agent, x)
    found = imported(tmp_path, ["ann/run 0,2,11", "ben/run 0,0,3"])
    assert_same(found, [[given[0][0][2:11]], [given[1][0][:3]]])


@pytest.mark.parametrize("rows", [None, ["ann/long.mp4,3,28", "ann/long.mp4,10,30", "ben/long.mp4,0,5"]])
def test_long_recordings_are_written_in_parts(videos, rows, monkeypatch):
    """What memory cannot hold at once is written bit by bit, and comes out as one episode, frame by frame."""
    folder, (a, b) = videos
    monkeypatch.setattr("craftrl.importing.reading.PART_BYTES", 4 * a[0].nbytes)
    if rows is None:
        import_data([folder / "ann", folder / "ben"], folder / "data", stride=2)
        assert_same(stored(folder / "data"), [[a[::2]], [b[::2]]])
    else:
        assert_same(imported(folder, rows, stride=2), [[a[3:28:2], a[10:30:2]], [b[:5:2]]])
    assert not list((folder / "data").glob(".*"))


def test_actions_follow_their_observations(tmp_path, monkeypatch):
    given = [episodes(k, lengths=(6, 9)) for k in (0, 1)]
    actions = [[np.full((len(x), 2), 10 * k + np.arange(len(x))[:, None]) for x in given[k]] for k in (0, 1)]
    paths = [write_lerobot(tmp_path / agent, given[k], actions[k]) for k, agent in enumerate(("ann", "ben"))]
    monkeypatch.setattr("craftrl.importing.reading.PART_BYTES", 2 * given[0][0][0].nbytes)
    import_data(paths, tmp_path / "data", stride=2)
    assert_same(stored(tmp_path / "data"), [[x[::2] for x in agent] for agent in given])
    assert_same(read_actions(tmp_path / "data"), [[a[::2] for a in agent] for agent in actions])


def test_pictures_are_cropped_resized_and_made_grey(tmp_path):
    """Crop first, then averages over areas; grey has one channel, with the weights of ITU-R 601."""
    frames = np.zeros((2, 12, 20, 3), dtype=np.uint8)
    frames[:, 2:10, 4:12] = (200, 100, 50)
    frames[:, 2:6, 4:8] = 0
    for k, agent in enumerate(("ann", "ben")):
        write_video(tmp_path / agent / "a.mkv", np.concatenate([frames, frames[: k + 1]]))
    how = {"crop": (4, 2, 8, 8), "resize": 2, "grey": True}
    tau = import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data", **how)
    luma = round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)
    assert tau.obs_shape == (2, 2, 1)
    assert np.array_equal(tau.at(1)[0, ..., 0], [[0, luma], [luma, luma]])


@pytest.mark.parametrize("light", [None, "recording"])
def test_new_recordings_are_read_as_a_dataset_was(tmp_path, light):
    paths = [write_videos(tmp_path / agent, episodes(k, lengths=(9, 3))) for k, agent in enumerate(("ann", "ben"))]
    how = {"stride": 2, "crop": (2, 0, 12, 8), "resize": (3, 2), "standardise": light}
    tau = import_data(paths, tmp_path / "data", **how)
    assert {name: tau.notes["reading"][name] for name in how} == how | {"crop": [2, 0, 12, 8], "resize": [3, 2]}
    again = list(read_episodes(paths, **tau.notes["reading"]))
    assert_same([[episode.x for episode in again]], [[x for agent in stored(tmp_path / "data") for x in agent]])
    found = [(e.agent, e.source, e.start) for e in read_episodes([paths[1]], **tau.notes["reading"])]
    assert found == [("ben", "episode0.mkv", 0), ("ben", "episode1.mkv", 0)]
    assert tau.source == ["episode0.mkv", "episode1.mkv"] * 2


@pytest.mark.parametrize("how", ["recording", "agent"])
def test_recordings_in_unequal_light(tmp_path, how):
    """The second agent's videos are brighter and flatter, each time otherwise; the mean of all light stays."""
    given = [[np.clip(x // 2 + 60, 0, 255) for x in episodes(k, lengths=(40, 30))] for k in (0, 1)]
    given[1] = [
        (x * f * np.array([1.0, 0.95, 1.05]) + m).astype(np.uint8) for x, f, m in zip(given[1], (0.8, 0.9), (20, 35))
    ]
    paths = [write_videos(tmp_path / agent, x) for agent, x in zip(("ann", "ben"), given)]

    def light(agents):
        films = [np.concatenate(own) for own in agents] if how == "agent" else [x for own in agents for x in own]
        return [np.concatenate([x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))]) for x in films]

    import_data(paths, tmp_path / "data", standardise=how)
    found = stored(tmp_path / "data")
    assert np.ptp(light(given), axis=0).max() > 10
    assert np.ptp(light(found), axis=0).max() < 0.1  # else any frame gives its recording away
    if how == "recording":
        assert np.allclose(np.mean(light(given), axis=0), np.mean(light(found), axis=0), atol=0.6)
    else:
        assert (
            abs(found[1][0].mean() - found[1][1].mean()) > 5
        )  # recordings of one agent stay as different as they were
