"""The engine against literal counting: pairs, groups, values, losses; whatever the tiles and threads."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_counting import count_groups, count_pairs, least_losses, random_problem

from craftrl import CoordinateOracle, FiniteOracle, InvalidDataError, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins, softplus_table
from craftrl.engine import counting, kernels
from craftrl.engine.packing import Part, View, pack_coordinates, pack_functions
from craftrl.oracles.starts import one_start_test

GRID = Grid.from_bounds(1.0, 0.2)
GRIDS = [GRID, *(Grid.from_bounds(*bounds) for bounds in ((1.0, 0.5), (1.0, 0.49), (0.3, 0.01), (0.05, 0.001)))]
problems = {"seed": st.integers(0, 10**6), "N_s": st.integers(2, 6), "unequal": st.booleans()}


def prepared(problem, **parameters):
    return FiniteOracle(problem.functions, problem.N_s, **parameters).prepare(problem.tau)


def random_bits(*shapes, high=2, dtype=np.uint8):
    rng = np.random.default_rng(0)
    return TrajectoryDataset.from_arrays([rng.integers(0, high, shape).astype(dtype) for shape in shapes])


@settings(max_examples=60)
@given(K=st.integers(2, 4), **problems)
def test_counts_agree_with_the_literal_ones(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    tau, oracle = problem.tau, prepared(problem)
    for h in range(1, tau.H):
        expected = count_pairs(problem, h)
        assert np.array_equal(oracle.pair_counts(h), expected)
        assert np.array_equal(oracle.pair_counts(h, slice(1, 3)), expected[1:3])
        if K == 2:
            losses = oracle.counter.losses(View(h), View(h + 1), GRID)
            assert np.array_equal(losses, least_losses(expected, GRID).sum(axis=(2, 3)))
    n_groups = seed % 5
    group = np.random.default_rng(seed).integers(-1, max(n_groups, 1), tau.n)
    group[group >= n_groups] = -1
    for h in range(1, tau.H + 1):
        assert np.array_equal(oracle.group_counts(h, group, n_groups), count_groups(problem, h, group, n_groups))
        assert np.array_equal([oracle.values(h, i) for i in range(oracle.n_encoders(h))], problem.values(h))


@settings(max_examples=25)
@given(K=st.integers(2, 4), **problems)
def test_an_encoders_own_pairs_are_those_with_itself(seed, K, N_s, unequal):
    problem = random_problem(seed, K, N_s, unequal=unequal)
    problem.classes = [problem.classes[0]] * problem.tau.H
    for h in range(1, problem.tau.H):
        every = count_pairs(problem, h)
        expected = np.stack([every[i, i] for i in range(len(every))])
        assert np.array_equal(prepared(problem).counter.matched(h), expected)


def test_the_constant_encoder_has_one_value():
    problem = random_problem(3, 2, 3)
    counter = prepared(problem).counter
    counts = counter.pairs(View(0), View(2)).transpose(3, 4, 1, 2, 0)
    assert counts.shape == (1, len(problem.classes[1]), 1, 3, 2)
    assert np.array_equal(counts[0, :, 0], count_pairs(problem, 1)[0].sum(axis=1))
    assert np.array_equal(counter.losses(View(0), View(2), GRID), least_losses(counts, GRID).sum(axis=(2, 3)))


# -- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("grid", [GRID, GRIDS[1], Grid.from_bounds(np.log(2), 0.1)])
@pytest.mark.parametrize("most", [0, 10**7])  # in NumPy always, compiled always
def test_losses_of_more_agents_are_those_of_best_bins(K, grid, most, monkeypatch):
    monkeypatch.setattr(counting, "MAX_ENTRIES", most)
    for seed in range(6):
        problem = random_problem(seed, K, 3, unequal=seed % 2 == 1)
        expected = best_bins(count_pairs(problem, 1), grid)[1].sum(axis=(2, 3))
        assert np.array_equal(prepared(problem).counter.losses(View(1), View(2), grid), expected)


@pytest.mark.parametrize("grid", GRIDS)
def test_trying_every_bin_equals_best_bins(grid):
    """Cells whose log ratio lies as near as can be to a grid point, or halfway between two, or beyond the grid."""
    between = np.arange(0, grid.n_xi + 0.5, 0.5) * grid.xi - grid.n_xi * grid.xi / 2
    near = np.rint(1000 * np.exp(between)).astype(np.int64) + np.array([[-1], [0], [1]])
    cells = np.stack([near.ravel(), np.full(near.size, 1000)], axis=1)
    ends = np.array([[0, 0], [0, 1], [1, 0], [0, 10**6], [10**6, 0], [10**6, 10**6], [1, 1]])
    cells = np.abs(np.concatenate([cells, cells[:, ::-1], ends]))
    out, found = np.empty((1, 1), dtype=np.int64), []
    for cell in cells:
        counts = cell.reshape(2, 1, 1, 1, 1).astype(np.int32)
        kernels.sweep_losses(counts, softplus_table(grid).astype(np.float64), out)
        found.append(int(out[0, 0]))
    assert np.array_equal(found, best_bins(cells, grid)[1])


def test_sums_beyond_float_are_left_to_numpy(monkeypatch):
    """Counts of 2^30 trajectories, which no test can hold: the engine is told of them."""
    counter = CoordinateOracle().prepare(random_bits((3, 2, 1), (3, 2, 1))).counter
    counts = np.array([[[2**30, 2**29], [5, 7]], [[2**28, 2**30], [0, 0]]])  # (U, V, K)
    monkeypatch.setattr(counter, "totals", lambda *views: counts.sum(axis=(0, 1)))
    monkeypatch.setattr(counter, "pairs", lambda p, q: counts.transpose(2, 0, 1)[..., None, None])
    expected = least_losses(counts, GRID).sum()
    assert counter.losses(View(1), View(2), GRID).tolist() == [[expected]]


# -- packing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_features", "N_s"), [(1, 2), (9, 2), (70, 2), (200, 2), (33, 4)])
@pytest.mark.parametrize(
    ("counts", "dtype"),
    [((1, 1), bool), ((63, 65), np.int8), ((600, 511), np.uint8), ((30, 1100, 64), np.int32), ((9, 90), np.uint64)],
)
def test_coordinates_are_packed_in_place(n_features, N_s, counts, dtype):
    tau = random_bits(*((n, 2, n_features) for n in counts), high=N_s if dtype is not bool else 2, dtype=dtype)
    oracle = CoordinateOracle(N_s).prepare(tau)
    for i in range(n_features):
        assert np.array_equal(oracle.values(2, i), tau.at(2)[:, i])


def test_blocks_do_not_change_what_is_packed(monkeypatch):
    tau = random_bits((700, 2, 40), (333, 2, 40))
    whole = pack_coordinates(Part(tau))
    monkeypatch.setattr("craftrl.engine.packing.BLOCK_BYTES", 64 * 40)
    assert len(list(Part(tau).blocks())) == 11 + 6
    assert np.array_equal(pack_coordinates(Part(tau), n_threads=2), whole)
    functions = [lambda x, i=i: x[:, i] for i in range(40)]
    assert np.array_equal(pack_functions(Part(tau), [functions] * 2, 2), whole)


@pytest.mark.parametrize("tile_bytes", [2**14, 2**20])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_tiles_and_threads_do_not_change_the_result(tile_bytes, n_threads, monkeypatch):
    """Wide classes of few trajectories, so that ties abound and many tiles are needed."""
    tau, views = random_bits((9, 4, 301), (9, 4, 301)), [View(h) for h in range(1, 5)]
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
    tau = random_bits((700, 2, 4), (301, 2, 4))
    counter = CoordinateOracle().prepare(tau).counter
    halves = [counter.totals(View(1, half=half)) for half in (0, 1)]
    assert np.array_equal(sum(halves), tau.counts)
    assert halves[0][0] == 350
    assert abs(int(halves[0][1]) - 150) <= 1
    both = [counter.pairs(View(1, half=half), View(2, half=half)) for half in (0, 1)]
    assert np.array_equal(sum(both), counter.pairs(View(1), View(2)))


def test_what_the_first_observation_adds_is_measured_in_nats():
    """Both agents' first bits are fair; one repeats them, the other does the opposite."""
    first = np.arange(400) % 2
    tau = TrajectoryDataset.from_arrays([np.stack([first, first ^ k], axis=1)[..., None] for k in (0, 1)])
    test = one_start_test(CoordinateOracle().prepare(tau))
    assert (test.added, test.total) == (pytest.approx(np.log(2), abs=0.02), pytest.approx(np.log(2), abs=0.02))
    assert test.several
    assert not test.agents_differ


# -- encoders and coordinates that are not what they should be --------------------------------------------------------

THREES = TrajectoryDataset.from_arrays([np.full((70, 2, 3), 3), np.zeros((5, 2, 3), dtype=int)])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, 0] + 0.5, r"encoder 1 returned 3.5..3.5 values, float64"),
        (lambda x: x[:, 0] * np.nan, "an integer in 0..1 .* returned nan"),
        (lambda x: x, r"for each of 70 observations; encoder 1 returned 3..3 values, int64 of shape \(70, 3\)"),
        (lambda x: x[:, 0], r"an integer in 0..1 \(n_values = 2\) .* returned 3..3"),
        (lambda x: x[:, 0] - 4, "returned -1..-1"),
        (lambda x: np.full(len(x), "one"), "returned other values"),
    ],
)
def test_values_that_are_none_are_refused(function, message):
    with pytest.raises(InvalidDataError, match=message):
        FiniteOracle([lambda x: x[:, 0] // 3, function]).prepare(THREES)


def test_encoders_of_another_step_are_read_off_the_observations():
    tau = random_bits((9, 3, 4), (9, 3, 4))
    oracle = FiniteOracle(lambda h: [lambda x: x[:, h], lambda x: x[:, 0]])
    prepared, phi = oracle.prepare(tau), oracle.encoder(2, 0, np.arange(2))
    assert np.array_equal(prepared.read(phi, 2), tau.at(2)[:, 2])
    assert np.array_equal(prepared.read(phi, 3), tau.at(3)[:, 2])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_coordinates_out_of_range_are_refused_and_whole_floats_pass(dtype):
    tau = TrajectoryDataset.from_arrays([np.full((70, 2, 3), 3, dtype=dtype)] * 2)
    with pytest.raises(InvalidDataError, match=r"must lie in 0..1; 3..3 were given"):
        CoordinateOracle().prepare(tau)
    assert CoordinateOracle(4).prepare(tau).values(1, 2).tolist() == [3] * 140
    assert FiniteOracle([lambda x: x[:, 0] / 3.0]).prepare(tau).values(1, 0).sum() == 140


def test_machine_code_is_kept_on_disk():
    compiled = [loop for name, loop in vars(kernels).items() if hasattr(loop, "stats") and not name.startswith("_")]
    assert len(compiled) == 6
    assert all(loop.stats.cache_path for loop in compiled)
