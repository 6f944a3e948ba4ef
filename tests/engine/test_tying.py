"""Charges under one table for all steps: against a version that goes through them one at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from literal_counting import count_pairs, random_problem
from scipy.stats import chi2

from craftrl.engine.tying import TiedPair, labellings, log_table, pooled

NAT = 2**30
EXAMPLES = [(0, 2, 2, False), (1, 2, 2, True), (2, 3, 3, False), (3, 3, 2, True)]


def random_table(rng, N_s, K):
    return log_table(rng.integers(0, 20, size=(N_s, N_s, K)))


def literal_charge(cells, table, first, second):
    """One pair of codes with its values named: nats."""
    N_s, _, K = cells.shape
    said, far, seen = 0.0, 0.0, 0
    for u, v, k in np.ndindex(cells.shape):
        n, of = cells[u, v, k], cells[u, :, k].sum()
        if n:
            log_p = table[first[u], second[v]]
            shares = cells[u].sum(axis=0) / cells[u].sum()
            said -= n * (log_p[k] - math.log(sum(shares[b] * math.exp(log_p[b]) for b in range(K))))
            far += n * (math.log(n / of) - log_p[k])
        seen += v == 0 and of > 0
    return said + max(0.0, far - chi2.isf(0.1, seen * (N_s - 1)) / 2)


@pytest.mark.parametrize("example", EXAMPLES)
def test_charges_are_the_literal_ones(example):
    seed, K, N_s, unequal = example
    problem, rng = random_problem(seed, K=K, N_s=N_s, unequal=unequal), np.random.default_rng(seed)
    cells, table, names = count_pairs(problem, 2), random_table(rng, N_s, K), labellings(N_s)
    found, P = TiedPair(cells).charges(table, names), len(names)
    for i, p, j, q in np.ndindex(len(cells), P, cells.shape[1], P):
        literal = literal_charge(cells[i, j], table, names[p], names[q])
        assert found[i * P + p, j * P + q] / NAT == pytest.approx(literal, abs=1e-6)


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_table_charges_less_than_a_pairs_own(example):
    seed, K, N_s, unequal = example
    cells = count_pairs(random_problem(seed, K=K, N_s=N_s, unequal=unequal), 2)
    pair, rng, names = TiedPair(cells), np.random.default_rng(seed), labellings(N_s)
    I, J = cells.shape[:2]
    own = np.array([[pair.own_charge(i, j) for j in range(J)] for i in range(I)])
    for _ in range(20):
        charges = pair.charges(random_table(rng, N_s, K), names).reshape(I, len(names), J, len(names))
        assert (charges >= own[:, None, :, None] - 1000).all()  # each count rounds to half a unit of 2^-30 nats


def test_a_pair_by_itself_is_charged_the_same():
    cells, rng = count_pairs(random_problem(4, N_s=3), 2), np.random.default_rng(4)
    pair, table, names = TiedPair(cells), random_table(rng, 3, 2), labellings(3)
    i, j = cells.shape[0] - 1, cells.shape[1] - 1
    assert np.array_equal(pair.only(i, j).charges(table, names), pair.charges(table, names)[-6:, -6:])


def test_visits_are_those_of_the_named_states():
    cells = np.arange(8).reshape(2, 2, 2)
    assert np.array_equal(pooled(cells, [0, 1], [0, 1]), cells)
    assert np.array_equal(pooled(cells, [1, 0], [0, 1]), cells[::-1])
    three = np.arange(9).reshape(3, 3, 1)
    named = pooled(three, [2, 0, 1], [0, 2, 1])
    assert all(named[[2, 0, 1][u], [0, 2, 1][v], 0] == three[u, v, 0] for u, v in np.ndindex(3, 3))
