"""Small models to report on, each with its data: fitted once for all tests of the report."""

import copy
from functools import cache

import numpy as np
import torch

from craftrl import CRAFT
from craftrl.envs import BitsExBMDP, collect
from craftrl.oracles.network.encoder import NetworkEncoder
from shipped import BOUNDS, data, fitted, network, random_head, rows_of

WORLD = BitsExBMDP(horizon=5, n_features=8, seed=0)


@cache
def bits():
    """The paper's world, learned: one bit of eight is the state."""
    tau = collect(WORLD, WORLD.paper_policies(), 500, seed=0).tau
    return CRAFT(alpha=1.0, eta=0.2, nu=0.15).fit(tau), tau


@cache
def three_agents():
    """Three agents with names that HTML would trip over, and a model of a step each."""
    rng = np.random.default_rng(0)
    right = np.repeat([0.2, 0.5, 0.8], 300)
    cell = np.zeros((900, 4), dtype=np.int64)
    for h in range(1, 4):
        cell[:, h] = rng.random(900) < right
    x = np.stack([cell, rng.integers(2, size=cell.shape)], axis=-1)
    names = np.repeat(['<b>"A"', "B & co", "</script>"], 300)
    order = rng.permutation(900)
    return fitted(CRAFT(alpha=0.5, eta=0.1, nu=0.05), x[order], names[order]), x[order], names[order]


@cache
def images():
    """A model of images with one encoder that names five states, whatever they mean."""
    model = copy.copy(fitted(CRAFT(network(), **BOUNDS, stationary=True), *rows_of("images")))
    torch.manual_seed(0)
    trunk = model.encoder_.trunk
    model.encoder_ = NetworkEncoder(trunk, random_head(trunk.dim), torch.device("cpu"))
    return model, data("images").tau
