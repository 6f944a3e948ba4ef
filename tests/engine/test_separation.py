"""The compiled separation loss is the plain one, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from craftrl.core.losses import separation_loss
from craftrl.oracles.counting import CountedSeparation


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 5), st.integers(2, 5))
def test_compiled_separation_is_the_plain_one(seed: int, n_clusters: int, n_encoders: int, N_s: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 10**6, n_clusters)
    counts = np.stack([rng.multinomial(size, np.ones(N_s) / N_s, size=n_encoders) for size in sizes])
    new, *state = rng.permutation(n_clusters)[: rng.integers(2, n_clusters + 1)].tolist()
    plain = separation_loss(counts[new], counts[state].sum(axis=0))
    assert CountedSeparation(counts)(new, state) == plain
