"""The theorem beside the model: how many trajectories it would ask for.

Paper: Theorem 3.1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from craftrl.errors import InvalidParameterError
from craftrl.estimators.craft import CRAFT
from craftrl.oracles.finite import CoordinateOracle, FiniteOracle
from craftrl.paper import sample_size

__all__ = ["ERRORS", "FAILURE", "Guarantee", "guarantee"]

ERRORS, FAILURE = 0.05, 0.05  # the share of each state's observations that may be wrong, and how likely more may be


@dataclass(frozen=True)
class Guarantee:
    """What the theorem asks for, beside what there was.

    asked  trajectories in all; None where it does not apply
    given  trajectories in all
    why    why it does not apply, or ""
    """

    asked: int | None
    given: int
    why: str = ""


def guarantee(model: CRAFT) -> Guarantee:
    """The sample size of Theorem 3.1 at the model's bounds, for 95% of each state right with probability 95%."""
    n, H = model.sizes_fitted()
    size = _class_size(model)
    if size is None:
        return Guarantee(None, n, "it needs a finite class of encoders, and classifiers and networks are none")
    N_s = max(2, *model.n_states_)
    nu = model.bounds_.nu
    try:
        asked = sample_size(
            epsilon_0=ERRORS,
            delta=FAILURE,
            H=H,
            class_size=size,
            N_s=N_s,
            nu_prime=max(nu, _rarest_state(model)),
            **vars(model.bounds_),
        )
    except InvalidParameterError as error:
        return Guarantee(None, n, str(error).rstrip("."))
    return Guarantee(asked.total, n)


def _class_size(model: CRAFT) -> int | None:
    """|Phi| with all relabellings; None where the class is not finite."""
    oracle = model.oracle_
    if isinstance(oracle, CoordinateOracle):
        functions = int(np.prod(model.obs_shape_))
    elif isinstance(oracle, FiniteOracle):
        functions = max(len(oracle.Phi(h)) for h in range(1, len(model.encoders_) + 1))
    else:
        return None
    return functions * math.factorial(oracle.n_values)


def _rarest_state(model: CRAFT) -> float:
    """nu': the least share of the trajectories that is in a state at a step; 0 where the states stayed with shards."""
    if not hasattr(model, "labels_"):
        return 0.0
    labels = model.labels_fitted()
    visits = [np.bincount(own[own >= 0]) for own in labels.T]
    return min((float(v[v > 0].min()) for v in visits if v.any()), default=1.0) / len(labels)
