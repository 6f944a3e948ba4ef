"""The recordings of the study: one small file for each world, so that learning needs none of the games.

    python -m studies.games.data DIR [WORLD ...]

collects what is missing in DIR. A file holds the frames as what differs from the middle frame (the median of each
pixel), which is mostly zero, compressed by xz: a few percent of the frames' own size.
"""

from __future__ import annotations

import io
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_path
from craftrl.data.files import written_whole
from craftrl.data.inputs import as_dataset
from craftrl.envs import Collection, GroundTruth, GymWorld, collect
from craftrl.errors import InvalidDataError
from studies.games.spec import WORLDS

__all__ = ["HELD_OUT", "collect_missing", "read", "world_of", "write"]

EPISODES, HELD_OUT = 7000, 1000  # of each agent: all, and the last of them, which no technique is trained on
SAMPLE = 2000  # trajectories whose pixels make the middle frame


def collect_missing(folder: str, worlds: Sequence[str], workers: int = 1, progress: bool = False) -> None:
    """Play the games whose files are not there yet; seed 0 draws their agents and the episodes."""
    check_path("The folder of recordings", folder)
    for name in worlds:
        path = file_of(folder, name)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        world = world_of(name)
        write(path, collect(world, world.agents, EPISODES, 0, workers=workers, progress=progress))


def world_of(name: str) -> GymWorld:
    """One of `WORLDS`, with its agents; each needs the package of its own game alone."""
    if name == "minigrid":
        from studies.worlds.minigrid import minigrid_world

        return minigrid_world()
    if name == "doom":
        from studies.worlds.doom import doom_world

        return doom_world()
    from studies.worlds import atari

    return atari.freeway() if name == "freeway" else atari.seaquest()


def file_of(folder: str, world: str) -> Path:
    return Path(folder) / f"{world}.npz.xz"


def write(path: Path, played: Collection) -> None:
    """Frames less the middle frame, trajectory by trajectory, with agents and ground truth."""
    tau, truth = played.tau, played.truth
    if not tau.all_present or tau.dtype != np.uint8:
        raise InvalidDataError(f"The study needs images of type uint8 in episodes of equal length; {tau} was given.")
    x = tau.rows(np.arange(tau.n))
    middle = np.median(x[:: max(1, tau.n // SAMPLE)], axis=(0, 1)).astype(np.uint8)
    arrays = {"middle": middle, "agent": tau.agent.astype(np.uint8), "states": truth.states.astype(np.int16)}
    with written_whole(path, "recording") as temporary, lzma.open(temporary, "wb", preset=4) as file:
        np.savez(file, difference=x - middle, actions=truth.actions.astype(np.int16), **arrays)


def read(folder: str, world: str, n: int) -> tuple[Collection, Collection]:
    """The first n episodes of each agent to learn from, and the last HELD_OUT, a quarter at most, to score on."""
    path = file_of(folder, world)
    try:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
            parts: dict[str, NDArray[Any]] = dict(arrays)
    except (OSError, lzma.LZMAError, ValueError, KeyError) as error:
        raise InvalidDataError(
            f"{path} must be a recording of this study; it is not ({error}); collect it again."
        ) from error
    of_agent = [np.flatnonzero(parts["agent"] == k) for k in np.unique(parts["agent"])]
    held = min(HELD_OUT, len(of_agent[0]) // 4)
    if n > len(of_agent[0]) - held:
        raise InvalidDataError(
            f"n must be at most {len(of_agent[0]) - held}, since {held} of the episodes are held out; {n} was given."
        )
    return tuple(  # type: ignore[return-value]
        _part(parts, np.concatenate(rows)) for rows in ([r[:n] for r in of_agent], [r[-held:] for r in of_agent])
    )


def _part(parts: dict[str, NDArray[Any]], rows: NDArray[np.integer]) -> Collection:
    x = parts["difference"][rows] + parts["middle"]
    tau = as_dataset(x, parts["agent"][rows].astype(np.int64)).tau
    return Collection(tau, GroundTruth(parts["states"][rows].astype(np.int64), parts["actions"][rows].astype(np.int64)))


if __name__ == "__main__":
    collect_missing(sys.argv[1], sys.argv[2:] or WORLDS, progress=True)
