"""Whatever is wrong with a recording: one sentence with the file's name and what to do, exit code 2, no store."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from craftrl import CraftError
from craftrl.cli import main
from craftrl.importing import Agent, Episode, Recording, import_data, read_actions
from recordings import action_labels, episodes, write_frames, write_lerobot, write_minari, write_table, write_videos


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A good agent, `ann`, as videos; the test's own, `ben`, is bad."""
    monkeypatch.chdir(tmp_path)
    write_videos(tmp_path / "ann", episodes(0))
    return tmp_path


def complaint(capsys, *arguments):
    """What `craftrl import` says; one line and no store."""
    assert main(["import", *arguments, "--out", "data.h5"]) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line and not line.startswith("import:")]  # without the progress bar
    assert out == ""
    assert len(lines) == 1
    assert not Path("data.h5").exists()
    return lines[0]


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


def truncated_video(folder):
    write_videos(folder / "ben", episodes(1, lengths=(20,)))
    cut_off(folder / "ben/episode0.mkv")


def other_size(folder):
    write_videos(folder / "ben", episodes(1, shape=(24, 16, 3)))


def two_kinds(folder):
    write_videos(folder / "ben", episodes(1))
    write_frames(folder / "ben", episodes(1))


def same_recordings(folder):
    write_videos(folder / "ben", episodes(0))


def broken_picture(folder):
    write_frames(folder / "ben", episodes(1))
    cut_off(folder / "ben/run 1/2.png")


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


def table_without_rows(folder):
    (ben(folder) / "a.csv").write_text("x,y\n")


def broken_npz(folder):
    np.savez(ben(folder) / "a.npz", x=np.zeros((3, 4)))
    cut_off(folder / "ben/a.npz")


def pickled_npz(folder):
    np.savez(ben(folder) / "a.npz", x=np.array([{}, {}], dtype=object))


def not_finite(folder):
    np.savez(ben(folder) / "a.npz", x=np.full((3, 4), np.nan))


def empty_episode(folder):
    np.savez(ben(folder) / "a.npz", x=np.zeros((0, 16, 16, 3), dtype=np.uint8))


def old_lerobot(folder):
    write_lerobot(folder / "ben", episodes(1), action_labels(1), version="v2.1")


def lerobot_without_episodes(folder):
    write_lerobot(folder / "ben", episodes(1), action_labels(1))
    (folder / "ben/meta/episodes/chunk-000/file-000.parquet").unlink()


def lerobot_with_a_short_video(folder):
    write_lerobot(folder / "ben", episodes(1, lengths=(5, 3)), action_labels(1, (5, 3)))
    short = write_videos(folder / "short", episodes(1, lengths=(7,)), "mp4", codec="libx264rgb", pixels="rgb24", qp="0")
    (short / "episode0.mp4").replace(folder / "ben/videos/observation.images.front/chunk-000/file-000.mp4")


def lerobot_with_two_cameras(folder):
    write_lerobot(folder / "ben", episodes(1), action_labels(1))
    info = json.loads((folder / "ben/meta/info.json").read_text())
    info["features"]["observation.images.wrist"] = {"dtype": "video", "shape": [16, 16, 3]}
    (folder / "ben/meta/info.json").write_text(json.dumps(info))


def broken_minari(folder):
    write_minari(folder / "ben", episodes(1), action_labels(1), jpeg_encoding=False)
    cut_off(folder / "ben/data/main_data.hdf5")


BAD = {
    empty_folder: "ben has none; looked for videos .* LeRobot, metadata.json of Minari",
    only_notes: "An agent's folder must hold recordings; ben has none",
    corrupt_video: "ben/broken.mp4 must be a video that can be decoded to its end; it cannot .*; copy it again",
    truncated_video: "ben/episode0.mkv must be a video .*it ends after",
    other_size: r"ben/episode0.mkv have \(24, 16, 3\), those of .*ann/episode0.mkv \(16, 16, 3\); crop or resize",
    two_kinds: "one kind; ben has 3 videos .* and 12 pictures",
    same_recordings: "those of ben are the same as those of ann; leave one out",
    broken_picture: "run 1/2.png must be a picture",
    growing_pictures: r"run 1 has \(16, 16, 3\) and \(8, 8, 3\); crop or resize",
    broken_table: "ben/a.csv must be a table that can be read; .* write or copy it again",
    broken_parquet: "ben/a.parquet must be a table that can be read",
    words_in_a_table: "`mood` of ben/a.csv does not; .* --key",
    gaps_in_a_table: "`x` of ben/a.csv does not; fill or drop it",
    table_without_rows: "at least one row; ben/a.csv has none",
    broken_npz: "ben/a.npz must be a NumPy file of numbers",
    pickled_npz: "ben/a.npz must be a NumPy file of numbers",
    not_finite: "ben/a.npz contain NaN or infinity; drop or fill them",
    empty_episode: "at least one observation; .*ben/a.npz is empty; leave it out",
    old_lerobot: "layout v3.0; ben has v2.1; convert it with",
    lerobot_without_episodes: "must list its episodes; .*meta/episodes has no Parquet file",
    lerobot_with_a_short_video: "file-000.mp4, episode 1, must have 3 steps; 2 could be read",
    lerobot_with_two_cameras: "observation.images.front, observation.images.wrist; name one with --key",
    broken_minari: "must be a Minari dataset; it cannot be opened|cannot be read",
}


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_bad_agent(folder, capsys, spoil):
    spoil(folder)
    text = complaint(capsys, "ann", "ben")
    assert re.search(BAD[spoil], text), text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ann", "ann/"], "ann/ was given twice, the first time as ann; leave one out"),
        (["ann"], "at least two agents; those of one, ann, were given; give one path per agent"),
        (["ann", "nowhere"], "There must be an agent's recordings at nowhere; nothing is there"),
        (["ann", "minari:no/such-v0"], "There must be a Minari dataset no/such-v0"),
        (["ann", "a.doc"], "a.doc must be a file of a known kind; it ends in .doc, and these are known: .h5"),
        (["ann", "ben", "--crop", "8,8,16,16"], "must lie inside of the picture; .* has 16 x 16 pixels"),
        (["ann", "ben", "--boundaries", "none.csv"], "none.csv cannot be read"),
    ],
)
def test_bad_arguments(folder, capsys, monkeypatch, arguments, reason):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    write_videos(folder / "ben", episodes(1))
    (folder / "a.doc").touch()
    text = complaint(capsys, *arguments)
    assert re.search(reason, text), text


def test_what_was_imported_before_stays_usable(folder, capsys):
    """One broken video among good ones: it is mended, and only what is left is read."""
    write_videos(folder / "ben", episodes(1))
    good = (folder / "ben/episode2.mkv").read_bytes()
    cut_off(folder / "ben/episode2.mkv")
    assert "ben/episode2.mkv" in complaint(capsys, "ann", "ben")
    log = (folder / "data.h5.importing/episodes.jsonl").read_text()
    assert log.count("ben/episode") == 2
    (folder / "ben/episode2.mkv").write_bytes(good)
    assert main(["import", "ann", "ben", "--out", "data.h5"]) == 0
    assert "no warnings" not in capsys.readouterr().out


# -- formats of one's own ----------------------------------------------------------------------------------------


def walk(x, **changed):
    given = {"name": "walk", "stamp": "1", "read": lambda part: Recording(x[part]), "count": lambda: 4}
    return Episode(**{**given, **changed})


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda x: Agent(3, "walks", [walk(x)]), "name must be a text; 3 was given"),
        (lambda x: Agent("ann", None, [walk(x)]), "format must be a text"),
        (lambda x: Agent("ann", "walks", walk(x)), "episodes must be a list of Episode"),
        (lambda x: Agent("ann", "walks", [x]), "Each of episodes must be an Episode"),
        (lambda x: Agent("ann", "walks", [], named_inside="no"), "named_inside must be True or False"),
        (lambda x: Agent("ann", "walks", [walk(x, stamp=1)]), "stamp must be a text"),
        (lambda x: Agent("ann", "walks", [walk(x, read=x)]), "read must be a function"),
        (lambda x: Agent("ann", "walks", [walk(x, count=4)]), "count must be a function"),
        (lambda x: Agent("ann", "walks", [walk(x, seconds=4)]), "seconds must be a function"),
        (lambda x: Agent("ann", "walks", [walk(x, read=lambda part: x[part])]), "must be a Recording"),
        (lambda x: Agent("ann", "walks", [walk(x, count=lambda: None)]), "number of steps of .* must be an integer"),
        (lambda x: Recording(None), "observations must be an array"),
        (lambda x: Recording("text"), "observations must be an array"),
        (lambda x: Recording(np.array(1.0)), "observations must be an array"),
        (lambda x: Recording(x, lossy=None), "lossy must be a text"),
        (lambda x: Recording([None, 1]), "must be numbers in an array"),
        (lambda x: Recording(x, np.zeros(7)), r"has 4 steps and actions of shape \(7,\)"),
        (lambda x: Recording(x, 1), r"has 4 steps and actions of shape \(\)"),
        (lambda x: Recording(x, [[1], [2, 3]]), "Actions must be numbers"),
    ],
)
def test_agents_made_by_hand(tmp_path, make, reason):
    x = np.arange(24.0).reshape(2, 4, 3)

    def import_made():
        made = make(x[0])
        ann = Agent("ann", "walks", [walk(x[0], read=lambda part: made)]) if isinstance(made, Recording) else made
        import_data([ann, Agent("bob", "walks", [walk(x[1])])], tmp_path / "data.h5", clip=4)

    with pytest.raises(CraftError, match=reason):
        import_made()


def test_actions_of_no_store(tmp_path):
    with pytest.raises(CraftError, match=r"There must be a dataset at .*nothing\.h5; nothing is there"):
        read_actions(tmp_path / "nothing.h5")
    with pytest.raises(CraftError, match="at least two agents; none was given"):
        import_data([], tmp_path / "data.h5")


@pytest.mark.parametrize("command", ["import", "fit"])
def test_the_whole_disk_is_no_agent(tmp_path, capsys, command):
    assert main([command, "/", "--out", str(tmp_path / "new.h5")]) == 2
    assert "/ is the whole disk" in capsys.readouterr().err


def test_an_import_that_read_nothing_leaves_nothing(tmp_path, capsys):
    for name in ("ann", "ben"):
        np.save(tmp_path / f"{name}.npy", np.zeros((4, 3, 6), dtype=np.uint8))
    before = sorted(tmp_path.iterdir())
    line = ["import", str(tmp_path / "ann.npy"), str(tmp_path / "ben.npy"), "--resize", "2"]
    assert main([*line, "--out", str(tmp_path / "new.h5")]) == 2
    assert "Only pictures of 8 bits" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
