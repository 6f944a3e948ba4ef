"""Tables tied over time: the path against all paths, what is found and what is left, and where it must refuse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from literal_counting import random_problem

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.engine.engine import Engine
from craftrl.engine.tying import TiedPair, log_table
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.oracles import tied
from craftrl.oracles.markov import MarkovChain
from craftrl.oracles.tied import TiedChain
from studies.efficiency.tied import restless_agents

GRID = Grid.from_bounds(1.0, 0.1)


def chain_of(problem, one_start=True):
    prepared = FiniteOracle(problem.functions, n_values=problem.N_s).prepare(problem.tau)
    seen = [prepared.step(h) for h in range(1, problem.tau.H + 1)]
    codes = [prepared._start, *seen[1:]] if one_start else seen
    return TiedChain(MarkovChain(codes, seen, Engine(n_threads=1)))


def codes_of(tau, coupling, grid=GRID):
    return [f.j for f in CoordinateOracle().prepare(tau).log_odds(grid, coupling).models]


def world_and_data(n, seed=0, agents=None, **settings):
    world = BitsExBMDP(**({"horizon": 16, "n_features": 24, "entangled": False} | settings), seed=seed)
    return world, collect(world, world.paper_policies() if agents is None else agents(world), n, seed=seed).tau


@pytest.mark.parametrize(("seed", "K", "N_s", "one_start"), [(0, 2, 2, True), (1, 3, 2, False), (2, 2, 3, True)])
def test_given_a_table_no_path_is_shorter(seed, K, N_s, one_start):
    problem = random_problem(seed, K=K, N_s=N_s, H=3, scale=40)
    problem.classes[:] = [some[:3] for some in problem.classes]
    chain = chain_of(problem, one_start)
    table = log_table(np.random.default_rng(seed).integers(0, 20, size=(N_s, N_s, K)))
    untied = chain.markov.charges(GRID)[: chain.first]
    charges = [pair.charges(table, chain.names) for pair in chain.tied]
    nodes, cost = chain._settled(untied, charges)
    for h, known in enumerate(chain.markov.settled):  # settle all that is left
        chain.markov._settle_pair((h, *map(np.arange, known.shape)))
    whole = list(chain._charges(untied, charges))
    P = len(chain.names)
    costs = {
        path: sum(
            int(charge[a, b] + d[a // P, b // P])
            for charge, d, a, b in zip(whole, chain.markov.dependences, path, path[1:])
        )
        for path in product(*map(range, (whole[0].shape[0], *(charge.shape[1] for charge in whole))))
    }
    assert cost == min(costs.values()) == costs[tuple(nodes)]


def test_it_finds_what_tables_for_every_step_do_not():
    right = {"markov": 0, "tied": 0}
    for seed in range(3):
        world, tau = world_and_data(80, seed, n_features=48)
        truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
        for coupling in right:
            right[coupling] += sum(a == b for a, b in zip(codes_of(tau, coupling), truth))
    assert right["tied"] == 45 > right["markov"] + 20


def test_habits_that_change_over_time_are_left_to_the_markov_chain():
    for seed in range(2):
        _, tau = world_and_data(200, seed, lambda world, seed=seed: restless_agents(world, seed))
        assert codes_of(tau, "tied") == codes_of(tau, "markov")


def test_names_of_values_do_not_matter():
    _, tau = world_and_data(80)
    x = np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    flipped = x ^ np.random.default_rng(0).integers(0, 2, size=x.shape[1:], dtype=np.uint8)
    again = TrajectoryDataset.from_arrays([flipped[tau.agent == k] for k in range(2)])
    assert codes_of(again, "tied") == codes_of(tau, "tied")


def test_answers_do_not_depend_on_what_was_asked_before():
    _, tau = world_and_data(60)
    prepared = CoordinateOracle().prepare(tau)
    for grid, coupling in ((Grid.from_bounds(0.5, 0.2), "tied"), (GRID, "markov"), (GRID, "chain")):
        prepared.log_odds(grid, coupling)
    assert [f.j for f in prepared.log_odds(GRID, "tied").models] == codes_of(tau, "tied")


@pytest.mark.parametrize("H", [2, 3])
def test_too_few_steps_to_tie_give_the_markov_chain(H):
    _, tau = world_and_data(100, horizon=H)
    assert codes_of(tau, "tied") == codes_of(tau, "markov")


def test_starts_are_the_whole_its_halves_and_so_on():
    problem = random_problem(0, H=14)
    chain = chain_of(problem)
    path = [0] * 14
    leading, tables = zip(*chain._starts(path))
    assert list(leading) == [True, True, False, True, False, False, False]  # twelve pairs: three or more each
    sums = [visits.sum() for visits in tables]
    assert sums[0] == sums[1] + sums[2] == sum(sums[3:]) == 12 * problem.tau.n


def test_three_values_and_a_class_too_large(monkeypatch):
    rng = np.random.default_rng(0)
    right = np.repeat([0.2, 0.8], 300)
    cell = np.ones((600, 8), dtype=np.uint8)
    for h in range(1, 8):
        cell[:, h] = np.clip(cell[:, h - 1] + np.where(rng.random(600) < right, 1, -1), 0, 2)
    x = np.stack([rng.integers(3, size=cell.shape), cell, rng.integers(3, size=cell.shape)], axis=-1).astype(np.uint8)
    model = CRAFT(CoordinateOracle(n_values=3), alpha=1.0, eta=0.1, nu=0.02, coupling="tied").fit(x, right)
    assert [f.j for f in model.trace_.models] == [1] * 7
    monkeypatch.setattr(tied, "TOO_LARGE", 2000)
    with pytest.raises(InvalidParameterError, match=r"every order of 3 values .* up to 3 encoders on 8 steps"):
        CRAFT(CoordinateOracle(n_values=3), alpha=1.0, eta=0.1, nu=0.02, coupling="tied").fit(x, right)


def test_a_table_of_all_moves_is_never_impossible():
    cells = np.zeros((1, 1, 2, 2, 2), dtype=np.int64)
    cells[0, 0, 0, 0] = 5, 5  # nobody ever moves
    table = log_table(cells[0, 0])
    assert np.isfinite(table).all()
    assert np.isfinite(TiedPair(cells).charges(table, np.array([[0, 1], [1, 0]]))).all()
