"""Behaviour cloning from pixels: a network that names the action to take, given a frame and a frame of the goal.

It learns from the same labelled transitions as the planner. Each is an example for every goal that its video shows
later on (hindsight: whatever was reached later counts as what was aimed at), so that a single label makes several
examples. Frames without labels go into the scale of the inputs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.oracles.network.encoder import inputs_of
from studies.planning.arenas import Arena, Goal
from studies.planning.trials import drawn_labels
from studies.trained import squeezed_trunk

FEATURES, UNITS = 128, 128
UPDATES, BATCH, LR, WEIGHT_DECAY = 300, 32, 1e-3, 1e-3
DRAWS = 2  # sets of labels in a cell: fewer than the planner's, since each takes a training
SCALE_FROM = 2000  # frames that the scale of the inputs is taken from


class Cloned(nn.Module):
    """Pr(action | frame, goal): CRAFT's own layers, squeezed into a vector per frame, and two layers on top."""

    def __init__(self, obs_shape: tuple[int, ...], n_actions: int) -> None:
        super().__init__()
        self.trunk = squeezed_trunk(obs_shape, FEATURES)
        self.head = nn.Sequential(nn.Linear(2 * self.trunk.dim, UNITS), nn.ReLU(), nn.Linear(UNITS, n_actions))

    def forward(self, x: Tensor, goal: Tensor) -> Tensor:
        return self.head(torch.cat([self.trunk(x), self.trunk(goal)], dim=1))


def cloning_success(
    arena: Arena, goals: Sequence[Goal], labels: Sequence[int], seed: int, device: torch.device
) -> list[float]:
    """The share of goals reached for each number of labels, drawn as the planner's are."""
    reached = np.zeros((len(labels), len(goals)))
    for draw in range(DRAWS):
        rows, steps = drawn_labels(arena, max(labels), seed + draw)
        for i, k in enumerate(labels):
            network = clone(arena, rows[:k], steps[:k], seed + draw, device)
            reached[i, draw::DRAWS] = _tried(network, arena, goals[draw::DRAWS], device)
    return reached.mean(axis=1).tolist()


def clone(arena: Arena, rows: Any, steps: Any, seed: int, device: torch.device) -> Cloned:
    """The network after these labels: the actions of trajectories `rows` at `steps` (0 for h = 1).

    It gets a fixed number of updates, each on labels drawn at random, with a random later frame as the goal of each.
    """
    tau, actions = arena.data.train.tau, arena.data.train.truth.actions[rows, steps]
    some = np.random.default_rng(0).permutation(tau.n)[: SCALE_FROM // tau.H]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        network = Cloned(tau.obs_shape, arena.n_actions).to(device)
        network.trunk.fit_input(_tensor(np.concatenate([tau.at(h)[some] for h in range(1, tau.H + 1)]), device))
        optimiser = torch.optim.AdamW(network.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
        rng, videos = np.random.default_rng(seed), tau.rows(rows)
        for _ in range(UPDATES if len(rows) else 0):
            i = rng.integers(len(rows), size=min(BATCH, 4 * len(rows)))
            later = rng.integers(steps[i] + 1, tau.H)
            logits = network(_tensor(videos[i, steps[i]], device), _tensor(videos[i, later], device))
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(actions[i]).to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network.eval()


@torch.no_grad()
def _tried(network: Cloned, arena: Arena, goals: Sequence[Goal], device: torch.device) -> list[bool]:
    """Whether each goal was reached by taking the most likely action at every step."""
    env, reached = arena.make(), []
    for state, goal, seed in goals:
        x, _ = env.reset(seed=seed)
        while not env.over:
            x = env.step(int(network(_tensor(x[None], device), _tensor(goal[None], device)).argmax()))[0]
        reached.append(state in env.visited)
    return reached


def _tensor(x: NDArray[Any], device: torch.device) -> Tensor:
    return torch.cat(list(inputs_of(x, device)))
