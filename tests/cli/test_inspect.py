"""`craftrl inspect --pairs`: which agents to compare, and data in which there is nothing to compare."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from command_line import complaint
from craftrl.cli import main
from craftrl.data import TrajectoryDataset


def test_inspect_says_which_agents_to_compare(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(data), "--pairs", "--no-sheet", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 agents, 3000 episodes" in out
    assert re.search(r"0 and 1 +1,500 \+ 1,500 +\d+% +4 of 4 .*worth comparing", out)
    assert "Compare 0 with 1 first" in out


@pytest.mark.parametrize(
    ("what", "value", "said"), [("agent", 0, "at least two agents"), ("lengths", 1, "one of them must be 2 or more")]
)
def test_inspect_has_nothing_to_compare(
    what: str, value: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One agent alone, trajectories of one step, and what is no store."""
    h5py = pytest.importorskip("h5py")
    store = tmp_path / "data.h5"
    TrajectoryDataset.from_arrays([np.zeros((5, 3, 2), dtype=np.uint8)] * 2).save(store)
    with h5py.File(store, "a") as file:
        file[what][:] = value
        del file[what].attrs["crc32"]  # as a writer that makes no such sums
    assert said in complaint(capsys, "inspect", str(store), "--pairs", "--no-sheet")
    store.write_bytes(b"no store")
    assert "data.h5" in complaint(capsys, "inspect", str(store), "--pairs", "--no-sheet")
