"""Fits of oracles that train: log-odds, embedding, partition, encoder.

Neither bounds nor a start are needed. With one encoder for all steps (`stationary=True`), an embedding means the same
at every step, and so does a state. Else embeddings carry h: they are moved apart by steps, so that no state is of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from craftrl.arguments import check_flag
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.oracle import Coupling, OracleCalls
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import from_first
from craftrl.errors import InvalidDataError
from craftrl.estimators.bounds import candidate_bounds
from craftrl.estimators.exact import Fitted, recorded
from craftrl.oracles.base import Choice
from craftrl.oracles.learned import PreparedLearned

OBSERVATIONS = 100_000  # that the partition looks at, at most
APART = 10.0  # between the embeddings of different steps, whose deviation is at most 1


@dataclass(frozen=True)
class Partition(Savable):
    """How embeddings are divided into states; each part can be switched off.

    smooth  whether misread observations are corrected by the moves before and after them
    drives  whether a state is divided also where agents and moves do not differ, if what differs among its observations
            depends on the path through the states, as something does that the agents set in motion
    starts  whether it counts for a state how often trajectories begin in it
    """

    smooth: bool = True
    drives: bool = True
    starts: bool = True

    def __post_init__(self) -> None:
        check_flag("smooth", self.smooth)
        check_flag("drives", self.drives)
        check_flag("starts", self.starts)


def fit_embedded(
    prepared: PreparedLearned,
    known: Mapping[str, float],
    coupling: Coupling,
    stationary: bool,
    ask: OracleCalls,
    how: Partition,
) -> Fitted:
    """States of all steps at once, and one encoder of them, or one for each step."""
    from craftrl.estimators.states import find_states  # compiles, so that importing it takes time

    tau = prepared.tau
    if not _differ(tau):  # else nothing is learned for minutes
        raise InvalidDataError(
            "Observations must differ; all of these are the same; check that the frames show what they should."
        )
    bounds = candidate_bounds(tau, known)[0]
    f = ask("log-odds", prepared.log_odds, Grid.from_bounds(bounds.alpha, bounds.eta), coupling)
    z = ask("embedding", prepared.embed)
    if not stationary:
        z = np.concatenate([z, np.broadcast_to(APART * np.eye(tau.H), (tau.n, tau.H, tau.H))], axis=2)
    rows = _some(tau)
    there = np.arange(tau.H) < tau.lengths[rows, None]
    parts = {"smooth": how.smooth, "drives": how.drives, "starts": how.starts, "aligned": tau.aligned}
    find = partial(find_states, z[rows], there, tau.agent[rows], prepared.seed, **parts)
    found = ask("states", from_first, find)  # by the first of several ranks, so that all have the same
    labels = np.full((tau.n, tau.H), -1)
    labels[rows] = found.labels
    if stationary:
        fits = [ask("encoding", prepared.fit_encoder, labels, n_labels(labels))] * tau.H
    else:
        fits = []
        for h in range(1, tau.H + 1):  # states of a step are numbered by themselves
            names = np.unique(labels[labels[:, h - 1] >= 0, h - 1])
            own = np.full(n_labels(labels), -1)
            own[names] = np.arange(len(names))
            labels[:, h - 1] = renamed(labels[:, h - 1], own)
            fits.append(ask("encoding", prepared.encode, h, labels[:, h - 1], len(names)))
    if len(rows) < tau.n:  # the others as the encoders read them
        others = np.delete(np.arange(tau.n), rows)
        for h, fit in enumerate(fits, start=1):
            labels[others, h - 1] = ask("reading", prepared.read, fit.encoder, h)[others]
    why = f"the coarsest partition that is sufficient, closed and complete ({found.evidence:.0f} nats of evidence)."
    n_states = n_labels(labels) if stationary else sum(map(n_labels, labels.T))
    result, chosen = recorded(f, labels, bounds, fits, tau, stationary), (Choice("states", n_states, why),)
    return Fitted(result, bounds, chosen, labels, fits[0].encoder if stationary else None, f.embedding_r2, found)


def _differ(tau: TrajectoryDataset) -> bool:
    """Whether any two observations differ; no more are read than it takes to see it."""
    first = tau.rows([0])[0, 0]
    return any((x[np.arange(x.shape[1]) < tau.lengths[rows, None]] != first).any() for rows, x in tau.blocks())


def _some(tau: TrajectoryDataset) -> Labels:
    """Trajectories from all over each agent's, as many as make `OBSERVATIONS` in all: more add time, not states."""
    each = max(1, OBSERVATIONS // (tau.K * tau.H))
    mine = [np.flatnonzero(tau.agent == k) for k in range(tau.K)]
    return np.sort(
        np.concatenate([r[np.unique(np.linspace(0, len(r) - 1, min(len(r), each)).astype(int))] for r in mine])
    )
