"""In which order trajectories are read from disk, so that minibatches are well mixed and no read is wasted.

Trajectories lie grouped by agent, and reading them one by one is slow. They are read in blocks of neighbours instead,
many blocks from all over the file at a time: a window. Windows hold the agents in the shares that the whole dataset
has, a window's trajectories are shuffled, and while one window is in use the next one is read. The order depends on
the seed, the layout and the rows alone, never on the speed of anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError

__all__ = ["Layout", "Plan"]

Ints = NDArray[np.integer]
READ_BYTES = 256 * 2**10  # from here on a read costs little more than its bytes
MANY, ENOUGH = 64, 8  # blocks in a window: as many as that, or as few, where smaller ones would be decoded in vain


@dataclass(frozen=True)
class Plan:
    """Which blocks each window holds, the rows of each minibatch, and the first and last window that it needs.

    A minibatch needs one window or two that follow each other, for two are in memory at a time.
    """

    windows: list[Ints]
    minibatches: list[Ints]
    needs: list[tuple[int, int]]

    def part(self, mine: NDArray[np.bool_], layout: Layout) -> Plan:
        """Of the same minibatches and windows only what lies in some blocks: `mine` says which of all.

        A minibatch may be left with nothing, and needs nothing new then; windows with nothing in them are left out.
        """
        windows = [kept for blocks in self.windows if len(kept := blocks[mine[blocks]])]
        window = layout._window_of(windows)
        plan = Plan(windows, [rows[mine[layout.blocks_of(rows)]] for rows in self.minibatches], [])
        now = -1
        for rows in plan.minibatches:
            needed = window[layout.blocks_of(rows[[0, -1]])] if len(rows) else (now, now)
            now = int(needed[1])
            plan.needs.append((int(needed[0]), now))
        return plan


@dataclass(frozen=True)
class Layout:
    """Blocks of neighbouring trajectories of one agent: block b is starts[b]..starts[b+1]-1.

    `window` is how many trajectories may be held in each of two windows.
    """

    starts: Ints
    agent: Ints
    window: int

    @classmethod
    def within(cls, n_bytes: int, row_bytes: int, H: int, agents: Ints, together: int = 1, readers: int = 1) -> Layout:
        """For n_bytes of memory, observations of row_bytes, and stores that decode so many trajectories together.

        Each of the readers may hold a block beside the two windows.
        """
        room = n_bytes // (row_bytes * H)
        if together > 1:
            parts = -(-together // max(1, room // (2 * ENOUGH)))  # of what is decoded together; one, with enough room
            size = -(-together // parts)
        else:
            size = together = max(1, min(-(-READ_BYTES // row_bytes), room // (2 * MANY)))
        window = (room - readers * size) // 2
        if window < 2:
            raise InvalidParameterError(
                f"memory must allow for some trajectories at a time, {(4 + readers) * row_bytes * H} bytes at least; "
                f"{n_bytes} bytes were given; raise Training(memory=...)."
            )
        grid = (np.arange(0, len(agents), together)[:, None] + np.arange(0, together, size)).ravel()
        starts = np.union1d(grid[grid < len(agents)], np.flatnonzero(np.diff(agents, prepend=-1)))
        return cls(np.append(starts, len(agents)), agents[starts], window)

    def blocks_of(self, rows: Ints) -> Ints:
        """The block of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def owners(self, world: int) -> Ints:
        """Which of so many ranks reads each block, always the same: of every agent's blocks an equal run of neighbours.

        So a rank reads files, or long parts of files, of its own, and its machine needs to keep no others at hand.
        """
        place = np.arange(len(self.agent)) - np.searchsorted(self.agent, self.agent)
        return (place * world // np.bincount(self.agent)[self.agent] + self.agent) % world

    def sizes(self, blocks: Ints) -> Ints:
        return self.starts[blocks + 1] - self.starts[blocks]

    def shuffled(self, rows: Ints, n_minibatches: int, rng: np.random.Generator) -> Plan:
        """Rows in a random order, in minibatches of equal size."""
        block = self.blocks_of(rows)
        windows = self._windows(self._interleaved(np.unique(block), rng), self.window)
        window = self._window_of(windows)[block]
        order = rng.permutation(len(rows))
        order = order[np.argsort(window[order], kind="stable")]
        plan = Plan(windows, np.array_split(rows[order], n_minibatches), [])
        for part in np.array_split(window[order], n_minibatches):
            plan.needs.append((int(part[0]), int(part[-1])))
            if part[-1] - part[0] > 1:
                raise InvalidParameterError(
                    f"memory must allow for several minibatches; with this allowance {self.window} trajectories are "
                    f"held at a time, and minibatches have {len(part)}; raise Training(memory=...) or lower batch."
                )
        return plan

    def in_order(self, rows: Ints, size: int, window: int | None = None) -> Plan:
        """Rows in the order of the file, in minibatches of at most `size`; windows are small, so that it soon begins.

        `window` is how many trajectories each of the two may hold, where that is not the layout's own number.
        """
        rows, most = np.sort(rows), window or self.window
        block = self.blocks_of(rows)
        blocks = np.unique(block)
        windows = self._windows(blocks, min(most, max(most // 8, size + int(self.sizes(blocks).max()))))
        plan = Plan(windows, [], [])
        parts = np.split(rows, np.searchsorted(self._window_of(windows)[block], np.arange(1, len(windows))))
        for w, part in enumerate(parts):
            chunks = np.array_split(part, -(-len(part) // size))
            plan.minibatches.extend(chunks)
            plan.needs.extend([(w, w)] * len(chunks))
        return plan

    def split(self, rows: Ints, held_out: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Training and held-out rows: neighbours are held out together, so that neither part is read in vain."""
        parts: tuple[list[Ints], list[Ints]] = [], []
        block = self.blocks_of(rows)
        place = rng.permutation(len(self.agent))[block]
        for k in np.unique(self.agent[block]):
            own = np.flatnonzero(self.agent[block] == k)
            mine = rows[own[np.lexsort((rows[own], place[own]))]]
            held = min(max(1, round(held_out * len(mine))), len(mine) - 1)
            parts[0].append(mine[held:])
            parts[1].append(mine[:held])
        return np.concatenate(parts[0]), np.concatenate(parts[1])

    def _interleaved(self, blocks: Ints, rng: np.random.Generator) -> Ints:
        """Blocks in a random order in which every stretch has the agents in equal shares of their own."""
        at = np.empty(len(blocks))
        for k in np.unique(self.agent[blocks]):
            mine = np.flatnonzero(self.agent[blocks] == k)
            at[mine] = (rng.permutation(len(mine)) + rng.random()) / len(mine)
        return blocks[np.argsort(at, kind="stable")]

    def _windows(self, blocks: Ints, most: int) -> list[Ints]:
        """Blocks in this order, in windows of about equal size and at most so many trajectories."""
        sizes = self.sizes(blocks)
        total, largest = int(sizes.sum()), int(sizes.max())
        n = -(-total // max(1, most - largest + 1))
        window = (np.cumsum(sizes) - 1) * n // total
        return [part for part in np.split(blocks, np.searchsorted(window, np.arange(1, n))) if len(part)]

    def _window_of(self, windows: list[Ints]) -> Ints:
        """The window of each block, -1 for those in none."""
        out = np.full(len(self.agent), -1)
        for w, blocks in enumerate(windows):
            out[blocks] = w
        return out
