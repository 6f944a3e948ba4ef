"""Atari games as records: which bytes of RAM hold the figure's place, and how actions move it.

The addresses are those of AtariARI (Anand et al. 2019, "Unsupervised State Representation Learning in Atari"; file
atariari/benchmark/ram_annotations.py of mila-iqia/atari-representation-learning). A further game is one more
`AtariGame`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

__all__ = ["FREEWAY", "SEAQUEST", "AtariGame", "Axis"]

SCREEN = (0, 210, 0, 160)  # top, bottom, left, right of an Atari screen


@dataclass(frozen=True)
class Axis:
    """One coordinate of the figure, in places: RAM `byte` reads first + place * size in the middle of a place.

    A negative `size` counts places against the byte. There are `n` places; what lies outside counts as the last one.
    """

    byte: int
    first: int
    size: int
    n: int

    def place(self, ram: NDArray[np.uint8]) -> int:
        nearest = int(np.floor((int(ram[self.byte]) - self.first) / self.size + 0.5))
        return min(max(nearest, 0), self.n - 1)


@dataclass(frozen=True)
class AtariGame:
    """A game, what is true in it, and how it is seen.

    game     its name at ALE: "Freeway" is ALE/Freeway-v5
    axes     where RAM holds the figure's place
    actions  ALE's name of each action, and by how many places it moves the figure along each axis
    chances  how often an agent without preferences takes each action
    frames   how long an action is held: as long as the figure needs for one place
    horizon  observations per episode
    phases   the numbers of idle frames of which one is drawn, to pass before an episode
    prelude  actions before the episode, after these frames: (ALE's name, frames)
    crop     top, bottom, left and right of what is seen of the screen
    factors  rows and columns of the screen in one pixel, which is their mean
    """

    game: str
    axes: tuple[Axis, ...]
    actions: dict[str, tuple[int, ...]]
    chances: tuple[float, ...]
    frames: int
    horizon: int
    phases: range
    prelude: tuple[tuple[str, int], ...] = ()
    crop: tuple[int, int, int, int] = SCREEN
    factors: tuple[int, int] = (5, 4)

    @property
    def n_states(self) -> int:
        return prod(axis.n for axis in self.axes)

    def state(self, ram: NDArray[np.uint8]) -> int:
        """The true state: the places on all axes as one number."""
        places = [axis.place(ram) for axis in self.axes]
        return int(np.ravel_multi_index(places, [axis.n for axis in self.axes]))

    def moves(self) -> NDArray[np.int64]:
        """Where each action leads from each state if nothing interferes, shape (n_states, |A|)."""
        sizes = [axis.n for axis in self.axes]
        places = np.stack(np.unravel_index(np.arange(self.n_states), sizes))  # (axes, n_states)
        reached = [
            np.clip(places + np.array(shift)[:, None], 0, np.array(sizes)[:, None] - 1)
            for shift in self.actions.values()
        ]
        return np.stack([np.ravel_multi_index(tuple(place), sizes) for place in reached], axis=1)


# The chicken moves one pixel of the screen a frame, from the kerb (RAM 6) upwards.
FREEWAY = AtariGame(
    game="Freeway",
    axes=(Axis(byte=14, first=6, size=4, n=43),),
    actions={"NOOP": (0,), "UP": (1,), "DOWN": (-1,)},
    chances=(0.25, 0.5, 0.25),
    frames=4,
    horizon=11,
    phases=range(1000),
)

# The submarine moves one pixel a frame. It dives to the sea bed before the episode, and cannot reach the surface in ten
# steps, where it would lose a life. It moves up and down only, so that it never turns round. The oxygen gauge, which
# shows how long it was under water, is cropped away, and so are score and lives.
SEAQUEST = AtariGame(
    game="Seaquest",
    axes=(Axis(byte=97, first=108, size=-6, n=17),),
    actions={"NOOP": (0,), "UP": (1,), "DOWN": (-1,)},
    chances=(0.25, 0.5, 0.25),
    frames=6,
    horizon=10,
    phases=range(200, 1200, 4),
    prelude=(("DOWN", 95),),
    crop=(44, 160, 0, 160),
    factors=(4, 4),
)
