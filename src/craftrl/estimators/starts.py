"""The start of every trajectory where they are not all one: as the user names them, or as the oracle finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.evidence import LEVEL
from craftrl.core.labels import Labels, n_labels
from craftrl.core.seam import PreparedOracle
from craftrl.data.inputs import Grouped
from craftrl.data.labels import plain_array
from craftrl.diagnostics.tests import start_test
from craftrl.errors import InvalidDataError
from craftrl.oracles.base import Choice
from craftrl.oracles.counting import PreparedCounting
from craftrl.oracles.memory import RememberingOracle

__all__ = ["which_starts"]

Starts = Labels | None


def which_starts(start: Any, data: Grouped, prepared: PreparedOracle) -> tuple[Starts, tuple[Choice, ...]]:
    """Numbers (n,) for the starts in the order of the dataset, None where all are one; and what was found, if asked.

    The oracle is told where there are several.
    """
    find = isinstance(start, str) and start == "find"
    exact = prepared.prepared if isinstance(prepared, RememberingOracle) else prepared
    one = find and isinstance(exact, PreparedCounting) and start_test(exact).p_beyond > LEVEL
    starts = None if one or start is None else prepared.find_starts() if find else _named(start, data)
    n_starts = 1 if starts is None else n_labels(starts)
    if n_starts > 1:
        prepared.expect_several_starts()
    why = "so many groups of first observations differ in their log-odds beside any second one."
    return starts if n_starts > 1 else None, (Choice("start", n_starts, why),) if find else ()


def _named(start: Any, data: Grouped) -> NDArray[np.integer]:
    array = plain_array(start)
    given = np.empty((0, 0)) if array is None else array
    missing = given.dtype.kind not in "biufSU" or (given.dtype.kind == "f" and np.isnan(given).any())
    if given.shape != (data.tau.n,) or missing:
        raise InvalidDataError(
            f"start must be 'find' or name the start of each of {data.tau.n} trajectories; shape {given.shape} of "
            f"{given.dtype} was given."
        )
    return data.as_grouped(np.unique(given, return_inverse=True)[1].reshape(-1))
