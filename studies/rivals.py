"""How the studies of videos fit and score: CRAFT as it comes, its rivals with every advantage.

A rival is trained at several learning rates, and the one with the best held-out value of its *own* loss counts, as
anybody could choose without ground truth. It is then told the true number of states at each step, and of the states
from raw and from standardised features those that are closer to the truth count. CRAFT gets none of this.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from craftrl import CRAFT
from craftrl.arrays import Ints
from craftrl.core.evidence import chance_loss
from craftrl.data import TrajectoryDataset
from craftrl.envs.collection import Collection, GroundTruth
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import accuracy, accuracy_by_step, count_visits, state_accuracies_by_step
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.oracles.network.encoder import NetworkEncoder
from craftrl.oracles.network.settings import TrainingError
from studies.objectives import CLASSES
from studies.trained import Rival, features_of, train_rival

Features = Callable[[NDArray[Any]], NDArray[Any]]
SAMPLE = 10_000  # trajectories that k-means looks at
PROBED = 20_000  # frames whose true states the linear probe learns from
WIDEST = 256  # features that the probe reads; of more, it reads so many principal components
CLIP, SHORTEST = 6, 3  # steps of clips, and of the shortest of trajectories that end at any time
MIN_FRAMES = 20  # held-out frames of a state at a step, below which its own accuracy is not scored


@dataclass(frozen=True, eq=False)
class Data:
    """One dataset: what is learned from, what is scored on, and what is learned from before it was cut (`cut`)."""

    train: Collection
    test: Collection
    whole: Collection

    @property
    def n_states(self) -> list[int]:
        """The true number of states at each step."""
        return [len(np.unique(column)) for column in self.whole.truth.states.T]

    @property
    def table_loss(self) -> float:
        """The loss of the true states' log-odds on the held-out trajectories, in nats: about the best there is.

        Its table is counted on the training trajectories, with half a visit of each agent added to every pair. The
        steps are as many as are learned from, so that it can be compared with the loss of a model (`fit_craft`).
        """
        seen, tau = self.whole.truth.states, self.whole.tau
        new, agent = self.test.truth.states, self.test.tau.agent
        size = 1 + max(seen.max(), new.max())
        losses = []
        for h in range(self.train.tau.H - 1):
            table = count_visits(seen[:, h], seen[:, h + 1], tau.agent, sizes=(size, size, tau.K)) + 0.5
            share = table / table.sum(axis=2, keepdims=True)
            losses.append(-np.log(share[new[:, h], new[:, h + 1], agent]).mean())
        return float(np.mean(losses))


def cut(whole: Collection, how: str, seed: int) -> Collection:
    """Trajectories as they are ("whole"), "clips" of six steps from anywhere in them, or of "unequal" length."""
    tau, truth = whole.tau, whole.truth
    rng, rows = np.random.default_rng([seed, CLIP]), np.arange(tau.n)
    if how == "clips":
        if tau.H <= CLIP:
            raise InvalidParameterError(
                f"Clips of {CLIP} steps need longer trajectories; these have {tau.H} steps; in the study of pixels "
                "--preset long has 10."
            )
        steps = rng.integers(0, tau.H - CLIP + 1, size=tau.n)[:, None] + np.arange(CLIP)
        cut_truth = GroundTruth(truth.states[rows[:, None], steps], truth.actions[rows[:, None], steps[:, :-1]])
        arrays = np.split(tau.rows(rows)[rows[:, None], steps], np.cumsum(tau.counts)[:-1])
        return Collection(TrajectoryDataset.from_arrays(arrays), cut_truth)
    if how == "unequal":
        lengths = rng.integers(SHORTEST, tau.H + 1, size=tau.n)
        arrays = np.split(tau.rows(rows), np.cumsum(tau.counts)[:-1])
        return Collection(TrajectoryDataset.from_arrays(arrays, lengths), truth)
    return whole


@dataclass(frozen=True, eq=False)
class Fitted:
    """A technique that was fitted: the states of observations x at step h, the features that its probe reads, how many
    states it has at each step and in all, and what else its row says."""

    encode: Callable[[NDArray[Any], int], Ints]
    features: Features
    n_states: list[int]
    found: int | None
    row: dict[str, Any]


def scored(technique: str, data: Data, rates: Sequence[float], seed: int, device: str) -> dict[str, Any]:
    """The row of one technique, trained as the library trains by default."""
    training = training_of(seed, device)
    if technique in CLASSES:
        return scores(fit_rival(technique, data, training, rates), data)
    return scores(fit_craft(CRAFT(NeuralOracle(training=training)), data), data)


def training_of(seed: int, device: str) -> Training:
    return Training(seed=seed, device=device)


def fit_craft(craft: CRAFT, data: Data) -> Fitted:
    """CRAFT as given. `loss` is that of its log-odds on the held-out trajectories."""
    start = time.perf_counter()
    model = craft.fit(data.train.tau)
    row = {
        "seconds": round(time.perf_counter() - start, 1),
        "seconds_by_phase": {use.question: round(use.seconds, 1) for use in model.trace_.oracle_use},
        "loss": _log_odds_loss(model, data.test),
        "chance": chance_loss(data.test.tau.agent),
    }
    encoder = model.encoders_[2]
    assert isinstance(encoder, NetworkEncoder)
    features = partial(features_of, encoder.trunk, encoder.device)
    return Fitted(model.encode, features, list(model.n_states_), model.n_states_total_, row)


def fit_rival(technique: str, data: Data, training: Training, rates: Sequence[float]) -> Fitted:
    """The rival, trained with each learning rate. `loss` is its own, of the rate that won.

    Its features are clustered at each step, raw and standardised; what is closer to the truth is kept.
    """
    start = time.perf_counter()
    best, lr, losses = best_rate(technique, data, training, rates)
    trained, tau, test = time.perf_counter(), data.train.tau, data.test
    rows = np.sort(np.random.default_rng(0).permutation(tau.n)[:SAMPLE])
    raw, scaled = (
        [best.clustered(tau.at(h, rows), k, standardise) for h, k in enumerate(data.n_states, start=1)]
        for standardise in (False, True)
    )
    of_raw, of_scaled = (
        np.mean([accuracy(phi(test.tau.at(h)), test.truth.states[:, h - 1]) for h, phi in enumerate(encoders, start=1)])
        for encoders in (raw, scaled)
    )
    encoders = raw if of_raw > of_scaled else scaled
    seconds = {"training": trained - start, "clustering": time.perf_counter() - trained}
    row = {
        "loss": best.loss,
        "chance": best.chance,
        "lr": lr,
        "loss_by_lr": {f"{rate:g}": loss if np.isfinite(loss) else None for rate, loss in losses.items()},
        "standardised": encoders is scaled,
        "seconds": round(sum(seconds.values()), 1),
        "seconds_by_phase": {name: round(value, 1) for name, value in seconds.items()},
    }
    return Fitted(lambda x, h: encoders[h - 1](x), best.features, data.n_states, None, row)


def best_rate(
    technique: str, data: Data, training: Training, rates: Sequence[float]
) -> tuple[Rival, float, dict[float, float]]:
    """The rival of the rate with the best held-out loss; that rate; and the loss of each."""
    tried: dict[float, Rival] = {}
    for lr in rates:
        with suppress(TrainingError):  # where the loss did not stay finite at this rate
            tried[lr] = train_rival(technique, data.train.tau, data.train.truth.actions, training.but(lr=lr))
    if not tried:
        raise TrainingError(f"The rival {technique} could be trained with none of the rates {list(rates)}.")
    losses = {lr: tried[lr].loss if lr in tried else np.inf for lr in rates}
    lr = min(tried, key=losses.__getitem__)
    return tried[lr], lr, losses


# -- scoring -----------------------------------------------------------------------------------------------------


def scores(fitted: Fitted, data: Data) -> dict[str, Any]:
    """A row: accuracy up to relabelling on held-out frames, mean over h = 2..H; a linear probe; states found.

    `state_mean` and `state_worst` are of the accuracies of single states at single steps, each relabelled on its own;
    `one_state` is the accuracy of naming one state at every step, which is what knowing nothing scores.
    """
    tau, true = data.test.tau, data.test.truth.states
    labels = np.stack([fitted.encode(tau.at(h), h) for h in range(1, tau.H + 1)], axis=1)
    by_step = accuracy_by_step(labels, true)
    of_states = np.concatenate(state_accuracies_by_step(labels, true, min(MIN_FRAMES, tau.n // 10))[1:])
    return {
        "accuracy": float(by_step[1:].mean()),
        "accuracy_by_step": [round(a, 5) for a in by_step.tolist()],
        "state_mean": round(float(of_states.mean()), 5),
        "state_worst": round(float(of_states.min()), 5),
        "one_state": round(float(accuracy_by_step(0 * labels, true)[1:].mean()), 5),
        "probe": round(_probe(fitted.features, data), 5),
        "pooled": accuracy(labels, true),
        "n_states": fitted.n_states,
        "n_states_true": data.n_states,
        "found": fitted.found,
        "true": len(np.unique(data.whole.truth.states)),
        "table_loss": data.table_loss,
        **fitted.row,
    }


def _log_odds_loss(model: CRAFT, test: Collection) -> float:
    """Mean cross-entropy of the agent in nats over all pairs of the held-out trajectories, of the steps fitted."""
    f = model.log_odds(test.tau.first_steps(min(test.tau.H, len(model.encoders_))))
    log_p = log_softmax(np.concatenate([np.zeros((*f.shape[:2], 1)), -f], axis=2), axis=2)
    return float(-log_p[np.arange(len(f)), :, test.tau.agent].mean())


def _probe(features: Features, data: Data) -> float:
    """Accuracy of a linear map from features to true states, on held-out frames of h = 2..H."""
    from sklearn.decomposition import PCA  # slow to import
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    parts = []
    for c in (data.whole, data.test):
        rows = np.sort(rng.permutation(c.tau.n)[: max(1, PROBED // (c.tau.H - 1))])
        x = np.concatenate([features(c.tau.at(h)[rows]) for h in range(2, c.tau.H + 1)])
        parts.append((x, c.truth.states[rows, 1:].T.ravel()))
    (z, state), (z_test, state_test) = parts
    if min(z.shape) > WIDEST:
        components = PCA(WIDEST, svd_solver="randomized", random_state=0).fit(z)
        z, z_test = components.transform(z), components.transform(z_test)
    scale = StandardScaler().fit(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear = LogisticRegression(C=1e5 / len(z), max_iter=60).fit(scale.transform(z), state)
    return float(linear.score(scale.transform(z_test), state_test))
