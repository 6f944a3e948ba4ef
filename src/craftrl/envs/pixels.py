"""The pixel world: one figure on a grid is the agent, others walk by themselves, and the light is unsteady.

Paper: Section 2.2 (an Ex-BMDP whose observations are images)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_choice, check_whole
from craftrl.arrays import Floats, Ints
from craftrl.envs.agents import DRAWS, MarkovPolicy, check_contrast, shared_equally, tilted
from craftrl.envs.exbmdp import MAX_STEPS, ExBMDP, check_seed
from craftrl.errors import InvalidParameterError

Layout = Literal["open", "rooms"]

MAX_SIZE, MAX_PIXELS = 1000, 2**14
MAX_WALKERS = 8  # a cell has 3 x 3 spots, one for each figure, so that no figure ever hides another
N_BRIGHTNESS, N_PHASE = 4, 8  # levels of the flicker, and positions of the drifting stripes
GRAIN = 16  # pixel noise is uniform on 0..GRAIN-1
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])  # up, down, left, right
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
        check_whole("horizon", horizon, 2, MAX_STEPS)
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

    # -- the latent state ----------------------------------------------------------------------------------

    def n_states(self, h: int) -> int:
        return 1 if h == 1 else self.plan.n_cells

    def T(self, h: int) -> Ints:
        return self.plan.moves[: self.n_states(h)]

    def policies(self, n_agents: int = 2, alpha: float = 1.0, seed: int = 0) -> tuple[MarkovPolicy, ...]:
        """Two to four agents whose log-odds of any two successors of a cell differ by alpha or more.

        All share a base that spreads out over the grid. Agent k chooses s' after s with probability proportional to
        base(s'|s) exp(+- alpha rank(s, s') / 2), by a ranking that is drawn for every cell. Agents 1 and 3 use the
        rankings of agents 0 and 2 with the sign reversed, so that the log-odds of agents 0 and 1 are alpha apart for
        successors of neighbouring rank.

        Paper: Section 2.5, Equations 4-5 (coverage and difference of policies)
        """
        check_whole("n_agents", n_agents, 2, 4)
        check_seed(seed)
        check_contrast(alpha)
        base, rng = spreading_policy(self.plan, self.H), np.random.default_rng(seed)

        def draw() -> tuple[float, list[Floats]]:
            """Pr(s_{h+1} | s_h) of every agent, and how often their rarest pair of cells is visited."""
            rankings = [_rankings(self.plan, rng) for _ in range(2)]
            tilts = [sign * float(alpha) / 2 * rankings[k // 2] for k, sign in zip(range(n_agents), (1, -1, 1, -1))]
            successors = [tilted(base, tilt) for tilt in tilts]
            shares = np.stack([pair_shares(table) for table in successors])
            return float(shares.min(axis=0)[shares.sum(axis=0) > 0].min()), successors

        _, best = max((draw() for _ in range(DRAWS)), key=lambda drawn: drawn[0])
        tables = ([shared_equally(table, self.plan.moves) for table in successors] for successors in best)
        return tuple(MarkovPolicy([first[:1], *others]) for first, *others in tables)

    # -- the noise -----------------------------------------------------------------------------------------

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        walkers = rng.integers(self.plan.n_cells, size=(n, self.n_walkers))
        return np.column_stack([walkers, rng.integers(N_BRIGHTNESS, size=n), rng.integers(N_PHASE, size=n)])

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.int64]:
        walkers, n = e_h[:, : self.n_walkers], len(e_h)
        stepped = self.plan.moves[walkers, rng.integers(4, size=walkers.shape)]
        walkers = np.where(rng.random(walkers.shape) < self.laziness, walkers, stepped)
        brightness = np.clip(e_h[:, -2] + rng.integers(-1, 2, size=n), 0, N_BRIGHTNESS - 1)
        return np.column_stack([walkers, brightness, (e_h[:, -1] + rng.integers(0, 2, size=n)) % N_PHASE])

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
        walkers = [self.find_figure(x_h, i + 1) for i in range(self.n_walkers)]
        return np.stack([*walkers, *self._find_background(x_h)], axis=1)

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


@dataclass(frozen=True)
class FloorPlan:
    """Cells numbered from the start cell, which is 0; the others follow in reading order.

    cells   (n_cells, 2) row and column of each cell
    moves   (n_cells, 4) the cell that each move leads to; a move into a wall stays where it is
    walls   (size, size) whether there is a wall
    """

    cells: NDArray[np.int64]
    moves: NDArray[np.int64]
    walls: NDArray[np.bool_]

    @property
    def n_cells(self) -> int:
        return len(self.cells)

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        """(n_cells, n_cells): which cell can follow which."""
        follows = np.zeros((self.n_cells, self.n_cells), dtype=bool)
        follows[np.arange(self.n_cells)[:, None], self.moves] = True
        return follows


def floor_plan(size: int, layout: Layout) -> FloorPlan:
    """An open square, or four rooms of (size-1)/2 cells a side with one door in each shared wall."""
    check_choice("layout", layout, ("open", "rooms"))
    walls = np.zeros((size, size), dtype=bool)
    middle = (size - 1) // 2
    start = (middle, middle)
    if layout == "rooms":
        if size < 5 or size % 2 == 0:
            raise InvalidParameterError(
                f"Four rooms need an odd size of at least 5; size = {size} was given; take 5, 7 or 9."
            )
        walls[middle, :] = walls[:, middle] = True
        door = middle // 2
        doors = [(middle, door), (middle, size - 1 - door), (door, middle), (size - 1 - door, middle)]
        walls[tuple(np.transpose(doors))] = False
        start = doors[0]
    free = np.argwhere(~walls)
    cells = np.concatenate([[start], free[(free != start).any(axis=1)]])
    return FloorPlan(cells, grid_moves(cells), walls)


def grid_moves(cells: NDArray[np.integer]) -> NDArray[np.int64]:
    """The number of the cell that each move - up, down, left, right - leads to, shape (n_cells, 4).

    `cells` (n_cells, 2) are the rows and columns of the cells one can stand in, all of them, numbered as they come. All
    else is wall: a move into a wall stays where it is.
    """
    number = np.full(cells.max(axis=0) + 3, -1)  # with a wall all round
    number[tuple(cells.T + 1)] = np.arange(len(cells))
    target = number[tuple(np.moveaxis(cells[:, None] + MOVES + 1, -1, 0))]
    return np.where(target < 0, np.arange(len(cells))[:, None], target)


def spreading_policy(plan: FloorPlan, H: int, rounds: int = 20) -> Floats:
    """Pr(s_{h+1} | s_h) of a walk that spreads as evenly as it can, shape (H-1, n_cells, n_cells).

    At each step the flow between neighbouring cells is scaled towards equal shares of all cells that can be
    reached, by a few rounds of Sinkhorn's iteration, and mixed with a uniform choice of successor.
    """
    uniform = plan.adjacency / plan.adjacency.sum(axis=1, keepdims=True)
    occupied = np.eye(1, plan.n_cells)[0]
    tables = []
    for _ in range(H - 1):
        flow = occupied[:, None] * uniform
        for _ in range(rounds):
            flow = _divided(flow, flow.sum(axis=0, keepdims=True), 0.0)
            flow = _divided(flow * occupied[:, None], flow.sum(axis=1, keepdims=True), 0.0)
        spread = _divided(flow, occupied[:, None], uniform)
        tables.append(0.5 * spread + 0.5 * uniform)
        occupied = occupied @ tables[-1]
    return np.stack(tables)


def _divided(flow: Floats, total: Floats, otherwise: Floats | float) -> Floats:
    """flow / total, and something else where that is 0 / 0."""
    return np.divide(flow, total, out=np.full(flow.shape, otherwise), where=total > 0)


def pair_shares(successor: Floats) -> Floats:
    """Pr(s_h, s_{h+1}) under Pr(s_{h+1} | s_h) of shape (H-1, n, n), starting in state 0; same shape."""
    occupied, shares = np.eye(1, successor.shape[1])[0], []
    for table in successor:
        shares.append(occupied[:, None] * table)
        occupied = shares[-1].sum(axis=0)
    return np.stack(shares)


def _rankings(plan: FloorPlan, rng: np.random.Generator) -> Floats:
    """Ranks of each cell's successors, centred about 0; shape (n_cells, n_cells)."""
    ranks = np.zeros((plan.n_cells, plan.n_cells))
    rng.permutation(5)  # not used: committed rows are of agents that were drawn after it
    for s, successors in enumerate(plan.adjacency):
        found = np.flatnonzero(successors)
        ranks[s, found] = rng.permutation(len(found)) - (len(found) - 1) / 2
    return ranks
