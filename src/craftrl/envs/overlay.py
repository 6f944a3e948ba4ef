"""Distractors for any Gymnasium environment of images: figures that move by themselves, drawn over what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError, require

gymnasium = require("gymnasium", "envs")

TOO_DARK = 60  # figures are lighter than this in every channel's mean, so that they show on dark floors


class MovingFigures(gymnasium.Wrapper):  # type: ignore[name-defined]
    """Discs and boxes of many colours and sizes that walk over the images, whatever the agent does.

    n        how many
    sizes    the least and the greatest radius, in pixels
    speeds   the least and the greatest way per step, in pixels
    turn     the chance that a figure takes a new direction at a step: 0 for figures that only bounce off the borders,
             1 for random walks
    opacity  how much of a pixel is the figure's, above 0 and at most 1. What is below shows through, so that the
             agent's state can be read wherever it is, as the paper assumes. Figures of opacity 1 hide it now and then,
             and then no encoder can be right
    seed     draws shapes, colours and sizes, which stay as they are; where figures start and turn is drawn in every
             episode, from a generator of their own that the seed of `reset` starts

    So the figures' paths are correlated over time and independent of the actions.
    Images are uint8 of shape (rows, columns) or (rows, columns, channels).
    """

    def __init__(
        self,
        env: Any,
        n: int = 4,
        *,
        sizes: tuple[float, float] = (2, 4),
        speeds: tuple[float, float] = (1, 4),
        turn: float = 0.2,
        opacity: float = 0.7,
        seed: int = 0,
    ) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
            raise InvalidParameterError(
                f"MovingFigures draws on images of dtype uint8; the environment's observations are {space}; wrap it, "
                "for instance in gymnasium.wrappers.AddRenderObservation."
            )
        in_range = n >= 0 and 0 <= turn <= 1 and 0 < opacity <= 1
        if not (in_range and 0 < sizes[0] <= sizes[1] and 0 <= speeds[0] <= speeds[1]):
            raise InvalidParameterError(
                "Figures must have n >= 0, 0 <= turn <= 1, 0 < opacity <= 1, and sizes and speeds from least to "
                f"greatest; n = {n}, turn = {turn}, opacity = {opacity}, sizes = {sizes}, speeds = {speeds} were given."
            )
        self.turn, self.opacity = turn, opacity
        self.borders = np.array(space.shape[:2]) - 1.0
        look = np.random.default_rng(seed)
        self.colour = look.integers(TOO_DARK, 256, size=(n, *space.shape[2:]), dtype=np.uint8)
        self.radius = look.uniform(*sizes, size=n)
        self.speed = look.uniform(*speeds, size=n)
        self.round = look.random(n) < 0.5
        self.rng = np.random.default_rng()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        x, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self.rng = np.random.default_rng([seed, 1])  # not the stream that the environment itself may draw from
        self.place = self.rng.random((len(self.radius), 2)) * self.borders
        self.direction = self._directions()
        return self._drawn(x), info

    def step(self, action: Any) -> tuple[NDArray[np.uint8], Any, bool, bool, dict[str, Any]]:
        x, *others = self.env.step(action)
        self._move()
        return self._drawn(x), *others

    def _directions(self) -> NDArray[np.float64]:
        angle = self.rng.uniform(0, 2 * np.pi, len(self.radius))
        return np.stack([np.sin(angle), np.cos(angle)], axis=1)

    def _move(self) -> None:
        turns = self.rng.random(len(self.radius)) < self.turn
        self.direction = np.where(turns[:, None], self._directions(), self.direction)
        ahead = self.place + self.speed[:, None] * self.direction
        self.direction = np.where((ahead < 0) | (ahead > self.borders), -self.direction, self.direction)
        mirrored = np.where(ahead > self.borders, 2 * self.borders - ahead, np.abs(ahead))
        self.place = np.clip(mirrored, 0, self.borders)

    def _drawn(self, x: NDArray[np.uint8]) -> NDArray[np.uint8]:
        image = np.array(x)
        rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
        for (r, c), radius, is_round, colour in zip(self.place, self.radius, self.round, self.colour):
            down, across = np.abs(rows - r), np.abs(columns - c)
            inside = down**2 + across**2 <= radius**2 if is_round else np.maximum(down, across) <= 0.8 * radius
            mixed = self.opacity * colour + (1 - self.opacity) * image[inside]
            image[inside] = np.rint(mixed).astype(np.uint8)
        return image
