"""What `fit` decided at each step, as frozen records: plots, diagnostics and reports read these.

Paper: Algorithm 2, Lines 7-47
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from craftrl.arguments import is_whole
from craftrl.arrays import Ints
from craftrl.core.evidence import LEVEL, above_chance
from craftrl.core.findings import Finding
from craftrl.core.grid import Grid
from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

__all__ = ["Cluster", "Comparison", "FinitePairModel", "OracleUse", "StartTest", "StepTrace", "Trace"]

MIN_SHARE = 0.1  # of what pairs tell of the agents, the share that x_1 must add for it to matter
UNREADABLE = 0.3  # the loss of Line 46 per state from which on an encoder does not read the states found
Outcome = Literal["ok", "no state", "one state", "too many states"]
Extent = tuple[tuple[int, int], ...]  # (first, last) bin along each axis


@dataclass(frozen=True)
class FinitePairModel(Savable):
    """f_h = (phi_i, phi_j, table): numbers within Phi_h and Phi_{h+1}, and the bins of each pair of values.

    i      -1 for the constant encoder that starts a chain
    table  int (N_s, N_s, K-1)
    loss   the mean loss per pair, in nats
    """

    i: int
    j: int
    table: Ints
    loss: float


@dataclass(frozen=True)
class Cluster(Savable):
    """Successors of s_pred that f_h cannot tell apart: D_new.

    bins    the bins of Xi that it covers, as (first, last) per axis; their pairs make up D_new_pairs
    size    |D_new|
    state   the state of h+1 that it became part of
    """

    s_pred: int
    bins: Extent
    size: int
    state: int = -1


@dataclass(frozen=True)
class Comparison(Savable):
    """One answer of the separation oracle: cluster against state, L(g), and whether they merged."""

    cluster: int
    state: int
    loss: float
    merged: bool


@dataclass(frozen=True)
class StepTrace(Savable):
    """Everything decided in iteration h of Line 7, which finds the states of h+1.

    threshold     |pred_succ[j]| from which a bin is heavy (Line 19)
    spectra       |pred_succ[j]| for each s_pred in S_h, shape (|S_h|, n_xi + 1); for more than two agents the
                  margins along each axis, (|S_h|, K-1, n_xi + 1)
    clusters      in scan order
    comparisons   all merge tests, in the order made
    n_states      |S_{h+1}|
    assigned      of the trajectories that are there at h+1, the share that has a state
    outcome       all but "ok" mean that the paper's assumptions do not hold on this data; "too many states": more than
                  the encoders have values
    f_loss        mean loss of f_h per pair in nats; on pairs that it did not learn from, unless the class is finite
    encoder_loss  the loss of phi'_{h+1} in Line 46, per state
    chance        the loss of knowing the agents' shares alone, on the same pairs
    p_value       how likely an f_h as good as this is if pairs say nothing of the agents (`craftrl.core.evidence`);
                  None where the oracle does not say
    """

    h: int
    threshold: float
    spectra: Ints
    clusters: tuple[Cluster, ...]
    comparisons: tuple[Comparison, ...]
    n_states: int
    assigned: float
    outcome: Outcome
    f_loss: float
    encoder_loss: float
    chance: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class OracleUse(Savable):
    """How often `fit` asked one kind of question, and how many seconds the answers took."""

    question: str
    asked: int
    seconds: float


@dataclass(frozen=True)
class StartTest(Savable):
    """Two tests of one start state.

    p_first   how likely it is by chance alone that x_1 tells the agents apart as well as it does
    p_beyond  how likely it is by chance alone that x_1 adds as much to x_2 as it does
    added     nats per trajectory that x_1 adds to what x_2 tells of the agent
    total     nats per trajectory that x_1 and x_2 together tell of the agent
    """

    p_first: float
    p_beyond: float
    added: float
    total: float

    @property
    def agents_differ(self) -> bool:
        """Whether the agents' first observations differ."""
        return self.p_first < LEVEL / 10  # no least size is asked for, so be stricter

    @property
    def several(self) -> bool:
        """Whether x_1 matters beside x_2, so that there is more than one start state."""
        return self.p_beyond < LEVEL / 2 and self.share >= MIN_SHARE

    @property
    def share(self) -> float:
        """Of what both observations tell of the agent, the part that is lost without the first."""
        return self.added / max(self.total, self.added) if self.added > 0 else 0.0


@dataclass(frozen=True)
class Trace(Savable):
    """What `fit` did. `trace[h]` is iteration h, counted from 1.

    models      f_1..f_{H-1} of a finite class, else ()
    oracle_use  what was asked of the oracle, one entry for each kind of question
    start       the test of one start state; None where the oracle does not say, or starts were given
    findings    what speaks against the states, or is worth knowing of them
    """

    grid: Grid
    steps: tuple[StepTrace, ...]
    models: tuple[FinitePairModel, ...] = ()
    oracle_use: tuple[OracleUse, ...] = field(default=(), compare=False)
    start: StartTest | None = None
    findings: tuple[Finding, ...] = ()

    def __getitem__(self, h: int) -> StepTrace:
        if not (is_whole(h) and 1 <= h <= len(self.steps)):
            raise InvalidParameterError(
                f"h must be one of 1..{len(self.steps)}; h = {h} was given; iteration h finds the states of h+1."
            )
        return self.steps[h - 1]

    def __iter__(self) -> Iterator[StepTrace]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def at_chance(self) -> list[int]:
        """The iterations h whose f_h is no better than chance by its test, all tests taken together."""
        p_value = {step.h: step.p_value for step in self.steps if step.p_value is not None}
        return [h for h, better in zip(p_value, above_chance(list(p_value.values()))) if not better]

    @property
    def guesses(self) -> bool:
        """Whether `fit` found the log-odds to be no better than chance at most steps."""
        return any(finding.kind == "at chance" for finding in self.findings)

    def unreadable(self) -> list[int]:
        """The steps h+1 whose encoder does not read the states that were found: a large loss of Line 46."""
        return [step.h + 1 for step in self.steps if step.encoder_loss > UNREADABLE]

    def merged(self, state_of: Ints, labels: Ints) -> Trace:
        """The same with states that mean the same at all steps joined, s becoming `state_of[s]`: labels (n, H)."""
        steps = []
        for step in self.steps:
            spectra = np.zeros((int(state_of.max()) + 1, *step.spectra.shape[1:]), dtype=step.spectra.dtype)
            np.add.at(spectra, state_of, step.spectra)
            moves: dict[tuple[int, int], list[Cluster]] = {}
            for cluster in step.clusters:
                moves.setdefault((int(state_of[cluster.s_pred]), int(state_of[cluster.state])), []).append(cluster)
            clusters = []
            for (s, s_next), joined in sorted(moves.items()):
                first, last = (np.array([c.bins for c in joined])[..., end] for end in (0, 1))
                bins = tuple(zip(first.min(axis=0).tolist(), last.max(axis=0).tolist()))
                clusters.append(Cluster(s, bins, sum(c.size for c in joined), s_next))
            after = labels[:, step.h]
            n_states = len(np.unique(after[after >= 0]))
            outcome: Outcome = "ok" if n_states > 1 else "one state"
            steps.append(replace(step, spectra=spectra, clusters=tuple(clusters), n_states=n_states, outcome=outcome))
        return replace(self, steps=tuple(steps))

    def outcomes(self) -> dict[str, list[int]]:
        """For each kind of outcome but "ok", the steps h+1 at which it occurred."""
        kinds: dict[str, list[int]] = {}
        for step in self.steps:
            if step.outcome != "ok":
                kinds.setdefault(step.outcome, []).append(step.h + 1)
        return kinds
