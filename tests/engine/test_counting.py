"""The engine against counting on one's fingers: pairs, groups, values, losses; whatever the tiles and threads."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_counting import count_groups, count_pairs, losses_of_pairs, random_problem

from craftrl import FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins
from craftrl.engine import counting
from craftrl.engine.packing import Part, View, pack_coordinates, pack_functions
from craftrl.oracles import CoordinateOracle

GRID = Grid.from_bounds(1.0, 0.2)


def prepared(problem, **parameters):
    return FiniteOracle(problem.functions, problem.N_s, **parameters).prepare(problem.tau)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), N_s=st.integers(2, 6), unequal=st.booleans())
def test_counts_agree_with_the_literal_ones(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    for h in range(1, problem.tau.H):
        assert np.array_equal(prepared(problem).pair_counts(h), count_pairs(problem, h))
        assert np.array_equal(prepared(problem).pair_counts(h, slice(1, 3)), count_pairs(problem, h)[1:3])


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), N_s=st.integers(2, 6), unequal=st.booleans())
def test_losses_agree_with_the_literal_ones(seed, N_s, unequal):
    problem = random_problem(seed, 2, N_s, unequal=unequal)
    counter = prepared(problem).counter
    for h in range(1, problem.tau.H):
        found = counter.losses(View(h), View(h + 1), GRID)
        assert np.array_equal(found, losses_of_pairs(count_pairs(problem, h), GRID))


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), N_s=st.integers(2, 6), unequal=st.booleans())
def test_groups_and_values_agree_with_the_literal_ones(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    oracle = prepared(problem)
    n_groups = seed % 5
    group = np.random.default_rng(seed).integers(-1, max(n_groups, 1), problem.tau.n)
    group[group >= n_groups] = -1
    for h in range(1, problem.tau.H + 1):
        assert np.array_equal(oracle.group_counts(h, group, n_groups), count_groups(problem, h, group, n_groups))
        for i in range(oracle.n_encoders(h)):
            expected = [problem.value(h, i, t) if there else -1 for t, there in enumerate(problem.tau.present(h))]
            assert np.array_equal(oracle.values(h, i), expected)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 4), N_s=st.integers(2, 6), unequal=st.booleans())
def test_an_encoders_own_pairs_are_those_with_itself(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    problem.classes = [problem.classes[0]] * problem.tau.H
    for h in range(1, problem.tau.H):
        every = count_pairs(problem, h)
        expected = np.stack([every[i, i] for i in range(len(every))])
        assert np.array_equal(prepared(problem).counter.matched(h), expected)


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("grid", [GRID, Grid.from_bounds(1.0, 0.5), Grid.from_bounds(np.log(2), 0.1)])
@pytest.mark.parametrize("most", [0, 10**7])  # in NumPy always, compiled always
def test_losses_of_more_agents_are_those_of_best_bins(K, grid, most, monkeypatch):
    monkeypatch.setattr(counting, "MOST_ENTRIES", most)
    for seed in range(8):
        problem = random_problem(seed, K, 3, unequal=seed % 2 == 1)
        expected = best_bins(count_pairs(problem, 1), grid)[1].sum(axis=(2, 3))
        assert np.array_equal(prepared(problem).counter.losses(View(1), View(2), grid), expected)


@pytest.mark.parametrize(("n_features", "N_s"), [(1, 2), (9, 2), (64, 2), (70, 2), (200, 2), (33, 4)])
@pytest.mark.parametrize("counts", [(1, 1), (63, 65), (600, 511), (30, 1100, 64)])
def test_coordinates_are_packed_in_place(n_features, N_s, counts):
    rng = np.random.default_rng(n_features)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, N_s, (n, 2, n_features), dtype=np.uint8) for n in counts])
    oracle = CoordinateOracle(N_s).prepare(tau)
    for i in range(n_features):
        assert np.array_equal(oracle.values(2, i), tau.at(2)[:, i])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.uint64])
def test_coordinates_of_any_integer_type(dtype):
    x = np.random.default_rng(0).integers(0, 2, (2, 90, 3, 5)).astype(dtype)
    oracle = CoordinateOracle().prepare(TrajectoryDataset.from_arrays(x))
    assert np.array_equal(oracle.values(1, 4), x[:, :, 0, 4].ravel())


def test_blocks_do_not_change_what_is_packed(monkeypatch):
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 2, (n, 2, 40), dtype=np.uint8) for n in (700, 333)])
    whole = pack_coordinates(Part(tau))
    monkeypatch.setattr("craftrl.engine.packing.BLOCK_BYTES", 64 * 40)
    assert len(list(Part(tau).blocks())) == 11 + 6
    assert np.array_equal(pack_coordinates(Part(tau), n_threads=2), whole)
    functions = [lambda x, i=i: x[:, i] for i in range(40)]
    assert np.array_equal(pack_functions(Part(tau), [functions] * 2, 2), whole)


def test_the_constant_encoder_has_one_value():
    problem = random_problem(3, 2, 3)
    counter = prepared(problem).counter
    counts = counter.pairs(View(0), View(2)).transpose(3, 4, 1, 2, 0)
    assert counts.shape == (1, len(problem.classes[1]), 1, 3, 2)
    assert np.array_equal(counts[0, :, 0], count_pairs(problem, 1)[0].sum(axis=1))
    assert np.array_equal(counter.losses(View(0), View(2), GRID), losses_of_pairs(counts, GRID))


@pytest.mark.parametrize("tile_bytes", [2**14, 2**20])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_tiles_and_threads_do_not_change_the_result(tile_bytes, n_threads, monkeypatch):
    """Wide classes of few trajectories, so that ties abound and many tiles are needed."""
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 2, (9, 4, 301), dtype=np.uint8) for _ in range(2)])
    views = [View(h) for h in range(1, 5)]
    counter = CoordinateOracle(n_threads=1).prepare(tau).counter
    whole = [counter.losses(*two, GRID) for two in pairwise(views)]
    monkeypatch.setattr(counting, "TILE_BYTES", tile_bytes)
    counter = CoordinateOracle(n_threads=n_threads).prepare(tau).counter
    tiles = [np.empty((0, 301), dtype=np.int64) for _ in whole]
    for h, first, rows in counter.tiles(views, GRID):
        assert len(tiles[h]) == first
        assert len(rows) < 301 or tile_bytes == 2**20
        tiles[h] = np.concatenate([tiles[h], rows])
    assert all(map(np.array_equal, whole, tiles))
    assert counter.best_pairs(views, GRID) == [divmod(int(np.argmin(losses)), 301) for losses in whole]


def test_halves_are_each_agents_own_and_split_neighbours():
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(0, 2, (n, 2, 4), dtype=np.uint8) for n in (700, 301)])
    counter = CoordinateOracle().prepare(tau).counter
    halves = [counter.totals(View(1, half=half)) for half in (0, 1)]
    assert np.array_equal(sum(halves), tau.counts)
    assert halves[0][0] == 350
    assert abs(int(halves[0][1]) - 150) <= 1
    both = [counter.pairs(View(1, half=half), View(2, half=half)) for half in (0, 1)]
    assert np.array_equal(sum(both), counter.pairs(View(1), View(2)))
