"""Videos larger than memory: training from disk, with hardly any of the files cached, against all of them in memory.

    python benchmarks/streaming.py                                        # about two minutes on two cores
    python benchmarks/streaming.py --n 200000 --pixels 64 --batch 4096    # a GPU

One dataset of the pixel world is written to disk. The pair network of `NeuralOracle` is trained on it twice, each time
in a process of its own: from memory, and from the files of the store. From files, a thread asks the operating system
all the while to forget them (posix_fadvise), and a sample of their pages, taken before each epoch, says how much is
cached still; what a disk or a hypervisor caches by itself remains. Frames per second are those of the quickest epoch,
its held-out evaluation included. On a GPU neither may hold the dataset (memory=1). A few thousand trajectories are
drawn and written over and over: what the frames show makes no difference to the speed.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import write_rows

from craftrl import NeuralOracle, TrajectoryDataset
from craftrl.data import DatasetWriter
from craftrl.envs import PixelsExBMDP, collect
from craftrl.oracles.network import Training

H, DRAWN = 10, 1000  # steps, and trajectories that are drawn for each agent
EVERY = 0.2  # seconds after which the files are forgotten again


def write(path: Path, n: int, pixels: int) -> None:
    """n trajectories, half of each agent's."""
    world = PixelsExBMDP(H, 4, 4, pixels=pixels, seed=0)
    drawn = collect(world, world.policies(), DRAWN, seed=0).tau
    with DatasetWriter(path) as out:
        for i in range(n):
            k = 2 * i // n
            out.append(k, drawn.episode(k * DRAWN + i % DRAWN))


def forget(path: Path) -> float:
    """Ask for the files to leave the page cache; the share of a sample of their pages that are in it still."""
    cached = []
    rng = np.random.default_rng(0)
    for file in sorted(path.glob("*.npy")):
        fd = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            cached += [_is_cached(fd, int(at)) for at in rng.integers(0, os.fstat(fd).st_size // 4096, 16) * 4096]
        finally:
            os.close(fd)
    return float(np.mean(cached))


def _is_cached(fd: int, at: int) -> bool:
    try:
        return os.preadv(fd, [bytearray(1)], at, os.RWF_NOWAIT) == 1
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
            return error.errno == errno.EOPNOTSUPP  # where it cannot be told, the worst is taken
        raise


def train(path: Path, from_disk: bool, training: Training) -> dict[str, Any]:
    """Run in a process of its own: frames per second and peak memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tau = TrajectoryDataset.open(path)
    n_bytes = tau.n * tau.H * int(np.prod(tau.obs_shape))
    if not from_disk:
        tau = TrajectoryDataset.from_arrays([tau.rows(np.flatnonzero(tau.agent == k)).copy() for k in range(tau.K)])
    frames = (prepared := NeuralOracle(networks=1, training=training).prepare(tau)).frames
    marks, cached, n_rows, over = [], [], [], threading.Event()
    shuffled = frames.shuffled

    def marked(rows: Any, *others: Any) -> Any:
        if frames.device.type == "cuda":
            torch.cuda.synchronize(frames.device)
        cached.append(forget(path))
        marks.append(time.perf_counter())
        n_rows.append(len(rows))
        return shuffled(rows, *others)

    def forgetting() -> None:
        while from_disk and not over.wait(EVERY):
            forget(path)

    frames.shuffled = marked  # type: ignore[method-assign]
    thread = threading.Thread(target=forgetting)
    thread.start()
    prepared.pairs()
    over.set()
    thread.join()
    seconds = np.diff(marks)
    return {
        "frames per second": n_rows[0] * H / float(seconds.min()),
        "seconds of an epoch": seconds.tolist(),
        "cached before an epoch": cached,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "peak GiB of imports": before / 2**20,
        "GiB of frames": n_bytes / 2**30,
        "held-out loss": float(prepared.pairs().loss.mean()),
        "device": torch.cuda.get_device_name(frames.device) if frames.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }


def in_own_process(path: Path, arguments: argparse.Namespace, *options: str) -> dict[str, Any]:
    same = [f"--{name}={value}" for name, value in vars(arguments).items() if name in ("epochs", "batch", "device")]
    command = [sys.executable, __file__, "--train", str(path), *same, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    path = folder / "data"
    write(path, arguments.n, arguments.pixels)
    row: dict[str, Any] = {"n": arguments.n, "H": H, "pixels": arguments.pixels}
    row["in memory"] = in_own_process(path, arguments)
    row["from disk"] = in_own_process(path, arguments, "--from-disk")
    row["speed, from disk / in memory"] = row["from disk"]["frames per second"] / row["in memory"]["frames per second"]
    assert row["from disk"]["held-out loss"] == row["in memory"]["held-out loss"] or row["in memory"]["device"] != "cpu"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=4000, help="trajectories of both agents together, of ten frames")
    parser.add_argument("--pixels", type=int, default=24, help="rows and columns of a frame")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256, help="frames in a minibatch")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, help="where to put the datasets; a temporary folder by default")
    parser.add_argument("--name", default="streaming", help="of the file of results")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--from-disk", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        stop = {"epochs": arguments.epochs, "patience": arguments.epochs, "plateau": 0}
        training = Training(**stop, batch=arguments.batch, device=arguments.device, memory=1, progress=False)
        print(json.dumps(train(arguments.train, arguments.from_disk, training)))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        row = measure(arguments, Path(folder))
    print(json.dumps(row, indent=1), flush=True)
    print("written:", write_rows(arguments.name, [row]))


if __name__ == "__main__":
    main()
