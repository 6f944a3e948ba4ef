"""The kinds of arrays that signatures name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Observations = NDArray[np.generic]  # numbers of any kind: (n, *obs) at one step, (n, H, *obs) for whole trajectories
