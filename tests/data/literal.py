"""A dataset as what it stands for, a list of episodes; and all that can be read of one, compared with that list."""

import numpy as np
from hypothesis import strategies as st

# Shapes and types of an observation; the last fills more than a page of a disk, so that frames are read one by one.
KINDS = [((), "u1"), ((3,), "f4"), ((2,), "?"), ((4, 4, 3), "u1"), ((2,), "i4"), ((33, 33, 4), "u1")]


@st.composite
def trajectories(draw):
    """The agent of each trajectory and its observations (length, *obs): first one of each agent, then any."""
    (shape, dtype), K = draw(st.sampled_from(KINDS)), draw(st.integers(2, 4))
    agent = [*range(K), *draw(st.lists(st.integers(0, K - 1), max_size=8))]
    lengths = draw(st.lists(st.integers(1, 6), min_size=len(agent), max_size=len(agent)))
    lengths[0] += 1  # one of two steps at least
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return agent, [rng.integers(100, size=(n, *shape)).astype(dtype) for n in lengths]


def by_agent(agent, episodes):
    """A list of episodes for each agent."""
    return [[x for k, x in zip(agent, episodes) if k == own] for own in range(max(agent) + 1)]


def assert_is(tau, agent, episodes):
    """All that can be read of the dataset is what the list says, grouped by agent, and 0 past the end of an episode."""
    own = [x for episodes_of_one in by_agent(agent, episodes) for x in episodes_of_one]
    n, H, lengths = len(own), max(map(len, own)), np.array(list(map(len, own)))
    padded = np.zeros((n, H, *own[0].shape[1:]), own[0].dtype)
    for row, x in zip(padded, own):
        row[: len(x)] = x
    assert (tau.n, tau.H, tau.K, tau.obs_shape, tau.dtype) == (n, H, max(agent) + 1, *(own[0].shape[1:], own[0].dtype))
    assert (tau.agent.tolist(), tau.lengths.tolist()) == (sorted(agent), lengths.tolist())
    assert tau.counts.tolist() == [list(agent).count(k) for k in range(tau.K)]
    assert all((tau.agent[tau.agent_slice(k)] == k).all() for k in range(tau.K))
    assert all(np.array_equal(tau.episode(i), x) for i, x in enumerate(own))
    some = np.random.default_rng(n).integers(n, size=n)
    assert np.array_equal(tau.rows(np.arange(n)), padded)
    assert np.array_equal(tau.rows(some), padded[some])
    for h in range(1, H + 1):
        assert np.array_equal(tau.at(h), padded[:, h - 1])
        assert np.array_equal(tau.at(h, some), padded[some, h - 1])
        assert np.array_equal(tau.present(h), lengths >= h)
        assert tau.running(h).tolist() == [(lengths[tau.agent == k] >= h).sum() for k in range(tau.K)]
    for h, seen in ((None, padded), (H, padded[:, -1])):
        blocks = list(tau.blocks(1, h))
        assert [i for rows, _ in blocks for i in range(n)[rows]] == list(range(n))
        assert all(np.array_equal(seen[rows], x) for rows, x in blocks)
