"""The comparison of all agents, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.diagnostics.agent_pairs.contrast import Contrast, contrast
from craftrl.diagnostics.agent_pairs.findings import AgentPair, AgentPairs, Drift, as_points, least_visible
from craftrl.diagnostics.agent_pairs.sample import Group, Sample, take_sample
from craftrl.errors import InvalidParameterError
from craftrl.progress import progress_bar

__all__ = ["compare_agents"]

ALL_PAIRS = 8  # agents of whom every pair is compared; of more, the ones that stand out most
FEWEST = 8  # trajectories of an agent, below which nothing is compared


def compare_agents(
    tau: Any, *, names: Sequence[str] | None = None, seed: int = 0, progress: bool = False
) -> AgentPairs:
    """How different are the agents' data, and which pairs of agents are worth comparing? Nothing is fitted but tables
    and small trees, in seconds.

    tau       a dataset, the path of one, or a list with one array or one list of episodes per agent
    names     of the agents; those of the dataset, else their numbers
    seed      which half of the trajectories is learned from and which is held out
    progress  whether to show a bar

    Two questions are asked of trajectories that were held out: how well single observations tell two agents apart, and
    what the next observation adds. Small integers are counted, entry by entry and pair by pair; on anything else
    boosted trees are trained. Each agent's first half is compared with its second in the same way. With more than eight
    agents each is compared with all others together, and the eight that stand out most in pairs.

    Paper: Equations 4 and 5 (eta, nu and alpha)
    """
    check_whole("seed", seed, 0)
    check_flag("progress", progress)
    dataset = as_dataset(tau).tau
    called = _names(names, dataset)
    sample = take_sample(dataset)
    with progress_bar(desc="compare", unit="pair", leave=False, delay=1.0, disable=not progress) as bar:
        chosen = _standing_out(sample, seed, bar)
        two = list(combinations(chosen, 2))
        bar.reset(total=len(two) + dataset.K)
        pairs = [_pair(dataset, sample, called, i, j, len(two), seed, bar) for i, j in two]
        drifts = [_drift(sample, called, k, dataset.K, seed, bar) for k in range(dataset.K)]
    return AgentPairs(
        names=called,
        n=tuple(map(int, dataset.counts)),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair.evidence)),
        drifts=tuple(drift for drift in drifts if drift is not None),
        steps=tuple(sample.steps[c] for c in sample.pairs),
        counted=sample.values is not None,
    )


def _names(names: Sequence[str] | None, tau: TrajectoryDataset) -> tuple[str, ...]:
    given = tuple(map(str, tau.names)) if names is None else names
    listed = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
    if not listed or not len(given) == len(set(given)) == tau.K:
        raise InvalidParameterError(
            f"names must be a list of {tau.K} different texts, one per agent; {shown(names)} was given."
        )
    return tuple(given)


def _pair(
    tau: TrajectoryDataset, sample: Sample, names: tuple[str, ...], i: int, j: int, n_pairs: int, seed: int, bar: Any
) -> AgentPair:
    a, b = sample.groups[i], sample.groups[j]
    found = _contrast(a, b, sample, seed)
    bar.update()
    together = 2 * len(a) * len(b) / max(len(a) + len(b), 1)
    return AgentPair(
        agents=(i, j),
        names=(names[i], names[j]),
        n=(int(tau.counts[i]), int(tau.counts[j])),
        looked_at=(len(a), len(b)),
        contrast=found,
        p_value=1.0 if found is None else min(1.0, found.p_any * n_pairs),
        p_moves=1.0 if found is None else min(1.0, found.p_moves * n_pairs),
        visible=least_visible(together, sample.size, len(sample.pairs), n_pairs),
    )


def _drift(sample: Sample, names: tuple[str, ...], k: int, K: int, seed: int, bar: Any) -> Drift | None:
    group = sample.groups[k]
    middle = len(group) // 2
    found = _contrast(group.rows(slice(middle)), group.rows(slice(middle, None)), sample, seed)
    bar.update()
    if found is None:
        return None
    return Drift(k, names[k], as_points(float(found.moves.mean())), min(1.0, found.p_any * K))


def _contrast(a: Group, b: Group, sample: Sample, seed: int) -> Contrast | None:
    return contrast(a, b, sample, seed) if min(len(a), len(b)) >= FEWEST else None


def _standing_out(sample: Sample, seed: int, bar: Any) -> list[int]:
    """All agents, or those that differ most from all others together."""
    K = len(sample.groups)
    if K <= ALL_PAIRS:
        return list(range(K))
    bar.reset(total=K)
    nats = []
    for k, group in enumerate(sample.groups):
        others = [other.rows(slice(k % (K - 1), None, K - 1)) for i, other in enumerate(sample.groups) if i != k]
        found = _contrast(group, Group.join(others), sample, seed)
        nats.append(-1.0 if found is None else float(found.moves.mean()) + (found.p_any < 0.05))
        bar.update()
    return sorted(int(k) for k in np.argsort(-np.array(nats), kind="stable")[:ALL_PAIRS])
