"""The chain against all paths, one by one."""

import tracemalloc
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT
from craftrl.envs import BitsExBMDP, collect
from craftrl.oracles.chain import (
    agreement,
    chain_posterior,
    most_agreeing,
    posterior_tiled,
    shortest_chain,
    shortest_tiled,
)
from craftrl.states.accuracy import population_accuracy

GRID = Grid.from_bounds(1.0, 0.1)


def random_losses(seed: int, sizes: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 3 * FIXED_POINT, size=shape) for shape in pairwise(sizes)]


def all_paths(losses):
    sizes = [loss.shape[0] for loss in losses] + [losses[-1].shape[1]]
    for path in product(*map(range, sizes)):
        yield path, sum(int(loss[i, j]) for loss, i, j in zip(losses, path, path[1:]))


@given(st.integers(0, 1000), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_shortest_chain_is_the_best_of_all_paths(seed, sizes):
    losses = random_losses(seed, sizes)
    path, cost = shortest_chain(iter(losses))
    assert cost == min(total for _, total in all_paths(losses))
    assert dict(all_paths(losses))[tuple(path)] == cost


@given(st.integers(0, 1000), st.lists(st.integers(1, 6), min_size=2, max_size=5), st.integers(1, 4))
def test_tiles_give_the_same_chain_ties_included(seed, sizes, n_rows):
    losses = [loss % 3 for loss in random_losses(seed, sizes)]  # so few values that ties abound
    tiles = ((h, i, loss[i : i + n_rows]) for h, loss in enumerate(losses) for i in range(0, len(loss), n_rows))
    cost, back = losses[0].min(axis=0), [losses[0].argmin(axis=0)]
    for loss in losses[1:]:
        through = cost[:, None] + loss
        cost, back = through.min(axis=0), [*back, through.argmin(axis=0)]
    path = [int(cost.argmin())]
    for choice in reversed(back):
        path.insert(0, int(choice[path[0]]))
    assert shortest_tiled(tiles) == (path, cost.min())


@given(st.integers(0, 1000), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_posterior_weighs_every_path_by_its_loss(seed, sizes):
    losses = random_losses(seed, sizes)
    weights = chain_posterior(iter(losses), reversed(losses))
    brute = [np.zeros(size) for size in sizes]
    for path, total in all_paths(losses):
        for h, i in enumerate(path):
            brute[h][i] += np.exp(-total / FIXED_POINT)
    for weight, expected in zip(weights, brute):
        assert weight == pytest.approx(expected / expected.sum())


@settings(max_examples=25)
@given(st.integers(0, 1000), st.lists(st.integers(1, 200), min_size=2, max_size=4), st.integers(1, 90))
def test_tiles_give_the_same_posterior_to_the_last_bit(seed, sizes, n_rows):
    losses = random_losses(seed, sizes)

    def tiles(losses):
        return ((h, i, loss[i : i + n_rows]) for h, loss in enumerate(losses) for i in range(0, len(loss), n_rows))

    whole = chain_posterior(losses, reversed(losses))
    assert all(map(np.array_equal, posterior_tiled(tiles(losses), tiles(list(reversed(losses)))), whole))


def test_memory_grows_with_the_class_and_not_with_its_square():
    """Neither the chain nor the posterior holds the losses of all pairs of encoders, 8 MiB a matrix; one pass over
    whole ones took 65 MiB."""
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(2, size=(20, 3, 1024), dtype=np.uint8) for _ in range(2)])
    for coupling in ("chain", "posterior"):
        prepared = CoordinateOracle(n_threads=1, tile_bytes=2**20).prepare(tau)
        prepared.log_odds(GRID, "independent")  # everything is packed, and compiled
        tracemalloc.start()
        prepared.log_odds(GRID, coupling)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * 2**20, coupling


def test_agreement_is_up_to_relabelling():
    counts = np.array([[[[0, 5], [3, 2]]]])
    assert agreement(counts)[0, 0] == pytest.approx(0.8)
    cyclic = np.roll(np.eye(5, dtype=int), 1, axis=1)[None, None]
    assert agreement(cyclic)[0, 0] == 1.0


def test_the_most_agreeing_encoder_need_not_be_the_likeliest():
    weight = np.array([0.4, 0.35, 0.25])
    shares = np.array([[1, 0.5, 0.5], [0.5, 1, 0.9], [0.5, 0.9, 1]])
    assert most_agreeing(weight, shares) == 1


@pytest.mark.parametrize("coupling", ["chain", "posterior", "markov", "tied"])
def test_coupled_steps_need_a_fraction_of_the_data(coupling):
    world = BitsExBMDP(horizon=12, n_features=32, seed=0)
    data = collect(world, world.paper_policies(), 300, seed=0)
    bounds = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
    model = CRAFT(CoordinateOracle(), **bounds, coupling=coupling, relabel=False).fit(data.tau)
    assert population_accuracy(lambda h: [model.encoders_[h]], world).mean() > 0.98
    assert list(model.n_states_) == [1] + [2] * 11
