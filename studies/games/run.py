"""One run of the study of games: read the recording, fit, and score on held-out episodes; and the table of all runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from craftrl import CRAFT
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.paper.sweep import Row
from studies.games.data import read
from studies.games.spec import WORLDS, Run
from studies.rivals import Data, cut, fit_craft, fit_rival, scores
from studies.tables import video_table
from studies.techniques import CUTS, NAMES, RIVALS


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique, trained as the library trains by default."""
    data, training = data_of(run.data, run.world, run.n, run.cut), training_of(run)
    if run.technique in RIVALS:
        return scores(fit_rival(run.technique, data, training, run.rates), data)
    return scores(fit_craft(CRAFT(NeuralOracle(training=training)), data), data)


def training_of(run: Run) -> Training:
    return Training(seed=run.seed, device=run.device)


@lru_cache(maxsize=1)
def data_of(folder: str, world: str, n: int, how: str) -> Data:
    """What is learned from and what is scored on; the last recording is kept."""
    train, test = read(folder, world, n)
    return Data(cut(train, how, 0), test, train)


def report(rows: list[Row]) -> str:
    """A column for each world, and for each way to cut its episodes."""
    cuts, order = {row["cut"] for row in rows}, list(NAMES)
    return video_table(
        sorted(rows, key=lambda r: (order.index(r["technique"]), WORLDS.index(r["world"]), CUTS.index(r["cut"]))),
        lambda r: NAMES[r["technique"]],
        lambda r: f"{r['world']}, {r['cut']}" if len(cuts) > 1 else r["world"],
    )
