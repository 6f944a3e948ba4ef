"""States that are two are parted, if the observations show it.

`fused_states` guesses from the moves which states are two, and which of the two most of their visits were. An agent
with a memory looks the same. But then the two parts look alike: nothing in an observation says which it is. So
one encoder is trained with both parts as states of their own on one half of the trajectories. Where it reads the parts
of the other half, they are states; where it does not, they are one again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from craftrl.core.learned import PreparedLearned
from craftrl.core.oracle import OracleCalls
from craftrl.estimators.fused_states import FusedState, fused_states
from craftrl.estimators.misread import corrected
from craftrl.estimators.sharing import Shared, read_states

__all__ = ["part_fused"]

Ints = NDArray[np.integer]
READ = 0.75  # share of the held-out visits of each part that an encoder must read right
PASSES = 3  # a state that is more than two is parted once in each


def part_fused(prepared: PreparedLearned, shared: Shared, nu: float, one_start: bool, ask: OracleCalls) -> Shared:
    """The same states, but for those that are two and that an encoder can tell apart: these are two."""
    parting = _Parting(prepared, nu, one_start, ask)
    for number in range(1, PASSES + 1):
        guesses = fused_states(shared.labels, prepared.tau.agent)
        parted = parting.confirmed(shared, guesses, f"parted-{number}") if guesses else None
        if parted is None:
            break
        shared = parted
    return shared


@dataclass(frozen=True)
class _Parting:
    """Encoders that are asked to tell guesses apart, all on one dataset."""

    prepared: PreparedLearned
    nu: float
    one_start: bool
    ask: OracleCalls

    def confirmed(self, shared: Shared, guesses: Sequence[FusedState], name: str) -> Shared | None:
        """With the guesses that an encoder confirms; None if it confirms none."""
        n = self.prepared.tau.n
        held_out = np.random.default_rng(self.prepared.seed).permutation(n) < n // 2
        trial = self.trained(shared, guesses, ~held_out, name)
        read = [
            guess
            for new, guess in enumerate(guesses, start=shared.n_states)
            if _is_read(trial.labels, guess, new, held_out)
        ]
        if not read:
            return None
        best = self.trained(shared, read, np.ones(n, dtype=bool), f"{name}-confirmed")
        best = replace(best, labels=corrected(best.labels, best.n_states))
        return replace(best, n_at=best.at_step(self.nu, self.prepared.tau).sum(axis=0))

    def trained(self, shared: Shared, guesses: Sequence[FusedState], chosen: NDArray[np.bool_], name: str) -> Shared:
        """One encoder whose last states are the second parts of the guesses, told of those in `chosen` trajectories."""
        told = shared.labels.copy()
        for new, guess in enumerate(guesses, start=shared.n_states):
            told[told == guess.state] = -1
            mine = chosen[guess.row]
            told[guess.row[mine], guess.column[mine]] = np.where(guess.part[mine] == 0, guess.state, new)
        if self.one_start:
            told[:, 0] = shared.labels[:, 0]
        n_states = shared.n_states + len(guesses)
        encoder = self.ask("sharing", self.prepared.share, told, n_states, name).encoder
        found = np.concatenate([shared.found, shared.found[[guess.state for guess in guesses]]])
        labels = read_states(self.prepared, encoder, n_states, self.one_start, self.ask)
        return replace(shared, encoder=encoder, labels=labels, n_states=n_states, found=found)


def _is_read(labels: Ints, guess: FusedState, new: int, held_out: NDArray[np.bool_]) -> bool:
    """Whether the encoder that says `labels` reads both parts of a guess in trajectories that it was not told of."""
    mine = held_out[guess.row]
    said, part = labels[guess.row[mine], guess.column[mine]], guess.part[mine]
    right = [said[part == k] == name for k, name in enumerate((guess.state, new))]
    return all(len(each) and each.mean() >= READ for each in right)
