"""One run of the study of games: read the recording, fit, and score on held-out episodes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT
from craftrl.core.craft import Bounds
from craftrl.envs.collection import Collection
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.states.visits import count_visits
from studies.games.data import read
from studies.games.spec import Run
from studies.rivals import FEWEST_PAIRS, Data, Fitted, fit_craft, fit_rival, scores
from studies.techniques import RIVALS

__all__ = ["bounds_of", "data_of", "fitted", "run_one"]

FREQUENT = 100  # visits from which on a pair of states counts for alpha and eta: below, its log-odds are too rough
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
    return _data(run.data, run.world, run.n)


@lru_cache(maxsize=1)
def _data(folder: str, world: str, n: int) -> Data:
    train, test = read(folder, world, n)
    return Data(train, test, bounds_of(train))


def fitted(run: Run) -> Fitted:
    """The technique, fitted."""
    data, training = data_of(run), _training(run)
    if run.technique in RIVALS:
        return fit_rival(run.technique, data, training, run.rates)
    known = vars(data.bounds) if run.technique == "craft-bounds" else {}
    return fit_craft(CRAFT(NeuralOracle(training=training), stationary=True, **known), data)


def _training(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)


def bounds_of(train: Collection) -> Bounds:
    """alpha, eta and nu by the true states, as far as the data can say: of frequent pairs alone, nu of ten visits.

    Things that touch the figure move it now and then, so that there are pairs that no action leads to.
    """
    n = train.tau.n
    alphas, etas = [1.0], [0.5]
    for h in range(1, train.tau.H):
        pairs = count_visits(train.tau.agent, *train.truth.states[:, h - 1 : h + 1].T) / n  # (K, |S_h|, |S_{h+1}|)
        often = n * pairs.sum(axis=0) >= FREQUENT
        share = pairs[:, often] / pairs.sum(axis=0)[often]
        etas.append(share.min(initial=0.5))
        f = np.log(np.maximum(pairs[0], 0.5 / n)) - np.log(np.maximum(pairs[1:], 0.5 / n))
        alphas += [_least_gap(f[:, s, often[s]]) for s in np.flatnonzero(often.sum(axis=1) > 1)]
    return Bounds(float(min(alphas)), float(max(min(etas), FEWEST_PAIRS / n)), FEWEST_PAIRS / n)


def _least_gap(f: NDArray[np.floating]) -> float:
    """The least difference between the log-odds (K-1, m) of any two successors, in the agent that differs most."""
    i, j = np.triu_indices(f.shape[1], 1)
    return float(np.abs(f[:, i] - f[:, j]).max(axis=0).min())


def _keep(model: CRAFT, test: Collection, folder: Path) -> None:
    """The model, and beside it the held-out episodes that visit most states."""
    visited = np.array([len(np.unique(path)) for path in test.truth.states])
    rows = np.argsort(-visited, kind="stable")[:SHOWN]
    x = np.stack([test.tau.at(h)[rows] for h in range(1, test.tau.H + 1)], axis=1)
    model.save(folder / "model")
    np.savez_compressed(folder / FRAMES, x=x, states=test.truth.states[rows])
