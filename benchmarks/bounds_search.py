"""What a search for bounds asks of a network: how many heads are trained, and how long everything else takes.

    python benchmarks/bounds_search.py                     # 13 x 13 rooms, 20,000 videos per agent, no network
    python benchmarks/bounds_search.py --world small       # 9 x 9 rooms, 5,000 videos per agent

A stand-in takes the network's place: it is told the true states, answers with the true log-odds and noise, and with
separation and encoders by counting. So it has the sizes of a fit on videos, and trains nothing. For each question it
counts the heads that a network would have trained: two for a separation, four for an encoding.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from measuring import write_rows
from numpy.typing import NDArray

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.learned import PreparedLearned
from craftrl.core.oracle import EncoderFit, LogOdds
from craftrl.core.starts import StartTest
from craftrl.envs.collection import sample_latent_paths
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.oracles.base import Oracle
from craftrl.oracles.learned import SCATTERED, to_bins
from craftrl.states.accuracy import accuracy

Ints = NDArray[np.integer]
NOISE = 0.15  # of the log-odds, in nats
HEADS = {"separation": 2, "encoding": 4}
WORLDS: dict[str, dict[str, Any]] = {
    "tiny": {"horizon": 6, "size": 3, "n_walkers": 2, "layout": "open", "n": 400},
    "small": {"horizon": 12, "size": 9, "n_walkers": 4, "layout": "rooms", "n": 5_000},
    "rooms": {"horizon": 26, "size": 13, "n_walkers": 8, "layout": "rooms", "n": 20_000},
}


class StandIn(Oracle):
    """Answers as a well-trained network would, from observations (n, 1) that are the true states."""

    shares_over_time = True

    def prepare(self, tau: TrajectoryDataset) -> PreparedStandIn:
        return PreparedStandIn(tau)

    def suits(self) -> Any:
        return SCATTERED


class PreparedStandIn(PreparedLearned):
    """The true states (H, n), and log-odds (n, H-1) with noise."""

    def __init__(self, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self.states = np.stack([tau.at(h)[:, 0].astype(np.int64) for h in range(1, tau.H + 1)])
        self.n_states = int(self.states.max()) + 1
        rng = np.random.default_rng(0)
        self.f = np.empty((tau.n, tau.H - 1, 1))
        self.loss = np.empty(tau.H - 1)
        for h, (s, s_next) in enumerate(zip(self.states, self.states[1:])):
            pair = s * self.n_states + s_next
            visits = 0.5 + np.stack([np.bincount(pair[tau.agent == k], minlength=self.n_states**2) for k in (0, 1)])
            true = np.log(visits[0] / visits[1])[pair]
            self.f[:, h, 0] = true + NOISE * rng.normal(size=tau.n)
            self.loss[h] = np.logaddexp(0, np.where(tau.agent == 0, -1, 1) * self.f[:, h, 0]).mean()

    def log_odds(self, grid: Any, coupling: Any) -> LogOdds:
        return LogOdds(to_bins(self.f, grid), self.loss)

    def log_odds_given(self, h: int, label: Ints, f: LogOdds, grid: Any) -> NDArray[np.int16]:
        return f.bins[:, h - 1]

    def test_start(self) -> StartTest:
        return StartTest(1.0, 1.0, 0.0, 0.0)

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> _Overlap:
        cell = np.where(cluster >= 0, cluster, n_clusters) * self.n_states + self.states[h - 1]
        table = np.bincount(cell, minlength=(n_clusters + 1) * self.n_states).reshape(-1, self.n_states)
        return _Overlap(table[:-1], int((cluster >= 0).sum()))

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        state = self.states[h - 1]
        table = np.zeros((self.n_states, max(n_states, 1)), dtype=np.int64)
        np.add.at(table, (state[label >= 0], label[label >= 0]), 1)
        encoder = _Names(table.argmax(axis=1))
        return EncoderFit(encoder, 0.0, np.where(label >= 0, encoder.name[state], -1))

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        table = np.zeros((self.n_states, n_states), dtype=np.int64)
        known = labels.T >= 0
        np.add.at(table, (self.states[known], labels.T[known]), 1)
        return EncoderFit(_Names(table.argmax(axis=1)), 0.0)


class _Names:
    """An encoder of true states."""

    def __init__(self, name: Ints) -> None:
        self.name = name

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.name[x[:, 0].astype(np.int64)]


class _Overlap:
    """Line 25 by counting: what two sets of true states have in common. As large as a network's logits would be."""

    def __init__(self, table: Ints, n_rows: int) -> None:
        self.table = table
        self.scores = np.broadcast_to(np.float64(0), (len(table), n_rows))  # its size counts, and no memory

    def __call__(self, new: int, state: Sequence[int]) -> float:
        return float(self.losses(new, [state])[0])

    def losses(self, new: int, states: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        if not states:
            return np.zeros(0)
        first = np.cumsum([0, *map(len, states[:-1])])
        tables = np.add.reduceat(self.table[np.concatenate(states)], first, axis=0)
        one, others = (t / np.maximum(t.sum(axis=-1, keepdims=True), 1) for t in (self.table[new], tables))
        return np.minimum(one, others).sum(axis=1)


def true_states(name: str, seed: int = 0) -> TrajectoryDataset:
    """Trajectories whose observations (1,) are the states of a world."""
    settings = dict(WORLDS[name])
    n = settings.pop("n")
    world = PixelsExBMDP(**settings, seed=0)
    rng = np.random.default_rng(seed)
    paths = [sample_latent_paths(world, policy, n, rng)[0] for policy in world.policies(2, 1.0, 0)]
    return TrajectoryDataset.from_arrays([states[..., None].astype(np.float32) for states in paths])


def measured(name: str, stationary: bool) -> dict[str, Any]:
    """One fit with bounds from the data."""
    tau = true_states(name)
    start = time.process_time()
    model = CRAFT(StandIn(), stationary=stationary).fit(tau)
    seconds = time.process_time() - start
    asked = {use.question: (use.asked, use.reused) for use in model.trace_.oracle_use}
    trained = {q: (asked[q][0] - asked[q][1]) * heads for q, heads in HEADS.items()}
    in_oracle = sum(use.seconds for use in model.trace_.oracle_use)
    return {
        "world": name,
        "stationary": stationary,
        "bounds": [round(getattr(model.bounds_, b), 5) for b in ("alpha", "eta", "nu")],
        "states": [int(k) for k in model.n_states_],
        "true states": [len(np.unique(tau.at(h))) for h in range(1, tau.H + 1)],
        "accuracy": round(float(np.mean([_accuracy(model, tau, h) for h in range(2, tau.H + 1)])), 4),
        "combinations": model.choices_[0].why.split()[1],
        "asked, answered from memory": {q: asked[q] for q in asked},
        "heads trained": trained,
        "seconds": round(seconds, 1),
        "of these in the stand-in": round(in_oracle, 1),
    }


def _accuracy(model: CRAFT, tau: TrajectoryDataset, h: int) -> float:
    x = tau.at(h)
    return accuracy(model.encode(x, h), x[:, 0].astype(np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--world", choices=list(WORLDS), default="rooms")
    parser.add_argument("--stationary", action="store_true", help="one encoder for all steps")
    args = parser.parse_args()
    row = measured(args.world, args.stationary)
    for key, value in row.items():
        print(f"{key:28} {value}")
    write_rows("bounds_search_shared" if args.stationary else "bounds_search", [row])


if __name__ == "__main__":
    main()
