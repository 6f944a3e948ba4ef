"""One run: CRAFT with one part changed, on the data of the pixel study; and the table of all runs."""

from __future__ import annotations

from typing import Any

from craftrl import CRAFT, NeuralOracle, Partition, Training
from craftrl.paper.sweep import Row
from studies.ablations.spec import CUTS, PARTS, Run
from studies.pixels.run import data_of
from studies.pixels.spec import Run as Pixels
from studies.rivals import fit_craft, scores
from studies.tables import grouped, markdown, mean, video_text


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, states found and true, losses of the log-odds and seconds, as in the pixel study."""
    data = data_of(Pixels("craft", run.walkers, run.n, run.seed, size=run.size, horizon=run.horizon, cut=run.cut))
    return scores(fit_craft(model_of(run), data), data)


def model_of(run: Run) -> CRAFT:
    """CRAFT as it comes, but for one field of one of its settings objects."""
    _, where, what = PARTS[run.part]
    changed: dict[str, dict[str, Any]] = {"oracle": {}, "training": {}, "partition": {}, where: what}
    training = Training(seed=run.seed, device=run.device, **changed["training"])
    return CRAFT(NeuralOracle(training=training, **changed["oracle"]), partition=Partition(**changed["partition"]))


def report(rows: list[Row]) -> str:
    """Accuracy and states, how far the log-odds are from those of the true states, and seconds."""
    found, cuts = grouped(rows, "part", "cut"), [cut for cut in CUTS if any(row["cut"] == cut for row in rows)]
    lines = []
    for part, (name, *_) in PARTS.items():
        line = [name]
        for mine in (found.get((part, cut)) for cut in cuts):
            apart = f"{mean(mine, 'loss') - mean(mine, 'table_loss'):.4f}" if mine else "-"
            line += [video_text(mine), apart, f"{mean(mine, 'seconds'):.0f}"] if mine else ["-"] * 3
        lines += [line] if any(cell != "-" for cell in line[1:]) else []
    heads = {"whole": "whole trajectories, one start", "clips": "clips from anywhere"}
    columns = [text for cut in cuts for text in (heads[cut], "nats above the true states' log-odds", "seconds")]
    return markdown(["accuracy / worst state of the worst seed, %", *columns], lines)
