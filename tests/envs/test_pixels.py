"""The pixel world: images that show everything, figures that nothing but their dynamics tells apart."""

import numpy as np
import pytest

from craftrl.envs.pixels import MAX_WALKERS, PixelsExBMDP, floor_plan, grid_moves, pair_shares, spreading_policy
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions


@pytest.mark.parametrize(
    ("size", "layout", "pixels"), [(3, "open", None), (4, "open", 30), (5, "rooms", None), (9, "rooms", 84)]
)
def test_agent_walkers_and_light_can_be_read_off_every_image(size, layout, pixels):
    world = PixelsExBMDP(6, size, MAX_WALKERS, layout=layout, pixels=pixels, seed=size)
    rng = np.random.default_rng(0)
    s, e = rng.integers(world.plan.n_cells, size=40), world.sample_noise(40, rng)
    for h in range(2, 5):
        x = world.emit(s, e, h, rng)
        assert x.shape == (40, *world.obs_shape)
        assert x.dtype == np.uint8
        assert np.array_equal(world.phi_star(x, h), s)
        assert np.array_equal(world.phi_e(x, h), e)
        e = world.step_noise(e, h, rng)


def test_four_rooms_of_nine_by_nine_have_68_cells_joined_by_doors():
    plan = floor_plan(9, "rooms")
    assert plan.n_cells == 68
    reach = np.linalg.matrix_power(plan.adjacency.astype(float), 67) > 0
    assert reach.all()
    assert not floor_plan(4, "open").walls.any()


def test_walkers_never_leave_the_grid_and_keep_their_uniform_marginal():
    world = PixelsExBMDP(8, 3, 3, seed=1)
    rng = np.random.default_rng(0)
    e = world.sample_noise(20_000, rng)
    for h in range(1, 8):
        moved = world.step_noise(e, h, rng)
        assert ((moved[:, -1] - e[:, -1]) % 8).mean() == pytest.approx(0.5, abs=0.02)  # the stripes drift
        assert (moved[:, -2] != e[:, -2]).mean() > 0.3  # the light flickers
        assert (world.plan.adjacency[e[:, :3], moved[:, :3]] | (e[:, :3] == moved[:, :3])).all()
        e = moved
    share = np.bincount(e[:, 1], minlength=9) / len(e)
    assert np.allclose(share, 1 / 9, atol=0.01)


@pytest.mark.parametrize("alpha", [0.6, 1.0])
def test_agents_differ_in_every_cell_by_alpha_and_cover_the_same_pairs(alpha):
    world = PixelsExBMDP(6, 4, 0, seed=0)
    policies = world.policies(2, alpha)
    found = population_assumptions(world, policies)
    assert found.alpha.value == pytest.approx(alpha)
    assert found.eta.value > 0.01
    assert found.nu.value > 0.002


def test_four_agents_come_in_mirrored_pairs():
    world = PixelsExBMDP(4, 3, 0)
    a, b, c, d = (policy.pi(2) for policy in world.policies(4, 0.8))
    product = a * b / (c * d)
    assert np.allclose(product, product[:, :1])  # mirrored tilts cancel up to each cell's normalisation
    assert not np.allclose(a, c)


def test_spreading_policy_reaches_all_cells_more_evenly_than_a_random_walk():
    plan = floor_plan(4, "open")
    random_walk = np.repeat((plan.adjacency / plan.adjacency.sum(1, keepdims=True))[None], 9, axis=0)
    spread, walk = (pair_shares(table)[-1].sum(axis=0).min() for table in (spreading_policy(plan, 10), random_walk))
    assert spread > walk


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PixelsExBMDP(n_walkers=9), "n_walkers must be an integer from 0 to 8"),
        (lambda: PixelsExBMDP(size=4, pixels=20), "pixels must be an integer from 24 .* a cell needs six"),
        (lambda: PixelsExBMDP(size=6, layout="rooms"), "odd size"),
        (lambda: PixelsExBMDP(layout="maze"), "'open', 'rooms'"),
        (lambda: PixelsExBMDP(4, 3, 0).policies(5), "n_agents must be an integer from 2 to 4"),
        (lambda: PixelsExBMDP(4, 3, 0).policies(2, 0.0), "alpha must be a positive number"),
    ],
)
def test_impossible_worlds_and_policies_are_refused(call, message):
    with pytest.raises(InvalidParameterError, match=message):
        call()


def literal_moves(cells):
    """Up, down, left, right, by looking every target up."""
    places = [tuple(cell) for cell in cells.tolist()]
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    table = []
    for here, (row, column) in enumerate(places):
        targets = [(row + down, column + right) for down, right in steps]
        table.append([places.index(target) if target in places else here for target in targets])
    return np.array(table)


@pytest.mark.parametrize("seed", range(10))
def test_moves_are_those_of_a_walk(seed):
    rng = np.random.default_rng(seed)
    free = np.argwhere(rng.random(rng.integers(1, 7, size=2)) < 0.7)
    cells = rng.permutation(np.vstack([[[0, 0]], free[free.any(axis=1)]]))
    assert grid_moves(cells).tolist() == literal_moves(cells).tolist()
