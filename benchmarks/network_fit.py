"""One fit of CRAFT on videos by phase, nothing told.

python benchmarks/network_fit.py                       # the small world, on the CPU
python benchmarks/network_fit.py --world rooms         # 9 x 9 four rooms, 20,000 videos per agent; wants a GPU
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from measuring import write_rows

from craftrl import CRAFT
from craftrl.envs import collect
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.evaluation import encoder_accuracy
from craftrl.oracles.network import NeuralOracle, Training

WORLDS: dict[str, dict[str, Any]] = {
    "small": {"horizon": 6, "size": 3, "n_walkers": 2, "layout": "open", "n": 3000},
    "rooms": {"horizon": 20, "size": 9, "n_walkers": 4, "layout": "rooms", "n": 20_000},
}


def measured(name: str, device: str) -> dict[str, Any]:
    """One fit: accuracy on fresh videos and seconds by phase."""
    world, agents, n = _world(name)
    data, fresh = collect(world, agents, n, seed=0), collect(world, agents, 500, seed=1)
    training = Training(device=device, progress=False)
    oracle = NeuralOracle(training=training)
    cores = f"{torch.get_num_threads()} threads"
    start = time.perf_counter()
    model = CRAFT(oracle, stationary=True).fit(data.tau)
    total = time.perf_counter() - start
    print(f"fitted in {total:.1f} s", flush=True)
    phases = {use.question: round(use.seconds, 1) for use in model.trace_.oracle_use}
    return {
        "world": name,
        "device": torch.cuda.get_device_name() if training.to_device().type == "cuda" else f"cpu, {cores}",
        "videos": data.tau.n,
        "frames": data.tau.n * data.tau.H,
        "accuracy": round(float(np.mean(encoder_accuracy(model, fresh.tau.at, fresh.truth.states)[1:])), 4),
        "states": model.n_states_total_,
        "seconds": round(total, 1),
        "phases": {**phases, "the rest": round(total - sum(phases.values()), 1)},
    }


def _world(name: str) -> tuple[PixelsExBMDP, Any, int]:
    settings = dict(WORLDS[name])
    n = settings.pop("n")
    world = PixelsExBMDP(**settings, seed=0)
    return world, world.policies(2, 1.0, 0), n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--world", choices=list(WORLDS), default="small")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--name", default="network_fit", help="of the file of results")
    args = parser.parse_args()
    row = measured(args.world, args.device)
    for key, value in row.items():
        print(f"{key:18} {value}")
    write_rows(args.name, [row])


if __name__ == "__main__":
    main()
