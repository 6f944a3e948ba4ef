"""The test of one start state for finite classes, by counting.

If all trajectories begin in one state, some encoder phi of x_2 holds all that (x_1, x_2) tell of the agent. Which
one is not known, and a wrong one must not raise an alarm: with phi(x_2) = s_2 XOR e, noise in x_1 *does* tell of the
agent. So the best pair of encoders, chosen and trained on one half of the trajectories, is compared on the other half
with *every* phi, each at its best on that very half. The ratio of the two likelihoods exceeds 1/p with probability p
at most if there is one start, whatever phi is the right one, in any amount of data (the split likelihood ratio of
Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020); both halves take their turn, and the two ratios are averaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from craftrl.core.evidence import LEVEL, shares_loss, table_p_value
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, renamed, tally
from craftrl.core.starts import StartTest
from craftrl.engine.counting import pair_counts
from craftrl.engine.packing import PackedStep
from craftrl.oracles.chain import shortest_tiled

if TYPE_CHECKING:
    from craftrl.oracles.counting import PreparedCounting

__all__ = ["counted_start_test", "counted_starts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
GRID = Grid.from_bounds(0.5, 0.05)  # on which the pair of encoders is chosen
SEED = 0  # of the halves
PRIOR_WEIGHTS = (1.0, 4.0, 16.0, 64.0)  # trajectories that x_2's word alone counts for, against a cell's own


def counted_start_test(prepared: PreparedCounting) -> StartTest:
    """Both tests on the values of all encoders of steps 1 and 2."""
    first, second = prepared.step(1), prepared.step(2)
    turns = [_split_ratio(prepared, first, second, turn) for turn in (0, 1)]
    log_ratio = float(logsumexp([ratio for ratio, _ in turns]) - np.log(2))
    n = max(int(second.totals.sum()), 1)
    return StartTest(
        p_first=_first_p_value(first),
        p_beyond=float(np.exp(min(-log_ratio, 0.0))),
        added=sum(ratio for ratio, _ in turns) / n,
        told=sum(told for _, told in turns) / n,
    )


def counted_starts(prepared: PreparedCounting) -> Labels:
    """The values (n,) of the encoder of x_1 with which the best chain of encoders over all steps begins, from 0 on.

    A constant one is as good as any if the start is one state; it is taken unless another is better by more than
    chance, counted as the test above counts it.
    """
    if counted_start_test(prepared).p_beyond > LEVEL:
        return np.zeros(prepared.tau.n, dtype=np.int64)
    prepared = prepared.from_any_start()
    steps = [prepared.step(h) for h in range(1, prepared.tau.H + 1)]
    path = shortest_tiled(prepared.engine.loss_tiles(steps, GRID))[0]
    values = steps[0].values(int(path[0]))
    occurs = tally(values, steps[0].N_s) > 0
    return renamed(values, np.where(occurs, np.cumsum(occurs) - 1, -1))


def _first_p_value(step: PackedStep) -> float:
    """Of the encoder of x_1 whose values differ most between agents, corrected for the choice."""
    counts = np.zeros((step.size, step.N_s, len(step.counts)), dtype=np.int64)
    counts[:, 1:] = step.value_counts.transpose(2, 1, 0)
    counts[:, 0] = step.totals - counts[:, 1:].sum(axis=1)
    return min(table_p_value(table, step.size) for table in counts)


def _split_ratio(prepared: PreparedCounting, first: PackedStep, second: PackedStep, turn: int) -> tuple[float, float]:
    """ln of the likelihood ratio on half `turn`, and by how much the pair beats the agents' shares there."""
    seen, unseen = ([step.half(half, SEED) for step in (first, second)] for half in (1 - turn, turn))
    [(i, j)] = prepared.engine.best_pairs(seen, GRID)
    here = slice(i, i + 1), slice(j, j + 1)
    trained, tested = (pair_counts(steps[0], steps[1], *here)[0, 0] for steps in (seen, unseen))
    by_pair = _predicted(trained, tested)
    shares = unseen[1].totals
    prior = -shares_loss(shares) * float(shares.sum())
    return by_pair - max(prior, _best_alone(unseen[1])), by_pair - prior


def _predicted(trained: Ints, tested: Ints) -> float:
    """The log-likelihood of counts (N_1, N_2, K) by what other counts teach.

    A cell's shares are drawn towards those of its x_2 alone, by weights that are averaged over: a likelihood too.
    """
    alone = trained.sum(axis=0) + 0.5
    alone = alone / alone.sum(axis=-1, keepdims=True)
    size = trained.sum(axis=-1, keepdims=True)
    each = [np.log((trained + weight * alone) / (size + weight)) for weight in PRIOR_WEIGHTS]
    return float(logsumexp([(tested * log_p).sum() for log_p in each]) - np.log(len(each)))


def _best_alone(step: PackedStep) -> float:
    """The log-likelihood of the agents by the best encoder of x_2, each with its best table on these very data."""
    counts = np.zeros((step.N_s, len(step.counts), step.size))
    counts[1:] = step.value_counts.transpose(1, 0, 2)
    counts[0] = step.totals[:, None] - counts[1:].sum(axis=0)
    return float(
        (xlogy(counts, counts).sum(axis=(0, 1)) - xlogy(counts.sum(axis=1), counts.sum(axis=1)).sum(axis=0)).max()
    )
