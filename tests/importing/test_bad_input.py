"""Whatever is wrong with recordings or arguments: one sentence that names the file and what to do, and no dataset."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from craftrl import CraftError, MissingDependencyError
from craftrl.importing import import_data
from recordings import (
    action_labels,
    episodes,
    write_frames,
    write_lerobot,
    write_minari,
    write_table,
    write_video,
    write_videos,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A good agent, `ann`, as videos; the test's own, `ben`, is bad."""
    monkeypatch.chdir(tmp_path)
    write_videos(tmp_path / "ann", episodes(0))
    return tmp_path


def complains(folder, agents, sentence, **options):
    """`import_data` says this in one line, and there is no dataset."""
    with pytest.raises(CraftError, match=sentence) as told:
        import_data(agents, "data", **options)
    assert "\n" not in str(told.value)
    assert not (folder / "data/dataset.json").exists()


def ben(folder, name="", text=None, x=None, **arrays):
    """The bad agent's folder, with a file of this name in it that holds a text or arrays."""
    (folder / "ben").mkdir(exist_ok=True)
    path = folder / "ben" / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    elif x is not None:
        np.savez(path, x=x, **arrays) if name.endswith("npz") else np.save(path, x)
    return path


def cut_off(path, share=2 / 3):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def gif_without_its_end(folder):
    frames = [Image.fromarray(x) for x in episodes(1, lengths=(4,))[0]]
    frames[0].save(ben(folder, "a.gif"), save_all=True, append_images=frames[1:])
    (folder / "ben/a.gif").write_bytes((folder / "ben/a.gif").read_bytes()[:-1])


def playlist(folder):
    """A text that FFmpeg would take for a list of other files."""
    write_videos(folder / "ben", episodes(1)[:1])
    (folder / "ben/episode0.mkv").rename(folder / "ben/other.dat")
    ben(folder, "a.mp4", "ffconcat version 1.0\nfile other.dat\n")


def frames_with(folder, name, picture):
    write_frames(folder / "ben", episodes(1))
    picture.save(folder / "ben" / name)


def lerobot_with(folder, change):
    write_lerobot(folder / "ben", episodes(1, lengths=(5, 3)), action_labels(1, (5, 3)))
    info = json.loads((folder / "ben/meta/info.json").read_text())
    change(info)
    (folder / "ben/meta/info.json").write_text(json.dumps(info))


def lerobot_with_a_short_video(folder):
    lerobot_with(folder, lambda info: None)
    short = write_videos(folder / "short", episodes(1, lengths=(7,)), "mp4", codec="libx264rgb", pixels="rgb24", qp="0")
    (short / "episode0.mp4").replace(folder / "ben/videos/observation.images.front/chunk-000/file-000.mp4")


def lerobot_without_episodes(folder):
    lerobot_with(folder, lambda info: None)
    (folder / "ben/meta/episodes/chunk-000/file-000.parquet").unlink()


def minari_with(folder, replace):
    """A Minari dataset whose first observations lie in another file, which HDF5 can be told in three ways."""
    write_minari(folder / "ben", episodes(1), action_labels(1), jpeg_encoding=False)
    secret = np.zeros((5, 16, 16, 3), dtype=np.uint8)
    with h5py.File(folder / "secret.h5", "w") as file:
        file["x"] = secret
    (folder / "secret").write_bytes(secret.tobytes())
    with h5py.File(folder / "ben/data/main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        replace(file, "episode_0/observations", (5, 16, 16, 3))


def external_link(file, name, shape):
    file[name] = h5py.ExternalLink(str(Path("secret.h5").absolute()), "x")


def external_storage(file, name, shape):
    file.create_dataset(name, shape, "u1", external=[(str(Path("secret").absolute()), 0, h5py.h5f.UNLIMITED)])


def virtual_dataset(file, name, shape):
    layout = h5py.VirtualLayout(shape, "u1")
    layout[:] = h5py.VirtualSource(str(Path("secret.h5").absolute()), "x", shape)
    file.create_virtual_dataset(name, layout)


def broken_minari(folder):
    write_minari(folder / "ben", episodes(1), action_labels(1), jpeg_encoding=False)
    cut_off(folder / "ben/data/main_data.hdf5")


WRONG = {"lengths": np.array([1, 2, 5]), "agent": np.float64(1), "actions": np.zeros(3)}
PICTURES = np.full((5, 16, 16, 3), 7, np.uint8)
BAD = {
    "an empty folder": (ben, "ben has none; known are videos .*datasets of Minari, LeRobot and craftrl"),
    "only notes": (lambda f: ben(f, "notes.txt", "nothing"), "An agent's path must hold recordings; ben has none"),
    "no video": (lambda f: ben(f, "a.mp4", b"no video" * 50), "ben/a.mp4 must be a video that can be decoded to its"),
    "an empty video": (lambda f: ben(f, "a.mp4", ""), "ben/a.mp4 must be a video .*; it cannot .*; copy it again"),
    "a truncated video": (
        lambda f: cut_off(write_videos(f / "ben", episodes(1, lengths=(20,))) / "episode0.mkv"),
        "ben/episode0.mkv must be a video .*it ends after",
    ),
    "a playlist": (playlist, "ben/a.mp4 must be a video"),
    "a truncated GIF": (gif_without_its_end, r"ben/a.gif must be a video .*\(it is cut off\)"),
    "another size": (lambda f: write_videos(f / "ben", episodes(1, shape=(24, 16, 3))), r"ben/episode0.mkv has \(24,"),
    "another type": (lambda f: ben(f, "a.npy", x=PICTURES / 255), "ben/a.npy has .* float64, .* uint8; .* convert"),
    "two kinds": (
        lambda f: (write_videos(f / "ben", episodes(1)), write_frames(f / "ben", episodes(1))),
        "one kind of recordings; ben has 3 videos .* and 12 pictures",
    ),
    "a truncated picture": (
        lambda f: cut_off(write_frames(f / "ben", episodes(1)) / "run 1/2.png"),
        "run 1/2.png must be a picture",
    ),
    "16 bits": (
        lambda f: frames_with(f, "run 0/0.png", Image.fromarray(np.full((16, 16), 5000, dtype=np.uint16))),
        "run 0/0.png must be a picture of 8 bits; .* more than 8 bits",
    ),
    "growing pictures": (
        lambda f: frames_with(f, "run 1/2.png", Image.new("RGB", (8, 8))),
        r"run 1 has \(16, 16, 3\) and \(8, 8, 3\); crop or resize them",
    ),
    "a broken table": (lambda f: ben(f, "a.csv", 'x,y\n1,2\n3\n"'), "ben/a.csv must be a table; .*;"),
    "a truncated table": (
        lambda f: cut_off(write_table(f / "ben/a.parquet", episodes(1, (4,)))),
        "ben/a.parquet must be a table",
    ),
    "words": (lambda f: ben(f, "a.csv", "x,mood\n1,good\n2,bad\n"), "`mood` of ben/a.csv is not so; .* --key"),
    "gaps": (lambda f: ben(f, "a.csv", "x,y\n1,2\n,3\n"), "`x` of ben/a.csv is not so; fill or drop it"),
    "gaps in labels": (lambda f: ben(f, "a.csv", "episode,y\n1,2\n,3\n"), "`episode` must be filled .* in ben/a.csv"),
    "a column twice": (
        lambda f: ben(f, "a.csv", "x,x\n1,2\n"),
        "ben/a.csv must be a table; .*two columns called 'x'",
    ),
    "no rows": (lambda f: ben(f, "a.csv", "x,y\n"), "at least one row; ben/a.csv has none"),
    "an empty table": (lambda f: ben(f, "a.csv", ""), "ben/a.csv must be a table"),
    "a truncated NPZ": (lambda f: (ben(f, "a.npz", x=PICTURES), cut_off(f / "ben/a.npz")), "must be a NumPy file"),
    "pickled objects": (lambda f: ben(f, "a.npz", x=np.array([{}])), "ben/a.npz must be a NumPy file of numbers"),
    "an empty NPY": (lambda f: ben(f, "a.npy", ""), "ben/a.npy must be a NumPy file of numbers"),
    "NaN": (
        lambda f: (ben(f, "a.npy", x=PICTURES), ben(f, "b.npy", x=PICTURES * np.nan)),
        "ben/b.npy: .* contain NaN or infinity; drop or fill them",
    ),
    "an empty episode": (lambda f: ben(f, "a.npy", x=PICTURES[:0]), "at least one frame; ben/a.npy has none; leave"),
    "clips in a folder": (lambda f: ben(f, "a.npy", x=PICTURES[None]), "a.npy has several, shape .*; give the file"),
    "a single number": (lambda f: ben(f, "a.npy", x=np.zeros(())), r"ben/a.npy has shape \(\); give"),
    "complex numbers": (lambda f: ben(f, "a.npy", x=PICTURES * 1j), "those of ben/a.npy are complex128; convert them"),
    "too many actions": (lambda f: ben(f, "a.npz", x=PICTURES, actions=np.zeros(7)), "ben/a.npz has 5 steps and 7"),
    "an old LeRobot": (
        lambda f: lerobot_with(f, lambda info: info.update(codebase_version="v2.1")),
        "layout v3.0; ben has v2.1; convert it with",
    ),
    "LeRobot without episodes": (lerobot_without_episodes, "must list its episodes; .*meta/episodes has no Parquet"),
    "LeRobot with a short video": (lerobot_with_a_short_video, "file-000.mp4, episode 1, must have 3 steps; 2 could"),
    "LeRobot with two cameras": (
        lambda f: lerobot_with(
            f, lambda info: info["features"].update({"observation.images.wrist": {"dtype": "video"}})
        ),
        "observation.images.front, observation.images.wrist.*; name one with --key",
    ),
    "LeRobot of other files": (
        lambda f: lerobot_with(f, lambda info: info.update(data_path="../other/file-{file_index:03d}.parquet")),
        "must hold its data itself; ben takes ben/../other/file-000.parquet,",
    ),
    "a truncated Minari": (broken_minari, "must be a Minari dataset; it cannot be read"),
    **{
        how.__name__: (
            lambda f, how=how: minari_with(f, how),
            "ben/data takes episode_0/observations from another file",
        )
        for how in (external_link, external_storage, virtual_dataset)
    },
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_agent(folder, kind):
    spoil, sentence = BAD[kind]
    spoil(folder)
    complains(folder, ["ann", "ben"], sentence)


@pytest.mark.parametrize(
    ("agents", "options", "reason"),
    [
        (["ann", "ann/"], {}, "ann and ann/ are the same; leave one out"),
        (["ann"], {}, "two agents at least; ann was given; give one path for each agent"),
        ([], {}, "two agents at least; none was given"),
        ("ann", {}, "agents must be a list with one path per agent; 'ann' was given"),
        (["ann", 3], {}, "Agents must be paths, .* 3 was given"),
        (["ann", "nowhere"], {}, "There must be an agent's recordings at nowhere; nothing is there"),
        (["ann", "minari:no/such-v0"], {}, "There must be a Minari dataset no/such-v0"),
        (["ann", "a.doc"], {}, "recordings; a.doc has none; known are videos"),
        (["ann", "/"], {}, "/ is the whole disk"),
        (["ann", "ann.npz"], {}, "two are called .*ann; rename one"),
        (["ann", "ben"], {"crop": (8, 8, 16, 16)}, "must lie inside of the picture; .* has 16 x 16 pixels"),
        (["steps.csv"], {"resize": 2}, r"must be pictures of 8 bits.*steps.csv\[ann\] has \(1,\) of int64"),
        (["steps.csv"], {"keys": ["speed"]}, "columns that are observed; steps.csv has agent, x, not speed"),
        (["xy.csv", "yx.csv"], {}, r"columns in the same order; yx.csv\[0\] has y, x, xy.csv\[0\] x, y; name"),
        (["ann.npz", "ben"], {"keys": "speed"}, "must name one array; ann.npz has x, not speed"),
        (["no_steps.npy", "ben"], {}, r"shape \(n, steps, ...\); no_steps.npy has \(3, 0, 2\)"),
        *(([f"{name}.npz"], {}, rf"`agent` 3 names, .*; those of {name}.npz are not so") for name in WRONG),
        (["one.npz", "ann.npz"], {"stride": 9}, "an episode of 2 steps; one has none; record longer ones, or lower"),
        (["one.npz", "ann.npz"], {"standardise": "agent"}, "standardised must be pictures of 8 bits"),
        ({"ann": episodes(0), "ben": episodes(1)}, {"standardise": "recording"}, "reads recordings twice"),
        ({"ann": "ann", "ben": [3]}, {}, "Episodes must be arrays.*; ben has 3"),
        ({"ann": "ann", "ben": [np.zeros((3, 2))]}, {}, r"ben/episode 0: All observations must have one shape"),
        ({"ann": [np.zeros((1, 2))], "ben": [np.zeros((1, 2))]}, {}, "an episode of 2 steps; ann has none"),
        ({"ann": [np.zeros((3, 2))], "ben": []}, {}, "Every agent must have an episode; ben has none"),
    ],
)
def test_bad_agents(folder, monkeypatch, agents, options, reason):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    write_videos(folder / "ben", episodes(1))
    for name in ("ann", "one"):
        np.savez(folder / f"{name}.npz", x=np.zeros((2, 3, 4)))
    (folder / "steps.csv").write_text("agent,x\nann,1\nann,2\nben,3\nben,1\n")
    for columns in ("xy", "yx"):
        (folder / f"{columns}.csv").write_text(f"{','.join(columns)},episode\n1,2,0\n3,4,0\n")
    (folder / "a.doc").touch()
    np.save(folder / "no_steps.npy", np.zeros((3, 0, 2)))
    for name, array in WRONG.items():
        np.savez(folder / f"{name}.npz", x=np.zeros((3, 4, 2)), **{name: array})
    complains(folder, agents, reason, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride": 0}, "stride must be an integer of at least 1"),
        ({"crop": (1, 2, 3)}, r"crop must be \(left, top, width, height\)"),
        ({"crop": "1234"}, "crop must be"),
        ({"resize": (8, 0)}, r"resize must be \(width, height\), or one number"),
        ({"resize": 2.5}, "resize must be"),
        ({"grey": 1}, "grey must be True or False"),
        ({"keys": 3}, "keys must be a name or a list of names"),
        ({"standardise": True}, "standardise must be one of"),
        ({"keys": "front"}, "choose among arrays, cameras or columns; these recordings have none .* leave front out"),
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


def test_an_ordinary_import_says_nothing(folder):
    """A decoder that is left before its end, as with boundaries, once wrote a traceback to the terminal."""
    write_videos(folder / "ben", episodes(1))
    rows = [f"{path.parent.name}/{path.name},0,2" for path in (*folder.glob("ann/*"), *folder.glob("ben/*"))]
    (folder / "cuts.csv").write_text("\n".join(["file,start,stop", *rows]))
    code = "from craftrl.importing import import_data as read; "
    options = {"a": "", "b": "stride=2", "c": "boundaries='cuts.csv'", "d": "resize=8, grey=True"}
    code += "; ".join(f"read(['ann', 'ben'], '{out}', {given})" for out, given in options.items())
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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
        ("ann/long.npy,0,1", "file,start_seconds,stop_seconds", "are for videos; ann/long.npy knows no time"),
    ],
)
def test_wrong_boundaries(tmp_path, monkeypatch, row, header, reason):
    monkeypatch.chdir(tmp_path)
    kind = row.split(",")[0].rpartition(".")[2]
    for k, agent in enumerate(("ann", "ben")):
        (x,) = episodes(k, lengths=(30,))
        if kind == "npy":
            (tmp_path / agent).mkdir()
            np.save(tmp_path / agent / "long.npy", x)
        else:
            write_video(tmp_path / agent / "long.mp4", x, "libx264rgb", "rgb24", qp="0")
    (tmp_path / "cuts.csv").write_text(f"{header}\nben/long.{kind},0,1\n{row}\n")
    complains(tmp_path, ["ann", "ben"], reason, boundaries="cuts.csv")
