"""Do all trajectories begin in one state, as the paper assumes? What the first two observations say, by counting.

If they do, x_1 holds nothing but noise: it tells no agent from another, and x_1 beside x_2 tells no more than x_2
alone. Then some encoder phi of x_2 holds all that (x_1, x_2) tell of the agent. Which one is not known, and with a
wrong one, s_2 XOR e, noise in x_1 *does* tell of the agent. So the best pair of encoders, chosen and trained on one
half of the trajectories, is compared on the other half with *every* phi, each at its best on that very half. If there
is one start, the ratio of the two likelihoods exceeds 1/p with probability p at most, in any amount of data (the split
likelihood ratio of Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020); both halves take their turn, and the two
ratios are averaged.

Paper: Section 2.2 (one start state), Algorithm 2, Lines 5-6
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from craftrl.core.evidence import LEVEL, dependence, shares_loss
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, renamed, tally
from craftrl.core.trace import StartTest
from craftrl.engine.counting import Counter
from craftrl.engine.packing import View
from craftrl.oracles.couplings import chain_views, shortest_path

if TYPE_CHECKING:
    from craftrl.oracles.finite import PreparedCounting

GRID = Grid.from_bounds(0.5, 0.05)  # on which the pair of encoders is chosen
PRIOR_WEIGHTS = (1.0, 4.0, 16.0, 64.0)  # trajectories that x_2's word alone counts for, against a cell's own


def one_start_test(prepared: PreparedCounting) -> StartTest:
    """Both tests on the values of all encoders of steps 1 and 2."""
    counter = prepared.counter
    added, total = np.transpose([_split_ratio(counter, turn) for turn in (0, 1)])
    log_ratio = float(logsumexp(added) - np.log(2))
    n = max(int(counter.running[2].sum()), 1)
    tables = np.ascontiguousarray(_value_counts(counter, View(1)).transpose(1, 2, 0))  # (N_s, |Phi_1|, K)
    log_p, _ = dependence(tables, np.zeros(len(tables), dtype=np.int64))
    return StartTest(
        p_first=float(np.exp(min(log_p.min() + np.log(len(log_p)), 0.0))),  # of the best of all encoders
        p_beyond=float(np.exp(min(-log_ratio, 0.0))),
        added=float(added.sum()) / n,
        total=float(total.sum()) / n,
    )


def find_starts(prepared: PreparedCounting) -> Labels:
    """The values (n,) of the encoder of x_1 with which the best chain of encoders over all steps begins, from 0 on.

    A constant one is as good as any if the start is one state; it is taken unless another is better by more than
    chance, counted as the test above counts it.
    """
    if one_start_test(prepared).p_beyond > LEVEL:
        return np.zeros(prepared.tau.n, dtype=np.int64)
    path, _ = shortest_path(prepared.counter.tiles(chain_views(prepared.tau.H, one_start=False), GRID))
    values = prepared.values(1, path[0])
    occurs = tally(values, prepared.N_s) > 0
    return renamed(values, np.where(occurs, np.cumsum(occurs) - 1, -1))


def _split_ratio(counter: Counter, turn: int) -> tuple[float, float]:
    """ln of the likelihood ratio on half `turn`, and by how much the pair beats the agents' shares there.

    A cell's shares of the agents are drawn towards those of its x_2 alone, by weights that are averaged over.
    """
    seen, unseen = ([View(h, half=half) for h in (1, 2)] for half in (1 - turn, turn))
    [(i, j)] = counter.best_pairs(seen, GRID)
    pair = slice(i, i + 1), slice(j, j + 1)
    trained, tested = (
        counter.pairs(*(view.part(one) for view, one in zip(views, pair)))[..., 0, 0].transpose(1, 2, 0)
        for views in (seen, unseen)
    )
    alone = trained.sum(axis=0) + 0.5
    alone = alone / alone.sum(axis=-1, keepdims=True)
    size = trained.sum(axis=-1, keepdims=True)
    each = [np.log((trained + weight * alone) / (size + weight)) for weight in PRIOR_WEIGHTS]
    by_pair = float(logsumexp([(tested * log_p).sum() for log_p in each]) - np.log(len(each)))
    # Every encoder of x_2 with its best table on these very data.
    counts = np.ascontiguousarray(_value_counts(counter, unseen[1]).transpose(1, 0, 2), dtype=np.float64)
    whole = counts.sum(axis=1)
    by_one = float((xlogy(counts, counts).sum(axis=(0, 1)) - xlogy(whole, whole).sum(axis=0)).max())
    shares = counter.totals(unseen[1])
    prior = -shares_loss(shares) * float(shares.sum())
    return by_pair - max(prior, by_one), by_pair - prior


def _value_counts(counter: Counter, view: View) -> NDArray[np.int32]:
    """How often each agent shows each value of each encoder: (K, N_s, I)."""
    return counter.pairs(View(0, half=view.half), view)[:, 0, :, 0]
