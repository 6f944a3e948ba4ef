"""What one process and two ranks do alike: the runs of test_ranks.py. As a program under torchrun it makes all of them.

torchrun --nproc-per-node 2 rank_runs.py FOLDER
"""

import os
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data

import craftrl.oracles.network.training as loop
from craftrl import CRAFT, TrajectoryDataset
from craftrl.cli import main as command
from craftrl.errors import CraftError
from craftrl.oracles.network import NeuralOracle, Training

H = 4
TRAINING = Training(epochs=4, batch=27, lr=5e-3, noise=0.0, device="cpu", progress=False)


def images(n=100, seed=0):
    """Frames of 8 x 8 pixels in which one of four quarters is lit; trajectories end at different steps."""
    states = feature_data(n, seed=seed).truth.states
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 60, (len(states), H, 8, 8, 3), dtype=np.uint8)
    for s in range(4):
        row, column = 4 * (s // 2), 4 * (s % 2)
        lit = np.where(states == s, 150, 0).astype(np.uint8)
        x[:, :, row : row + 4, column : column + 4, 0] += lit[..., None, None]
    episodes = [episode[:length] for episode, length in zip(x, rng.integers(2, H + 1, len(x)))]
    return TrajectoryDataset.from_episodes([episodes[:n], episodes[n:]])


def oracle(training=TRAINING, **given):
    """Without noise in training, so that one process and two ranks compute the same up to rounding."""
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 4, 4), torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(32, 16), torch.nn.Tanh()
    )
    return NeuralOracle(**{"trunk": trunk, "networks": 1, "training": training, **given})


def pairs(tau, training=TRAINING, stop_after=None):
    """Logits, weights and embeddings of the network that tells agents apart, and the gradients of its first minibatch;
    nothing where it was stopped."""
    save, saved, descend, gradients = loop.Checkpoint.save, [], loop.descend, []

    def noting(loss, count, parameters):
        descend(loss, count, parameters)
        gradients.append(np.concatenate([p.grad.numpy().ravel() for p in parameters]))

    def stopping(self, state):
        save(self, state)
        saved.append(1)
        if len(saved) == stop_after:
            raise KeyboardInterrupt

    patches = patch.object(loop.Checkpoint, "save", stopping), patch.object(loop, "descend", noting)
    with patches[0], patches[1], patch.object(loop, "EVALUATE_EVERY", 6):
        try:
            fit = oracle(training).prepare(tau).pairs()
        except KeyboardInterrupt:
            return {}
    weights = np.concatenate([p.detach().numpy().ravel() for p in fit.f.networks[0].parameters()])
    found = {"logits": fit.logits, "weights": weights, "phi": fit.phi, "rounds": len(saved)}
    return {**found, "gradient": gradients[0]}


def craft(tau):
    model = CRAFT(oracle(), stationary=True).fit(tau)
    return model, {"labels": model.labels_}


def options(data, out):
    """A small fit on the command line."""
    given = ["fit", data, "--oracle", "network", "--epochs", "1", "--device", "cpu", "--stationary", "--out", out]
    return [str(word) for word in given]


def sentence(run):
    try:
        run()
    except CraftError as error:
        return str(error)
    return "nothing was raised"


def main(folder):
    rank, tau = int(os.environ["RANK"]), images()
    found = {"held": pairs(tau), "disk": pairs(TrajectoryDataset.open(folder / "shards"))}
    here = TRAINING.but(checkpoints=folder / "by-two")
    found["stopped"] = pairs(tau, here, stop_after=2)
    found["resumed"] = pairs(tau, here)
    found["from one"] = pairs(tau, TRAINING.but(checkpoints=folder / "by-one"))
    model, found["craft"] = craft(tau)
    model.save(folder / "model")
    torch.save(found, folder / f"rank{rank}.pt")
    norm = oracle(trunk=torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Flatten()))
    said = [
        sentence(lambda: pairs(images(seed=rank))),
        sentence(lambda: pairs(tau, TRAINING.but(seed=rank))),
        sentence(lambda: norm.prepare(tau).pairs()),
    ]
    (folder / f"rank{rank}.txt").write_text("\n".join(said))
    codes = [command(options(folder / name, folder / out)) for name, out in [("shards", "fitted"), ("nowhere", "no")]]
    (folder / f"codes{rank}.txt").write_text(str(codes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
