"""The recordings of the study: a dataset for each world, so that learning needs none of the games.

    python -m studies.games.data DIR [WORLD ...]

collects what is missing in DIR.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_path
from craftrl.data import TrajectoryDataset, read_actions, read_true_states
from craftrl.envs import Collection, GroundTruth, GymWorld, record
from craftrl.errors import InvalidDataError

WORLDS = ("freeway", "seaquest", "minigrid", "doom")
DATA = "recordings of games; what is missing is recorded first, which needs the extra studies (default: %(default)s)"
EPISODES, HELD_OUT = 7000, 1000  # of each agent: all, and the last of them, which no technique is trained on


def collect_missing(folder: str, worlds: Sequence[str], workers: int = 1, progress: bool = False) -> None:
    """Play the games that are not recorded yet; seed 0 draws their agents and the episodes."""
    check_path("The folder of recordings", folder)
    for name in worlds:
        if not (Path(folder) / name).exists():
            world = world_of(name)
            record(world, world.agents, EPISODES, Path(folder) / name, 0, workers=workers, progress=progress)


def world_of(name: str) -> GymWorld:
    """One of `WORLDS`, with its agents; each needs the package of its own game alone."""
    if name == "minigrid":
        from studies.worlds.minigrid import minigrid_world

        return minigrid_world()
    if name == "doom":
        from studies.worlds.doom import doom_world

        return doom_world()
    from studies.worlds.atari import FREEWAY, SEAQUEST, atari_world

    return atari_world({"freeway": FREEWAY, "seaquest": SEAQUEST}[name])


def read(folder: str, world: str, n: int) -> tuple[Collection, Collection]:
    """The first n episodes of each agent to learn from, and the last HELD_OUT, a quarter at most, to score on."""
    path = Path(folder) / world
    tau, states = TrajectoryDataset.open(path), read_true_states(path)
    actions = np.concatenate([np.stack(episodes) for episodes in read_actions(path)]).astype(np.int64)
    of_agent = [np.flatnonzero(tau.agent == k) for k in range(tau.K)]
    held = min(HELD_OUT, len(of_agent[0]) // 4)
    if n > len(of_agent[0]) - held:
        raise InvalidDataError(
            f"n must be at most {len(of_agent[0]) - held}, since {held} of the episodes are held out; {n} was given."
        )

    def part(rows: list[NDArray[np.integer]]) -> Collection:
        chosen = np.concatenate(rows)
        return Collection(tau.select(chosen), GroundTruth(states[chosen], actions[chosen]))

    return part([rows[:n] for rows in of_agent]), part([rows[-held:] for rows in of_agent])


if __name__ == "__main__":
    collect_missing(sys.argv[1], sys.argv[2:] or WORLDS, progress=True)
