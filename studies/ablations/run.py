"""One run: CRAFT with one part changed, fitted to the data of the pixel study and scored on held-out trajectories."""

from __future__ import annotations

from typing import Any

from craftrl import CRAFT, NeuralOracle, Partition, Training
from studies.ablations.spec import PARTS, Run
from studies.pixels import run as pixels
from studies.pixels.spec import Run as Pixels
from studies.rivals import fit_craft, scores

__all__ = ["model_of", "run_one"]


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, states found and true, losses of the log-odds and seconds, as in the pixel study."""
    world = {"size": run.size, "horizon": run.horizon, "cut": run.cut}
    data = pixels.data_of(Pixels("craft", run.walkers, run.n, run.seed, **world))  # type: ignore[arg-type]
    return scores(fit_craft(model_of(run), data), data)


def model_of(run: Run) -> CRAFT:
    """CRAFT as it comes, but for one field of one of its settings objects."""
    changed: dict[str, dict[str, Any]] = {"oracle": {}, "training": {}, "partition": {}}
    where, what = PARTS[run.part]
    changed[where] = what
    training = Training(seed=run.seed, device=run.device, **changed["training"])
    return CRAFT(NeuralOracle(training=training, **changed["oracle"]), partition=Partition(**changed["partition"]))
