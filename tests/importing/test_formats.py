"""Every format, written as its own tools do, comes back exactly; its actions come back aside."""

import numpy as np
import pytest
from PIL import Image

from craftrl import InvalidDataError
from craftrl.data import read_actions, store
from craftrl.importing import import_data, inspect, read_episodes
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


def write_arrays(folder, given, actions):
    folder.mkdir()
    for i, x in enumerate(given):
        np.save(folder / f"{i}.npy", x)
    return folder


def write_named(path, given, actions):
    """One file in which each array is an episode."""
    np.savez(path, **{f"run{i}": x for i, x in enumerate(given)}, reward=np.zeros(3))
    return path


# name: (shape of an observation, whether it has actions, how one agent's recordings are written)
FORMATS = {
    "npz": (VECTORS, True, lambda path, x, a: write_npz(path.with_suffix(".npz"), x, a)),
    "npz of clips": (PICTURES, True, lambda path, x, a: write_npz(path.with_suffix(".npz"), x, a)),
    "npz of named episodes": (VECTORS, False, lambda path, x, a: write_named(path.with_suffix(".npz"), x, a)),
    "npz of episodes": (PICTURES, True, write_npz_folder),
    "npy of episodes": (PICTURES, False, write_arrays),
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
    tau = import_data(paths, tmp_path / "data")
    assert (tau.K, tau.H, tau.obs_shape, list(tau.names)) == (2, 5, shape, ["ann", "ben"])
    assert_same(stored(tmp_path / "data"), given)
    if name.startswith("minari"):
        actions = [[a[:-1] for a in agent] for agent in actions]
    assert_same(read_actions(tmp_path / "data"), actions if has_actions else [])


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_of_pictures_is_one_recording_or_clips(tmp_path, channels):
    """As its axes say: (steps, rows, columns, channels), or (n, steps, ...)."""
    clips = [np.stack(episodes(k, (8, 8, channels), (5, 5, 5))) for k in (0, 1)]
    for x, expected in ((clips, [list(x) for x in clips]), ([x[0] for x in clips], [[x[0]] for x in clips])):
        for agent, own in zip(("ann", "ben"), x):
            np.save(tmp_path / f"{agent}.npy", own)
        import_data([tmp_path / "ann.npy", tmp_path / "ben.npy"], tmp_path / f"data{x[0].ndim}")
        assert_same(stored(tmp_path / f"data{x[0].ndim}"), expected)


@pytest.mark.parametrize("how", [{}, {"duration": [40, 20, 500, 1000, 3000]}, {"duration": 50, "disposal": 2}])
def test_gifs_keep_all_frames(how, tmp_path):
    """Also those that do not say how long each is shown, or are cleared between frames."""
    given = [np.kron(episodes(k, (4, 4, 3), (5,))[0], np.ones((1, 4, 4, 1), np.uint8)) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        frames = [Image.fromarray(frame).quantize(64) for frame in x]  # 16 colours: nothing is lost
        (tmp_path / agent).mkdir()
        frames[0].save(tmp_path / agent / "a.gif", save_all=True, append_images=frames[1:], **how)
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data")
    assert_same(stored(tmp_path / "data"), [[x] for x in given])


def test_grey_videos_have_one_channel(tmp_path):
    for k, agent in enumerate(("ann", "ben")):
        frames = np.repeat(episodes(k, (16, 16, 1))[0], 3, axis=-1)
        write_video(tmp_path / agent / "a.mkv", frames, "ffv1", "gray")
    tau = import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data")
    assert tau.obs_shape == (16, 16, 1)


@pytest.mark.parametrize("how", ["a file each", "a folder each"])
def test_grey_arrays_have_one_channel(how, tmp_path):
    """Bytes in rows and columns are grey pictures, which networks take; other numbers stay as they are."""
    for k, agent in enumerate(("ann", "ben")):
        x = np.stack(episodes(k, (16, 12), (4, 4, 4)))
        if how == "a file each":
            np.save(tmp_path / f"{agent}.npy", x)
        else:
            write_arrays(tmp_path / agent, x, None)
    given = [tmp_path / f"{agent}{'.npy' * (how == 'a file each')}" for agent in ("ann", "ben")]
    tau = import_data(given, tmp_path / "data")
    assert tau.obs_shape == (16, 12, 1)
    assert_same(stored(tmp_path / "data"), [[x[..., None] for x in episodes(k, (16, 12), (4, 4, 4))] for k in (0, 1)])


def test_lossy_compression_is_said(tmp_path):
    """A smooth picture survives it roughly; Minari's pictures are JPEG unless asked otherwise."""
    slope = np.linspace(0, 200, 32).astype(np.uint8)
    frames = np.broadcast_to(slope[:, None, None], (4, 32, 32, 3)).copy()
    videos = [write_videos(tmp_path / a, [frames], "mp4", codec="libx264", pixels="yuv420p") for a in ("ann", "ben")]
    minaris = [write_minari(tmp_path / f"m{k}", episodes(k, PICTURES), action_labels(k)) for k in (0, 1)]
    for paths, name in ((videos, "h264 yuv420p"), (minaris, "JPEG")):
        import_data(paths, tmp_path / name)
        assert any(f"Lossy compression ({name})" in text for text in inspect(tmp_path / name).warnings)
    (x,), _ = stored(tmp_path / "h264 yuv420p")
    assert np.abs(x.astype(int) - frames).mean() < 6


def test_datasets_are_put_together(tmp_path):
    """Agents of several datasets, with their names, actions and lengths."""
    given, actions = [episodes(k, VECTORS) for k in range(4)], [action_labels(k) for k in range(4)]
    for name, first in (("one", 0), ("two", 2)):
        paths = [write_npz(tmp_path / f"agent{k}.npz", given[k], actions[k]) for k in (first, first + 1)]
        import_data(paths, tmp_path / name)
    tau = import_data([tmp_path / "one", tmp_path / "two"], tmp_path / "all")
    assert_same(stored(tmp_path / "all"), given)
    assert_same(read_actions(tmp_path / "all"), actions)
    assert list(tau.names) == [f"agent{k}" for k in range(4)]


def test_one_table_of_several_agents(tmp_path):
    """A column says whose an episode is; two tables with the same names hold the same agents."""
    given = episodes(0, VECTORS)
    write_table(tmp_path / "monday/steps.csv", given, agent=["ann", "ben", "ann"])
    write_table(tmp_path / "tuesday/steps.csv", given[:2], agent=["ann", "ben"])
    import_data([tmp_path / "monday/steps.csv", tmp_path / "tuesday/steps.csv"], tmp_path / "data")
    expected = [[given[0], given[2], given[0]], [given[1], given[1]]]
    assert_same([[x.astype(np.float32) for x in agent] for agent in stored(tmp_path / "data")], expected)


def test_rows_in_any_order(tmp_path):
    """Agents may number their episodes alike; steps are put in order."""
    rows = ["agent,episode,step,x", "ann,0,1,2", "ann,0,0,1", "ben,0,0,3", "ben,0,1,4", "ann,1,0,5", "ann,1,1,6"]
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    tau = import_data([tmp_path / "steps.csv"], tmp_path / "data")
    expected = [[[[1], [2]], [[5], [6]]], [[[3], [4]]]]
    assert_same(stored(tmp_path / "data"), [[np.array(x) for x in agent] for agent in expected])
    assert tau.dtype == np.int64  # so that `fit` can choose an entry of x
    assert tau.source == ["steps.csv[ann, 0]", "steps.csv[ann, 1]", "steps.csv[ben, 0]"]
    dated = ["agent,time,x", "ann,2025-01-02 10:00:01,2", "ann,2025-01-02 10:00:00,1", "ben,2025-01-01 09:00:00,3"]
    (tmp_path / "dated.csv").write_text("\n".join(dated) + "\n")
    import_data([tmp_path / "dated.csv"], tmp_path / "other")
    assert_same(stored(tmp_path / "other"), [[np.array([[1], [2]])], [np.array([[3]])]])


def test_whole_numbers_in_one_table_and_others_in_the_next(tmp_path):
    for name, values in {"ann": "1\n2", "ben": "0.5\n1"}.items():
        (tmp_path / f"{name}.csv").write_text(f"x\n{values}\n")
    assert import_data([tmp_path / "ann.csv", tmp_path / "ben.csv"], tmp_path / "data").dtype == np.float64


def test_new_tables_are_read_by_the_names_of_their_columns(tmp_path):
    for name, text in {"ann": "x,y\n1,2\n3,4", "ben": "x,y\n5,6\n7,8", "new": "y,z,x\n2,0,1\n4,0,3"}.items():
        (tmp_path / f"{name}.csv").write_text(f"{text}\n")
    reading = import_data([tmp_path / "ann.csv", tmp_path / "ben.csv"], tmp_path / "data").notes["reading"]
    assert reading["keys"] == ["x", "y"]
    (episode,) = read_episodes([tmp_path / "new.csv"], **reading)
    assert episode.x.tolist() == [[1, 2], [3, 4]]


def test_chosen_columns_arrays_and_parts(tmp_path):
    given = [episodes(k, VECTORS) for k in (0, 1)]
    paths = [write_table(tmp_path / f"{k}.csv", x) for k, x in enumerate(given)]
    import_data(paths, tmp_path / "tables", keys=["f2", "f0"])
    found = [[x.astype(np.float32) for x in agent] for agent in stored(tmp_path / "tables")]
    assert_same(found, [[x[:, [2, 0]] for x in agent] for agent in given])
    paths = [write_minari(tmp_path / f"m{k}", x, action_labels(k), key="place") for k, x in enumerate(given)]
    with pytest.raises(InvalidDataError, match=r"has mission, place; name one with --key|has place, mission"):
        import_data(paths, tmp_path / "parts")
    import_data(paths, tmp_path / "parts", keys="place")
    assert_same(stored(tmp_path / "parts"), given)


def test_minari_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    given = [episodes(k, VECTORS) for k in (0, 1)]
    for k, x in enumerate(given):
        write_minari(tmp_path / f"tests/{k}-v0", x, action_labels(k))
    tau = import_data(["minari:tests/0-v0", "minari:tests/1-v0"], tmp_path / "data")
    assert_same(stored(tmp_path / "data"), given)
    assert list(tau.names) == ["tests/0-v0", "tests/1-v0"]


def test_episodes_from_python(tmp_path):
    """Any iterable of arrays, or of pairs with actions, beside agents that lie on disk."""
    given, actions = [episodes(k) for k in range(3)], action_labels(1)
    write_videos(tmp_path / "ann", given[0])
    agents = {"carl": (x for x in given[2]), "ben": list(zip(given[1], actions)), "ann": tmp_path / "ann"}
    tau = import_data(agents, tmp_path / "data", stride=2)
    found = dict(zip(tau.names, stored(tmp_path / "data")))
    for name, x in zip(("ann", "ben", "carl"), given):
        assert_same([found[name]], [[episode[::2] for episode in x]])
    aside = dict(zip(tau.names, read_actions(tmp_path / "data")))
    assert_same([aside["ben"]], [[a[::2] for a in actions]])


def test_names_and_their_order(tmp_path, monkeypatch):
    """Folders of one name are told apart by where they lie; a mapping gives names, in its order."""
    given = [episodes(k) for k in (0, 1)]
    paths = [write_videos(tmp_path / agent / "videos", x) for agent, x in zip(("ann", "ben"), given)]
    assert import_data(paths, tmp_path / "data").names == ("ann/videos", "ben/videos")
    assert import_data(dict(zip(("a", "b"), paths)), tmp_path / "named").names == ("a", "b")
    assert_same(stored(tmp_path / "data"), given)
    monkeypatch.setattr(store, "FILE_BYTES", 1000)  # the later agent's file is full first
    tau = import_data({"small": [np.zeros((3, 2))], "large": [np.ones((300, 2))]}, tmp_path / "sizes")
    assert (tau.names, tau.at(1).tolist()) == (("small", "large"), [[0, 0], [1, 1]])
