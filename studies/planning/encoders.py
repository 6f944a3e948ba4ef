"""Encoders to plan with: CRAFT's, its rivals' and the true states. One encoder serves all steps in each of them.

A rival has features and no states. So k-means clusters the features of all steps together, told the true number of
states, raw or standardised, whichever is closer to the truth on held-out videos. With clusters of each step apart, as
in the study of pixels, a rival would have to learn at every step anew what an action does, which is not its fault.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl import CRAFT, FiniteOracle
from craftrl.core.encoders import Encoder
from craftrl.data import TrajectoryDataset
from craftrl.evaluation import accuracy
from craftrl.oracles.network import NeuralOracle, Training
from studies.planning.arenas import Arena
from studies.planning.spec import Run
from studies.rivals import best_rate
from studies.techniques import RIVALS
from studies.threads import cpu_threads
from studies.trained import NearestCentre, TrainedBaseline

__all__ = ["OneEncoder", "TrueStates", "accuracy_of", "fitted", "training_of"]

Ints = NDArray[np.integer]
SAMPLE = 20_000  # frames that k-means looks at


@dataclass(frozen=True)
class OneEncoder:
    """A model with one encoder for all steps, as far as planning asks for one, and the rival that it comes from."""

    encoder_: Encoder
    obs_shape_: tuple[int, ...]
    rival: TrainedBaseline | None = None

    def encode(self, x: ArrayLike, h: int | None = None) -> Ints:
        """The states of observations x (n, *obs); h makes no difference."""
        return self.encoder_(np.asarray(x))


class TrueStates:
    """An encoder of observations that are the true states (`Arena.told`)."""

    def __call__(self, x: NDArray[Any]) -> Ints:
        return x[:, 0].astype(np.int64)


def fitted(run: Run, arena: Arena) -> tuple[Any, float]:
    """The model of a technique, and the seconds that it took to fit, on one thread."""
    start = time.perf_counter()
    with cpu_threads(1):
        model = _model(run, arena)
    return model, time.perf_counter() - start


def _model(run: Run, arena: Arena) -> Any:
    if run.technique == "true":
        return OneEncoder(TrueStates(), (1,))
    if run.technique in RIVALS:
        return _rival(run, arena)
    data = arena.data
    if run.world == "multimaze":
        return CRAFT(FiniteOracle(arena.world.encoders(2), arena.world.n_values), stationary=True).fit(data.train.tau)
    return CRAFT(NeuralOracle(training=training_of(run))).fit(data.train.tau)


def training_of(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)


def _rival(run: Run, arena: Arena) -> OneEncoder:
    data = arena.data
    rival = best_rate(run.technique, data, training_of(run), run.rates)[0]
    k = len(np.unique(data.train.truth.states))
    x = _sample(data.train.tau)
    found = [_clustered(rival, run, x, k, standardise) for standardise in (False, True)]
    models = [OneEncoder(encoder, data.train.tau.obs_shape, rival) for encoder in found]
    return max(models, key=lambda model: accuracy_of(model, arena))


def _clustered(rival: TrainedBaseline, run: Run, x: NDArray[Any], k: int, standardise: bool) -> NearestCentre:
    return NearestCentre.fitted(rival.network_.trunk, training_of(run).to_device(), x, k, standardise)


def _sample(tau: TrajectoryDataset) -> NDArray[Any]:
    """Frames of all steps of some trajectories, the same number of each step."""
    rows = np.sort(np.random.default_rng(0).permutation(tau.n)[: max(1, SAMPLE // tau.H)])
    return np.concatenate([tau.at(h)[rows] for h in range(1, tau.H + 1)])


def accuracy_of(model: Any, arena: Arena) -> float:
    """The share of held-out frames named right up to one relabelling for all steps, h = 1 left out."""
    tau, true = arena.data.test.tau, arena.data.test.truth.states
    read = np.concatenate([model.encode(tau.at(h), h) for h in range(2, tau.H + 1)])
    return float(accuracy(read, true[:, 1:].T.ravel()))
