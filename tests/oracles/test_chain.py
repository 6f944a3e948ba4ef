"""The chain against all paths, one by one."""

import tracemalloc
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_counting import random_problem

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.engine import counting
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import population_accuracy
from craftrl.oracles.couplings import shortest_path

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
    path, cost = shortest_path((h, 0, loss) for h, loss in enumerate(losses))
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
    assert shortest_path(tiles) == (path, cost.min())


def test_memory_grows_with_the_class_and_not_with_its_square(monkeypatch):
    """The chain does not hold the losses of all pairs of encoders, 8 MiB a matrix; one pass over whole ones took 65."""
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(2, size=(20, 3, 1024), dtype=np.uint8) for _ in range(2)])
    monkeypatch.setattr(counting, "TILE_BYTES", 2**20)
    prepared = CoordinateOracle(n_threads=1).prepare(tau)
    prepared.log_odds(GRID, "independent")  # everything is packed, and compiled
    tracemalloc.start()
    prepared.log_odds(GRID, "chain")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 2**20


@pytest.mark.parametrize("one_start", [True, False])
def test_the_chain_that_is_chosen_has_the_least_losses(one_start):
    for seed in range(4):
        problem = random_problem(seed, K=2 + seed % 2, N_s=2 + seed % 3, H=4, unequal=seed > 1)
        prepared = FiniteOracle(problem.functions, problem.N_s).prepare(problem.tau)
        prepared = prepared if one_start else prepared.from_any_start()
        models = prepared.log_odds(GRID, "chain").models
        losses = [best_bins(prepared.pair_counts(h), GRID)[1].sum(axis=(2, 3)) for h in (1, 2, 3)]
        if one_start:  # nothing is seen of x_1
            losses[0] = best_bins(prepared.pair_counts(1)[:1].sum(axis=2), GRID)[1].sum(axis=2)
        path, cost = min(all_paths(losses), key=lambda found: found[1])
        pairs = [int(problem.tau.running(h).sum()) for h in (2, 3, 4)]
        assert sum(f.loss * n for f, n in zip(models, pairs)) == pytest.approx(cost / FIXED_POINT)
        assert models[0].i == (-1 if one_start else path[0])


@pytest.mark.parametrize("coupling", ["chain", "markov"])
def test_coupled_steps_need_a_fraction_of_the_data(coupling):
    world = BitsExBMDP(horizon=12, n_features=32, seed=0)
    data = collect(world, world.paper_policies(), 300, seed=0)
    bounds = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
    model = CRAFT(CoordinateOracle(), **bounds, coupling=coupling, relabel=False).fit(data.tau)
    assert population_accuracy(lambda h: [model.encoders_[h]], world).mean() > 0.98
    assert list(model.n_states_) == [1] + [2] * 11
