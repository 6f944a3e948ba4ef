"""Files are whole or not there at all, and every complaint is one sentence."""

import errno
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from craftrl.data.files import check_writable, sealed_text, unsealed, write_json, write_text, written_whole
from craftrl.errors import CraftError, InvalidParameterError


def fail_halfway(path, error):
    with written_whole(path, "model") as temporary:
        temporary.write_text("half")
        raise error


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_when_it_is_whole_and_until_then_the_old_one(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    with written_whole(path) as temporary:
        temporary.write_text("old")
        assert not path.exists()
    for error in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(error):
            fail_halfway(path, error())
        assert path.read_text() == "old"
    with path.open() as before:  # whoever reads it meanwhile reads all of the old file
        write_text(path, "new")
        assert before.read() == "old"
    with written_whole(path) as first, written_whole(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the outer block ends last
    assert names(path.parent) == ["file.txt"]


def test_what_a_killed_process_left_is_removed_and_what_others_write_is_not(tmp_path):
    path = tmp_path / "file.txt"
    gone = subprocess.Popen(["true"])
    gone.wait()
    with written_whole(path) as temporary:
        temporary.write_text("old")
        mine = temporary.name
    parts = [mine.replace(f"-{os.getpid()}-", f"-{owner}-") for owner in (gone.pid, os.getppid())]
    elsewhere = ".file.txt.0badcafe-" + parts[0].split("-", 1)[1]  # of another machine
    for name in (*parts, elsewhere, mine):
        (tmp_path / name).write_text("a part")
    write_text(path, "whole")
    assert names(tmp_path) == sorted([parts[1], elsewhere, mine, "file.txt"])


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (Path.mkdir, "a folder; choose"),
        (os.mkfifo, "devices and pipes"),
        (lambda path: path.symlink_to("/dev/null"), "devices and pipes"),
        (lambda path: path.symlink_to(path), "a link that leads to itself"),
    ],
)
def test_what_is_no_file_is_never_replaced(tmp_path, make, named):
    make(path := tmp_path / "target")
    with pytest.raises(InvalidParameterError, match=f"target.*{named}"):
        write_text(path, "text")
    assert names(tmp_path) == ["target"]


def test_errors_of_the_system_are_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    rights = r"The model's folder must be writable; .*x.json could not be written \(.*\); choose another place"
    with pytest.raises(InvalidParameterError, match=rights):
        fail_halfway(tmp_path / "file" / "x.json", AssertionError())
    with pytest.raises(CraftError, match=r"must be room for the model; .*x.json could not .* Nothing .* is lost"):
        fail_halfway(tmp_path / "x.json", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(InvalidParameterError, match=r"must be writable; .*file is not \(File exists\); choose another"):
        check_writable(tmp_path / "file")
    with pytest.raises(TypeError, match="object is no plain value; give numbers, text or lists"):
        write_json(tmp_path / "y.json", object())
    assert names(tmp_path) == ["file"]
    check_writable(tmp_path / "new" / "folder")
    assert names(tmp_path / "new" / "folder") == []


def test_json_of_numpy_values_is_plain(tmp_path):
    write_json(tmp_path / "x.json", {"a": np.arange(2), "b": np.float64(0.5), "c": np.bool_(True)})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": [0, 1], "b": 0.5, "c": True}


def test_what_is_sealed_cannot_be_changed_unnoticed():
    text = sealed_text({"a": [1, 2.5], "b": np.int64(3), "c": float("nan")})
    assert unsealed(text.encode())["b"] == 3
    for i in range(len(text)):
        changed = text[:i] + chr(ord(text[i]) ^ 1) + text[i + 1 :]
        with pytest.raises((ValueError, KeyError, TypeError)):
            unsealed(changed.encode())
    assert unsealed(sealed_text(unsealed(text.encode())).encode())["a"] == [1, 2.5]
