"""The engine against counting on one's fingers: every count and every loss, exactly."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_counting import count_groups, count_pairs, losses_of_pairs, random_problem

from craftrl import TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins
from craftrl.engine import (
    bins,
    constant_step,
    group_counts,
    pack_coordinates,
    pack_functions,
    pair_counts,
    pair_losses,
)
from craftrl.engine.counting import best_in_rows, row_tiles
from craftrl.engine.engine import Engine

GRID = Grid.from_bounds(1.0, 0.2)


def packed(problem):
    return [pack_functions(problem.tau, h, problem.functions(h), problem.N_s) for h in range(1, problem.tau.H + 1)]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), N_s=st.integers(2, 6), unequal=st.booleans())
def test_counts_agree_with_the_literal_ones(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    steps = packed(problem)
    for h in range(1, problem.tau.H):
        assert np.array_equal(pair_counts(steps[h - 1], steps[h]), count_pairs(problem, h))


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), N_s=st.integers(2, 6), unequal=st.booleans())
def test_losses_agree_with_the_literal_ones(seed, N_s, unequal):
    problem = random_problem(seed, 2, N_s, unequal=unequal)
    steps = packed(problem)
    for h in range(1, problem.tau.H):
        assert np.array_equal(pair_losses(steps[h - 1], steps[h], GRID), losses_of_pairs(count_pairs(problem, h), GRID))


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), N_s=st.integers(2, 6), unequal=st.booleans())
def test_groups_and_values_agree_with_the_literal_ones(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    steps = packed(problem)
    n_groups = seed % 5
    group = np.random.default_rng(seed).integers(-1, max(n_groups, 1), problem.tau.n)
    group[group >= n_groups] = -1
    for h, step in enumerate(steps, start=1):
        assert np.array_equal(group_counts(step, group, n_groups), count_groups(problem, h, group, n_groups))
        for i in range(step.size):
            expected = [problem.value(h, i, t) if there else -1 for t, there in enumerate(problem.tau.present(h))]
            assert np.array_equal(step.values(i), expected)


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("grid", [GRID, Grid.from_bounds(1.0, 0.5), Grid.from_bounds(np.log(2), 0.1)])
@pytest.mark.parametrize("table_limit", [0, 10**7])  # in NumPy always, compiled always
def test_losses_of_more_agents_are_those_of_best_bins(K, grid, table_limit, monkeypatch):
    monkeypatch.setattr(bins, "TABLE_LIMIT", table_limit)
    for seed in range(8):
        problem = random_problem(seed, K, 3, unequal=seed % 2 == 1)
        steps = packed(problem)
        expected = best_bins(count_pairs(problem, 1), grid)[1].sum(axis=(2, 3))
        assert np.array_equal(pair_losses(steps[0], steps[1], grid), expected)


@pytest.mark.parametrize(("n_features", "N_s"), [(1, 2), (9, 2), (64, 2), (70, 2), (200, 2), (33, 4)])
@pytest.mark.parametrize("counts", [(1, 1), (63, 65), (600, 511), (30, 1100, 64)])
def test_coordinates_are_packed_in_place(n_features, N_s, counts):
    rng = np.random.default_rng(n_features)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, N_s, (n, 2, n_features), dtype=np.uint8) for n in counts])
    step = pack_coordinates(tau, 2, N_s)
    for i in range(n_features):
        assert np.array_equal(step.values(i), tau.at(2)[:, i])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.uint64])
def test_coordinates_of_any_integer_type(dtype):
    x = np.random.default_rng(0).integers(0, 2, (2, 90, 3, 5)).astype(dtype)
    step = pack_coordinates(TrajectoryDataset.from_arrays(x), 1)
    assert np.array_equal(step.values(4), x[:, :, 0, 4].ravel())


def test_blocks_do_not_change_what_is_packed(monkeypatch):
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 2, (n, 2, 40), dtype=np.uint8) for n in (700, 333)])
    whole = pack_coordinates(tau, 1)
    read = tau.blocks
    monkeypatch.setattr(tau, "blocks", lambda h: read(h, block_bytes=64 * 40))
    assert np.array_equal(pack_coordinates(tau, 1).planes, whole.planes)


def test_the_constant_encoder_has_one_value():
    problem = random_problem(3, 2, 3)
    step, following = constant_step(problem.tau, 1), packed(problem)[1]
    counts = pair_counts(step, following)
    assert counts.shape == (1, following.size, 1, 3, 2)
    assert np.array_equal(counts[0, :, 0], count_pairs(problem, 1)[0].sum(axis=1))
    assert np.array_equal(pair_losses(step, following, GRID), losses_of_pairs(counts, GRID))


@pytest.mark.parametrize("tile_bytes", [2**16, 2**20])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_tiles_and_threads_do_not_change_the_result(tile_bytes, n_threads):
    """Wide classes of few trajectories, so that ties abound and many tiles are needed."""
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 2, (9, 4, 700), dtype=np.uint8) for _ in range(2)])
    steps = [pack_coordinates(tau, h) for h in range(1, 5)]
    whole = [pair_losses(*two, GRID) for two in pairwise(steps)]
    engine = Engine(n_threads=n_threads, tile_bytes=tile_bytes)
    for losses, again in zip(whole, engine.all_losses(steps, GRID), strict=True):
        assert np.array_equal(losses, again)
    tiles = [np.empty((0, 700), dtype=np.int64) for _ in whole]
    for h, first, rows in engine.loss_tiles(steps, GRID):
        assert len(tiles[h]) == first
        tiles[h] = np.concatenate([tiles[h], rows])
    assert all(map(np.array_equal, whole, tiles))
    expected = [divmod(int(np.argmin(losses)), 700) for losses in whole]
    assert engine.best_pairs(steps, GRID) == expected
    assert len(list(row_tiles(steps[0], steps[1], tile_bytes))) > (tile_bytes < 2**20)
    assert best_in_rows(steps[0], steps[1], GRID, slice(100, 300))[1:] == divmod(
        int(np.argmin(whole[0][100:300])) + 100 * 700, 700
    )
