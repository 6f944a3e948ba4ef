"""Whatever is wrong with recordings or arguments: one sentence that names the file and what to do, and no dataset."""

import json
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
from PIL import Image

from craftrl import CraftError, MissingDependencyError
from craftrl.importing import import_data
from recordings import action_labels, episodes, write_frames, write_lerobot, write_minari, write_table, write_videos


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A good agent, `ann`, as videos; the test's own, `ben`, is bad."""
    monkeypatch.chdir(tmp_path)
    write_videos(tmp_path / "ann", episodes(0))
    return tmp_path


def complaint(folder, agents, **options):
    """What `import_data` says; one line, and no dataset."""
    with pytest.raises(CraftError) as caught:
        import_data(agents, "data", **options)
    assert not (folder / "data/dataset.json").exists()
    text = str(caught.value)
    assert "\n" not in text
    return text


def ben(folder):
    (folder / "ben").mkdir()
    return folder / "ben"


def cut_off(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def empty_folder(folder):
    ben(folder)


def only_notes(folder):
    (ben(folder) / "notes.txt").write_text("nothing here")


def corrupt_video(folder):
    (ben(folder) / "broken.mp4").write_bytes(b"not a video" * 50)


def empty_video(folder):
    (ben(folder) / "empty.mp4").touch()


def truncated_video(folder):
    write_videos(folder / "ben", episodes(1, lengths=(20,)))
    cut_off(folder / "ben/episode0.mkv")


def playlist(folder):
    """A text that FFmpeg would take for a list of other files."""
    write_videos(folder / "other", episodes(1))
    (ben(folder) / "a.mp4").write_text("ffconcat version 1.0\nfile ../other/episode0.mkv\n")


def truncated_gif(folder):
    frames = [Image.fromarray(x) for x in episodes(1, lengths=(4,))[0]]
    frames[0].save(ben(folder) / "a.gif", save_all=True, append_images=frames[1:])
    whole = (folder / "ben/a.gif").read_bytes()
    (folder / "ben/a.gif").write_bytes(whole[:-1])


def other_size(folder):
    write_videos(folder / "ben", episodes(1, shape=(24, 16, 3)))


def other_type(folder):
    ben(folder)
    np.save(folder / "ben/a.npy", episodes(1)[0] / 255)


def two_kinds(folder):
    write_videos(folder / "ben", episodes(1))
    write_frames(folder / "ben", episodes(1))


def broken_picture(folder):
    write_frames(folder / "ben", episodes(1))
    cut_off(folder / "ben/run 1/2.png")


def deep_picture(folder):
    write_frames(folder / "ben", episodes(1))
    Image.fromarray(np.full((16, 16), 5000, dtype=np.uint16)).save(folder / "ben/run 0/0.png")


def growing_pictures(folder):
    write_frames(folder / "ben", episodes(1))
    Image.new("RGB", (8, 8)).save(folder / "ben/run 1/2.png")


def broken_table(folder):
    (ben(folder) / "a.csv").write_text('x,y\n1,2\n3\n"')


def broken_parquet(folder):
    write_table(folder / "ben/a.parquet", episodes(1, (4,)))
    cut_off(folder / "ben/a.parquet")


def words_in_a_table(folder):
    (ben(folder) / "a.csv").write_text("x,mood\n1,good\n2,bad\n")


def gaps_in_a_table(folder):
    (ben(folder) / "a.csv").write_text("x,y\n1,2\n,3\n")


def gaps_in_labels(folder):
    (ben(folder) / "a.csv").write_text("episode,y\n1,2\n,3\n")


def two_columns_of_one_name(folder):
    (ben(folder) / "a.csv").write_text("episode,f0,f0\n0,1,2\n0,1,2\n")


def table_without_rows(folder):
    (ben(folder) / "a.csv").write_text("x,y\n")


def empty_table(folder):
    (ben(folder) / "a.csv").touch()


def broken_npz(folder):
    np.savez(ben(folder) / "a.npz", x=np.zeros((3, 4)))
    cut_off(folder / "ben/a.npz")


def pickled_npz(folder):
    np.savez(ben(folder) / "a.npz", x=np.array([{}, {}], dtype=object))


def empty_npy(folder):
    (ben(folder) / "a.npy").touch()


def not_finite(folder):
    np.savez(ben(folder) / "a.npz", x=np.full((5, 16, 16, 3), 7, np.uint8))
    np.savez(folder / "ben/b.npz", x=np.full((5, 16, 16, 3), np.nan))


def empty_episode(folder):
    np.savez(ben(folder) / "a.npz", x=np.zeros((0, 16, 16, 3), dtype=np.uint8))


def too_many_actions(folder):
    np.savez(ben(folder) / "a.npz", x=np.zeros((4, 16, 16, 3), dtype=np.uint8), actions=np.zeros(7))


def old_lerobot(folder):
    write_lerobot(folder / "ben", episodes(1), action_labels(1), version="v2.1")


def lerobot_without_episodes(folder):
    write_lerobot(folder / "ben", episodes(1), action_labels(1))
    (folder / "ben/meta/episodes/chunk-000/file-000.parquet").unlink()


def lerobot_with_a_short_video(folder):
    write_lerobot(folder / "ben", episodes(1, lengths=(5, 3)), action_labels(1, (5, 3)))
    short = write_videos(folder / "short", episodes(1, lengths=(7,)), "mp4", codec="libx264rgb", pixels="rgb24", qp="0")
    (short / "episode0.mp4").replace(folder / "ben/videos/observation.images.front/chunk-000/file-000.mp4")


def changed_info(folder, change):
    write_lerobot(folder / "ben", episodes(1), action_labels(1))
    info = json.loads((folder / "ben/meta/info.json").read_text())
    change(info)
    (folder / "ben/meta/info.json").write_text(json.dumps(info))


def lerobot_with_two_cameras(folder):
    changed_info(folder, lambda info: info["features"].update({"observation.images.wrist": {"dtype": "video"}}))


def lerobot_of_other_files(folder):
    changed_info(folder, lambda info: info.update(data_path="../other/file-{file_index:03d}.parquet"))


def broken_minari(folder):
    write_minari(folder / "ben", episodes(1), action_labels(1), jpeg_encoding=False)
    cut_off(folder / "ben/data/main_data.hdf5")


def minari_with(folder, replace):
    """A Minari dataset whose first observations lie in another file, which HDF5 can be told in three ways."""
    write_minari(folder / "ben", episodes(1), action_labels(1), jpeg_encoding=False)
    secret = np.zeros((5, 16, 16, 3), dtype=np.uint8)
    with h5py.File(folder / "secret.h5", "w") as file:
        file["x"] = secret
    (folder / "secret").write_bytes(secret.tobytes())
    with h5py.File(folder / "ben/data/main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        replace(file)


def external_link(folder):
    def link(file):
        file["episode_0/observations"] = h5py.ExternalLink(str(folder / "secret.h5"), "x")

    minari_with(folder, link)


def external_storage(folder):
    minari_with(
        folder,
        lambda file: file.create_dataset(
            "episode_0/observations",
            (5, 16, 16, 3),
            "u1",
            external=[(str(folder / "secret"), 0, h5py.h5f.UNLIMITED)],
        ),
    )


def virtual_dataset(folder):
    layout = h5py.VirtualLayout((5, 16, 16, 3), "u1")
    layout[:] = h5py.VirtualSource(str(folder / "secret.h5"), "x", (5, 16, 16, 3))
    minari_with(folder, lambda file: file.create_virtual_dataset("episode_0/observations", layout))


BAD = {
    empty_folder: "ben has none; known are videos .*datasets of Minari, LeRobot and craftrl",
    only_notes: "An agent's path must hold recordings; ben has none",
    corrupt_video: "ben/broken.mp4 must be a video that can be decoded to its end; it cannot .*; copy it again",
    empty_video: "ben/empty.mp4 must be a video that can be decoded to its end",
    truncated_video: "ben/episode0.mkv must be a video .*it ends after",
    playlist: "ben/a.mp4 must be a video",
    truncated_gif: r"ben/a.gif must be a video .*\(it is cut off\)",
    other_size: r"ben/episode0.mkv has \(24, 16, 3\) uint8, ann/episode0.mkv \(16, 16, 3\) uint8; crop, resize",
    other_type: "ben/a.npy has .* float64, ann/episode0.mkv .* uint8; .* convert them",
    two_kinds: "one kind of recordings; ben has 3 videos .* and 12 pictures",
    broken_picture: "run 1/2.png must be a picture",
    deep_picture: "run 0/0.png must be a picture of 8 bits; .* more than 8 bits",
    growing_pictures: r"run 1 has \(16, 16, 3\) and \(8, 8, 3\); crop or resize them",
    broken_table: "ben/a.csv must be a table that can be read; .*; copy it again",
    broken_parquet: "ben/a.parquet must be a table that can be read",
    words_in_a_table: "`mood` of ben/a.csv is not so; .* --key",
    gaps_in_a_table: "`x` of ben/a.csv is not so; fill or drop it",
    gaps_in_labels: "`episode` must be filled in every row; in ben/a.csv it is not",
    two_columns_of_one_name: "ben/a.csv must be a table .* two columns called 'f0'",
    table_without_rows: "at least one row; ben/a.csv has none",
    empty_table: "ben/a.csv must be a table",
    broken_npz: "ben/a.npz must be a NumPy file of numbers",
    pickled_npz: "ben/a.npz must be a NumPy file of numbers",
    empty_npy: "ben/a.npy must be a NumPy file of numbers",
    not_finite: "ben/b.npz: .* contain NaN or infinity; drop or fill them",
    empty_episode: "at least one frame; ben/a.npz has none; leave it out",
    too_many_actions: "ben/a.npz has 4 steps and 7 actions; correct or remove them",
    old_lerobot: "layout v3.0; ben has v2.1; convert it with",
    lerobot_without_episodes: "must list its episodes; .*meta/episodes has no Parquet file",
    lerobot_with_a_short_video: "file-000.mp4, episode 1, must have 3 steps; 2 could be read",
    lerobot_with_two_cameras: "observation.images.front, observation.images.wrist.*; name one with --key",
    lerobot_of_other_files: "must hold its data itself; ben takes ben/../other/file-000.parquet, which lies elsewhere",
    broken_minari: "must be a Minari dataset; it cannot be opened",
    external_link: "must hold its data itself; ben/data takes episode_0/observations from another file",
    external_storage: "takes episode_0/observations from another file",
    virtual_dataset: "takes episode_0/observations from another file",
}


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_bad_agent(folder, spoil):
    spoil(folder)
    text = complaint(folder, ["ann", "ben"])
    assert re.search(BAD[spoil], text), text


@pytest.mark.parametrize(
    ("agents", "options", "reason"),
    [
        (["ann", "ann/"], {}, "ann and ann/ are the same; leave one out"),
        (["ann"], {}, "two agents at least; ann was given; add another path"),
        ([], {}, "two agents at least; none was given"),
        ("ann", {}, "agents must be a list with one path per agent; 'ann' was given"),
        (["ann", 3], {}, "An agent must be a path or, .* 3 was given"),
        (["ann", "nowhere"], {}, "There must be an agent's recordings at nowhere; nothing is there"),
        (["ann", "minari:no/such-v0"], {}, "There must be a Minari dataset no/such-v0"),
        (["ann", "a.doc"], {}, "recordings; a.doc has none; known are videos"),
        (["ann", "/"], {}, "/ is the whole disk"),
        (["ann", "ann.npz"], {}, "two are called .*ann; rename one"),
        (["ann", "ben"], {"crop": (8, 8, 16, 16)}, "must lie inside of the picture; .* has 16 x 16 pixels"),
        (["steps.csv"], {"resize": 2}, r"must be pictures of 8 bits.*steps.csv\[ann\] has \(1,\) of int64"),
        (["steps.csv"], {"keys": ["speed"]}, "columns that are observed; steps.csv has agent, x, not speed"),
        (["ann.npz", "ben"], {"keys": "speed"}, "must name one array; ann.npz has x, not speed"),
        ({"ann": "ann", "ben": [3]}, {}, "Episodes of ben must be arrays.*; 3 was given"),
        ({"ann": "ann", "ben": [np.zeros((3, 2))]}, {}, r"ben/episode 0: All observations must have one shape"),
        ({"ann": [np.zeros((1, 2))], "ben": [np.zeros((1, 2))]}, {}, "an episode of 2 steps; ann has none"),
        ({"ann": [np.zeros((3, 2))], "ben": []}, {}, "Every agent must have an episode; ben has none"),
    ],
)
def test_bad_agents(folder, monkeypatch, agents, options, reason):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    write_videos(folder / "ben", episodes(1))
    np.savez(folder / "ann.npz", x=np.zeros((2, 3, 4)))
    (folder / "steps.csv").write_text("agent,x\nann,1\nann,2\nben,3\nben,1\n")
    (folder / "a.doc").touch()
    text = complaint(folder, agents, **options)
    assert re.search(reason, text), text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride": 0}, "stride must be an integer of at least 1"),
        ({"clip": 1}, "clip must be an integer of at least 2"),
        ({"crop": (1, 2, 3)}, r"crop must be \(left, top, width, height\)"),
        ({"crop": "1234"}, "crop must be"),
        ({"resize": (8, 0)}, r"resize must be \(width, height\), or one number"),
        ({"resize": 2.5}, "resize must be"),
        ({"grey": 1}, "grey must be True or False"),
        ({"keys": 3}, "keys must be a name or a list of names"),
        ({"progress": "yes"}, "progress must be True or False"),
        ({"boundaries": "none.csv"}, "Boundaries must be a CSV file .*; correct none.csv, which cannot be read"),
        ({"out": ""}, "must be a path"),
        ({"out": "mine"}, "mine exists already; remove it, or choose another name"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_read(folder, monkeypatch, options, reason):
    (folder / "mine").mkdir()
    (folder / "mine/notes.txt").touch()
    monkeypatch.setattr("craftrl.importing.importer.cut_up", lambda *given: pytest.fail("something was read"))
    with pytest.raises(CraftError, match=reason):
        import_data(["ann", write_videos(folder / "ben", episodes(1))], **{"out": "data", **options})
    assert not (folder / "data").exists()


def test_a_missing_package(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"'av', which is not installed; .*pip install 'craftrl\[video\]'"):
        import_data(["ann", write_videos(folder / "ben", episodes(1))], "data")


@pytest.mark.parametrize("options", ["", "clip=2", "stride=2, clip=2", "resize=8, grey=True"])
def test_an_ordinary_import_says_nothing(folder, options):
    """A decoder that is left before its end, as with clips, once wrote a traceback to the terminal."""
    write_videos(folder / "ben", episodes(1))
    code = f"from craftrl.importing import import_data; import_data(['ann', 'ben'], 'data', {options})"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
