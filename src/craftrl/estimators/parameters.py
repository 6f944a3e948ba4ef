"""The parameters of CRAFT, checked once, when `fit` begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from craftrl.arguments import shown
from craftrl.core.grid import check_alpha, check_eta, check_nu
from craftrl.core.oracle import COUPLINGS
from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.estimators.craft import CRAFT

__all__ = ["BOUNDS", "check_parameters"]

BOUNDS = {"alpha": check_alpha, "eta": check_eta, "nu": check_nu}


def check_parameters(model: CRAFT) -> None:
    """Raise where a parameter means nothing; the oracle checks its own when it is prepared."""
    for name, check in BOUNDS.items():
        value = getattr(model, name)
        if not isinstance(value, str):
            check(value)
        elif value != "auto":
            raise InvalidParameterError(f"{name} must be a number or 'auto'; {shown(value)} was given.")
    if not isinstance(model.coupling, str) or model.coupling not in ("auto", *COUPLINGS):
        names = ", ".join(map(repr, ("auto", *COUPLINGS)))
        raise InvalidParameterError(f"coupling must be one of {names}; {shown(model.coupling)} was given.")
    if not (
        isinstance(model.relabel, (bool, np.bool_)) or (isinstance(model.relabel, str) and model.relabel == "auto")
    ):
        raise InvalidParameterError(f"relabel must be True, False or 'auto'; {shown(model.relabel)} was given.")
    if not isinstance(model.stationary, (bool, np.bool_)):
        raise InvalidParameterError(f"stationary must be True or False; {shown(model.stationary)} was given.")
    named = isinstance(model.clusterer, str) and model.clusterer == "auto"
    if isinstance(model.clusterer, type) or not (named or callable(model.clusterer)):
        raise InvalidParameterError(
            f"clusterer must be 'auto', find_clusters, Valleys() or a function like them; {shown(model.clusterer)} was "
            "given."
        )
