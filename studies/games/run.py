"""One run of the study of games: read the recording, fit, and score on held-out episodes; and the table of all runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from craftrl.paper.sweep import Row
from studies.games.data import read
from studies.games.spec import Run
from studies.rivals import Data, cut, scored
from studies.tables import video_report


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique."""
    return scored(run.technique, data_of(run.data, run.world, run.n, run.cut), run.rates, run.seed, run.device)


@lru_cache(maxsize=1)
def data_of(folder: str, world: str, n: int, how: str) -> Data:
    """What is learned from and what is scored on; the last recording is kept."""
    train, test = read(folder, world, n)
    return Data(cut(train, how, 0), test, train)


def report(rows: list[Row]) -> str:
    return video_report(rows, "world cut")
