"""One run: CRAFT with one part changed, on the data of the pixel study; and the table of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from craftrl import CRAFT, NeuralOracle, Partition, Training
from craftrl.paper.sweep import Row
from studies.ablations.spec import PARTS, Run
from studies.pixels.run import data_of
from studies.pixels.spec import Run as Pixels
from studies.rivals import fit_craft, scores
from studies.tables import brief, mean, table


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, states found and true, losses of the log-odds and seconds, as in the pixel study."""
    data = data_of(Pixels("craft", run.walkers, run.n, run.seed, size=run.size, horizon=run.horizon, cut=run.cut))
    return scores(fit_craft(model_of(run), data), data)


def model_of(run: Run) -> CRAFT:
    """CRAFT as it comes, but for one field of one of its settings objects."""
    where, what = PARTS[run.part]
    changed: dict[str, dict[str, Any]] = {"oracle": {}, "training": {}, "partition": {}, where: what}
    training = Training(seed=run.seed, device=run.device, **changed["training"])
    return CRAFT(NeuralOracle(training=training, **changed["oracle"]), partition=Partition(**changed["partition"]))


def report(rows: list[Row]) -> str:
    """Accuracy and states, how far the log-odds are from those of the true states, and seconds."""

    def cell(mine: Sequence[Row]) -> str:
        apart = mean(mine, "loss") - mean(mine, "table_loss")
        return f"{brief(mine)} | {apart:.4f} | {mean(mine, 'seconds'):.0f}"

    return table(rows, "part", "cut", cell, ("right / worst state, states", "nats above the true log-odds", "seconds"))
