"""One run of the pixel study: render, fit, and score on held-out trajectories."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, baselines
from craftrl.core.clusters import find_clusters
from craftrl.core.valleys import Valleys
from craftrl.data import TrajectoryDataset
from craftrl.envs.collection import Collection, collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.estimators.base import Learner
from craftrl.oracles.base import Oracle, PreparedOracle
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.oracles.network.probe import linear_probe
from craftrl.oracles.network.threads import cpu_threads
from craftrl.reproduce.runner import seed_of
from craftrl.states.accuracy import encoder_accuracy
from craftrl.theory import population_assumptions
from studies.pixels.spec import BASELINES, Run

__all__ = ["Data", "craft_of", "data_of", "fitted", "run_one", "training_of"]

HELD_OUT = 1000  # trajectories per agent that no technique is trained on
FEWEST_PAIRS = 10  # nu is taken no smaller than this many pairs: fewer cannot be told from strays
PROBED = 4000  # trajectories whose true states the linear probe learns from
CLASSES = {
    "autoencoder": baselines.Autoencoder,
    "contrastive": baselines.TemporalContrastive,
    "forward": baselines.ForwardPrediction,
    "latent-action": baselines.LatentAction,
    "single": baselines.SingleFrame,
    "paired": baselines.PairedFrames,
    "ac-state": baselines.ACState,
}


Features = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Data:
    """One dataset: the world, what is learned from, what is scored on."""

    world: PixelsExBMDP
    train: Collection
    test: Collection
    alpha: float
    eta: float
    nu: float

    @property
    def n_states(self) -> list[int]:
        """The true number of states at each step."""
        return [len(np.unique(column)) for column in self.train.truth.states.T]


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy up to relabelling on held-out frames, states found, and a linear probe.

    The world and the trajectories depend on size, walkers, n and seed alone: all techniques see the same data.
    """
    data = data_of(run)
    start = time.perf_counter()
    with cpu_threads(1):  # as every worker of a sweep keeps to one
        model, features, found = fitted(run)
    seconds = time.perf_counter() - start
    by_step = _accuracies(model, data.test)
    return {
        "accuracy": float(np.mean(by_step[1:])),
        "accuracy_by_step": [round(a, 5) for a in by_step],
        "probe": round(_probe(features, data), 5),
        "n_states": found,
        "n_states_true": data.n_states,
        "nu": data.nu,
        "eta": data.eta,
        "seconds": round(seconds, 1),
    }


# -- data --------------------------------------------------------------------------------------------------------


def data_of(run: Run) -> Data:
    """The dataset of a run; the last one is kept."""
    return _data(replace(run, technique="", steps=0, batch=0, dim=0, device=""))


@lru_cache(maxsize=1)
def _data(run: Run) -> Data:
    world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=run.layout, seed=run.seed)  # type: ignore[arg-type]
    policies = world.policies(2, run.alpha, run.seed, run.style)  # type: ignore[arg-type]
    identity = ("pixels", run.size, run.horizon, run.layout, run.walkers, run.n, run.seed)
    train_seed, test_seed = seed_of(*identity).spawn(2)
    population = population_assumptions(world, policies)
    return Data(
        world,
        collect(world, policies, run.n, np.random.default_rng(train_seed)),
        collect(world, policies, min(run.n, HELD_OUT), np.random.default_rng(test_seed)),
        run.alpha,
        population.eta.value,
        max(population.nu.value, FEWEST_PAIRS / (2 * run.n)),
    )


def training_of(run: Run) -> Training:
    """The same budget for every technique: so many gradient steps, stopped early on held-out trajectories."""
    trajectories = max(2, run.batch // run.horizon)
    epochs = max(3, round(run.steps * trajectories / (2 * run.n)))
    return Training(epochs=epochs, patience=4, batch=run.batch, lr=1.5e-3, device=run.device, seed=run.seed)


# -- fitting -----------------------------------------------------------------------------------------------------


class _Reused(Oracle):
    """An oracle that is prepared already, so that variants of CRAFT share one network of log-odds."""

    def __init__(self, prepared: PreparedOracle) -> None:
        self.prepared = prepared

    def prepare(self, tau: TrajectoryDataset) -> PreparedOracle:
        return self.prepared


@lru_cache(maxsize=1)
def _prepared(run: Run, folds: int, agent_weight: float) -> PreparedOracle:
    training = training_of(run)
    short = training.but(epochs=max(2, training.epochs // 3), lr=1e-3)
    oracle = NeuralOracle(dim=run.dim, folds=folds, training=training, shared=short, agent_weight=agent_weight)
    return oracle.prepare(data_of(run).train.tau)


@lru_cache(maxsize=1)
def fitted(run: Run) -> tuple[Learner, Features, list[int]]:
    """The technique, fitted; its features; and the number of states found at each step. The last one is kept."""
    return (_fit_baseline if run.technique in BASELINES else _fit_craft)(run, data_of(run))


def craft_of(run: Run, data: Data) -> CRAFT:
    """The estimator of a technique, with the world's population bounds."""
    folds = 2 if run.technique == "craft-crossfit" else 1
    weight = 0.5 if run.technique == "craft-agents" else 0.0
    return CRAFT(
        _Reused(_prepared(replace(run, technique="craft"), folds, weight)),
        alpha=data.alpha,
        eta=data.eta,
        nu=data.nu,
        relabel=run.technique != "craft-no-relabel",
        clusterer=find_clusters if run.technique == "craft-scan" else Valleys(),
        stationary=run.technique not in ("craft-steps", "craft-no-relabel", "craft-scan"),
    )


def _fit_craft(run: Run, data: Data) -> tuple[Learner, Features, list[int]]:
    model = craft_of(run, data).fit(data.train.tau)
    return model, model.encoders_[2].features, list(model.n_states_)  # type: ignore[attr-defined]


def _fit_baseline(run: Run, data: Data) -> tuple[Learner, Features, list[int]]:
    """Clustered raw and standardised; the better of the two on the truth counts, one more advantage."""
    tau = data.train.tau
    baseline = CLASSES[run.technique](data.n_states, dim=run.dim, training=training_of(run))
    baseline.fit(tau, actions=data.train.truth.actions)
    raw = _accuracies(baseline, data.test)
    baseline.standardise = True
    if np.mean(_accuracies(baseline.cluster(tau), data.test)) < np.mean(raw):
        baseline.standardise = False
        baseline.cluster(tau)
    return baseline, baseline.features, data.n_states


# -- scoring -----------------------------------------------------------------------------------------------------


def _accuracies(model: Learner, test: Collection) -> list[float]:
    return encoder_accuracy(model, test.tau.at, test.truth.states).tolist()


def _probe(features: Features, data: Data) -> float:
    """Accuracy of a linear map from features to true states, on held-out frames of h = 2..H."""
    rng = np.random.default_rng(0)
    parts = []
    for c in (data.train, data.test):
        rows = np.sort(rng.permutation(c.tau.n)[:PROBED])
        x = np.concatenate([features(c.tau.at(h)[rows]) for h in range(2, c.tau.H + 1)])
        parts.append((x, c.truth.states[rows, 1:].T.ravel()))
    return linear_probe(*parts[0], *parts[1])
