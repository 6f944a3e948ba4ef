"""Thousands of encoders per step: one step's exact ERM on the CPU engine, or on a CUDA device.

    python benchmarks/large_classes.py --device cpu
    python benchmarks/large_classes.py --device cuda

Both draw the same bit planes from the same seed and print a digest of all losses: equal digests on two machines
mean equal results to the last bit. On the CUDA device the times of all stages stand beside their floors: the
operations that the products need at the device's peak rate, the bytes that must move at its peak bandwidth.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, seconds

from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins
from craftrl.data.files import write_json
from craftrl.engine.engine import Engine
from craftrl.engine.packing import PackedStep, segments

GRID = Grid.from_bounds(math.log(3), 1 / 5)
SIZES = ((1024, 5000), (2048, 5000), (4096, 5000), (8192, 5000), (4096, 50_000))
# An H200's data sheet, per second: dense 8-bit integer operations, bytes of memory traffic, float64 operations outside
# the tensor cores, and bytes from the host over PCIe 5.
PEAK_OPERATIONS, PEAK_BYTES, PEAK_FLOAT64, PEAK_UPLOAD = 1.979e15, 4.8e12, 34e12, 64e9


def random_steps(M: int, n: int, seed: int) -> tuple[PackedStep, PackedStep]:
    """Two steps of M binary encoders on n trajectories of each of two agents; half of the bits persist."""
    rng = np.random.default_rng(seed)
    counts = np.array([n, n])
    bounds = segments(counts)
    present = np.zeros(bounds[-1], dtype=np.uint64)
    for start in bounds[:-1]:
        present[start : start + n // 64] = 2**64 - 1
        if n % 64:
            present[start + n // 64] = 2 ** (n % 64) - 1

    def words() -> np.ndarray:
        return rng.integers(0, 2**64, size=(1, M, bounds[-1]), dtype=np.uint64) & present

    first = words()
    change = words()
    change[..., bounds[1] :] &= words()[..., bounds[1] :]
    second = np.concatenate([first[:, : M // 2] ^ change[:, : M // 2], words()[:, M // 2 :]], axis=1)
    return PackedStep(first, present, counts), PackedStep(second, present, counts)


def digest(losses: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(losses, dtype=np.int64).tobytes()).hexdigest()[:16]


def check(losses: np.ndarray, left: PackedStep, right: PackedStep, rows: int = 48) -> None:
    """Some losses again, from unpacked bits, NumPy's products and `losses.best_bins`."""
    bits = [np.unpackbits(s.planes[0, :rows].view(np.uint8), axis=1, bitorder="little") for s in (left, right)]
    counts = np.zeros((rows, rows, 2, 2, 2), dtype=np.int64)
    for k in range(2):
        start = 64 * int(left.segments[k])
        x, y = (b[:, start : start + int(left.counts[k])].astype(np.float64) for b in bits)
        for u, v in np.ndindex(2, 2):
            counts[:, :, u, v, k] = np.rint((x == u).astype(float) @ (y == v).astype(float).T)
    assert np.array_equal(best_bins(counts, GRID)[1].sum(axis=(2, 3)), losses[:rows, :rows])


def cpu_row(left: PackedStep, right: PackedStep) -> dict[str, Any]:
    engine = Engine()
    losses = next(iter(engine.all_losses([left, right], GRID)))
    check(losses, left, right)
    (i, j), *_ = engine.best_pairs([left, right], GRID)
    assert (i, j) == divmod(int(np.argmin(losses)), right.size)
    return {
        "digest": digest(losses),
        "best pair": [i, j],
        "one thread": seconds(lambda: Engine(n_threads=1).best_pairs([left, right], GRID), clock=time.thread_time),
        "all cores": seconds(lambda: engine.best_pairs([left, right], GRID)),
    }


def cuda_row(left: PackedStep, right: PackedStep) -> dict[str, Any]:
    import torch

    from craftrl.core.losses import softplus_table
    from craftrl.engine.gpu import TorchCounter
    from craftrl.engine.gpu_losses import cell_loss, summed_losses

    counter = TorchCounter(GRID, "cuda", Engine().tile_bytes)
    losses = counter.pair_losses(left, right)
    check(losses, left, right)
    best = counter.best_pair(left, right)
    assert best == divmod(int(np.argmin(losses)), right.size)
    small = TorchCounter(GRID, "cuda", 2**20)
    assert np.array_equal(small.pair_losses(left, right), losses)
    M, n = left.size, int(left.counts.sum())

    def timed(function: Callable[[], Any]) -> float:
        def synchronised() -> None:
            function()
            torch.cuda.synchronize()

        return seconds(synchronised, at_least=5, budget=1.0)

    row: dict[str, Any] = {"digest": digest(losses), "best pair": list(best)}
    row["best pair, from packed bits in host memory"] = timed(lambda: counter.best_pair(left, right))
    n_rows = min(M, 2048)
    halves = [slice(*(8 * right.segments[k : k + 2])) for k in range(2)]
    present = counter.upload(right.present[None, None])
    packed = [counter.operand(counter.upload(planes), present) for planes in (left.planes[:, :n_rows], right.planes)]
    unpacked = [[counter.unpack(bits[:, half]) for bits in packed] for half in halves]
    products = [torch._int_mm(x, y.t()) for x, y in unpacked]
    loss = cell_loss(softplus_table(GRID), "cuda")
    tile = summed_losses(products, (1, n_rows), (1, M), loss)
    bits = (n_rows + M) * n
    stages = {
        "upload": (
            lambda: [counter.upload(planes) for planes in (left.planes[:, :n_rows], right.planes)],
            bits / 8 / PEAK_UPLOAD,
        ),
        "unpack": (
            lambda: [counter.unpack(bits[:, half]) for bits in packed for half in halves],
            bits / PEAK_BYTES,
        ),
        "products": (
            lambda: [torch._int_mm(x, y.t()) for x, y in unpacked],
            max(2 * n_rows * M * n / PEAK_OPERATIONS, (bits + 8 * n_rows * M) / PEAK_BYTES),
        ),
        "losses": (
            lambda: summed_losses(products, (1, n_rows), (1, M), loss),
            max((8 + 8) * n_rows * M / PEAK_BYTES, 4 * 4 * GRID.size * n_rows * M / PEAK_FLOAT64),
        ),
        "least": (lambda: (tile == tile.min()).nonzero()[0], 8 * n_rows * M / PEAK_BYTES),
    }
    row["rows of the stages"] = n_rows
    row["stages"] = {name: {"seconds": timed(run), "floor": floor} for name, (run, floor) in stages.items()}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    rows = []
    for M, n in SIZES:
        steps = random_steps(M, n, seed=M)
        row = {"M": M, "n": n} | (cpu_row if arguments.device == "cpu" else cuda_row)(*steps)
        rows.append(row)
        print(json.dumps(row), flush=True)
    where = machine()
    if arguments.device == "cuda":
        import torch

        where |= {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    write_json(arguments.out / f"large_classes_{arguments.device}.json", {"machine": where, "rows": rows})


if __name__ == "__main__":
    main()
