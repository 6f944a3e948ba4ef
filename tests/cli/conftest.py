"""A small collection of bits and a model of it, made once; no test changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import BOUNDS, collect
from craftrl.cli import main


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.h5"
    assert collect(path) == 0
    return path


@pytest.fixture(scope="session")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model"
    assert main(["fit", str(data), *BOUNDS, "--out", str(path)]) == 0
    return path
