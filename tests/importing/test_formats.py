"""Every format, written as its own tools do, comes back exactly; its actions come back aside."""

import numpy as np
import pytest
from craftrl.data.hdf5 import read_notes

from craftrl import InvalidDataError
from craftrl.data import TrajectoryDataset
from craftrl.importing import Agent, Episode, Recording, import_data, inspect, read_actions
from recordings import (
    action_labels,
    assert_same,
    episodes,
    stored,
    write_frames,
    write_lerobot,
    write_minari,
    write_table,
    write_video,
    write_videos,
)

PICTURES, VECTORS = (16, 16, 3), (4,)


def write_npz(path, given, actions):
    """All trajectories in one file, padded, with their lengths."""
    lengths = [len(x) for x in given]
    padded, labels = (np.zeros((len(given), max(lengths), *x[0].shape[1:]), x[0].dtype) for x in (given, actions))
    for i, (x, a) in enumerate(zip(given, actions)):
        padded[i, : len(x)], labels[i, : len(a)] = x, a
    np.savez(path, observations=padded, lengths=lengths, actions=labels)
    return path


def write_npz_folder(folder, given, actions):
    folder.mkdir()
    for i, (x, a) in enumerate(zip(given, actions)):
        np.savez(folder / f"{i}.npz", image=x, action=a, reward=np.zeros(len(x)))
    return folder


# name: (shape of an observation, whether it has actions, how one agent's recordings are written)
FORMATS = {
    "npz": (VECTORS, True, lambda path, x, a: write_npz(path.with_suffix(".npz"), x, a)),
    "npz of episodes": (PICTURES, True, write_npz_folder),
    "csv": (VECTORS, True, lambda path, x, a: write_table(path.with_suffix(".csv"), x, a)),
    "parquet": (VECTORS, True, lambda path, x, a: write_table(path.with_suffix(".parquet"), x, a)),
    "ffv1": (PICTURES, False, lambda path, x, a: write_videos(path, x)),
    "h264 without loss": (
        PICTURES,
        False,
        lambda path, x, a: write_videos(path, x, "mp4", codec="libx264rgb", pixels="rgb24", qp="0"),
    ),
    "frames": (PICTURES, False, lambda path, x, a: write_frames(path, x)),
    "minari": (VECTORS, True, write_minari),
    "minari pictures": (PICTURES, True, lambda path, x, a: write_minari(path, x, a, jpeg_encoding=False)),
    "lerobot": (PICTURES, True, write_lerobot),
    "lerobot images": (PICTURES, True, lambda path, x, a: write_lerobot(path, x, a, kind="image")),
    "lerobot state": (VECTORS, True, write_lerobot),
}


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(name, tmp_path):
    shape, has_actions, write = FORMATS[name]
    given, actions = [episodes(k, shape) for k in (0, 1)], [action_labels(k) for k in (0, 1)]
    paths = [write(tmp_path / agent, x, a) for agent, x, a in zip(("ann", "ben"), given, actions)]
    tau = import_data(paths, tmp_path / "data.h5")
    assert (tau.K, tau.H, tau.obs_shape) == (2, 5, shape)
    assert_same(stored(tmp_path / "data.h5"), given)
    assert read_notes(tmp_path / "data.h5")["agents"] == ["ann", "ben"]
    assert not (tmp_path / "data.h5.importing").exists()
    found = read_actions(tmp_path / "data.h5")
    if name.startswith("minari"):
        actions = [[a[:-1] for a in agent] for agent in actions]
    assert_same(found, actions if has_actions else [])


def test_stores_are_put_together(tmp_path):
    """Agents of several stores, with their names, actions and lengths."""
    given, actions = [episodes(k, VECTORS) for k in range(4)], [action_labels(k) for k in range(4)]
    for store, first in (("one.h5", 0), ("two.h5", 2)):
        paths = [write_npz(tmp_path / f"agent{k}.npz", given[k], actions[k]) for k in (first, first + 1)]
        import_data(paths, tmp_path / store)
    import_data([tmp_path / "one.h5", tmp_path / "two.h5"], tmp_path / "all.h5")
    assert_same(stored(tmp_path / "all.h5"), given)
    assert_same(read_actions(tmp_path / "all.h5"), actions)
    assert read_notes(tmp_path / "all.h5")["agents"] == [f"agent{k}" for k in range(4)]


def test_a_folder_of_shards_and_a_store_without_names(tmp_path):
    given = [episodes(k, VECTORS) for k in (0, 1)]
    TrajectoryDataset.from_episodes(given).save(tmp_path / "old")
    import_data([tmp_path / "old"], tmp_path / "new.h5")
    assert_same(stored(tmp_path / "new.h5"), given)
    TrajectoryDataset.from_episodes(given).save(tmp_path / "plain.h5")
    assert [agent.name for agent in inspect(tmp_path / "plain.h5").agents] == ["0", "1"]


def test_one_table_of_several_agents(tmp_path):
    """A column says whose an episode is; two tables with the same names hold the same agents."""
    given = episodes(0, VECTORS)
    write_table(tmp_path / "monday.csv", given, agent=["ann", "ben", "ann"])
    write_table(tmp_path / "tuesday.parquet", given[:2], agent=["ben", "ann"])
    import_data([tmp_path / "monday.csv", tmp_path / "tuesday.parquet"], tmp_path / "data.h5")
    expected = [[given[0], given[2], given[1]], [given[1], given[0]]]
    assert_same([[x.astype(np.float32) for x in agent] for agent in stored(tmp_path / "data.h5")], expected)


def test_agents_of_one_table_may_number_their_episodes_alike(tmp_path):
    rows = ["agent,episode,x", "ann,0,1", "ann,0,2", "ben,0,3", "ben,0,4", "ann,1,5", "ann,1,6"]
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    import_data([tmp_path / "steps.csv"], tmp_path / "data.h5")
    expected = [[[[1], [2]], [[5], [6]]], [[[3], [4]]]]
    assert_same(stored(tmp_path / "data.h5"), [[np.array(x) for x in agent] for agent in expected])


def test_chosen_columns(tmp_path):
    given = [episodes(k, VECTORS) for k in (0, 1)]
    paths = [write_table(tmp_path / f"{k}.csv", x) for k, x in enumerate(given)]
    import_data(paths, tmp_path / "data.h5", keys=["f2", "f0"])
    found = [[x.astype(np.float32) for x in agent] for agent in stored(tmp_path / "data.h5")]
    assert_same(found, [[x[:, [2, 0]] for x in agent] for agent in given])


def test_one_part_of_minari_observations(tmp_path):
    given = [episodes(k, VECTORS) for k in (0, 1)]
    paths = [write_minari(tmp_path / str(k), x, action_labels(k), key="place") for k, x in enumerate(given)]
    with pytest.raises(InvalidDataError, match=r"has mission, place; name one with --key|has place, mission"):
        import_data(paths, tmp_path / "data.h5")
    import_data(paths, tmp_path / "data.h5", keys="place")
    assert_same(stored(tmp_path / "data.h5"), given)


def test_minari_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    given = [episodes(k, VECTORS) for k in (0, 1)]
    for k, x in enumerate(given):
        write_minari(tmp_path / f"tests/{k}-v0", x, action_labels(k))
    import_data(["minari:tests/0-v0", "minari:tests/1-v0"], tmp_path / "data.h5")
    assert_same(stored(tmp_path / "data.h5"), given)
    assert read_notes(tmp_path / "data.h5")["agents"] == ["tests/0-v0", "tests/1-v0"]


def test_small_integers_stay_integers(tmp_path):
    """So that `fit` can choose an entry of x."""
    for k in (0, 1):
        (tmp_path / f"{k}.csv").write_text(f"episode,a,b\n0,1,0\n0,0,{k}\n")
    assert import_data([tmp_path / "0.csv", tmp_path / "1.csv"], tmp_path / "data.h5").dtype == np.int64


def test_lossy_video_is_close_and_said_to_be_lossy(tmp_path):
    """A smooth picture survives compression roughly, and the store remembers that it was compressed."""
    slope = np.linspace(0, 200, 32).astype(np.uint8)
    frames = np.broadcast_to(slope[:, None, None], (4, 32, 32, 3)).copy()
    for k, agent in enumerate(("ann", "ben")):
        write_videos(tmp_path / agent, [frames + k * 20], "mp4", codec="libx264", pixels="yuv420p")
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data.h5")
    (x,), _ = stored(tmp_path / "data.h5")
    assert np.abs(x.astype(int) - frames).mean() < 6
    assert any("h264 yuv420p" in text for text in inspect(tmp_path / "data.h5").warnings)


def test_minari_pictures_are_lossy_unless_asked_otherwise(tmp_path):
    paths = [write_minari(tmp_path / str(k), episodes(k, (16, 16, 3)), action_labels(k)) for k in (0, 1)]
    import_data(paths, tmp_path / "data.h5")
    assert read_notes(tmp_path / "data.h5")["lossy"] == ["JPEG", "JPEG"]


def test_pictures_are_cropped_resized_and_made_grey(tmp_path):
    """Crop first, then averages over areas; grey has one channel, with the weights of ITU-R 601."""
    frames = np.zeros((2, 12, 20, 3), dtype=np.uint8)
    frames[:, 2:10, 4:12] = (200, 100, 50)
    frames[:, 2:6, 4:8] = 0
    for k, agent in enumerate(("ann", "ben")):
        write_video(tmp_path / agent / "a.mkv", np.concatenate([frames, frames[: k + 1]]))
    tau = import_data(
        [tmp_path / "ann", tmp_path / "ben"], tmp_path / "data.h5", crop=(4, 2, 8, 8), resize=2, grey=True
    )
    luma = round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)
    assert tau.obs_shape == (2, 2, 1)
    assert np.array_equal(tau.at(1)[0, ..., 0], [[0, luma], [luma, luma]])


def test_grey_videos_have_one_channel(tmp_path):
    for k, agent in enumerate(("ann", "ben")):
        frames = np.repeat(episodes(k, (16, 16, 1))[0], 3, axis=-1)
        write_video(tmp_path / agent / "a.mkv", frames, "ffv1", "gray")
    tau = import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data.h5")
    assert tau.obs_shape == (16, 16, 1)


def test_agents_in_code(tmp_path):
    """A format of one's own, and names of one's own for paths."""
    given = [episodes(k, VECTORS) for k in (0, 1)]

    def agent(k):
        made = [
            Episode(str(i), "1", lambda steps, x=x: Recording(x[steps]), lambda x=x: len(x))
            for i, x in enumerate(given[k])
        ]
        return Agent("walker", "my own", made)

    alike = Agent("twins", "my own", [agent(0).episodes[0]] * 2)
    with pytest.raises(InvalidDataError, match="two are called twins"):
        import_data([agent(0), alike], tmp_path / "data.h5")
    import_data([agent(0), agent(1)], tmp_path / "data.h5")
    assert_same(stored(tmp_path / "data.h5"), given)
    paths = {name: write_table(tmp_path / f"{k}.csv", given[k]) for k, name in enumerate(("ann", "ben"))}
    import_data(paths, tmp_path / "named.h5")
    assert read_notes(tmp_path / "named.h5")["agents"] == ["ann", "ben"]


def test_folders_of_one_name_are_told_apart(tmp_path):
    given = [episodes(k) for k in (0, 1)]
    paths = [write_videos(tmp_path / agent / "videos", x) for agent, x in zip(("ann", "ben"), given)]
    import_data(paths, tmp_path / "data.h5")
    assert read_notes(tmp_path / "data.h5")["agents"] == ["ann/videos", "ben/videos"]
    assert_same(stored(tmp_path / "data.h5"), given)


def test_a_table_with_two_columns_of_one_name_is_refused(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("episode,f0,f0\n0,1,2\n0,1,2\n")
    with pytest.raises(InvalidDataError, match=r"a\.csv must be a table .* two columns called 'f0'"):
        import_data([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "data.h5")
