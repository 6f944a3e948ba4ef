"""States that look like two: found where two were fused, and not where noise alone differs."""

import numpy as np
import pytest

from craftrl import TrajectoryDataset
from craftrl.diagnostics.mixtures import mixtures
from craftrl.envs import PixelsExBMDP, collect


def world(seed=0, size=3, walkers=2, H=8, n=200):
    made = PixelsExBMDP(H, size, walkers, seed=seed)
    found = collect(made, made.policies(), n, seed=seed)
    return found.tau, found.truth.states


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("misread", [0.0, 0.03, 0.1])
def test_right_states_do_not_look_like_two_whatever_walks_beside(seed, misread):
    tau, states = world(seed)
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random(states.shape) < misread, rng.integers(9, size=states.shape), states)
    assert mixtures(tau, codes, by_step=False) == ()


def test_nor_where_every_step_has_its_own():
    assert mixtures(*world(1, 4, 4), by_step=True) == ()


@pytest.mark.parametrize("pair", [(1, 3), (6, 2), (8, 0), (4, 7)])
def test_two_cells_in_one_state_are_two_groups_of_frames(pair):
    tau, states = world(2)
    one, other = pair
    (found,) = mixtures(tau, np.where(states == other, one, states), by_step=False)
    assert (found.h, found.state) == (None, one)
    assert str(found.finding).startswith(f"State {one} looks like two: its observations lie in two groups")
    share = (states == one).sum() / np.isin(states, pair).sum()
    assert min(abs(part - share) for part in found.shares) < 0.1
    frames = {tau.rows([i])[0, h].tobytes(): states[i, h] for i, h in np.argwhere(np.isin(states, pair))}
    for part in found.frames:
        cells = np.array([frames[x.tobytes()] for x in part])
        assert max((cells == one).mean(), (cells == other).mean()) > 0.8
    assert {round(np.mean([frames[x.tobytes()] == one for x in part])) for part in found.frames} == {0, 1}


def test_a_state_that_an_embedding_tells_apart_is_cut_there():
    """Too few observations for the moves to say anything; that state 4 is two is known."""
    tau, states = world(0, n=20)
    codes = np.where(states == 8, 4, states)
    cell_of = {
        x.tobytes(): cell for x, cell in zip(tau.rows(np.arange(tau.n)).reshape(-1, *tau.obs_shape), states.flat)
    }

    def embed(x):
        return np.array([[cell_of[one.tobytes()] == 8, 0.0] for one in x])

    assert mixtures(tau, codes, by_step=False) == ()
    (found,) = mixtures(tau, codes, by_step=False, known=[(None, 4)], embed=embed)
    assert found.state == 4
    assert sorted(np.unique(embed(part)[:, 0]).tolist() for part in found.frames) == [[0.0], [1.0]]


def test_steps_with_states_of_their_own_name_the_step():
    """At step 5 alone two cells have one number."""
    tau, states = world(0, n=600)
    codes = states.copy()
    codes[:, 4] = np.where(codes[:, 4] == 8, 0, codes[:, 4])
    assert [(found.h, found.state) for found in mixtures(tau, codes, by_step=True)] == [(5, 0)]


def test_feature_vectors_of_many_entries():
    """A thousand noisy measurements, of which a few tell the place."""
    tau, states = world(0, n=300)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(*states.shape, 1000)).astype(np.float32)
    x[..., :9] += 4 * (states[..., None] == np.arange(9))
    vectors = TrajectoryDataset.from_arrays([x[tau.agent_slice(k)] for k in range(2)])
    assert mixtures(vectors, states, by_step=False) == ()
    assert [found.state for found in mixtures(vectors, np.where(states == 8, 2, states), by_step=False)] == [2]
