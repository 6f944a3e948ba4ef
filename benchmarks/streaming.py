"""Videos larger than memory: training from disk with a tenth of the dataset in memory, against all of it in memory.

    python benchmarks/streaming.py                              # two stores, about two minutes on two cores
    python benchmarks/streaming.py --store npy --n 200000 --pixels 64 --batch 4096   # a GPU; npy needs no h5py

One dataset of the pixel world is written to disk. The pair network of `NeuralOracle` is trained on it twice, each time
in a process of its own, whose peak resident memory is taken from the operating system. Frames per second are those of
the quickest epoch, its held-out evaluation included. Beside them stand the seconds that the training thread worked or
waited for frames, which count the same however busy the machine is (on a CPU; a GPU works by itself).

Before each epoch the operating system is asked to forget the file (posix_fadvise), and a sample of the file's pages
says how much of it is cached still; what a disk or a hypervisor caches by itself remains. A few thousand trajectories
are drawn and written over and over: what the frames show makes no difference to the speed.
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
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import write_rows

from craftrl import NeuralOracle, TrajectoryDataset
from craftrl.data.dataset import ArraySteps
from craftrl.envs import PixelsExBMDP, collect
from craftrl.oracles.network import Training
from craftrl.oracles.network.frames import StreamedFrames

H, DRAWN = 10, 1000  # steps, and trajectories that are drawn for each agent
STORES = ("npy", "shards", "hdf5", "gzip")
SHARE = 10  # the allowance is so many times smaller than the dataset


def write(path: Path, store: str, n: int, pixels: int) -> None:
    """n trajectories, half of each agent's."""
    world = PixelsExBMDP(H, 4, 4, pixels=pixels, seed=0)
    drawn = collect(world, world.policies(), DRAWN, seed=0).tau.steps.array
    blocks = [
        (k, start, drawn[:, k * DRAWN : k * DRAWN + min(DRAWN, (k + 1) * n // 2 - start)])
        for k in (0, 1)
        for start in range(k * n // 2, (k + 1) * n // 2, DRAWN)
    ]
    shape = (H, n, *world.obs_shape)
    if store == "npy":
        first = np.lib.format.open_memmap(path, "w+", np.uint8, shape).offset
        with open(path, "r+b") as file:
            for _, start, x in blocks:
                for h in range(H):
                    file.seek(first + (h * n + start) * x[0, 0].nbytes)
                    x[h].tofile(file)
    elif store == "gzip":
        _write_gzip(path, shape, blocks)
    else:
        from craftrl.data.hdf5 import Hdf5Writer
        from craftrl.data.shards import ShardWriter

        with (Hdf5Writer if store == "hdf5" else ShardWriter)(path, H, world.obs_shape, np.uint8) as out:
            for k, _, x in blocks:
                out.append(k, np.moveaxis(x, 0, 1))
    for file_path in files(path):
        with open(file_path, "rb") as file:
            os.fsync(file.fileno())


def _write_gzip(path: Path, shape: tuple[int, ...], blocks: list[tuple[int, int, np.ndarray]]) -> None:
    """Our format, compressed, as somebody else may write it."""
    import h5py

    with h5py.File(path, "w") as file:
        x = file.create_dataset("observations", shape, np.uint8, chunks=(1, 32, *shape[2:]), compression="gzip")
        for _, start, part in blocks:
            x[:, start : start + part.shape[1]] = part
        file["agent"], file["lengths"] = np.repeat([0, 1], shape[1] // 2), np.full(shape[1], H)
        file.attrs["format"] = "craftrl trajectories 1"


def opened(path: Path) -> TrajectoryDataset:
    if path.suffix != ".npy":
        return TrajectoryDataset.open(path)
    x = np.load(path, mmap_mode="r")
    return TrajectoryDataset(ArraySteps(x), np.repeat([0, 1], x.shape[1] // 2))


def loaded(tau: TrajectoryDataset) -> TrajectoryDataset:
    x = np.empty((tau.H, tau.n, *tau.obs_shape), dtype=np.uint8)
    for h in range(tau.H):
        for rows, part in tau.blocks(h + 1):
            x[h, rows] = part
    return TrajectoryDataset(ArraySteps(x), tau.agent)


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*.npz")) if path.is_dir() else [path]


def forget(path: Path) -> float:
    """Ask for the file to leave the page cache; the share of a sample of its pages that are in it still."""
    cached = []
    rng = np.random.default_rng(0)
    for file in files(path):
        fd = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            cached += [_is_cached(fd, int(at)) for at in rng.integers(0, os.fstat(fd).st_size // 4096, 64) * 4096]
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


def train(path: Path, streamed: bool, training: Training) -> dict[str, Any]:
    """Run in a process of its own: frames per second and peak memory."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tau = opened(path)
    n_bytes = tau.n * tau.H * int(np.prod(tau.obs_shape))
    if not streamed:
        tau = loaded(tau)
    prepared = NeuralOracle(training=training.but(memory=n_bytes // SHARE)).prepare(tau)
    frames = prepared.frames
    ready = time.perf_counter()
    marks, cached, n_rows, worked = [], [], [], []
    shuffled, in_order = frames.shuffled, frames.in_order

    def marked_shuffled(rows: Any, *others: Any) -> Any:
        _wait(frames.device)
        cached.append(forget(path))
        marks.append(time.perf_counter())
        worked.append(worked_or_waited(frames))
        n_rows.append(len(rows))
        return shuffled(rows, *others)

    def marked_in_order(chunks: Any) -> Any:
        _wait(frames.device)
        n_rows_read = sum(map(len, chunks))
        if n_rows_read == tau.n:  # training is over, and the network's answers to all pairs are read off
            marks.append(time.perf_counter())
            worked.append(worked_or_waited(frames))
            forget(path)
        return in_order(chunks)

    frames.shuffled, frames.in_order = marked_shuffled, marked_in_order  # type: ignore[method-assign]
    prepared.pairs()
    _wait(frames.device)
    end = time.perf_counter()
    seconds = np.diff(marks)
    return {
        "frames per second": n_rows[0] * H / float(seconds.min()),
        "seconds of an epoch": seconds.tolist(),
        "seconds of work and waiting of an epoch": np.diff(worked).tolist(),
        "frames per second reading all": tau.n * H / (end - marks[-1]),
        "seconds until ready": ready - begun,
        "cached before an epoch": cached,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "peak GiB of imports": before / 2**20,
        "GiB of frames": n_bytes / 2**30,
        "seconds of waiting for frames": waited(frames),
        "held at most, of the dataset": frames.stream.peak_bytes / n_bytes if streamed else 1.0,
        "kind": type(frames).__name__,
        "device": torch.cuda.get_device_name(frames.device) if frames.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }


def waited(frames: Any) -> float:
    return frames.stream.waited if isinstance(frames, StreamedFrames) else 0.0


def worked_or_waited(frames: Any) -> float:
    """Seconds that this thread computed, or had nothing to compute on."""
    return time.thread_time() + waited(frames)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def in_own_process(path: Path, arguments: argparse.Namespace, *options: str) -> dict[str, Any]:
    same = [f"--{name}={value}" for name, value in vars(arguments).items() if name in ("epochs", "batch", "device")]
    command = [sys.executable, __file__, "--train", str(path), *same, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(store: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    path = folder / {"npy": "x.npy", "shards": "x", "hdf5": "x.h5", "gzip": "x.h5"}[store]
    write(path, store, arguments.n, arguments.pixels)
    row: dict[str, Any] = {"store": store, "n": arguments.n, "H": H, "pixels": arguments.pixels}
    row["GiB on disk"] = sum(file.stat().st_size for file in files(path)) / 2**30
    row["in memory"] = in_own_process(path, arguments)
    row["streamed"] = in_own_process(path, arguments, "--streamed")
    row["speed, streamed / in memory"] = row["streamed"]["frames per second"] / row["in memory"]["frames per second"]
    work = [min(row[kind]["seconds of work and waiting of an epoch"]) for kind in ("in memory", "streamed")]
    row["the same by work and waiting"] = work[0] / work[1]
    return row


def main() -> None:
    os.environ.setdefault("CRAFTRL_NUM_THREADS", "1")  # the training thread's own time says what was worked
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", nargs="+", choices=STORES, default=("npy", "hdf5"))
    parser.add_argument("--n", type=int, default=4000, help="trajectories of both agents together, of ten frames")
    parser.add_argument("--pixels", type=int, default=24, help="rows and columns of a frame")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256, help="frames in a minibatch")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, help="where to put the datasets; a temporary folder by default")
    parser.add_argument("--name", default="streaming", help="of the file of results")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--streamed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        epochs = arguments.epochs
        training = Training(
            epochs=epochs, patience=epochs, plateau=0, batch=arguments.batch, device=arguments.device, progress=False
        )
        print(json.dumps(train(arguments.train, arguments.streamed, training)))
        return
    rows = []
    for store in arguments.store:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            rows.append(measure(store, arguments, Path(folder)))
        print(json.dumps(rows[-1], indent=1), flush=True)
    print("written:", write_rows(arguments.name, rows))


if __name__ == "__main__":
    main()
