"""Folders of our own Rays: gone with their process, or with the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from craftrl.distributed import ray_folders
from craftrl.distributed.ray_connection import _as_it_was, _ending_in_order, _leave
from craftrl.distributed.ray_folders import own_folder

KILLED = """
import os, signal
from craftrl.distributed import ray_folders
ray_folders.LONGEST_TEMP = 1000
with ray_folders.own_folder() as folder:
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ray_folders, "LONGEST_TEMP", 1000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block(temp: Path) -> None:
    with own_folder() as folder:
        assert Path(folder).parent == temp
        (Path(folder) / "spilled").write_text("large")
    assert not list(temp.iterdir())


def test_what_a_killed_process_left_goes_with_the_next(temp: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = temp.iterdir()
    assert str(left) == killed.stdout.strip()
    (left / "spilled").write_text("large")
    with own_folder() as folder:
        assert [str(path) for path in temp.iterdir()] == [folder]


def test_folders_that_are_held_or_not_ours_stay(temp: Path) -> None:
    other, link = temp / f"{ray_folders.PREFIX}other", temp / f"{ray_folders.PREFIX}link"
    other.mkdir()  # just being made, or nothing of ours
    link.symlink_to(other)
    with own_folder() as first, own_folder():
        assert Path(first).is_dir()
    assert {path.name for path in temp.iterdir()} == {other.name, link.name}


def test_a_program_that_answers_sigterm_goes_on_doing_so() -> None:
    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    with _ending_in_order(stop):
        assert signal.getsignal(signal.SIGTERM) is stop
    with _ending_in_order(signal.SIG_DFL):
        assert signal.getsignal(signal.SIGTERM) is _leave
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_sigterm_while_ray_starts_is_answered_by_whoever_did_before() -> None:
    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt), _as_it_was():
            raise SystemExit(signal.SIGTERM)  # what Ray does then
        with pytest.raises(SystemExit), _as_it_was():
            raise SystemExit(3)
    finally:
        signal.signal(signal.SIGTERM, before)
