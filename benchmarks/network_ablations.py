"""What each part of the log-odds network is worth: held-out loss with one part left out at a time.

    python benchmarks/network_ablations.py --workers 2     # hours on a CPU; rows are kept as they come

Every number is the mean over steps of the loss in nats on trajectories that were not trained on; chance is 0.6931. The
loss of the table of true states, counted on the training data, stands beside it: no network can do better on fresh
data. One network each, seed 0 of the worlds, seeds 0 and 1 of the training.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from measuring import write_rows
from torch import nn

from craftrl.envs.collection import Collection, collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.oracles.network import NeuralOracle, Training, networks, training, trunks
from craftrl.states.visits import count_visits, pair_labels

WORLDS: dict[str, dict[str, Any]] = {
    "4x4, 1000": {"horizon": 10, "size": 4, "n": 1000, "style": "cells"},
    "4x4 compass, 3000": {"horizon": 10, "size": 4, "n": 3000, "style": "compass"},
    "7x7 rooms, 1500": {"horizon": 14, "size": 7, "n": 1500, "style": "cells", "layout": "rooms"},
}
VARIANTS = (
    "as it is",
    "one vector per frame",
    "no noise on the input",
    "input not standardised",
    "no group normalisation",
    "no warm-up",
    "last weights, not averaged",
    "one readout for all steps",
    "as many readouts as steps",
    "four networks averaged",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--name", default="network_ablations", help="of the file of results")
    args = parser.parse_args()
    asked = [(world, variant, seed) for world in args.worlds for variant in args.variants for seed in range(args.seeds)]
    rows = []
    for row in Parallel(n_jobs=args.workers, return_as="generator")(delayed(measured)(*which) for which in asked):
        print(row, flush=True)
        rows.append(row)
        write_rows(args.name, rows)


def measured(world: str, variant: str, seed: int) -> dict[str, Any]:
    data = _data(world)
    with ExitStack() as changes:
        for change in _changes(variant, data.tau.H):
            changes.enter_context(change)
        pairs = _oracle(variant, data.tau.obs_shape, seed).prepare(data.tau).pairs()
    return {
        "world": world,
        "variant": variant,
        "seed": seed,
        "loss": round(float(np.mean(pairs.loss)), 4),
        "table of true states": round(_table_loss(data), 4),
    }


def _data(world: str) -> Collection:
    settings = dict(WORLDS[world])
    n, style = settings.pop("n"), settings.pop("style")
    pixels = PixelsExBMDP(**settings, n_walkers=4, seed=0)
    return collect(pixels, pixels.policies(2, 1.0, 0, style), n, seed=0)


def _oracle(variant: str, obs_shape: tuple[int, ...], seed: int) -> NeuralOracle:
    image = (obs_shape[0], obs_shape[1], obs_shape[2])
    return NeuralOracle(
        trunk=trunks.MapTrunk(image, vector=128) if variant == "one vector per frame" else None,
        networks=4 if variant == "four networks averaged" else 1,
        training=Training(seed=seed, warm_up=0 if variant == "no warm-up" else 40, progress=False),
    )


def _changes(variant: str, H: int) -> list[Any]:
    """The parts of the library that stand in for others in this variant."""
    if variant == "no noise on the input":
        return [patch.object(trunks, "IMAGE_NOISE", 0.0)]
    if variant == "input not standardised":
        return [patch.object(trunks.Standardise, "fit", lambda self, x: None)]
    if variant == "no group normalisation":
        return [patch.object(nn, "GroupNorm", lambda groups, width: nn.Identity())]
    if variant == "last weights, not averaged":
        return [patch.object(training.WeightAverage, "update", _take_the_last)]
    if variant == "one readout for all steps":
        return [patch.object(networks, "READOUTS", 0)]
    if variant == "as many readouts as steps":
        return [patch.object(networks, "READOUTS", H - 1)]
    return []


def _take_the_last(self: Any, window: float) -> None:
    self.average = [p.detach().clone() for p in self.parameters]


def _table_loss(data: Collection) -> float:
    """Of the agent given the true states of a pair, each pair of states with its own shares, in sample."""
    losses = []
    for s, s_next in zip(data.truth.states.T, data.truth.states.T[1:]):
        counts = count_visits(pair_labels(s, s_next), data.tau.agent).astype(float)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        losses.append(-(counts * np.log(np.maximum(shares, 1e-12))).sum() / counts.sum())
    return float(np.mean(losses))


if __name__ == "__main__":
    main()
