"""The findings of all checks on one model, as a record that prints itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.diagnostics.closure import Closure
from craftrl.diagnostics.resamples import Resamples
from craftrl.diagnostics.residual import Residual
from craftrl.diagnostics.shares import AgentShares
from craftrl.diagnostics.sufficiency import Sufficiency

__all__ = ["Diagnosis", "Verdict"]

Floats = NDArray[np.float64]
Verdict = Literal["trust", "check", "do not trust", "not checked"]

TRUST, CHECK = 0.95, 0.8  # the score from which a model is trusted, or worth a look


@dataclass(frozen=True)
class Diagnosis:
    """What the data alone says about a fitted model; arrays have one entry for each h = 1..H unless said otherwise.

    n_states     states found
    assigned     share of the trajectories that still have a label
    gap          least distance between two clusters that became states of h, in bins; two true successors lie four
                 bins apart or more, less the error of f_h; NaN where there is nothing to compare
    shares       how often the rarest agent visits a pair of states, against eta
    resamples    refits on resampled trajectories; None if none were asked for
    residual     what tells the agents apart beyond the states; None without a class of probes
    closure      what tells of the neighbouring state beyond a state; None without a class of probes
    sufficiency  whether the states hold what the log-odds of a network know; None for other log-odds, and for models
                 of older versions
    warnings     everything that asks for attention, in words
    at_chance    whether the log-odds are no better than chance at most steps, so that there is nothing to trust
    """

    n_states: NDArray[np.int64]
    assigned: Floats
    gap: Floats
    shares: AgentShares
    resamples: Resamples | None
    residual: Residual | None
    warnings: tuple[str, ...]
    at_chance: bool = False
    closure: Closure | None = None
    sufficiency: Sufficiency | None = None

    @property
    def same_count(self) -> Floats:
        """Share of the refits that found as many states as the model, NaN without refits."""
        if self.resamples is None:
            return np.full(len(self.n_states), np.nan)
        return np.asarray((self.resamples.n_states == self.n_states).mean(axis=0))

    @property
    def stability(self) -> Floats:
        """Mean agreement of the refits' encoders with the model's, NaN without refits."""
        return np.full(len(self.n_states), np.nan) if self.resamples is None else self.resamples.agreement.mean(axis=0)

    @property
    def explained(self) -> Floats:
        """Share of what is known that the states of (h-1, h) hold; 1 at h = 1, NaN where nothing was there to tell.

        With probes, of what they tell of the agents; with a network, of what its log-odds foretell of the next state.
        """
        if self.residual is not None:
            return np.concatenate([[1.0], self.residual.explained()])
        if self.sufficiency is not None:
            return np.concatenate([[1.0], self.sufficiency.closed])
        return np.full(len(self.n_states), np.nan)

    @property
    def trust(self) -> Floats:
        """Between 0 and 1: stability, times the least share explained at any step so far.

        With a network, times the share of the agents' differences that all states together capture, and that of the
        step's worst state which its log-odds read right.

        CRAFT finds the states of h+1 from those of h, and codes that follow a distractor can look right from one
        step to the next: what fails at one step casts doubt on all that follow. What was not checked counts as 1.
        """
        so_far = np.minimum.accumulate(np.nan_to_num(self.explained, nan=1.0))
        held = np.nan_to_num(self.stability, nan=1.0) * so_far * (self.n_states > 0)
        return np.asarray(held if self.sufficiency is None else held * self.sufficiency.held)

    @property
    def score(self) -> float:
        """Mean trust over h = 2..H; NaN where nothing was there to tell."""
        return float(self.trust[1:].mean()) if self.checked else math.nan

    @property
    def checked(self) -> bool:
        """Whether there were refits, probes or a network's log-odds: else nothing speaks for the states or against."""
        return not (self.resamples is None and self.residual is None and self.sufficiency is None)

    @property
    def trusted_until(self) -> int:
        """The last h such that trust is at least 0.95 at every step up to it."""
        below = np.flatnonzero(self.trust < TRUST)
        return int(below[0]) if len(below) else len(self.trust)

    @property
    def held_up(self) -> bool:
        """Whether the states were put to the test on other data than they were found from: by refits, or on
        trajectories that a network has not learned from. Probes ask the same data again, of which the states found are
        the best account, right or wrong."""
        return self.resamples is not None or self.sufficiency is not None

    @property
    def verdict(self) -> Verdict:
        """In words; "trust" needs a score of 0.95 or more, no warning, and a test on other data (`held_up`)."""
        if self.at_chance:
            return "do not trust"
        if not self.checked:
            return "not checked"
        if self.score < CHECK:
            return "do not trust"
        return "trust" if self.score >= TRUST and self.held_up and not self.warnings else "check"

    def __str__(self) -> str:
        head = f"{self.verdict}: score {self.score:.2f}, trusted until h = {self.trusted_until} of {len(self.trust)}"
        if not self.checked:
            why = "without refits (n_resamples) or probes nothing tells right states from wrong ones"
            head = f"{self.verdict}: {'the log-odds are no better than chance' if self.at_chance else why}"
        elif self.verdict == "check" and not self.held_up:
            head += "; refits (n_resamples) would say whether other data gives the same states"
        return "\n".join([head, *self._table(), *self._held_out(), *(f"- {text}" for text in self.warnings)])

    def _table(self) -> list[str]:
        share = np.concatenate([[np.nan], self.shares.share])
        columns = {"assigned": self.assigned, "  gap": self.gap, "share": share, "same count": self.same_count}
        columns |= {"stable": self.stability, "explained": self.explained}
        columns |= {} if self.sufficiency is None else {" read": self.sufficiency.read}
        columns |= {"trust": self.trust}
        table = [" ".join(["  h", "states", *columns])]
        for h, (n, *values) in enumerate(zip(self.n_states, *columns.values()), start=1):
            shown = ("-" if np.isnan(v) else f"{v:.2f}" for v in values)
            table.append(" ".join([f"{h:3}", f"{n:6}", *(f"{v:>{len(name)}}" for v, name in zip(shown, columns))]))
        return table

    def _held_out(self) -> list[str]:
        told = [] if self.sufficiency is None else [f"{str(self.sufficiency).capitalize()}."]
        if self.resamples is None:
            return told
        gain, best = self.resamples.gain.mean(), self.resamples.best_gain.mean()
        text = f"Held-out agents, gain over their frequencies in nats per pair: {gain:.4f} by the states"
        return [*told, text + ("." if np.isnan(best) else f", {best:.4f} by the best f_h.")]
