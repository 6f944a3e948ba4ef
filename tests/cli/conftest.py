"""A small collection and a model of it, made once by commands; no test changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import BOUNDS, craftrl

BITS = "collect --world bits --horizon 5 --features 12 --n 1500 --out data"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of bits, `data`, and a model of it, `model`."""
    folder = tmp_path_factory.mktemp("made")
    assert craftrl(BITS, cwd=folder).endswith("Written to data\n")
    out = craftrl("fit data --out model", *BOUNDS, cwd=folder)
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, in which `data` and `model` are those of `made`."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "model"):
        (tmp_path / name).symlink_to(made / name)
    return tmp_path
