"""The library and the literal Algorithm 2 decide the same, everywhere, on hundreds of random small problems."""

import warnings

import numpy as np
import pytest

import reference
from craftrl import CRAFT, AssumptionWarning, FiniteOracle
from random_worlds import random_problem


def assert_same_decisions(seed: int, n_per_agent: int, unequal: bool = False) -> None:
    rng = np.random.default_rng([seed, n_per_agent])
    problem = random_problem(rng, n_per_agent, unequal=unequal)
    alpha, eta, nu = rng.choice([0.3, 0.7, 1.0, 2.0]), rng.choice([0.05, 0.2, 0.4, 0.5]), rng.choice([0.02, 0.1, 0.3])
    tau = problem.tau
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        model = CRAFT.paper(FiniteOracle(problem.functions, problem.N_s), alpha=alpha, eta=eta, nu=nu).fit(tau)
    truth = reference.craft(*problem.episodes, alpha, eta, nu, problem.functions, problem.N_s)

    assert np.allclose(model.trace_.grid.values, truth.xi_values)
    owner = [(k, i) for k, episodes in enumerate(problem.episodes) for i in range(len(episodes))]
    for h in range(1, tau.H + 1):
        assert list(model.labels_[:, h - 1]) == [truth.label(h, k, i) for k, i in owner]
        assert model.n_states_[h] == len(truth.D_A[h - 1])
    for h in range(1, tau.H):
        f, (i, j, table) = model.trace_.models[h - 1], truth.f[h - 1]
        assert (f.i, f.j) == (i, j)
        seen = {(problem.tables[h - 1][i][x[h - 1]], problem.tables[h][j][x[h]]) for x in all_pairs(problem, h)}
        assert all(f.table[cell][0] == table[cell] for cell in seen)
        made = [(c.cluster, c.state, c.loss, c.merged) for c in model.trace_[h].comparisons]
        assert made == [(c, s, float(loss), merged) for c, s, loss, merged in truth.merges[h - 1]]
        encoder = model.encoders_[h + 1]
        assert (encoder.index, tuple(encoder.state_of)) == truth.encoders[h - 1]


def all_pairs(problem, h):
    return [x for episodes in problem.episodes for x in episodes if len(x) > h]


@pytest.mark.parametrize("n_per_agent", [3, 12, 60])
@pytest.mark.parametrize("block", range(10))
def test_agrees_with_the_literal_algorithm(block, n_per_agent):
    for seed in range(10):
        assert_same_decisions(10 * block + seed, n_per_agent)


@pytest.mark.parametrize("seed", range(30))
def test_agrees_when_trajectories_end_early(seed):
    assert_same_decisions(1000 + seed, 25, unequal=True)
