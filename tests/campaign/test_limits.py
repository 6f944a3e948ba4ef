"""A small part of the campaign: too little memory, and the same bits with any number of threads."""

from campaign.bits import KINDS, LIMITS
from campaign.memory import starve
from campaign.writers import contents


def test_too_little_memory_is_told_and_leaves_nothing():
    found = list(starve(["collect"], steps=1, much=60_000))
    assert [case["outcome"] for case in found] == ["refused"], found
    assert "Unable to allocate" in found[0]["said"]


def test_exact_fits_write_the_same_bytes_with_any_number_of_threads(tmp_path, monkeypatch):
    for threads in ("1", "4"):
        for name in LIMITS:
            monkeypatch.setenv(name, threads)
        KINDS["exact fits"](tmp_path / threads, 1)
    made = contents(tmp_path / "1")
    assert made
    assert made == contents(tmp_path / "4")
