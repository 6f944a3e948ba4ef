"""What may go wrong on a cluster, done on purpose: is the result the same bits, or does the run say what is missing?

    python benchmarks/cluster_faults.py            # a few minutes on two cores
    python benchmarks/cluster_faults.py --seed 1   # other moments, other workers, other shards

Every fit is compared with that of one machine: all that is saved but the labels and the times. A run may also end with
one sentence. Anything else is wrong, and the script ends with exit code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from measuring import write_rows
from safetensors.numpy import load_file

from craftrl import CRAFT, TrajectoryDataset
from craftrl.data.shards import ShardWriter
from craftrl.distributed import RayExecutor, fit_on_shards
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import CraftError

H, M, N, SHARDS = 8, 32, 40_000, 6  # steps, entries, trajectories and shards of each agent
STORE = 150 * 2**20
KILLS, DRIVERS, NODES, MEDDLINGS = 20, 3, 3, 6
READING = 6 * SHARDS + 2  # the first tasks of a fit: each shard is looked at, tested for its values, and read
TASKS = {"ray::" + name for name in ("look_at", "largest_in", "packed", "made", "answered", "_fingerprint", "_add")}


def write(folder: Path) -> Path:
    world = BitsExBMDP(H, M, seed=0)
    tau = collect(world, world.paper_policies(), N, seed=0).tau
    with ShardWriter(folder, H, (M,), tau.dtype) as out:
        for k in range(tau.K):
            mine = tau.agent_slice(k)
            x = np.stack([tau.steps.read(step, mine.start, mine.stop) for step in range(H)], axis=1)
            for block in np.array_split(x, SHARDS):
                out.append(k, block)
    return folder


def digest(folder: Path) -> str:
    """Of all that a model has learned: what is in its folder, but labels, times, and what depends on these."""
    config = json.loads((folder / "config.json").read_text())
    arrays = load_file(folder / "arrays.safetensors")

    def content(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"array"}:
            array = arrays[value["array"]]
            return array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest()
        if isinstance(value, dict):
            return {k: content(v) for k, v in sorted(value.items()) if k not in ("labels_", "seconds", "checksum")}
        return [content(part) for part in value] if isinstance(value, list) else value

    config.pop("files", None)
    return hashlib.sha256(json.dumps(content(config)).encode()).hexdigest()[:16]


@dataclass
class Row:
    """How often something was done, and what came of it."""

    fault: str
    reference: str
    done: int = 0
    same: int = 0
    said: int = 0
    wrong: int = 0
    seconds: list[float] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def judge(self, fit: Callable[[], CRAFT | Path]) -> None:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
                warnings.simplefilter("ignore")
                model = fit()
                if isinstance(model, CRAFT):
                    model.save(Path(folder) / "model")
                    model = Path(folder) / "model"
                found = digest(model)
            self.same += found == self.reference
            self.wrong += found != self.reference
        except CraftError as error:
            self.said += "\n" not in str(error)
            self.wrong += "\n" in str(error)
            self.sentences.append(re.sub(r"'\S*/shards/", "'shards/", str(error)))
        self.seconds.append(time.perf_counter() - start)
        print(f"{self.fault}: {self.same} same, {self.said} said, {self.wrong} wrong", file=sys.stderr, flush=True)

    def shown(self) -> str:
        counts = (self.done, len(self.seconds), self.same, self.said, self.wrong)
        return f"| {self.fault} | {' | '.join(map(str, counts))} | {np.mean(self.seconds):.1f} s |"


@dataclass
class Meddling:
    """An executor during whose nth task something happens."""

    executor: RayExecutor
    act: Callable[[], object] = lambda: None
    at: int = 0
    n: int = 0

    @property
    def workers(self) -> int:
        return self.executor.workers

    def submit(self, function: Any, *args: Any) -> Any:
        self.n += 1
        if self.n == self.at:
            self.act()
        return self.executor.submit(function, *args)

    def get(self, handles: Any) -> list[Any]:
        return self.executor.get(handles)

    def total(self, handles: Any) -> Any:
        return self.executor.total(handles)

    def close(self) -> None:
        """The executor is another's."""


class Killer(threading.Thread):
    """Kills workers of this process's Ray while they work, at random, again and again."""

    def __init__(self, rng: np.random.Generator, times: int) -> None:
        super().__init__(daemon=True)
        self.rng, self.times, self.kills = rng, times, 0

    def run(self) -> None:
        while self.kills < self.times:
            time.sleep(self.rng.uniform(0.1, 1.5))
            busy = []
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    busy += [process] * (bool(TASKS & set(process.cmdline()[:1])))
            if busy:
                with suppress(psutil.Error):
                    busy[int(self.rng.integers(len(busy)))].kill()
                    self.kills += 1


def workers_killed(row: Row, shards: Path, executor: RayExecutor, rng: np.random.Generator) -> None:
    killer = Killer(rng, KILLS)
    killer.start()
    while killer.kills < KILLS:
        row.judge(lambda: fit_on_shards(CRAFT(), shards, executor))
    killer.join()
    row.done = killer.kills


def meddled(rows: dict[str, Row], shards: Path, executor: RayExecutor, n_tasks: int, rng: np.random.Generator) -> None:
    for name, act in {
        "a shard removed": Path.unlink,
        "a shard cut short": cut,
        "a shard altered": alter,
        "a shard written again": again,
    }.items():
        row = rows[name]
        for trial in range(MEDDLINGS):
            at = int(rng.integers(1, READING if trial % 2 else n_tasks))
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(shutil.copytree(shards, Path(folder) / "shards"))
                file = copy / f"shard_{rng.integers(2 * SHARDS):05d}.npz"
                meddling = Meddling(executor, lambda file=file, act=act: act(file), at)
                row.judge(lambda copy=copy, meddling=meddling: fit_on_shards(CRAFT(), copy, meddling))
                row.done += 1


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def alter(file: Path) -> None:
    with np.load(file) as arrays:
        content = dict(arrays)
    content["x_3"] = 1 - content["x_3"]
    replaced(file, content)


def again(file: Path) -> None:
    with np.load(file) as arrays:
        replaced(file, dict(arrays))


def replaced(file: Path, content: dict[str, Any]) -> None:
    part = file.with_name("part.npz")
    np.savez(part, **content)
    os.replace(part, file)


def nodes_lost(rows: dict[str, Row], shards: Path, n_tasks: int, rng: np.random.Generator) -> None:
    from ray._private import utils
    from ray.cluster_utils import Cluster

    utils.write_ray_address = lambda *_: None  # no other Ray on this machine hears of this one
    folder = tempfile.mkdtemp(prefix="craftrl-ray-", dir="/tmp")
    node = {"num_cpus": 1, "object_store_memory": STORE}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "temp_dir": folder})
    cluster.add_node(**node)
    try:
        with RayExecutor(cluster.address) as executor:
            for name in ("a node lost", "a node and then all shards lost"):
                for _ in range(NODES):
                    node_lost(
                        rows[name],
                        shards,
                        cluster,
                        executor,
                        int(rng.integers(READING, n_tasks // 2)),
                        "shards" in name,
                    )
                    cluster.add_node(**node)
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def node_lost(row: Row, shards: Path, cluster: Any, executor: RayExecutor, at: int, also_shards: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(shards, Path(folder) / "shards"))

        def act() -> None:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            if also_shards:
                shutil.rmtree(copy)

        row.judge(lambda: fit_on_shards(CRAFT(), copy, Meddling(executor, act, at)))
        row.done += 1


def drivers_killed(row: Row, shards: Path, rng: np.random.Generator) -> None:
    children: list[psutil.Process] = []
    for _ in range(DRIVERS):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "model"
            command = [sys.executable, "-m", "craftrl", "fit", str(shards), "--backend", "ray", "--workers", "2"]
            command += ["--out", str(out)]
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert driver.stdout is not None
            next(line for line in driver.stdout if line.startswith("Workers:"))
            time.sleep(rng.uniform(0.0, 2.0))
            children += psutil.Process(driver.pid).children(recursive=True)
            driver.send_signal(signal.SIGKILL)
            driver.communicate()
            row.wrong += out.exists()
            row.done += 1
            row.judge(lambda command=command, out=out: run(command, out))
    row.wrong += len(psutil.wait_procs(children, timeout=180)[1])  # Ray's own last ones take a minute or two


def run(command: list[str], out: Path) -> Path:
    subprocess.run(command, check=True, capture_output=True)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of what happens when, and to whom (default: 0)")
    parser.add_argument("--only", choices=["workers", "shards", "drivers", "nodes"], nargs="+", help="these alone")
    arguments = parser.parse_args()
    only = arguments.only or ["workers", "shards", "drivers", "nodes"]
    rng = np.random.default_rng(arguments.seed)
    os.environ["RAY_AUTH_MODE"] = "token"  # for all that is started here, since Ray cannot change that in a process
    with tempfile.TemporaryDirectory() as folder:
        shards = write(Path(folder) / "shards")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = CRAFT().fit(TrajectoryDataset.open(shards))
        fitted.save(Path(folder) / "model")
        command = [sys.executable, "-m", "craftrl", "fit", str(shards), "--out", str(Path(folder) / "by_command")]
        by_command = digest(run(command, Path(folder) / "by_command"))  # where the oracle is given, not chosen
        faults = ("nothing", "a worker killed", "a shard removed", "a shard cut short", "a shard altered")
        faults += ("a shard written again", "a driver killed", "a node lost", "a node and then all shards lost")
        rows = {fault: Row(fault, digest(Path(folder) / "model")) for fault in faults}
        rows["a driver killed"].reference = by_command
        with RayExecutor(workers=2, store_bytes=STORE) as executor:
            counting = Meddling(executor)
            rows["nothing"].judge(lambda: fit_on_shards(CRAFT(), shards, counting))
            rows["nothing"].judge(lambda: fit_on_shards(CRAFT(), shards, executor))
            if "workers" in only:
                workers_killed(rows["a worker killed"], shards, executor, rng)
            if "shards" in only:
                meddled(rows, shards, executor, counting.n, rng)
        if "drivers" in only:
            drivers_killed(rows["a driver killed"], shards, rng)
        if "nodes" in only:
            nodes_lost(rows, shards, counting.n, rng)
    rows = {fault: row for fault, row in rows.items() if row.seconds}
    print("| fault | times | fits | same bits | one sentence | wrong | seconds a fit |\n|---|---|---|---|---|---|---|")
    print(*(row.shown() for row in rows.values()), sep="\n")
    print(*sorted({sentence for row in rows.values() for sentence in row.sentences}), sep="\n")
    if not arguments.only:
        print("written:", write_rows("cluster_faults", [vars(row) for row in rows.values()]))
    return int(any(row.wrong for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
