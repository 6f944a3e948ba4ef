"""What tests of stores share: sizes of a small dataset, what makes two equal, and a model of one."""

import numpy as np

from craftrl import CRAFT, CoordinateOracle

H, M = 5, 9


def same(a, b):
    assert (a.H, a.n, a.K, a.obs_shape, a.dtype) == (b.H, b.n, b.K, b.obs_shape, b.dtype)
    assert np.array_equal(a.agent, b.agent)
    assert np.array_equal(a.lengths, b.lengths)
    for h in range(1, a.H + 1):
        assert np.array_equal(a.at(h), b.at(h))


def fitted(x):
    return CRAFT(CoordinateOracle(2), alpha=1.0, eta=0.2, nu=0.1).fit(x)
