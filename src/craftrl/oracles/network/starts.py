"""One start state or several: the test for networks, and the starts that they find.

The network's log-odds of true pairs (x_1, x_2) are compared with its log-odds of x_2 beside the first observations of
*other* trajectories, averaged and calibrated again. The latter is a function of x_2 alone. From one start it is as good
as the former: other first observations show the same state, and averaging takes out what the network makes of their
noise. From several, no function of x_2 alone is as good. Both are judged on trajectories that the network did not
learn from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax

from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.core.starts import StartTest, paired_p_value
from craftrl.oracles.network.collectives import firsts
from craftrl.oracles.network.heads import head_logits
from craftrl.oracles.network.pairs import calibrated
from craftrl.oracles.start_profiles import MOST, REFERENCES, group_profiles, read_starts

if TYPE_CHECKING:
    from craftrl.oracles.network.oracle import PreparedNetwork

__all__ = ["network_start_test", "network_starts"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
OTHERS = 16  # first observations of other trajectories that every x_2 is seen beside


def network_start_test(prepared: PreparedNetwork) -> StartTest:
    """Both tests, on the trajectories that each network did not learn from."""
    tau = prepared.tau
    both, alone, times = np.zeros((tau.n, tau.K)), np.zeros((tau.n, tau.K)), np.zeros(tau.n)
    pairs = prepared.pairs()
    for i, (network, unseen) in enumerate(zip(pairs.networks, pairs.unseen)):
        rows = unseen[tau.present(2)[unseen]]
        z, z_next = (prepared.features_of(i, h) for h in (1, 2))
        both[rows] += prepared.pair_logits(network, z, z_next, rows, rows, 1)
        for other in _others(rows, prepared.training.rng("start", i)):
            alone[rows] += prepared.pair_logits(network, z, z_next, other, rows, 1) / OTHERS
        times[rows] += 1
    both, alone = (firsts(prepared.frames.ranks, logits) for logits in (both, alone))
    rows = np.flatnonzero(times)
    agent = tau.agent[rows]
    right = np.arange(len(rows)), agent
    with_first, without = (_honest(logits[rows] / times[rows, None], agent)[right] for logits in (both, alone))
    gain = with_first - without
    told = float(with_first.mean()) + chance_loss(agent)
    return StartTest(_first_p_value(prepared), paired_p_value(gain), float(gain.mean()), told)


def network_starts(prepared: PreparedNetwork) -> Ints:
    """The states of all first observations: the profiles of some are grouped, an encoder reads the others.

    The observations that they are seen beside come from all steps, and before them as often as after them.
    """
    tau, rng = prepared.tau, prepared.training.rng("profiles")
    rows = np.sort(rng.permutation(tau.n)[:MOST])
    label = np.full(tau.n, -1)
    label[rows] = group_profiles(
        np.concatenate([_profiles(prepared, i, rows, rng) for i in range(len(prepared.pairs().networks))], 1)
    )
    return read_starts(prepared, label, tau)


def _profiles(prepared: PreparedNetwork, number: int, rows: Ints, rng: np.random.Generator) -> Floats:
    """Log-odds of first observations, given by their rows, beside others, by one network: (rows, references)."""
    tau, network, columns = prepared.tau, prepared.pairs().networks[number], []
    z = prepared.features_of(number, 1)
    for h in range(1, tau.H + 1):
        z_h = prepared.features_of(number, h)
        for i, other in enumerate(rng.choice(np.flatnonzero(tau.present(h)), -(-REFERENCES // tau.H))):
            beside = np.full_like(rows, other)
            if i % 2:
                logits = prepared.pair_logits(network, z, z_h, rows, beside, 1)
            else:
                logits = prepared.pair_logits(network, z_h, z, beside, rows, 1)
            columns.append(logits[:, :1] - logits[:, 1:])
    return firsts(prepared.frames.ranks, np.concatenate(columns, axis=1))


def _others(rows: Ints, rng: np.random.Generator) -> list[Ints]:
    """For each row another one, some times over: no row gets itself, as long as there are two."""
    order = rng.permutation(len(rows))
    shifts = rng.choice(np.arange(1, max(len(rows), 2)), OTHERS, replace=len(rows) <= OTHERS)
    others = []
    for shift in shifts:
        other = np.empty_like(rows)
        other[order] = rows[np.roll(order, shift)]
        others.append(other)
    return others


def _honest(logits: Floats, agent: Ints) -> Floats:
    """Log-probabilities (m, K) of the agents, calibrated on the very trajectories that are tested."""
    everyone = np.ones(len(agent), dtype=bool)
    return np.asarray(log_softmax(calibrated(logits[:, None], agent[:, None], everyone)[:, 0], axis=1))


def _first_p_value(prepared: PreparedNetwork) -> float:
    """Of a small classifier of x_1 alone; neither it nor its features know the trajectories that it is tested on."""
    tau, unseen = prepared.tau, prepared.pairs().unseen[0]
    seen = np.setdiff1d(np.arange(tau.n), unseen)
    z = prepared.features(1)
    z_seen, heads = z[torch.from_numpy(seen).to(z.device)], prepared.heads(tau.K)
    head, _ = heads.fit(z_seen, tau.agent[seen], tau.K, "start")
    logits = head_logits(head, z[torch.from_numpy(unseen).to(z.device)])
    return held_out_p_value(np.asarray(log_softmax(logits, axis=1)), tau.agent[unseen])
