"""What one process and two ranks do alike: the runs of test_ranks.py. As a program under torchrun it makes all of them.

torchrun --nproc-per-node 2 rank_runs.py FOLDER
"""

import os
import shutil
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
from craftrl.data.ranks import alone
from craftrl.errors import CraftError
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.oracles.network.checkpoints import Checkpoint
from studies import objectives

H, EPOCHS = 4, 4
TRAINING = Training(epochs=EPOCHS, patience=EPOCHS, plateau=0, batch=101, lr=5e-3, device="cpu", progress=False)
SMALL = TRAINING.but(batch=8, epochs=2, patience=2)  # two trajectories in a minibatch


def images(n=150, seed=0):
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


def oracle(training=TRAINING):
    """Without noise in training, so that one process and two ranks compute the same up to rounding."""
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 4, 4), torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(32, 16), torch.nn.Tanh()
    )
    return NeuralOracle(trunk=trunk, networks=1, training=training, heads=TRAINING)


def pairs(tau, training=TRAINING, stop_after=None):
    """Held-out losses, the first before any training; logits, weights and features of the network that tells agents
    apart; and the trajectories that were read, each time."""
    curve, saved, rows_read = [], [], []
    mean_loss, save, read = loop._Passes.mean_loss, Checkpoint.save, TrajectoryDataset.rows

    def noted(*given):
        curve.append(mean_loss(*given))
        return curve[-1]

    def stopping(self, state):
        save(self, state)
        saved.append(1)
        if len(saved) == stop_after:
            raise KeyboardInterrupt

    def counted(self, index):
        rows_read.extend(np.asarray(index).tolist())
        return read(self, index)

    prepared = oracle(training).prepare(tau)
    with patch.object(loop._Passes, "mean_loss", noted), patch.object(Checkpoint, "save", stopping):
        try:
            with patch.object(TrajectoryDataset, "rows", counted):
                fit = prepared.pairs()
        except KeyboardInterrupt:
            return {"curve": np.array(curve)}
    weights = np.concatenate([p.detach().numpy().ravel() for p in fit.networks[0].parameters()])
    found = {"curve": np.array(curve), "logits": fit.logits, "weights": weights}
    found["features"] = prepared.features(2).numpy()
    return {**found, "read": np.array(rows_read)}


def shared(tau):
    """A network for all steps, with the agents' likelihood in its loss; some labels are unknown."""
    given = oracle(TRAINING.but(epochs=2)).set_params(agent_weight=0.5)
    labels = np.random.default_rng(0).integers(-1, 3, (tau.n, tau.H))
    return {"loss": given.prepare(tau).share(labels, 3, "shared").loss}


def baseline(tau, kind):
    equal = tau.select(np.flatnonzero(tau.lengths == tau.H))
    model = getattr(objectives, kind)([1, 2, 2, 2], trunk=oracle().trunk, training=TRAINING.but(epochs=2)).fit(equal)
    return {"loss": model.held_out_loss_, "states": model.encode(equal.at(2), 2)}


def craft(tau):
    model = CRAFT(oracle(), alpha=1.0, eta=0.02, nu=0.01, stationary=True).fit(tau)
    return model, {"labels": model.labels_}


def options(data, out):
    """A small fit on the command line."""
    bounds = ["--alpha", "1", "--eta", "0.1", "--nu", "0.05", "--no-stationary"]
    given = ["fit", data, *bounds, "--oracle", "network", "--epochs", "1", "--device", "cpu", "--out", out]
    return [str(word) for word in given]


def sentence(run):
    try:
        run()
    except CraftError as error:
        return str(error)
    return "nothing was raised"


def main(folder):
    rank, tau = int(os.environ["RANK"]), images()
    disk = TrajectoryDataset.open(folder / "shards")
    found = {"held": pairs(tau), "streamed": pairs(disk, SMALL), "shared": shared(tau)}
    here = TRAINING.but(checkpoints=folder / "by-two")
    found["stopped"] = pairs(tau, here, stop_after=2)
    if rank == 0:
        shutil.copytree(folder / "by-two", folder / "by-two-for-one")
    found["resumed"] = pairs(tau, here)
    found["from one"] = pairs(tau, TRAINING.but(checkpoints=folder / "by-one"))
    found["mean"], found["contrast"] = baseline(tau, "PairedFrames"), baseline(tau, "TemporalContrastive")
    model, found["craft"] = craft(tau)
    model.save(folder / "model")
    with alone():
        found["alone"] = pairs(images(40 + rank, seed=rank))
    torch.save(found, folder / f"rank{rank}.pt")
    said = [sentence(lambda: pairs(images(seed=rank))), sentence(lambda: pairs(tau, TRAINING.but(seed=rank)))]
    norm = NeuralOracle(torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Flatten()), training=TRAINING)
    said.append(sentence(lambda: norm.prepare(tau).pairs()))
    (folder / f"rank{rank}.txt").write_text("\n".join(said))
    codes = [command(options(folder / name, folder / out)) for name, out in [("shards", "fitted"), ("nowhere", "no")]]
    (folder / f"codes{rank}.txt").write_text(str(codes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
