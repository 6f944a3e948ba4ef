"""The Markov chain: against the literal charges, in exact population arithmetic, and where it must refuse."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product

import literal_markov
import numpy as np
import pytest
from literal_counting import random_problem

import craftrl
from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.engine import counting
from craftrl.engine import dependence as engine
from craftrl.engine.packing import View
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.oracles import couplings, finite
from craftrl.oracles.couplings import MarkovChain, shortest_path, through_costs
from studies.efficiency.population import sticky_agents

GRID = Grid.from_bounds(1.0, 0.1)
BOUNDS = {"alpha": np.log(3), "eta": 0.2, "nu": 5 / 32}
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
        bound, settled = charge + chain.dependences[h], chain.settled[h].copy()
        assert (bound <= literal[h]).all()
        assert np.array_equal(bound[settled], literal[h][settled])
        chain.settle((h, *map(np.arange, bound.shape)))
        assert np.array_equal(charge + chain.dependences[h], literal[h])
    some = [0, *np.random.default_rng(0).integers([len(charge[0]) for charge in literal])]
    assert charged(chain, some) == sum(int(literal[h][some[h], some[h + 1]]) for h in range(3))


@pytest.mark.parametrize("example", EXAMPLES[2:4])
def test_small_tiles_change_nothing(example, monkeypatch):
    chain = chain_of(problem_of(*example))
    counter, before, others, after = chain.counter, chain.before[1], chain.seen[1], chain.after[1]

    def found():
        exact, bound = (f(counter, before, others, after) for f in (engine.dependence, engine.likely_dependence))
        return exact, bound, engine.agent_dependence(counter, before, others)

    whole = found()
    monkeypatch.setattr(counting, "TILE_BYTES", 1)
    assert all(map(np.array_equal, found(), whole))


def test_settling_one_encoder_at_a_time_or_on_two_threads_gives_the_same_chain(monkeypatch):
    problems = [problem_of(*example) for example in EXAMPLES]
    expected = [chain_of(problem).shortest(GRID) for problem in problems]
    monkeypatch.setattr(couplings, "AT_ONCE", 1)
    assert [chain_of(problem).shortest(GRID) for problem in problems] == expected
    assert [chain_of(problem, n_threads=2).shortest(GRID) for problem in problems] == expected


def test_it_ends_where_everything_ties(monkeypatch):
    monkeypatch.setattr(couplings, "AT_ONCE", 1)
    x = np.zeros((20, 4, 30), dtype=np.uint8)
    x[::2, 1:, ::3] = 1  # ten equal encoders that know nothing of the agents, and twenty that are constant
    for sample in (x, np.zeros_like(x)):
        f = CoordinateOracle().prepare(TrajectoryDataset.from_arrays([sample, sample])).log_odds(GRID, "markov")
        assert [model.j for model in f.models] == [0, 0, 0]


def test_costs_through_an_encoder_are_those_of_the_best_path():
    rng = np.random.default_rng(0)
    costs = [rng.integers(100, size=shape) for shape in ((2, 3), (3, 4), (4, 2))]
    found = through_costs(costs)
    best = [np.full(size, 10**6) for size in (2, 3, 4, 2)]
    for path in product(*map(range, (2, 3, 4, 2))):
        total = sum(cost[i, j] for cost, i, j in zip(costs, path, path[1:]))
        for h, i in enumerate(path):
            best[h][i] = min(best[h][i], total)
    assert all(np.array_equal(a, b) for a, b in zip(found, best))


# -- what the charges mean ---------------------------------------------------------------------------------------


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
    n_x = p.shape[1] * p.shape[2]
    out = np.zeros((p.shape[0], n_x, code.max() + 1, code_next.max() + 1))
    for a, s, e, t, f in np.ndindex(p.shape):
        out[a, s * p.shape[2] + e, code[s, e], code_next[t, f]] += p[a, s, e, t, f]
    return out


def test_no_pair_of_codes_gains_by_leaving_something_out():
    rng = np.random.default_rng(1)
    plain_wins = 0
    for _ in range(200):
        p = random_pair(rng)
        states = information(p, [0], [3], [1])
        c, c_next = rng.integers(0, 3, size=(2, *p.shape[1:3]))
        joint = coded(p, c, c_next)
        # The agent depends on x through its state alone, so the best psi is the state and leaves nothing out.
        charged = information(joint, [0], [3], [2]) - information(joint, [0], [1], [2])
        assert charged <= states + 1e-12
        plain_wins += information(joint, [0], [3], [2]) > states + 1e-12
    assert plain_wins > 5  # without that part, the plain conditional loss, codes do beat the states


def test_states_depend_on_nothing_but_the_state_before_and_the_agent():
    rng = np.random.default_rng(2)
    for _ in range(20):
        p = random_pair(rng)
        state = np.repeat(np.arange(2)[:, None], 3, axis=1)
        assert information(coded(p, state, state), [1], [3], [0, 2]) == pytest.approx(0, abs=1e-12)
        back = p.transpose(0, 3, 4, 1, 2)
        assert information(coded(back, state, state), [1], [3], [0, 2]) == pytest.approx(0, abs=1e-12)


def test_chance_exceeds_its_allowance_as_often_as_the_level_says():
    rng = np.random.default_rng(3)
    # Thirty codes that have nothing to do with each other, nor with a hundred others.
    x = rng.integers(0, 2, size=(2, 400, 3, 100), dtype=np.uint8)
    prepared = CoordinateOracle().prepare(TrajectoryDataset.from_arrays(list(x)))
    given, target = (View(h, slice(30)) for h in (1, 3))
    exceeded = engine.dependence(prepared.counter, given, View(2), target) > 0
    assert 0.07 < exceeded.mean() < 0.15


# -- in CRAFT ----------------------------------------------------------------------------------------------------


def sticky(n, seed=0):
    """Agents that part at the first step and then hardly move, so that pairs say little."""
    world = BitsExBMDP(horizon=10, n_features=64, seed=seed, entangled=False)
    return world, collect(world, sticky_agents(world), n, seed=seed).tau


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=5, n_features=32, seed=0)
    return collect(world, world.paper_policies(), 1000, seed=0).tau


def test_it_finds_what_the_chain_does_not():
    right = {"chain": 0, "markov": 0}
    for seed in range(3):
        world, tau = sticky(120, seed)
        truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
        for coupling in right:
            f = CoordinateOracle().prepare(tau).log_odds(Grid.from_bounds(0.7, 0.05), coupling)
            right[coupling] += sum(model.j == s for model, s in zip(f.models, truth))
    assert right["markov"] == 27 > right["chain"] + 6


def test_a_model_is_saved_with_its_coupling(tmp_path, tau):
    model = CRAFT(CoordinateOracle(), **BOUNDS, coupling="markov").fit(tau)
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert again.coupling == "markov"
    assert np.array_equal(again.transform(tau), model.transform(tau))


def test_a_class_too_large_is_refused_and_the_chain_taken_by_default(monkeypatch, tau):
    monkeypatch.setattr(finite, "LARGE", 1000)
    model = CRAFT(CoordinateOracle(), **BOUNDS).fit(tau)
    (choice,) = [choice for choice in model.choices_ if choice.parameter == "coupling"]
    assert str(choice).startswith(
        'coupling = chain: "markov" is out of reach: triples of encoders would take about 0 min'
    )
    CRAFT(CoordinateOracle(), **BOUNDS, coupling="markov").fit(tau)  # who asks for it gets it
    monkeypatch.setattr(finite, "TOO_LARGE", 2000)
    with pytest.raises(
        InvalidParameterError, match=r"within reach .* about 0 minutes .* 0.0 GiB; use coupling='chain', "
    ):
        CRAFT(CoordinateOracle(), **BOUNDS, coupling="markov").fit(tau)


def test_sums_that_64_bits_cannot_hold_are_refused(tau):
    """Counts that no test can hold: the engine is told of them."""
    prepared = CoordinateOracle().prepare(tau)
    prepared.counter.running = prepared.counter.running * 10**6  # 8e9 pairs: a chain can add up their losses
    assert prepared.affordable("markov") == ("chain", prepared.affordable("markov")[1])
    assert "the losses of 8e+09 pairs of observations are more than 64 bits can add up" in str(
        prepared.affordable("markov")
    )
    with pytest.raises(InvalidParameterError, match="more than 64 bits can add up; use coupling='chain', fewer"):
        prepared.log_odds(GRID, "markov")
    prepared.counter.running = prepared.counter.running * 3
    assert prepared.affordable("chain")[0] == "independent"


def test_the_memory_that_is_announced_is_what_is_used(monkeypatch):
    """Whether a class is refused, or the chain taken by default, is decided by this number."""
    rng = np.random.default_rng(0)
    tau = TrajectoryDataset.from_arrays([rng.integers(2, size=(20, 5, 256), dtype=np.uint8) for _ in range(2)])
    monkeypatch.setattr(counting, "TILE_BYTES", 2**18)
    prepared = CoordinateOracle(n_threads=1).prepare(tau)
    prepared.log_odds(GRID, "independent")  # everything is packed, and compiled
    announced = 256**2 * (3 * couplings.BYTES_EACH + couplings.BYTES_MADE)  # of pairs from steps 2 to 5
    tracemalloc.start()
    prepared.log_odds(GRID, "markov")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.7 < peak / announced < 1.15
