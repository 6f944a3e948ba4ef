"""One fit of CRAFT on videos by phase, nothing told.

python -m benchmarks.video_fit                   # 3 x 3 cells, on the CPU
python -m benchmarks.video_fit --world rooms     # 9 x 9 four rooms, 20,000 videos per agent; wants a GPU
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import write_rows
from craftrl import CRAFT, NeuralOracle, Training
from craftrl.envs import PixelsExBMDP, collect
from craftrl.evaluation import encoder_accuracy

WORLDS: dict[str, tuple[dict[str, Any], int]] = {
    "small": ({"horizon": 6, "size": 3, "n_walkers": 2}, 3000),
    "rooms": ({"horizon": 20, "size": 9, "n_walkers": 4, "layout": "rooms"}, 20_000),
}


def measured(name: str, device: str) -> dict[str, Any]:
    """Accuracy on fresh videos, and seconds by phase."""
    settings, n = WORLDS[name]
    world = PixelsExBMDP(**settings, seed=0)
    data, fresh = (collect(world, world.policies(2, 1.0, 0), m, seed=seed) for seed, m in enumerate((n, 500)))
    training = Training(device=device, progress=False)
    start = time.perf_counter()
    model = CRAFT(NeuralOracle(training=training), stationary=True).fit(data.tau)
    total = time.perf_counter() - start
    phases = {use.question: round(use.seconds, 1) for use in model.trace_.oracle_use}
    on_gpu = training.to_device().type == "cuda"
    return {
        "world": name,
        "device": torch.cuda.get_device_name() if on_gpu else f"cpu, {torch.get_num_threads()} threads",
        "videos": data.tau.n,
        "frames": data.tau.n * data.tau.H,
        "accuracy": round(float(np.mean(encoder_accuracy(model, fresh.tau.at, fresh.truth.states)[1:])), 4),
        "states": model.n_states_total_,
        "seconds": round(total, 1),
        "phases": {**phases, "the rest": round(total - sum(phases.values()), 1)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=list(WORLDS), default="small")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    row = measured(args.world, args.device)
    print("\n".join(f"{key:10} {value}" for key, value in row.items()))
    print("written:", write_rows(f"video_fit_{args.world}", [row]))


if __name__ == "__main__":
    main()
