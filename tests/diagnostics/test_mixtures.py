"""States that look like two: found where two were fused, and not where noise alone differs."""

import numpy as np
import pytest

from craftrl import TrajectoryDataset
from craftrl.diagnostics.findings import findings_of_checks
from craftrl.diagnostics.mixtures import mixtures
from craftrl.envs import PixelsExBMDP, collect
from small_worlds import to_the_right, walked
from studies.rivals import cut


def world(seed=0, size=3, walkers=2, n=200):
    made = PixelsExBMDP(8, size, walkers, seed=seed)
    found = collect(made, made.policies(), n, seed=seed)
    return found.tau, found.truth.states


def fused(states, one, other):
    return np.where(states == other, one, states)


def named(tau, codes, by_step=False, embed=None):
    return [(found.h, found.state) for found in mixtures(tau, codes, by_step, embed)]


def pixels_as_they_are(x):
    return x.reshape(len(x), -1).astype(float)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("misread", [0.0, 0.03, 0.1])
def test_right_states_do_not_look_like_two_whatever_walks_beside(seed, misread):
    tau, states = world(seed)
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random(states.shape) < misread, rng.integers(9, size=states.shape), states)
    assert named(tau, codes) == []
    assert misread or named(tau, codes, embed=pixels_as_they_are) == []


@pytest.mark.parametrize("seed", [4, 8])
def test_of_all_groups_that_are_tried_one_may_differ_by_chance(seed):
    made = PixelsExBMDP(10, 4, 2, seed=seed)
    clips = cut(collect(made, made.policies(), 200, seed=seed), "clips", seed)
    assert named(clips.tau, clips.truth.states) == []


def test_nor_where_every_step_has_its_own():
    assert named(*world(1, 4, 4), by_step=True) == []


@pytest.mark.parametrize("pair", [(1, 3), (6, 2), (8, 0), (4, 7)])
def test_two_cells_in_one_state_are_two_groups_of_frames(pair):
    tau, states = world(2)
    one, other = pair
    (found,) = mixtures(tau, fused(states, one, other), by_step=False)
    assert (found.h, found.state) == (None, one)
    (told,) = (str(finding) for finding in findings_of_checks(tau, np.full(8, 8), None, None, None, [found]))
    assert told.startswith(f"State {one} looks like two: its observations lie in two groups")
    of_both = np.isin(states, pair)
    assert found.visits == of_both.mean()
    share = (states == one).sum() / of_both.sum()
    assert min(abs(part - share) for part in found.shares) < 0.1
    frames = {tau.rows([i])[0, h].tobytes(): states[i, h] for i, h in np.argwhere(of_both)}
    parts = [np.array([frames[x.tobytes()] == one for x in part]).mean() for part in found.frames]
    assert min(parts) < 0.2 < 0.8 < max(parts)


def test_a_state_that_an_embedding_tells_apart_needs_fewer_trajectories():
    tau, states = world(1, n=50)
    of_frame = zip(tau.rows(np.arange(tau.n)).reshape(-1, *tau.obs_shape), states.flat)
    cell_of = {x.tobytes(): cell for x, cell in of_frame}

    def embed(x):
        return np.array([[cell_of[one.tobytes()] == 8, 0.0] for one in x])

    codes = fused(states, 4, 8)
    assert named(tau, codes) == []
    (found,) = mixtures(tau, codes, by_step=False, embed=embed)
    assert found.state == 4
    assert sorted(np.unique(embed(part)[:, 0]).tolist() for part in found.frames) == [[0.0], [1.0]]


def test_a_state_that_differs_by_what_comes_between_alone_is_two():
    """Places on a ring of six, modulo three: agents and moves are the same, but what is hidden is driven."""
    ring, _ = walked(600, to_the_right(0.3, 0.7, cells=6, ring=True), 6)
    x = np.stack([ring, np.random.default_rng(0).normal(size=ring.shape)], axis=-1)
    tau = TrajectoryDataset.from_arrays([x[:600], x[600:]])
    assert named(tau, ring % 3, embed=lambda x: x) == [(None, s) for s in range(3)]
    assert named(tau, ring, embed=lambda x: x) == []


def test_steps_with_states_of_their_own_name_the_step():
    """At step 5 alone two cells have one number."""
    tau, states = world(0, n=600)
    codes = states.copy()
    codes[:, 4] = fused(codes[:, 4], 0, 8)
    assert named(tau, codes, by_step=True) == [(5, 0)]


def test_feature_vectors_of_many_entries():
    """A thousand noisy measurements, of which a few tell the place."""
    tau, states = world(0, n=300)
    x = np.random.default_rng(0).normal(size=(*states.shape, 1000)).astype(np.float32)
    x[..., :9] += 4 * (states[..., None] == np.arange(9))
    vectors = TrajectoryDataset.from_arrays([x[tau.agent_slice(k)] for k in range(2)])
    assert named(vectors, states) == []
    assert named(vectors, fused(states, 2, 8)) == [(None, 2)]
