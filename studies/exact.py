"""What the studies of finite classes share: true bounds, the class of a world, and what `fit` warns of."""

from __future__ import annotations

import warnings
from typing import Any

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.envs import BitsExBMDP
from craftrl.errors import AssumptionWarning
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import Row


def true_bounds(world: Any, agents: Any) -> dict[str, Any]:
    """alpha, eta and nu of these agents in this world, with infinite data."""
    known = population_assumptions(world, agents)
    return {name: getattr(known, name).value for name in ("alpha", "eta", "nu")}


def class_of(world: Any) -> CoordinateOracle | FiniteOracle:
    """The coordinates in worlds of bits, elsewhere the world's own list of encoders."""
    return CoordinateOracle() if isinstance(world, BitsExBMDP) else FiniteOracle(world.encoders, world.n_values)


def fitted_aloud(model: CRAFT, tau: TrajectoryDataset) -> Row:
    """Fit, and say whether `fit` warned and what of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model.fit(tau)
    told = [finding.kind for finding in model.trace_.findings if finding.severity == "warning"]
    return {"warned": bool(caught), "told": told}
