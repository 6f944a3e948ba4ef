"""One fit of CRAFT on videos by phase, and how near the log-odds network trains to its own floor.

    python benchmarks/network_fit.py                       # the small world, on the CPU
    python benchmarks/network_fit.py --world rooms         # 9 x 9 four rooms, 20,000 videos per agent; wants a GPU

The floor is the same network on the same number of frames, forward and backward, with one minibatch that lies on the
device already: no reading, no evaluation, no early stopping. Bounds are those of the population.
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
from craftrl.oracles.network import NeuralOracle, Training
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.side_by_side import cores_for
from craftrl.oracles.network.threads import cpu_threads
from craftrl.oracles.network.trunks import new_trunk
from craftrl.paper import population_assumptions
from craftrl.states.accuracy import encoder_accuracy

WORLDS: dict[str, dict[str, Any]] = {
    "small": {"horizon": 6, "size": 3, "n_walkers": 2, "layout": "open", "n": 3000},
    "rooms": {"horizon": 20, "size": 9, "n_walkers": 4, "layout": "rooms", "n": 20_000},
}


def measured(name: str, device: str) -> dict[str, Any]:
    """One fit: accuracy on fresh videos, seconds by phase, frames per second of the log-odds and of the floor."""
    world, agents, n = _world(name)
    data, fresh = collect(world, agents, n, seed=0), collect(world, agents, 500, seed=1)
    bounds = population_assumptions(world, agents)
    training = Training(device=device, progress=False)
    oracle = NeuralOracle(training=training)
    cores = f"{cores_for(training, training.to_device())} threads"
    start = time.perf_counter()
    nu = max(bounds.nu.value, 10 / data.tau.n)
    model = CRAFT(oracle, alpha=1.0, eta=bounds.eta.value, nu=nu, stationary=True).fit(data.tau)
    total = time.perf_counter() - start
    print(f"fitted in {total:.1f} s", flush=True)
    phases = {use.question: round(use.seconds, 1) for use in model.trace_.oracle_use}
    floor = _frames_per_second(world, len(agents), training)
    return {
        "world": name,
        "device": torch.cuda.get_device_name() if training.to_device().type == "cuda" else f"cpu, {cores}",
        "videos": data.tau.n,
        "frames": data.tau.n * data.tau.H,
        "accuracy": round(float(np.mean(encoder_accuracy(model, fresh.tau.at, fresh.truth.states)[1:])), 4),
        "states": model.n_states_total_,
        "seconds": round(total, 1),
        "phases": {**phases, "the rest": round(total - sum(phases.values()), 1)},
        **_training_speed(data.tau, training, floor),
    }


def _world(name: str) -> tuple[PixelsExBMDP, Any, int]:
    settings = dict(WORLDS[name])
    n = settings.pop("n")
    world = PixelsExBMDP(**settings, seed=0)
    return world, world.policies(2, 1.0, 0), n


def _training_speed(tau: Any, training: Training, floor: float) -> dict[str, float]:
    """Frames per second of one epoch of the log-odds, evaluation and all, and its ratio to the floor."""
    oracle = NeuralOracle(training=training.but(epochs=1, plateau=0), networks=1)
    prepared = oracle.prepare(tau)
    start = time.perf_counter()
    prepared.pairs()
    speed = tau.n * tau.H / (time.perf_counter() - start)
    return {"frames per second": round(speed), "floor": round(floor), "ratio": round(speed / floor, 2)}


def _frames_per_second(world: PixelsExBMDP, n_agents: int, training: Training, repeats: int = 30) -> float:
    """Forward and backward of one minibatch on the device, over and over."""
    device = training.to_device()
    network = PairNetwork(new_trunk(None, world.obs_shape, 128), world.H, n_agents).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), fused=device.type == "cuda")
    rows = 1024 // world.H
    rows_, columns, channels = world.obs_shape
    x = torch.rand(rows, world.H, channels, rows_, columns, device=device)
    target = torch.zeros(rows * (world.H - 1), dtype=torch.long, device=device)
    with cpu_threads(training.threads):
        for i in range(repeats + 3):
            if i == 3:
                _wait(device)
                start = time.perf_counter()
            with training.precision(device):
                loss = torch.nn.functional.cross_entropy(network.along(x).flatten(0, 1).float(), target)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        _wait(device)
    return repeats * rows * world.H / (time.perf_counter() - start)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
