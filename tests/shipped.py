"""Every kind of oracle that is shipped, each with data that it can learn from: tiny, and trained for one epoch."""

import copy
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from feature_world import feature_data
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, CoordinateOracle, FiniteOracle, NeuralOracle, Training
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect

BOUNDS = {"alpha": 1.0, "eta": 0.1, "nu": 0.1}
TRAINING = Training(epochs=1, batch=32, lr=5e-3, device="cpu")


@dataclass(frozen=True)
class Bit:
    """A function that can be compared, copied and pickled: bit i of an observation."""

    i: int

    def __call__(self, x):
        return x[:, self.i]


def bits_of_step(h):
    """A class of its own for every step."""
    return [Bit((h + i) % 6) for i in range(4)]


def network(**parameters):
    torch.set_num_threads(1)  # two threads that wait for each other on every small matrix are slower than one
    return NeuralOracle(dim=8, networks=1, training=TRAINING, **parameters)


def random_head(dim):
    """Names one of five states, whatever they mean."""
    from craftrl.oracles.network.encoder import StateHead

    head = StateHead(dim, 8, [3] * 5).eval()
    for weight in head.parameters():
        torch.nn.init.normal_(weight)
    return head


def own_trunk():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 6), torch.nn.ReLU())


def tree(**parameters):
    return DecisionTreeClassifier(max_depth=4, random_state=0, **parameters)


@cache
def data(kind):
    """A small collection: "bits", "features" or "images"."""
    if kind == "bits":
        world = BitsExBMDP(horizon=4, n_features=6, seed=0)
        return collect(world, world.paper_policies(), 150, seed=0)
    if kind == "features":
        return feature_data(60)
    world = PixelsExBMDP(3, 2, 1, seed=0)
    return collect(world, world.policies(), 40, seed=0)


def rows_of(kind):
    """The same as arrays: x (n, H, *obs) and agent (n,)."""
    tau = data(kind).tau
    return np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1), tau.agent


def fitted(model, *given, **more):
    """The model, fitted; data as small as this is allowed to be too small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return model.fit(*given, **more)


@cache
def model_of_images(stationary):
    """A model of images, with one encoder for all steps or one for each; no test may change it."""
    return fitted(CRAFT(network(), **BOUNDS, stationary=stationary), *rows_of("images"))


@cache
def model_with_five_states():
    """The same with an encoder that names five states, whatever they mean."""
    from craftrl.oracles.network.encoder import NetworkEncoder

    model = copy.copy(model_of_images(stationary=True))
    torch.manual_seed(0)
    trunk = model.encoder_.trunk
    model.encoder_ = NetworkEncoder(trunk, random_head(trunk.dim), torch.device("cpu"))
    return model


# name: (kind of data, oracle)
ORACLES = {
    "coordinates": ("bits", CoordinateOracle),
    "functions": ("bits", lambda: FiniteOracle([Bit(i) for i in range(6)])),
    "functions of each step": ("bits", lambda: FiniteOracle(bits_of_step)),
    "classifier": ("features", lambda: ClassifierOracle(tree(), folds=2, calibrate=False)),
    "classifier without probabilities": ("features", lambda: ClassifierOracle(RidgeClassifier(), folds=2, repeats=1)),
    "network of vectors": ("features", network),
    "network of images": ("images", network),
    "network with a trunk of one's own": ("features", lambda: network(trunk=own_trunk())),
}
