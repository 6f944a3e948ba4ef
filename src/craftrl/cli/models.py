"""Learned coordinate encoders as JSON: what each step reads, what it means, and how the fit went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder
from craftrl.data.files import check_writable, write_json
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["SavedModel", "check_model_path", "load_model", "save_model", "step_table"]

FORMAT = "craftrl coordinate encoders, version 1"


class SavedModel(Learner):
    """Encoders read from a file: `encode` as after `fit`."""

    def __init__(self, encoders: ByStep[Any], n_states: ByStep[int], obs_shape: tuple[int, ...]) -> None:
        self.encoders_ = encoders
        self.n_states_ = n_states
        self.obs_shape_ = obs_shape


@dataclass(frozen=True)
class _Step:
    """One line of the file: feature and state_of are absent at h = 1, where there is one state."""

    h: int
    n_states: int
    feature: int | None = None
    state_of: tuple[int, ...] | None = None
    assigned: float = 1.0
    outcome: str = "ok"


def check_model_path(path: Path) -> None:
    """Raise before any work is done where a file cannot be put there."""
    if path.is_dir():
        raise InvalidParameterError(f"A model is written to a file; {path} is a folder; choose another with --out.")
    check_writable(path.parent)


def save_model(model: CRAFT, path: Path) -> None:
    """Write the encoders and a summary of the trace, whole or not at all."""
    parameters = {name: getattr(model, name) for name in ("alpha", "eta", "nu", "coupling", "relabel")}
    grid = model.trace_.grid
    write_json(
        path,
        {
            "format": FORMAT,
            "parameters": parameters,
            "bounds": vars(model.bounds_),
            "effective": {"alpha": grid.alpha, "eta": grid.eta, "n_xi": grid.n_xi},
            "obs_shape": model.obs_shape_,
            "steps": [vars(step) for step in _steps(model)],
        },
    )


def load_model(path: Path) -> SavedModel:
    """The encoders of a file that `save_model` wrote."""
    try:
        content = json.loads(path.read_text())
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        steps = [_Step(**step) for step in content["steps"]]
        encoders = [
            ConstantEncoder() if s.feature is None else CoordinateEncoder(s.feature, np.array(s.state_of))
            for s in steps
        ]
        return SavedModel(ByStep(encoders), ByStep([s.n_states for s in steps]), tuple(content["obs_shape"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidDataError(f"A model must be a file that craftrl fit has written; {path} is not.") from error


def step_table(model: CRAFT) -> str:
    """What was found at each step, as aligned text."""
    lines = ["   h  states  coordinate  assigned  outcome"]
    for s in _steps(model):
        feature = "-" if s.feature is None else str(s.feature)
        lines.append(f"{s.h:4d}  {s.n_states:6d}  {feature:>10}  {s.assigned:7.1%}  {s.outcome}")
    return "\n".join(lines)


def _steps(model: CRAFT) -> list[_Step]:
    steps = [_Step(1, 1)]
    for step in model.trace_.steps:
        encoder: Any = model.encoders_[step.h + 1]
        state_of = tuple(int(s) for s in encoder.state_of)
        steps.append(_Step(step.h + 1, step.n_states, int(encoder.feature), state_of, step.assigned, step.outcome))
    return steps
