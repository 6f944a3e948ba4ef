"""One network trained by several ranks: frames per second of one process, of two ranks, and so on.

    python benchmarks/network_scaling.py                          # one process and two ranks; some minutes on two cores
    python benchmarks/network_scaling.py --ranks 1 2 4 8 --n 200000 --pixels 64 --batch 8192    # a machine with 8 GPUs

The pair network of `NeuralOracle` is trained on frames of the pixel world, once with all frames in memory and once from
files, a minibatch at a time. Ranks are processes of this machine that torchrun starts; each has a GPU
of its own where there are GPUs, else one thread of a CPU.

The global minibatch is the same however many ranks there are, so that this is strong scaling: the same curve in less
time. Frames per second are those of the quickest epoch, its held-out evaluation included. Beside them stand what does
not depend on how busy the machine is: the CPU seconds that the busiest rank computed in an epoch, the share of a
minibatch's frames that the rank with the most of them has (what the others wait for), and the bytes of gradients that
each minibatch exchanges.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import write_rows

from craftrl import NeuralOracle, TrajectoryDataset
from craftrl.data.ranks import present
from craftrl.envs import PixelsExBMDP, collect
from craftrl.oracles.network import Training
from craftrl.oracles.network.collectives import GradientSum

H = 10  # steps
KINDS = ("in memory", "from disk")


def write(path: Path, n: int, pixels: int) -> None:
    world = PixelsExBMDP(H, 4, 4, pixels=pixels, seed=0)
    collect(world, world.policies(), n // 2, seed=0).tau.save(path)


def train(path: Path, kind: str, training: Training) -> dict[str, Any]:
    """What every rank does."""
    tau = TrajectoryDataset.open(path)
    if kind == "in memory":
        tau = TrajectoryDataset.from_arrays([tau.rows(np.flatnonzero(tau.agent == k)).copy() for k in range(tau.K)])
    prepared = NeuralOracle(networks=1, training=training.but(memory=1)).prepare(tau)
    frames, marks, worked, shares, n_rows = prepared.frames, [], [], [], []
    shuffled, in_order, exchange = frames.shuffled, frames.in_order, GradientSum.__call__
    exchanged = [0.0]

    def marked() -> None:
        if frames.device.type == "cuda":
            torch.cuda.synchronize(frames.device)
        marks.append(time.perf_counter())
        worked.append(time.thread_time())

    def marked_shuffled(rows: Any, *others: Any) -> Any:
        marked()
        minibatches = shuffled(rows, *others)
        n_rows.append(len(rows))
        if minibatches.owners is not None:
            counts = [np.bincount(owner, minlength=present().world) for owner in minibatches.owners]
            shares.append(float(np.mean([c.max() / c.sum() for c in counts])))
        return minibatches

    def marked_in_order(chunks: Any) -> Any:
        if sum(map(len, chunks)) == tau.n:  # training is over
            marked()
        return in_order(chunks)

    def timed(self: Any) -> None:
        begun = time.perf_counter()
        exchange(self)
        exchanged[0] += time.perf_counter() - begun

    frames.shuffled, frames.in_order = marked_shuffled, marked_in_order  # type: ignore[method-assign]
    GradientSum.__call__ = timed  # type: ignore[method-assign]
    fit = prepared.pairs()
    epoch = {
        "work": float(np.diff(worked).min()),
        "exchanging": exchanged[0] / len(n_rows),
    }
    each = present().every(epoch)
    return {
        "frames per second": n_rows[0] * H / float(np.diff(marks).min()),
        "CPU seconds of an epoch, busiest rank": max(rank["work"] for rank in each),
        "seconds of an epoch in exchanges, waiting included": [rank["exchanging"] for rank in each],
        "share of a minibatch, rank with the most": shares[0] if shares else 1.0,
        "bytes of gradients": sum(p.numel() * 4 for p in fit.networks[0].parameters()),
        "held-out loss": float(fit.loss.mean()),
        "device": torch.cuda.get_device_name(frames.device) if frames.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }


def measure(path: Path, kind: str, ranks: int, arguments: argparse.Namespace) -> dict[str, Any]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    same = [f"--{name}={getattr(arguments, name)}" for name in ("epochs", "batch", "device")]
    command = [sys.executable, *launcher, __file__, f"--train={path}", f"--kind={kind}", *same]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return {"ranks": ranks, "kind": kind, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--n", type=int, default=2000, help="trajectories of both agents together, of ten frames")
    parser.add_argument("--pixels", type=int, default=24, help="rows and columns of a frame")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512, help="frames in a minibatch of all ranks together")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, help="where to put the dataset; a temporary folder by default")
    parser.add_argument("--name", default="network_scaling", help="of the file of results")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        epochs = arguments.epochs
        training = Training(
            epochs=epochs, patience=epochs, plateau=0, batch=arguments.batch, device=arguments.device, progress=False
        )
        row = train(arguments.train, arguments.kind, training)
        if present().rank == 0:
            print(json.dumps(row))
        return
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "shards"
        write(path, arguments.n, arguments.pixels)
        print(f"{'':>10} {'ranks':>5} {'frames/s':>9} {'CPU s':>6} {'most of a minibatch':>20} {'held-out loss':>14}")
        for kind in KINDS:
            for ranks in arguments.ranks:
                row = measure(path, kind, ranks, arguments)
                rows.append({"n": arguments.n, "H": H, "pixels": arguments.pixels, "batch": arguments.batch, **row})
                print(
                    f"{kind:>10} {ranks:>5} {row['frames per second']:>9,.0f} "
                    f"{row['CPU seconds of an epoch, busiest rank']:>6.1f} "
                    f"{row['share of a minibatch, rank with the most']:>20.0%} {row['held-out loss']:>14.4f}",
                    flush=True,
                )
    write_rows(arguments.name, rows)


if __name__ == "__main__":
    main()
