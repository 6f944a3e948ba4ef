"""The findings of all checks on one model, as a record that prints itself, and the verdict on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats
from craftrl.core.encoders import Encoder, encode_dataset
from craftrl.core.findings import Finding
from craftrl.core.labels import n_labels
from craftrl.core.oracle import CheckablePairFunction, PairFunction
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.camera import Camera, camera_of
from craftrl.diagnostics.findings import assigned_share, findings_of_checks
from craftrl.diagnostics.mixtures import Mixture, mixtures
from craftrl.diagnostics.stability import Refit, Stability, refits
from craftrl.diagnostics.state_tests import StateTests, run_tests
from craftrl.diagnostics.sufficiency import Sufficiency, sufficiency
from craftrl.oracles.finite import CountingOracle

Trust = Literal["trust", "check", "do not trust", "not checked"]

TRUST, CHECK = 0.95, 0.8  # the score from which a model is trusted, or worth a look
MAX_RESAMPLES = 10_000


def diagnose(
    encoders: tuple[Encoder, ...],
    n_states: NDArray[np.int64],
    labels: NDArray[np.integer],
    trace: Trace,
    tau: TrajectoryDataset,
    refit: Refit,
    *,
    n_resamples: int,
    seed: int = 0,
    probe: CountingOracle | None = None,
    f: PairFunction | None = None,
) -> Diagnosis:
    """Every check of a fitted model against the data it was fitted to; see `CRAFT.diagnose`.

    encoders, n_states  phi'_h and |S_h| for h = 1..H
    labels              (n, H): the states of the trajectories, in the order of the dataset
    refit               the same model fitted to other data at the same bounds
    probe               the finite class whose functions test the states, if there is one
    f                   f_1..f_{H-1} for new data, where they are kept
    """
    codes = encode_dataset(encoders, tau)
    stability = refits(codes, n_states, tau, refit, n_resamples, seed) if n_resamples else None
    tests, by_step = None, encoders[0] is not encoders[-1]  # else steps show some of the states that there are in all
    if probe is not None:
        names = n_states.tolist() if by_step else [n_labels(codes)] * tau.H
        tests = run_tests(codes, names, probe.prepare(tau), by_step=by_step)
    sufficient, camera = None, None
    embed = getattr(encoders[-1], "embed", None)
    if isinstance(f, CheckablePairFunction):
        camera = camera_of(tau, codes, seed)
        if embed is not None:
            sufficient = sufficiency(f, embed, codes, labels, tau, by_step)
    mixed: tuple[Mixture, ...] = ()
    if probe is None:  # a class of functions looks for itself
        mixed = mixtures(tau, codes if sufficient is None else sufficient.joined(codes), by_step, embed, seed)
    kinds = {finding.kind for finding in trace.findings}
    more = findings_of_checks(tau, n_states, stability, tests, sufficient, mixed)
    findings = (*trace.findings, *(found for found in more if found.kind not in kinds))
    return Diagnosis(n_states, assigned_share(tau, labels), findings, stability, tests, sufficient, camera, mixed)


@dataclass(frozen=True)
class Diagnosis:
    """What the data alone says about a fitted model; arrays have one entry for each h = 1..H unless said otherwise.

    n_states     states found
    assigned     of the trajectories that are there, the share that has a label
    findings     everything that `fit` and these checks found
    stability    refits on resampled trajectories; None if none were asked for
    tests        what tells of agents and moves beyond the states; None without a class of functions to test with
    sufficiency  whether the states hold what the log-odds of a network know; None for other log-odds
    camera       what single frames tell of the agents beside the states, and which pixels do; None for finite classes
    mixtures     states that look like two, with observations of either group; not asked of finite classes
    """

    n_states: NDArray[np.int64]
    assigned: Floats
    findings: tuple[Finding, ...] = ()
    stability: Stability | None = None
    tests: StateTests | None = None
    sufficiency: Sufficiency | None = None
    camera: Camera | None = None
    mixtures: tuple[Mixture, ...] = ()

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that speak against the states."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def at_chance(self) -> bool:
        """Whether the log-odds are no better than chance at most steps, so that there is nothing to trust."""
        return any(finding.kind == "at chance" for finding in self.findings)

    @property
    def apart(self) -> bool:
        """Whether agents hardly share a state, so that states may be nothing but who was recorded."""
        return any(finding.kind == "agents apart" for finding in self.findings)

    @property
    def same_count(self) -> Floats:
        """Share of the refits that found as many states as the model, NaN without refits."""
        nothing = np.full(len(self.n_states), np.nan)
        return nothing if self.stability is None else self.stability.same_count(self.n_states)

    @property
    def stable(self) -> Floats:
        """Mean agreement of the refits' encoders with the model's, NaN without refits."""
        nothing = np.full(len(self.n_states), np.nan)
        return nothing if self.stability is None else np.asarray(self.stability.agreement.mean(axis=0))

    @property
    def explained(self) -> Floats:
        """Share of what a finite class tells of the agents that the states of (h-1, h) hold; 1 at h = 1."""
        return np.full(len(self.n_states), np.nan) if self.tests is None else np.append(1.0, self.tests.explained)

    @property
    def trust(self) -> Floats:
        """Between 0 and 1: stability, times the least share explained at any step so far.

        Where states were learned, times the share of observations in states that do not look like two or, with a
        network, the least that its states hold of what was asked of them (`Sufficiency.held`) where that is less.

        CRAFT finds the states of h+1 from those of h, and codes that follow a distractor can look right from one
        step to the next: what fails at one step casts doubt on all that follow. What was not checked counts as 1.
        """
        so_far = np.minimum.accumulate(np.nan_to_num(self.explained, nan=1.0))
        held = np.nan_to_num(self.stable, nan=1.0) * so_far * (self.n_states > 0)
        single = 1 - sum(mixture.visits for mixture in self.mixtures)
        return np.asarray(held * (single if self.sufficiency is None else min(single, self.sufficiency.held)))

    @property
    def score(self) -> float:
        """Mean trust over h = 2..H; NaN where nothing was there to tell."""
        return float(self.trust[1:].mean()) if self.checked else math.nan

    @property
    def checked(self) -> bool:
        """Whether there were refits, tests or a network's log-odds: else nothing speaks for the states or against."""
        return self.held_up or self.tests is not None

    @property
    def trusted_until(self) -> int:
        """The last h such that trust is at least 0.95 at every step up to it."""
        below = np.flatnonzero(self.trust < TRUST)
        return int(below[0]) if len(below) else len(self.trust)

    @property
    def held_up(self) -> bool:
        """Whether the states were put to the test on other data than they were found from: by refits, or on
        trajectories that a network has not learned from. Tests by a class ask the same data again, of which the states
        found are the best account, right or wrong."""
        return self.stability is not None or self.sufficiency is not None

    @property
    def verdict(self) -> Trust:
        """In words; "trust" needs a score of 0.95 or more, no warning, and a test on other data (`held_up`)."""
        if not self.checked and not self.at_chance:
            return "not checked"
        if self.at_chance or self.apart or self.score < CHECK:
            return "do not trust"
        return "trust" if self.score >= TRUST and self.held_up and not self.warnings else "check"

    @property
    def why(self) -> str:
        """What the verdict rests on, in a sentence or two."""
        if self.at_chance:
            return "At most steps the agents are told apart no better than by chance, so the states are guesses."
        if not self.checked:
            return (
                "Nothing tells right states from wrong ones yet: for this model only refits on resampled trajectories "
                "do (n_resamples, or --diagnose 3), each as long as a fit."
            )
        reasons = []
        if self.sufficiency is not None:
            two = (
                f"states with {sum(mixture.visits for mixture in self.mixtures):.0%} of the observations look like two"
            )
            reasons = [*self.sufficiency.reasons(), two if self.mixtures else "no state looks like two"]
        if self.tests is not None:
            reasons.append(f"the states explain {_least(self.explained)} of what observations tell of the agents")
        if self.stability is not None:
            times, agreed = len(self.stability.n_states), _least(self.stable[1:])
            reasons.append(f"refits on resampled trajectories ({times}) agree with them on {agreed} at every step")
        elif self.sufficiency is None:
            reasons.append("no refits (n_resamples, or --diagnose 10) say whether other data gives the same states")
        text = "; ".join(reasons)
        needed = f"{TRUST} and no warning are" if self.warnings else f"{TRUST} is"
        return f"{text[0].upper()}{text[1:]}. That is a score of {_down(self.score)}; {needed} needed for trust."

    def table(self) -> str:
        """A line for each step, with what was asked of it."""
        columns = {"assigned": self.assigned, "same count": self.same_count, "stable": self.stable}
        columns["explained"] = self.explained
        columns["trust"] = self.trust
        lines = [" ".join(["  h", "states", *columns])]
        for h, (n, *values) in enumerate(zip(self.n_states, *columns.values()), start=1):
            shown = ("-" if np.isnan(v) else f"{v:.2f}" for v in values)
            lines.append(" ".join([f"{h:3}", f"{n:6}", *(f"{v:>{len(name)}}" for v, name in zip(shown, columns))]))
        return "\n".join(lines)

    def __str__(self) -> str:
        until = f": score {_down(self.score)}, trusted until h = {self.trusted_until} of {len(self.trust)}"
        findings = (f"- {finding}" for finding in self.findings)
        return "\n".join([self.verdict + until * self.checked, self.why, self.table(), *findings])


def _down(score: float) -> str:
    """A score, which is never rounded up to what is needed."""
    return "nan" if math.isnan(score) else f"{math.floor(100 * score + 1e-9) / 100:.2f}"


def _least(shares: Floats) -> str:
    """The smallest of some shares, in words."""
    shown = f"{float(np.nanmin(shares)):.0%}"
    return shown if shown == "100%" else f"at least {shown}"
