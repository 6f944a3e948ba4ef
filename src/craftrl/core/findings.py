"""What speaks against a model, or is worth knowing of it: one record, and one sentence for each kind.

`fit` keeps its findings in `trace_.findings` and warns of those that are warnings; `diagnose` adds its own. Summary,
report and command line print them. Nobody else has a sentence on any of these facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from craftrl.core.saved import Savable

__all__ = ["SENTENCES", "Finding", "ranges"]

Severity = Literal["warning", "note"]

_CONTRADICTED = (
    "States are fused or follow noise, or policies see noise; more trajectories, smaller bounds, or agents that differ "
    "more may help."
)
_GUESSES = "The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders there are guesses."
_CAMERA = (
    "Where recordings differ in light, colour, contrast or place of the camera, states follow that; record all agents "
    "alike, or standardise each recording by itself (import_data(..., standardise='recording'))."
)

# Each names its steps as {at}, or as {where} if there may be none, and its numbers by their names; advice included.
SENTENCES: Mapping[str, str] = {
    # found by fit
    "at chance": (
        "The log-odds are no better than chance at h = {at}, by a test at each step: states found from them are "
        "guesses. Check that the agents act differently and that their labels are right; else more trajectories, more "
        "different agents, longer training, or another oracle help."
    ),
    "no state": "CRAFT found no state at h = {at}. " + _GUESSES,
    "one state": "CRAFT found one state at h = {at}, which is most steps. " + _GUESSES,
    "too many states": "CRAFT found too many states at h = {at}: an encoder has fewer values, and tells fewer apart.",
    "independent steps": "coupling='markov' chooses the encoders of all steps together, which needs less data.",
    "misread": (
        "No encoder of the class reads the states found at h = {at} (Line 46 loses up to {worst:.0%} of a state): the "
        "states are mixtures, or the class is too small; more trajectories, or a larger class, may help."
    ),
    "not closed": (
        "The data contradicts the states: observations foretell the neighbouring state beyond their own state at "
        "h = {at} (p = {p:.1g}). " + _CONTRADICTED
    ),
    "agents told by more": (
        "The data contradicts the states: observations tell the agents apart beyond the states at h = {at} "
        "(p = {p:.1g}). " + _CONTRADICTED
    ),
    "split": (
        "Noise seems to split a state at h = {at}: two of the states there do not differ in which agents visit them, "
        "nor in the states before and after (log Bayes factor for one state: {nats:.0f}), and a function of the class "
        "reads them as one. Larger bounds alpha, eta and nu may join them."
    ),
    "undecided": (
        "Encoders of the class that read h = {at} otherwise have {share:.0%} of the posterior probability: those found "
        "may be wrong. More trajectories, or agents that differ more, would decide."
    ),
    "states missing": (
        "States are missing at h = {at}: up to {share:.0%} of the observations have a value of the encoder that stands "
        "for none of the states found. Smaller bounds alpha, eta and nu may find them."
    ),
    "first observations differ": (
        "The agents' first observations differ (p = {p:.1g}): agents begin in different states, or were recorded under "
        "different conditions, and the states found may be either; record all agents alike, from one start."
    ),
    "several starts": (
        "Trajectories seem to begin in several states, or agents to respond to noise: of what the first two "
        "observations tell of the agent, {share:.0%} is lost without the first (p = {p:.1g}), where otherwise nothing "
        "would be. The states found may be wrong; cut the trajectories so that all begin in one state, name the start "
        "of each in fit(..., start=...), or let the library look: start='find'."
    ),
    "camera differs": (
        "A single frame gives the agent away: of two frames of one state, one of each agent, {within:.0%} are told "
        "right by what else is in them, where chance would tell 50%, and so it is in states with {states:.0%} of the "
        "frames. " + _CAMERA
    ),
    "agents apart": (
        "The agents hardly share a state: {apart:.0%} of the frames are of states that one of them alone visits. They "
        "are never in the same place, or the camera was learned. " + _CAMERA
    ),
    "unassigned": (
        "At h = {at} trajectories have no state, although they are not over: at the worst step {share:.0%} have one; "
        "the others fell between the clusters. More trajectories help, and so does relabel=True, the default, which "
        "reads states off each encoder."
    ),
    "no evidence": (
        "No states were told apart: nothing in the observations moves by what the agents choose ({nats:.0f} nats of "
        "evidence). The agents act too much alike, or too little was recorded; more trajectories, or agents that "
        "differ more, help."
    ),
    "embedding holds little": (
        "The embedding explains {share:.0%} of what tells the agents apart, so that states may be missing. A larger "
        "one, NeuralOracle(embedding=16), longer training or more trajectories may help."
    ),
    "states tell less": (
        "The states hold {share:.0%} of what the log-odds tell of the agents: states are missing or fused. More "
        "trajectories may help, or stationary=False where observations do not mean the same at every step."
    ),
    "alike at some steps": (
        "At h = {at} the agents are not told apart, neither by the log-odds nor by the states: they act alike there, "
        "or too little was recorded. States there rest on the steps before and after."
    ),
    "test too small": (
        "At h = {at} the log-odds are not told from chance on the pairs kept from learning, although the states found "
        "tell the agents apart there (p = {p:.1g}): more trajectories would decide."
    ),
    "rare move": (
        "Only {count:.0f} of {total:.0f} trajectories go from state {s:.0f} at h = {at} to state {t:.0f}: record more "
        "of these, for what is seen least is learned worst."
    ),
    # found by diagnose
    "few trajectories": (
        "The agent with the fewest trajectories has {fewest:.0f}: with fewer than {least:.0f} little is learned, and "
        "no test says much. Record more; long recordings may be given uncut, and are learned from in windows."
    ),
    "counts differ": "Refits find as many states as the model at {share:.0%} of the steps; not so at h = {at}.",
    "unstable": "Refits agree on less than {least:.0%} of the states at h = {at}: too little data?",
    "not sufficient": (
        "On {n:.0f} trajectories that were not learned from, the states are worth {share:.0%} (give or take "
        "{error:.0%}) of whole observations for telling the agents apart: states are missing, wrong, or follow noise. "
        "More trajectories or a larger embedding, NeuralOracle(embedding=16), may help."
    ),
    "hardly known": (
        "How well the states tell the agents apart is not known well (give or take {error:.0%}): {n:.0f} trajectories "
        "that were not learned from are too few; record more of every agent."
    ),
    "halves differ": (
        "Observations foretell the neighbouring state, or tell the agents apart, beyond their own states, which hold "
        "{share:.0%} of it (p = {p:.1g}): states are fused or misread. More trajectories may help."
    ),
    "looks like two": (
        "State {s:.0f}{where} looks like two: its observations lie in two groups that differ in where the agents come "
        "from or go to. More trajectories that visit it would part them."
    ),
    "look like one": (
        "States {s:.0f} and {t:.0f}{where} look like one: neither the agents nor the states before and after differ "
        "between them. Noise may have split a state; `states_at` joins states, and more trajectories would decide."
    ),
    "misread state": (
        "Of state {s:.0f}{where} only {share:.0%} of the observations that were not learned from are read as `fit` "
        "found them: the encoder does not know it, or noise has split it. More trajectories that visit it may help."
    ),
    "misread observations": (
        "Of the observations that were not learned from only {share:.0%} are read as the states that `fit` found: the "
        "encoder does not know these states. More trajectories, or longer training, may help."
    ),
}


@dataclass(frozen=True)
class Finding(Savable):
    """One thing that was found; `str()` is its sentence.

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
        at = ranges(self.steps)
        return SENTENCES[self.kind].format(at=at, where=f" at h = {at}" if at else "", **self.numbers)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Finding:
        return cls(str(parts["kind"]), tuple(parts["steps"]), dict(parts["numbers"]), parts["severity"])


def ranges(steps: Iterable[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    every = np.array(list(steps), dtype=np.int64)
    runs = np.split(every, np.flatnonzero(np.diff(every) != 1) + 1) if len(every) else []
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
