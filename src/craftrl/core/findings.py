"""What speaks against a model, or is worth knowing of it: one record, and for each kind what to say and what to do.

`fit` keeps its findings in `trace_.findings` and warns of those that are warnings; `diagnose` adds its own. Summary,
report and command line print them. Nobody else has a sentence on any of these facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from craftrl.core.saved import Savable

Severity = Literal["warning", "note"]

_CONTRADICTED = "More trajectories, smaller bounds, or agents that differ more may help."
_GUESSES = "The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders there are guesses."
_CAMERA = (
    "Standardise each recording by itself, if that was not done: import_data(..., standardise='recording'). Where it "
    "does not help, record all agents alike, with the same light, colours, place of the camera and compression."
)

# For each kind what was found, and what to do next ("" where there is nothing to do). Each names its steps as {at}, or
# as {where} if there may be none, and its numbers by their names.
SENTENCES: Mapping[str, tuple[str, str]] = {
    # found by fit
    "at chance": (
        "The log-odds are no better than chance at h = {at}, by a test at each step: states found from them are "
        "guesses.",
        "Check that the agents act differently and that their labels are right; else more trajectories, more different "
        "agents, longer training, or another oracle help.",
    ),
    "no state": ("CRAFT found no state at h = {at}. " + _GUESSES, "Record more trajectories, or leave the bounds out."),
    "one state": (
        "CRAFT found one state at h = {at}, which is most steps. " + _GUESSES,
        "Record more trajectories, or leave the bounds out.",
    ),
    "too many states": (
        "CRAFT found too many states at h = {at}: an encoder has fewer values, and tells fewer apart.",
        "",
    ),
    "independent steps": (
        "The encoders of each step were chosen by themselves.",
        "coupling='markov' chooses the encoders of all steps together, which needs less data.",
    ),
    "misread": (
        "No encoder of the class reads the states found at h = {at}: the best one is wrong on up to {worst:.0%} of a "
        "state (Line 46). The states are mixtures, or the class is too small.",
        "More trajectories, or a larger class, may help.",
    ),
    "not closed": (
        "The data contradicts the states: observations predict the neighbouring state beyond their own state at "
        "h = {at} (p = {p:.1g}). States are fused or follow noise, or policies see noise.",
        _CONTRADICTED,
    ),
    "agents told by more": (
        "The data contradicts the states: observations tell the agents apart beyond the states at h = {at} "
        "(p = {p:.1g}). States are fused or follow noise, or policies see noise.",
        _CONTRADICTED,
    ),
    "split": (
        "Noise seems to split a state at h = {at}: two of the states there do not differ in which agents visit them, "
        "nor in the states before and after, and a function of the class reads them as one (log Bayes factor for one "
        "state: {nats:.0f}).",
        "Larger bounds alpha, eta and nu may join them.",
    ),
    "undecided": (
        "Other encoders explain h = {at} as well: those that read it otherwise have {share:.0%} of the posterior "
        "probability.",
        "More trajectories, or agents that differ more, would decide between encoders.",
    ),
    "states missing": (
        "States are missing at h = {at}: up to {share:.0%} of the observations have a value of the encoder that stands "
        "for none of the states found.",
        "Smaller bounds alpha, eta and nu may find them.",
    ),
    "first observations differ": (
        "The agents' first observations differ (p = {p:.1g}): agents begin in different states, or were recorded under "
        "different conditions, and the states found may be either.",
        "Record all agents alike, from one start.",
    ),
    "several starts": (
        "Trajectories seem to begin in several states, or agents to respond to noise: of what the first two "
        "observations tell of the agent, {share:.0%} is lost without the first (p = {p:.1g}), where otherwise nothing "
        "would be.",
        "Cut the trajectories so that all begin in one state, name the start of each in fit(..., start=...), or let "
        "the library look: start='find'.",
    ),
    "camera differs": (
        "A single frame gives the agent away: of two frames of one state, one of each agent, {within:.0%} are told "
        "right by what else is in them (chance: 50%), in states with {states:.0%} of the frames. States may follow the "
        "recordings in place of what the agents do.",
        _CAMERA,
    ),
    "agents apart": (
        "Agents hardly share a state: {apart:.0%} of the visits of one would have to change to be those of the others. "
        "They are never in the same place, or the camera was learned.",
        _CAMERA,
    ),
    "pixels that tell": (
        "The frames of one agent differ from the others' most in rows {top:.0f} to {bottom:.0f} and columns {left:.0f} "
        "to {right:.0f}, in {share:.0%} of the pixels (`diagnose(...).camera.heat`).",
        "",
    ),
    "unassigned": (
        "At h = {at} trajectories have no state, although they are not over: at the worst step {share:.0%} have one; "
        "the others fell between the clusters.",
        "More trajectories help, and so does relabel=True, the default, which reads states off each encoder.",
    ),
    "no evidence": (
        "No states were told apart: what the log-odds tell of the agents does not show in how states follow one "
        "another ({nats:.0f} nats of evidence). Too little was recorded, or recordings differ in what does not move, "
        "such as the light.",
        "Record more trajectories, or agents that differ more.",
    ),
    "embedding holds little": (
        "States may be missing: the embedding explains only {share:.0%} of what tells the agents apart.",
        "A larger one, NeuralOracle(embedding=16), longer training or more trajectories may help.",
    ),
    "states tell less": (
        "States are missing or fused: they hold {share:.0%} of what the log-odds tell of the agents.",
        "More trajectories may help, or stationary=False where observations do not mean the same at every step.",
    ),
    "alike at some steps": (
        "At h = {at} the agents are not told apart, neither by the log-odds nor by the states: they act alike there, "
        "or too little was recorded. States there rest on the steps before and after.",
        "",
    ),
    "test too small": (
        "At h = {at} too little was kept from learning to tell the log-odds from chance, although the states found "
        "tell the agents apart there (p = {p:.1g}).",
        "Record more trajectories of every agent.",
    ),
    "rare move": (
        "Only {count:.0f} of {total:.0f} moves go from state {s:.0f}{where} to state {t:.0f}, and what is seen least "
        "is learned worst.",
        "Record more trajectories that go from state {s:.0f} to state {t:.0f}.",
    ),
    # found by diagnose
    "few trajectories": (
        "The agent with the fewest trajectories has {fewest:.0f}: with fewer than {least:.0f} little is learned, and "
        "no test says much.",
        "Record more; long recordings may be given uncut, and are learned from in windows.",
    ),
    "counts differ": (
        "Other data gives other numbers of states: refits find as many as the model at {share:.0%} of the steps; not "
        "so at h = {at}.",
        "Record more trajectories.",
    ),
    "unstable": (
        "Other data gives other states: refits agree on less than {least:.0%} of the states at h = {at}.",
        "Record more trajectories.",
    ),
    "not sufficient": (
        "For telling the agents apart, the state is not as good as the whole observation ({share:.0%}, give or take "
        "{error:.0%}; {n:.0f} new trajectories): states are missing, wrong, or follow noise.",
        "More trajectories or a larger embedding, NeuralOracle(embedding=16), may help.",
    ),
    "hardly known": (
        "How well the states tell the agents apart is not known well (give or take {error:.0%}): {n:.0f} trajectories "
        "that were not learned from are too few.",
        "Record more trajectories of every agent.",
    ),
    "looks like two": (
        "State {s:.0f}{where} looks like two: its observations lie in two groups that differ in where the agents come "
        "from or go to.",
        "Record more trajectories that visit the states that look like two; where a network is learned, a larger "
        "embedding, NeuralOracle(embedding=16), may tell the two apart as well.",
    ),
    "look like one": (
        "States {s:.0f} and {t:.0f}{where} look like one: neither the agents nor the states before and after differ "
        "between them. Noise may have split a state.",
        "`states_at` joins states that look like one; more trajectories would decide whether they are.",
    ),
    "misread state": (
        "The encoder does not know state {s:.0f}{where} well, or noise has split it: of the observations that were not "
        "learned from, it reads {share:.0%} as the fit found them.",
        "More trajectories that visit it may help.",
    ),
    "misread observations": (
        "The encoder does not know the states well: of the observations that were not learned from, it reads "
        "{share:.0%} as the states that the fit found.",
        "More trajectories, or longer training, may help.",
    ),
}


@dataclass(frozen=True)
class Finding(Savable):
    """One thing that was found; `str()` says what, and what to do next.

    kind      a key of `SENTENCES`
    steps     the h that it is about, if it is about any
    numbers   what the sentence states, by name
    severity  "warning": the states may be wrong; "note": worth knowing, no reason to doubt them
    """

    kind: str
    steps: tuple[int, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    severity: Severity = "warning"

    def __str__(self) -> str:
        return f"{self.found} {self.advice}".rstrip()

    @property
    def found(self) -> str:
        """What was found, in a sentence or two."""
        return self._said(0)

    @property
    def advice(self) -> str:
        """What to do next; "" where there is nothing to do."""
        return self._said(1)

    def _said(self, part: int) -> str:
        at = ranges(self.steps)
        return SENTENCES[self.kind][part].format(at=at, where=f" at h = {at}" if at else "", **self.numbers)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Finding:
        return cls(str(parts["kind"]), tuple(parts["steps"]), dict(parts["numbers"]), parts["severity"])


def ranges(steps: Iterable[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    every = np.array(list(steps), dtype=np.int64)
    runs = np.split(every, np.flatnonzero(np.diff(every) != 1) + 1) if len(every) else []
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
