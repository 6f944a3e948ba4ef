"""Policies for the pixel world: different in every cell, and yet everywhere together.

CRAFT asks for two things that pull apart: the agents must prefer different successors in every state (alpha),
and both must visit every pair of states often enough (eta, nu). So all agents share a base policy that spreads out over
the grid, and each tilts it by a ranking of the successors. With style "cells" the ranking is drawn anew for every
cell, so that no agent drifts anywhere in particular. With style "compass" there is one ranking of the directions for
all cells, and the agents swap it at every step for the same reason: then the way of moving tells the agents apart, and
the place does not, which is hard on learners that only tell agents apart.

Paper: Section 2.5, Equations 4-5 (coverage and difference of policies)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_choice, check_whole
from craftrl.envs.numbers import check_contrast, check_seed
from craftrl.envs.pixels_layout import FloorPlan
from craftrl.envs.policies import MarkovPolicy, tilted

__all__ = ["Style", "pair_shares", "separated_policies", "spreading_policy"]

Floats = NDArray[np.float64]
Style = Literal["cells", "compass"]
DRAWS = 64  # rankings tried; the one with the best coverage is kept


def separated_policies(
    plan: FloorPlan, H: int, n_agents: int = 2, alpha: float = 1.0, seed: int = 0, style: Style = "cells"
) -> tuple[MarkovPolicy, ...]:
    """Policies of 2..4 agents whose log-odds of any two successors of a cell differ by alpha or more.

    Agent k chooses s' after s with probability proportional to base(s'|s) exp(+- alpha rank(s, s') / 2). Agents
    1 and 3 use the rankings of agents 0 and 2 with the sign reversed, so that the log-odds of agents 0 and 1
    are alpha apart for successors of neighbouring rank.
    """
    check_whole("n_agents", n_agents, 2, 4)
    check_choice("style", style, ("cells", "compass"))
    check_seed(seed)
    check_contrast(alpha)
    alpha = float(alpha)
    base = spreading_policy(plan, H)
    rng = np.random.default_rng(seed)
    best: tuple[float, list[Floats]] | None = None
    for _ in range(DRAWS):
        rankings = [_rankings(plan, H, style, rng) for _ in range(2)]
        tilts = [sign * alpha / 2 * rankings[k // 2] for k, sign in zip(range(n_agents), (1, -1, 1, -1))]
        successors = [tilted(base, tilt) for tilt in tilts]
        shares = np.stack([pair_shares(table) for table in successors])
        reached = shares.sum(axis=0) > 0
        coverage = float(shares.min(axis=0)[reached].min())
        if best is None or coverage > best[0]:
            best = coverage, successors
    assert best is not None
    return tuple(_as_policy(plan, table) for table in best[1])


def spreading_policy(plan: FloorPlan, H: int, rounds: int = 20) -> Floats:
    """Pr(s_{h+1} | s_h) of a walk that spreads as evenly as it can, shape (H-1, n_cells, n_cells).

    At each step the flow between neighbouring cells is scaled towards equal shares of all cells that can be
    reached, by a few rounds of Sinkhorn's iteration, and mixed with a uniform choice of successor.
    """
    uniform = plan.adjacency / plan.adjacency.sum(axis=1, keepdims=True)
    occupied = np.zeros(plan.n_cells)
    occupied[0] = 1.0
    tables = []
    for _ in range(H - 1):
        flow = occupied[:, None] * uniform
        for _ in range(rounds):
            arrived = flow.sum(axis=0, keepdims=True)
            flow = np.divide(flow, arrived, out=np.zeros_like(flow), where=arrived > 0)
            left = flow.sum(axis=1, keepdims=True)
            flow = np.divide(flow * occupied[:, None], left, out=np.zeros_like(flow), where=left > 0)
        spread = np.divide(flow, occupied[:, None], out=uniform.copy(), where=occupied[:, None] > 0)
        tables.append(0.5 * spread + 0.5 * uniform)
        occupied = occupied @ tables[-1]
    return np.stack(tables)


def pair_shares(successor: Floats) -> Floats:
    """Pr(s_h, s_{h+1}) under Pr(s_{h+1} | s_h) of shape (H-1, n, n), starting in state 0; same shape."""
    occupied = np.zeros(successor.shape[1])
    occupied[0] = 1.0
    shares = []
    for table in successor:
        shares.append(occupied[:, None] * table)
        occupied = shares[-1].sum(axis=0)
    return np.stack(shares)


def _rankings(plan: FloorPlan, H: int, style: Style, rng: np.random.Generator) -> Floats:
    """Ranks of each cell's successors, centred about 0; shape (H-1, n_cells, n_cells)."""
    ranks = np.zeros((plan.n_cells, plan.n_cells))
    order = rng.permutation(5)  # of the four directions and of staying
    for s, successors in enumerate(plan.adjacency):
        found = np.flatnonzero(successors)
        if style == "cells":
            ranks[s, found] = rng.permutation(len(found)) - (len(found) - 1) / 2
        else:
            first_move = [int(np.argmax(plan.moves[s] == t)) if t != s else 4 for t in found]
            ranks[s, found] = order[first_move] - 2
    sign = (-1.0) ** np.arange(H - 1) if style == "compass" else np.ones(H - 1)
    return sign[:, None, None] * ranks


def _as_policy(plan: FloorPlan, successor: Floats) -> MarkovPolicy:
    """Actions that lead to the same cell share its probability equally."""
    same = (plan.moves[:, :, None] == plan.moves[:, None, :]).sum(axis=2)  # (n_cells, 4)
    rows = np.arange(plan.n_cells)[:, None]
    tables = [table[rows, plan.moves] / same for table in successor]
    return MarkovPolicy([tables[0][:1], *tables[1:]])
