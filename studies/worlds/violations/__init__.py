"""Imperfect worlds: the paper's assumptions broken on purpose, each by an amount `size` in [0, 1].

Every function in `VIOLATIONS` has the signature of `collect` with `size` before the seed and gives a `Collection`;
`size` = 0 gives what `collect` gives, bit for bit. What is random about a violation comes from a stream of its own, and
the set of places where it strikes grows with `size`.

Paper: Section 2.2 (determinism, one start), Equation 1 (noise-free policies, one law of the noise), Equation 5
(different agents), Section 6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from craftrl.envs.collection import Collection
from craftrl.envs.exbmdp import ExBMDP
from studies.worlds.violations.agents import agree_at_steps, agree_somewhere, collect_agreeing, collect_alike
from studies.worlds.violations.moves import collect_leaky, collect_scattered, collect_slippery
from studies.worlds.violations.noise import collect_held_noise
from studies.worlds.violations.recordings import collect_corrupted, collect_mislabelled, corrupt, mislabel
from studies.worlds.violations.stream import Seed

Violation = Callable[[ExBMDP, Sequence[Any], int | Sequence[int], float, Seed], Collection]

VIOLATIONS: dict[str, Violation] = {
    "slips": collect_slippery,
    "leaks": collect_leaky,
    "agreement": collect_agreeing,
    "mislabelled": collect_mislabelled,
    "corrupted": collect_corrupted,
    "starts": collect_scattered,
    "noise": collect_held_noise,
    "alike": collect_alike,
}

__all__ = [
    "VIOLATIONS",
    "Violation",
    "agree_at_steps",
    "agree_somewhere",
    "collect_agreeing",
    "collect_alike",
    "collect_corrupted",
    "collect_held_noise",
    "collect_leaky",
    "collect_mislabelled",
    "collect_scattered",
    "collect_slippery",
    "corrupt",
    "mislabel",
]
