"""The pixel world: one figure on a grid is the agent, others walk by themselves, and the light is unsteady.

Paper: Section 2.2 (an Ex-BMDP whose observations are images)
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_whole
from craftrl.envs.exbmdp import ExBMDP, Ints
from craftrl.envs.numbers import check_seed, check_sizes
from craftrl.envs.pixels_layout import Layout, floor_plan
from craftrl.envs.pixels_policies import Style, separated_policies
from craftrl.envs.policies import MarkovPolicy

__all__ = ["MAX_WALKERS", "PixelsExBMDP"]

MAX_SIZE, MAX_PIXELS = 1000, 2**14
MAX_WALKERS = 8  # a cell has 3 x 3 spots, one for each figure, so that no figure ever hides another
N_BRIGHTNESS, N_PHASE = 4, 8  # levels of the flicker, and positions of the drifting stripes
GRAIN = 16  # pixel noise is uniform on 0..GRAIN-1
WALL = np.array([20, 20, 20], dtype=np.uint8)
PALETTE = np.array(
    [
        (230, 40, 40), (40, 200, 60), (60, 90, 235), (235, 220, 40), (220, 60, 220),
        (40, 215, 215), (235, 140, 30), (150, 70, 235), (235, 235, 235),
    ],
    dtype=np.uint8,
)  # fmt: skip


class PixelsExBMDP(ExBMDP):
    """RGB images, uint8, of a grid of cells that the agent walks from a fixed start.

    The agent's figure and every walker have a colour and a spot within the cell of their own, both drawn from
    `seed`: only its dynamics tell which figure is the agent. Walker i follows a lazy random walk with a
    laziness of its own. Stripes in the background drift, the light flickers, and every pixel has noise.

    The noise state e_h holds the walkers' cells, then the brightness, then the stripes' phase, as integers.
    The agent's cell and all of e_h can be read off every image (block assumption).

    Paper: Section 2.2
    """

    n_actions = 4
    obs_dtype: np.dtype[Any] = np.dtype(np.uint8)
    obs_high = 255.0

    def __init__(
        self,
        horizon: int = 10,
        size: int = 4,
        n_walkers: int = 4,
        *,
        layout: Layout = "open",
        pixels: int | None = None,
        seed: int = 0,
    ) -> None:
        check_sizes({"horizon": 2}, horizon=horizon)
        check_whole("size", size, 2, MAX_SIZE)
        check_whole("n_walkers", n_walkers, 0, MAX_WALKERS)
        pixels = 6 * size if pixels is None else pixels
        check_whole("pixels", pixels, 6 * size, MAX_PIXELS, "a cell needs six")
        check_seed(seed)
        self.H = int(horizon)
        self.size = int(size)
        self.n_walkers = int(n_walkers)
        self.pixels = pixels
        self.cell = pixels // size
        self.plan = floor_plan(self.size, layout)
        self.obs_shape = (pixels, pixels, 3)
        rng = np.random.default_rng(seed)
        spots, colours = rng.permutation(9), rng.permutation(9)
        self.spot, self.colour = spots[: n_walkers + 1], PALETTE[colours[: n_walkers + 1]]
        self.laziness = rng.uniform(0.0, 0.6, n_walkers)
        self.noise_high = np.array([self.plan.n_cells - 1] * self.n_walkers + [N_BRIGHTNESS - 1, N_PHASE - 1])

    # -- the latent state ----------------------------------------------------------------------------------

    def n_states(self, h: int) -> int:
        return 1 if h == 1 else self.plan.n_cells

    def T(self, h: int) -> Ints:
        return self.plan.moves[: self.n_states(h)]

    def policies(
        self, n_agents: int = 2, alpha: float = 1.0, seed: int = 0, style: Style = "cells"
    ) -> tuple[MarkovPolicy, ...]:
        """Two to four agents whose preferences differ in every cell by alpha; see `separated_policies`."""
        return separated_policies(self.plan, self.H, n_agents, alpha, seed, style)

    # -- the noise -----------------------------------------------------------------------------------------

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        e = np.empty((n, self.n_walkers + 2), dtype=np.int64)
        e[:, : self.n_walkers] = rng.integers(self.plan.n_cells, size=(n, self.n_walkers))
        e[:, -2] = rng.integers(N_BRIGHTNESS, size=n)
        e[:, -1] = rng.integers(N_PHASE, size=n)
        return e

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.int64]:
        e = e_h.copy()
        n = len(e)
        walkers = e_h[:, : self.n_walkers]
        stepped = self.plan.moves[walkers, rng.integers(4, size=walkers.shape)]
        e[:, : self.n_walkers] = np.where(rng.random(walkers.shape) < self.laziness, walkers, stepped)
        e[:, -2] = np.clip(e_h[:, -2] + rng.integers(-1, 2, size=n), 0, N_BRIGHTNESS - 1)
        e[:, -1] = (e_h[:, -1] + rng.integers(0, 2, size=n)) % N_PHASE
        return e

    def noise_marginal(self, h: int) -> NDArray[np.floating]:
        """Pr(walker i is in cell c), shape (n_walkers, n_cells): uniform at h = 1, and uniform for ever.

        Moves between cells are as likely as their reverses, so the uniform distribution stays.
        """
        return np.full((self.n_walkers, self.plan.n_cells), 1 / self.plan.n_cells)

    # -- the images ----------------------------------------------------------------------------------------

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        x = self.backgrounds[e_h[:, -2], e_h[:, -1]]
        rows = np.arange(len(x))[:, None]
        flat = x.reshape(len(x), -1, 3)
        flat[rows, self.figure_pixels[0, s_h]] = self.colour[0]
        for i in range(self.n_walkers):
            flat[rows, self.figure_pixels[i + 1, e_h[:, i]]] = self.colour[i + 1]
        grain = np.frombuffer(rng.bytes(x.size), dtype=np.uint8) & (GRAIN - 1)
        return x + grain.reshape(x.shape)

    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        return self.find_figure(x_h, 0)

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[np.int64]:
        e = np.empty((len(x_h), self.n_walkers + 2), dtype=np.int64)
        for i in range(self.n_walkers):
            e[:, i] = self.find_figure(x_h, i + 1)
        e[:, -2], e[:, -1] = self._find_background(x_h)
        return e

    def find_figure(self, x_h: NDArray[Any], figure: int) -> Ints:
        """The cell that holds figure 0 (the agent) or walker `figure`, shape (n,)."""
        check_whole("figure", figure, 0, self.n_walkers)
        flat = x_h.reshape(len(x_h), -1, 3)
        spots = flat[:, self.figure_pixels[figure]].astype(np.int16)  # (n, n_cells, pixels of the spot, 3)
        distance = np.abs(spots - self.colour[figure] - GRAIN // 2).sum(axis=(2, 3))
        return distance.argmin(axis=1)

    def _find_background(self, x_h: NDArray[Any]) -> tuple[Ints, Ints]:
        """Brightness and phase: of all backgrounds, the one that most pixels agree with up to noise."""
        flat = x_h.reshape(len(x_h), -1).astype(np.int16)
        agreeing = [
            ((flat - b.ravel() >= 0) & (flat - b.ravel() < GRAIN)).sum(axis=1)
            for b in self.backgrounds.reshape(N_BRIGHTNESS * N_PHASE, -1).astype(np.int16)
        ]
        return np.divmod(np.argmax(agreeing, axis=0), N_PHASE)

    @cached_property
    def backgrounds(self) -> NDArray[np.uint8]:
        """Every background without figures and noise, shape (N_BRIGHTNESS, N_PHASE, pixels, pixels, 3)."""
        y, x = np.mgrid[: self.pixels, : self.pixels] / self.pixels
        phase = np.arange(N_PHASE)[:, None, None] / N_PHASE
        stripes = np.sin(2 * np.pi * (1.5 * x + 0.5 * y + phase))
        level = np.linspace(60, 130, N_BRIGHTNESS)[:, None, None, None]
        tint = np.array([1.0, 0.9, 0.8])
        image = ((level + 25 * stripes)[..., None] * tint).astype(np.uint8)
        wall = np.kron(self.plan.walls, np.ones((self.cell, self.cell), dtype=bool))
        image[:, :, self.margin : self.margin + len(wall), self.margin : self.margin + len(wall)][:, :, wall] = WALL
        return image

    @property
    def margin(self) -> int:
        """Pixels left over at the top and on the left when the cells do not fill the image."""
        return (self.pixels - self.cell * self.size) // 2

    @cached_property
    def figure_pixels(self) -> Ints:
        """Where each figure is drawn in each cell: flat pixel indices, shape (n_walkers+1, n_cells, pixels)."""
        side = self.cell // 3
        dy, dx = np.divmod(np.arange(side * side), side)
        spot_y, spot_x = np.divmod(self.spot, 3)
        y = self.margin + self.plan.cells[None, :, 0, None] * self.cell + spot_y[:, None, None] * side + dy
        x = self.margin + self.plan.cells[None, :, 1, None] * self.cell + spot_x[:, None, None] * side + dx
        return y * self.pixels + x
