"""Can the residual test see states that follow the frozen distractor e^1?

The paper made e^1 so that (s_h XOR e^1, s_{h+1} XOR e^1) tells the agents apart as well as the true states do. Here
codes that follow it at some steps are planted, and the test is asked, without any fit. It has to find them at
the borders, where true codes meet the distractor's; between the borders there is nothing to be found.

Paper: Section 5 (the adversarial factor)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.diagnostics.tests import run_tests
from craftrl.envs import BitsExBMDP, collect
from craftrl.paper.sweep import seed_of

__all__ = ["PLANTED", "SIZES", "format_planted", "planted_codes", "planted_distractors"]

HORIZON, N_FEATURES = 15, 64
SIZES = (100, 500, 1000, 5000)

# Which steps the codes follow e^1 at.
PLANTED = {
    "nowhere": range(0),
    "from the start": range(2, 16),
    "in the middle": range(7, 11),
    "at the end": range(11, 16),
}


def planted_distractors(sizes: Iterable[int], n_seeds: int) -> list[dict[str, Any]]:
    """For each place and size: how often the test raises an alarm, and what it makes of the wrong steps.

    alarm   share of seeds in which some pair of steps fails the test
    seen    share of the wrong steps whose own pair (h-1, h) or (h, h+1) fails
    tainted share of the wrong steps at or after some pair that fails
    """
    table = []
    for n in sizes:
        found: dict[str, list[tuple[float, float, float]]] = {where: [] for where in PLANTED}
        for seed in range(n_seeds):
            world = BitsExBMDP(HORIZON, N_FEATURES, seed)
            tau = collect(world, world.paper_policies(), n, seed_of("distractor", n, seed)).tau
            prepared = CoordinateOracle().prepare(tau)
            for where, steps in PLANTED.items():
                tests = run_tests(planted_codes(world, tau, steps), [2] * tau.H, prepared)
                found[where].append(_summary(tests.explained < 1, steps))
        for where, rows in found.items():
            alarm, seen, tainted = np.mean(rows, axis=0)
            table.append({"where": where, "n": n, "seeds": n_seeds, "alarm": alarm, "seen": seen, "tainted": tainted})
    return table


def planted_codes(world: BitsExBMDP, tau: TrajectoryDataset, steps: range) -> NDArray[np.int64]:
    """The true states (n, H), but s*_h XOR e^1 at these steps."""
    features = [world.controllable_feature(h) for h in range(1, tau.H + 1)]
    for h in steps:
        features[h - 1] = int(np.flatnonzero(world.permutation[h - 1] == 1)[0])
    codes = np.stack([tau.at(h)[:, feature] for h, feature in enumerate(features, start=1)], axis=1).astype(np.int64)
    codes[:, 0] = 0
    return codes


def _summary(failed: NDArray[np.bool_], steps: range) -> tuple[float, float, float]:
    """Alarm, seen, tainted; `failed[h-1]` is about the pair (h, h+1)."""
    wrong = np.array(steps, dtype=int)
    if not len(wrong):
        return float(failed.any()), 0.0, 0.0
    pairs = np.concatenate([[False], failed, [False]])  # pairs[h] is about (h, h+1)
    seen = pairs[wrong - 1] | pairs[wrong]
    tainted = np.logical_or.accumulate(pairs)[wrong - 1]
    return float(failed.any()), float(seen.mean()), float(tainted.mean())


def format_planted(table: Iterable[dict[str, Any]]) -> str:
    lines = [f"{'codes follow e^1':16} {'n':>6} {'alarm':>6} {'wrong steps seen':>17} {'tainted':>8}"]
    lines += [f"{r['where']:16} {r['n']:6,} {r['alarm']:6.0%} {r['seen']:17.0%} {r['tainted']:8.0%}" for r in table]
    return "\n".join(lines)
