"""Encoders to plan with: CRAFT's, its rivals' and the true states. One encoder serves all steps in each of them.

A rival has features and no states. So k-means clusters the features of all steps together, given the true number of
states, raw or standardised, whichever is closer to the truth on held-out videos. With clusters of each step apart, as
in the study of pixels, a rival would have to learn at every step anew what an action does, which is not its fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from craftrl import CRAFT, FiniteOracle
from craftrl.arrays import Ints
from craftrl.core.encoders import Encoder
from craftrl.evaluation import accuracy
from craftrl.oracles.network import NeuralOracle, Training
from studies.planning.arenas import Arena
from studies.planning.spec import Run
from studies.rivals import best_rate
from studies.techniques import RIVALS
from studies.trained import Rival

SAMPLE = 20_000  # frames that k-means looks at


@dataclass(frozen=True)
class OneEncoder:
    """A model with one encoder for all steps, as far as planning asks for one, and the rival that it comes from."""

    encoder_: Encoder
    obs_shape_: tuple[int, ...]
    rival: Rival | None = None

    def encode(self, x: ArrayLike, h: int | None = None) -> Ints:
        """The states of observations x (n, *obs); h makes no difference."""
        return self.encoder_(np.asarray(x))


TRUE = OneEncoder(lambda x: x[:, 0].astype(np.int64), (1,))  # of observations that are the true states


def fitted(run: Run, arena: Arena) -> Any:
    """The model of a technique."""
    if run.technique == "true":
        return TRUE
    if run.technique in RIVALS:
        return _rival(run, arena)
    if run.world == "multimaze":
        oracle = FiniteOracle(arena.world.encoders(2), arena.world.n_values)
        return CRAFT(oracle, stationary=True).fit(arena.data.train.tau)
    return CRAFT(NeuralOracle(training=training_of(run))).fit(arena.data.train.tau)


def training_of(run: Run) -> Training:
    """The library's own, for every technique."""
    return Training(seed=run.seed, device=run.device)


def _rival(run: Run, arena: Arena) -> OneEncoder:
    tau, k = arena.data.train.tau, len(np.unique(arena.data.train.truth.states))
    rival = best_rate(run.technique, arena.data, training_of(run), run.rates)[0]
    rows = np.sort(np.random.default_rng(0).permutation(tau.n)[: max(1, SAMPLE // tau.H)])
    x = np.concatenate([tau.at(h)[rows] for h in range(1, tau.H + 1)])  # the same number of each step
    models = [OneEncoder(rival.clustered(x, k, scaled), tau.obs_shape, rival) for scaled in (False, True)]
    return max(models, key=lambda model: accuracy_of(model, arena))


def accuracy_of(model: Any, arena: Arena) -> float:
    """The share of held-out frames named right up to one relabelling for all steps, h = 1 left out."""
    tau, true = arena.data.test.tau, arena.data.test.truth.states
    read = np.concatenate([model.encode(tau.at(h), h) for h in range(2, tau.H + 1)])
    return float(accuracy(read, true[:, 1:].T.ravel()))
