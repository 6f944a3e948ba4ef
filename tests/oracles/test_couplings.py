"""Encoders of all steps together: the chain against all paths, the Markov chain against the literal charges."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product

import literal_markov
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_counting import random_problem

import craftrl
from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.engine import counting
from craftrl.engine import dependence as engine
from craftrl.engine.packing import View
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import population_accuracy
from craftrl.oracles import couplings, finite
from craftrl.oracles.couplings import MarkovChain, shortest_path, through_costs
from studies.efficiency.population import sticky_agents

GRID = Grid.from_bounds(1.0, 0.1)
BOUNDS = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}


def random_bits(*shapes):
    rng = np.random.default_rng(0)
    return TrajectoryDataset.from_arrays([rng.integers(2, size=shape, dtype=np.uint8) for shape in shapes])


def all_paths(losses):
    """Every path with its cost."""
    sizes = [loss.shape[0] for loss in losses] + [losses[-1].shape[1]]
    for path in product(*map(range, sizes)):
        yield path, sum(int(loss[i, j]) for loss, i, j in zip(losses, path, path[1:]))


def peak_of(prepared, coupling):
    """The most memory that is taken at once, once everything is packed and compiled."""
    prepared.log_odds(GRID, "independent")
    tracemalloc.start()
    prepared.log_odds(GRID, coupling)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# -- the shortest chain -----------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.lists(st.integers(1, 4), min_size=2, max_size=5), st.integers(1, 4))
def test_the_shortest_chain_is_the_best_of_all_paths_whatever_the_tiles(seed, sizes, n_rows):
    rng = np.random.default_rng(seed)
    losses = [rng.integers(0, 3, size=shape) for shape in pairwise(sizes)]  # so few values that ties abound
    path, cost = shortest_path((h, 0, loss) for h, loss in enumerate(losses))
    every = dict(all_paths(losses))
    assert cost == every[tuple(path)] == min(every.values())
    ties = [found for found, total in every.items() if total == cost]
    assert tuple(path) == min(ties, key=lambda found: found[::-1])  # to the smaller index, from the end backwards
    tiles = ((h, i, loss[i : i + n_rows]) for h, loss in enumerate(losses) for i in range(0, len(loss), n_rows))
    assert shortest_path(tiles) == (path, cost)
    best = [np.full(size, 10**6) for size in sizes]
    for found, total in every.items():
        for h, i in enumerate(found):
            best[h][i] = min(best[h][i], total)
    assert all(map(np.array_equal, through_costs(losses), best))


@pytest.mark.parametrize("one_start", [True, False])
def test_the_chain_that_is_chosen_has_the_least_losses(one_start):
    for seed in range(4):
        problem = random_problem(seed, K=2 + seed % 2, N_s=2 + seed % 3, H=4, unequal=seed > 1)
        oracle = prepared(problem)
        oracle = oracle if one_start else oracle.from_any_start()
        models = oracle.log_odds(GRID, "chain").models
        losses = [best_bins(oracle.pair_counts(h), GRID)[1].sum(axis=(2, 3)) for h in (1, 2, 3)]
        if one_start:  # nothing is seen of x_1
            losses[0] = best_bins(oracle.pair_counts(1)[:1].sum(axis=2), GRID)[1].sum(axis=2)
        path, cost = min(all_paths(losses), key=lambda found: found[1])
        pairs = [int(problem.tau.running(h).sum()) for h in (2, 3, 4)]
        assert sum(f.loss * n for f, n in zip(models, pairs)) == pytest.approx(cost / FIXED_POINT)
        assert models[0].i == (-1 if one_start else path[0])


def test_memory_grows_with_the_class_and_not_with_its_square(monkeypatch):
    """The chain does not hold the losses of all pairs of encoders, 8 MiB a matrix; one pass over whole ones took 65."""
    monkeypatch.setattr(counting, "TILE_BYTES", 2**20)
    oracle = CoordinateOracle(n_threads=1).prepare(random_bits((20, 3, 1024), (20, 3, 1024)))
    assert peak_of(oracle, "chain") < 12 * 2**20


@pytest.mark.parametrize("coupling", ["chain", "markov"])
def test_coupled_steps_need_a_fraction_of_the_data(coupling):
    world = BitsExBMDP(horizon=12, n_features=32, seed=0)
    data = collect(world, world.paper_policies(), 300, seed=0)
    model = CRAFT(CoordinateOracle(), **BOUNDS, coupling=coupling, relabel=False).fit(data.tau)
    assert population_accuracy(lambda h: [model.encoders_[h]], world).mean() > 0.98
    assert list(model.n_states_) == [1] + [2] * 11


# -- the Markov chain -------------------------------------------------------------------------------------------------

EXAMPLES = [(0, 2, 2, False), (1, 2, 2, True), (2, 3, 3, False), (3, 3, 2, True), (4, 2, 4, True), (5, 4, 3, False)]


def problem_of(seed, K, N_s, unequal):
    return random_problem(seed, K=K, N_s=N_s, H=4, unequal=unequal, scale=60)


def prepared(problem, n_threads=1):
    return FiniteOracle(problem.functions, n_values=problem.N_s, n_threads=n_threads).prepare(problem.tau)


def chain_of(problem, one_start=True, n_threads=1):
    return MarkovChain(prepared(problem, n_threads).counter, one_start)


def literal_charges(problem, one_start):
    oracle = prepared(problem)
    values = [[oracle.values(h, i).astype(int) for i in range(oracle.n_encoders(h))] for h in range(1, 5)]
    codes = [[np.zeros_like(values[0][0])], *values[1:]] if one_start else values
    return literal_markov.charges(codes, values, problem.tau.agent, problem.tau.K, GRID)


def charged(chain, path):
    """Losses of the pairs, and what is charged beside them."""
    pairs = enumerate(pairwise(path))
    losses = [int(chain.counter.losses(chain.before[h], chain.after[h], GRID)[i, j]) for h, (i, j) in pairs]
    return sum(losses) + chain.beyond_losses(path, GRID)


@pytest.mark.parametrize(("example", "one_start"), [(e, k % 3 > 0) for k, e in enumerate(EXAMPLES)])
def test_charges_and_chain_are_the_literal_ones(example, one_start):
    problem = problem_of(*example)
    chain, literal = chain_of(problem, one_start), literal_charges(problem, one_start)
    path, cost = shortest_path((h, 0, charge) for h, charge in enumerate(literal))
    assert chain.shortest(GRID) == path
    assert charged(chain, path) == cost
    for h in range(3):
        charge = chain.charge(h, GRID)
        bound, exact = charge + chain.dependences[h], chain.exact[h].copy()
        assert (bound <= literal[h]).all()
        assert np.array_equal(bound[exact], literal[h][exact])
        chain.compute((h, *map(np.arange, bound.shape)))
        assert np.array_equal(charge + chain.dependences[h], literal[h])
    some = [0, *np.random.default_rng(0).integers([len(charge[0]) for charge in literal])]
    assert charged(chain, some) == sum(int(literal[h][some[h], some[h + 1]]) for h in range(3))


@pytest.mark.parametrize("example", EXAMPLES[2:4])
def test_small_tiles_change_nothing(example, monkeypatch):
    chain = chain_of(problem_of(*example))
    counter, before, others, after = chain.counter, chain.before[1], chain.seen[1], chain.after[1]

    def found():
        exact, bound = (f(counter, before, others, after) for f in (engine.full_dependence, engine.dependence_bound))
        return exact, bound, engine.agent_dependence(counter, before, others)

    whole = found()
    monkeypatch.setattr(counting, "TILE_BYTES", 1)
    assert all(map(np.array_equal, found(), whole))


def test_settling_one_encoder_at_a_time_or_on_two_threads_gives_the_same_chain(monkeypatch):
    problems = [problem_of(*example) for example in EXAMPLES]
    expected = [chain_of(problem).shortest(GRID) for problem in problems]
    monkeypatch.setattr(couplings, "AT_ONCE", 1)
    for n_threads in (1, 2):
        assert [chain_of(problem, n_threads=n_threads).shortest(GRID) for problem in problems] == expected
    x = np.zeros((20, 4, 30), dtype=np.uint8)  # where everything ties it ends, too
    x[::2, 1:, ::3] = 1  # ten equal encoders that know nothing of the agents, and twenty that are constant
    for sample in (x, np.zeros_like(x)):
        f = CoordinateOracle().prepare(TrajectoryDataset.from_arrays([sample, sample])).log_odds(GRID, "markov")
        assert [model.j for model in f.models] == [0, 0, 0]


# -- what the charges mean, in exact probabilities --------------------------------------------------------------------


def information(p, of, and_, given):
    """I(of; and_ | given) in nats; p is a joint table, the others are axes of it."""

    def entropy(axes):
        q = p.sum(axis=tuple(a for a in range(p.ndim) if a not in axes))
        q = q[q > 0]
        return -float((q * np.log(q)).sum())

    return entropy([*of, *given]) + entropy([*and_, *given]) - entropy([*of, *and_, *given]) - entropy(given)


def random_pair(rng, n_states=2, n_noise=3, n_agents=2):
    """Pr(agent, s, e, s', e') of two steps of an Ex-BMDP: agents move the state, and the noise moves by itself."""
    start = rng.dirichlet(np.ones(n_states), size=n_agents)
    moves = rng.dirichlet(np.ones(n_states), size=(n_agents, n_states))
    noise, drift = rng.dirichlet(np.ones(n_noise)), rng.dirichlet(np.ones(n_noise), size=n_noise)
    return np.einsum("as,ast,e,ef->asetf", start, moves, noise, drift) / n_agents


def coded(p, code, code_next):
    """Pr(agent, x, c, c') for codes given as tables of (s, e)."""
    out = np.zeros((p.shape[0], p.shape[1] * p.shape[2], code.max() + 1, code_next.max() + 1))
    for a, s, e, t, f in np.ndindex(p.shape):
        out[a, s * p.shape[2] + e, code[s, e], code_next[t, f]] += p[a, s, e, t, f]
    return out


def test_no_pair_of_codes_gains_by_leaving_something_out_and_states_depend_on_nothing_else():
    rng = np.random.default_rng(1)
    plain_wins, state = 0, np.repeat(np.arange(2)[:, None], 3, axis=1)
    for _ in range(200):
        p = random_pair(rng)
        states = information(p, [0], [3], [1])
        c, c_next = rng.integers(0, 3, size=(2, *p.shape[1:3]))
        joint = coded(p, c, c_next)
        # The agent depends on x through its state alone, so the best psi is the state and leaves nothing out.
        charge = information(joint, [0], [3], [2]) - information(joint, [0], [1], [2])
        assert charge <= states + 1e-12
        plain_wins += information(joint, [0], [3], [2]) > states + 1e-12
        for way in (p, p.transpose(0, 3, 4, 1, 2)):
            assert information(coded(way, state, state), [1], [3], [0, 2]) == pytest.approx(0, abs=1e-12)
    assert plain_wins > 5  # without that part, the plain conditional loss, codes do beat the states


def test_chance_exceeds_its_allowance_as_often_as_the_level_says():
    """Thirty codes that have nothing to do with each other, nor with a hundred others."""
    oracle = CoordinateOracle().prepare(random_bits((400, 3, 100), (400, 3, 100)))
    given, target = (View(h, slice(30)) for h in (1, 3))
    assert 0.07 < (engine.full_dependence(oracle.counter, given, View(2), target) > 0).mean() < 0.15


# -- in CRAFT ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=5, n_features=32, seed=0)
    return collect(world, world.paper_policies(), 1000, seed=0).tau


def test_it_finds_what_the_chain_does_not():
    """Agents that part at the first step and then hardly move, so that pairs say little."""
    right = {"chain": 0, "markov": 0}
    for seed in range(3):
        world = BitsExBMDP(horizon=10, n_features=64, seed=seed, entangled=False)
        oracle = CoordinateOracle().prepare(collect(world, sticky_agents(world), 120, seed=seed).tau)
        truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
        for coupling in right:
            f = oracle.log_odds(Grid.from_bounds(0.7, 0.05), coupling)
            right[coupling] += sum(model.j == s for model, s in zip(f.models, truth))
    assert right["markov"] == 27 > right["chain"] + 6


def test_a_class_too_large_is_refused_and_the_chain_taken_by_default(monkeypatch, tau, tmp_path):
    monkeypatch.setattr(finite, "LARGE", 1000)
    model = CRAFT(CoordinateOracle(), **BOUNDS).fit(tau)
    (choice,) = [choice for choice in model.choices_ if choice.parameter == "coupling"]
    assert str(choice).startswith(
        'coupling = chain: "markov" is out of reach: triples of encoders would take about 0 min'
    )
    asked = CRAFT(CoordinateOracle(), **BOUNDS, coupling="markov").fit(tau)  # who asks for it gets it
    asked.save(tmp_path / "model")
    assert craftrl.load(tmp_path / "model").coupling == "markov"
    monkeypatch.setattr(finite, "TOO_LARGE", 2000)
    with pytest.raises(
        InvalidParameterError, match=r"within reach .* about 0 minutes .* 0.0 GiB; use coupling='chain', "
    ):
        CRAFT(CoordinateOracle(), **BOUNDS, coupling="markov").fit(tau)


def test_sums_that_64_bits_cannot_hold_are_refused(tau):
    """Counts that no test can hold: the engine is told of them."""
    oracle = CoordinateOracle().prepare(tau)
    oracle.counter.running = oracle.counter.running * 10**6  # 8e9 pairs: a chain can add up their losses
    other, why = oracle.affordable("markov")
    assert other == "chain"
    assert "the losses of 8e+09 pairs of observations are more than 64 bits can add up" in why
    with pytest.raises(InvalidParameterError, match="more than 64 bits can add up; use coupling='chain', fewer"):
        oracle.log_odds(GRID, "markov")
    oracle.counter.running = oracle.counter.running * 3
    assert oracle.affordable("chain")[0] == "independent"


def test_the_memory_that_is_announced_is_what_is_used(monkeypatch):
    """Whether a class is refused, or the chain taken by default, is decided by this number."""
    monkeypatch.setattr(counting, "TILE_BYTES", 2**18)
    announced = 256**2 * (3 * couplings.BYTES_EACH + couplings.BYTES_MADE)  # of pairs from steps 2 to 5
    oracle = CoordinateOracle(n_threads=1).prepare(random_bits((20, 5, 256), (20, 5, 256)))
    assert 0.7 < peak_of(oracle, "markov") / announced < 1.15
