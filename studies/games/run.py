"""One run of the study of games: read the recording, fit, and score on held-out episodes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from craftrl import CRAFT
from craftrl.envs.collection import Collection
from craftrl.oracles.network import NeuralOracle, Training
from studies.games.data import read
from studies.games.spec import Run
from studies.rivals import Data, Fitted, cut, fit_craft, fit_rival, scores
from studies.techniques import RIVALS

__all__ = ["data_of", "fitted", "run_one"]

SHOWN = 8  # held-out episodes that are kept beside a model
FRAMES = "frames.npz"


def run_one(run: Run) -> dict[str, Any]:
    """The scores of one technique."""
    data = data_of(run)
    done = fitted(run)
    if run.models and isinstance(done.model, CRAFT):
        _keep(done.model, data.test, Path(run.models) / f"{run.world}-{run.technique}-{run.seed}")
    return scores(done, data)


def data_of(run: Run) -> Data:
    """What is learned from and what is scored on; the last recording is kept."""
    return _data(run.data, run.world, run.n, run.cut)


@lru_cache(maxsize=1)
def _data(folder: str, world: str, n: int, how: str) -> Data:
    train, test = read(folder, world, n)
    return Data(cut(train, how, 0), test, train)


def fitted(run: Run) -> Fitted:
    """The technique, fitted."""
    data, training = data_of(run), _training(run)
    if run.technique in RIVALS:
        return fit_rival(run.technique, data, training, run.rates)
    return fit_craft(CRAFT(NeuralOracle(training=training)), data)


def _training(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)


def _keep(model: CRAFT, test: Collection, folder: Path) -> None:
    """The model, and beside it the held-out episodes that visit most states."""
    visited = np.array([len(np.unique(path)) for path in test.truth.states])
    rows = np.argsort(-visited, kind="stable")[:SHOWN]
    x = np.stack([test.tau.at(h)[rows] for h in range(1, test.tau.H + 1)], axis=1)
    model.save(folder / "model")
    np.savez_compressed(folder / FRAMES, x=x, states=test.truth.states[rows])
