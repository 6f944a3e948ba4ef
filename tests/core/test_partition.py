"""Codes are joined to states by what agents and moves say of them: nothing is told but codes and agents."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from scipy.cluster.hierarchy import fcluster, linkage

import craftrl
from craftrl.core.partition import ENOUGH, count_moves, driven, score, tidy, with_start, worth
from craftrl.core.search import climb, refine


def walked(seed, n=300, S=5, noise=3, K=2, H=8, start=True, mimic=False, shortest=None):
    """Codes (K n, H) and agents: random deterministic moves, habits of each agent, and noise that mostly stays."""
    rng = np.random.default_rng(seed)
    T, habits = rng.integers(S, size=(S, 3)), rng.dirichlet(np.ones(3), size=(K, S))
    agent = np.repeat(np.arange(K), n)
    s = np.zeros(K * n, dtype=int) if start else rng.integers(S, size=K * n)
    e, coin, codes = rng.integers(noise, size=K * n), rng.integers(S, size=K * n), []
    for _ in range(H):
        codes.append(s * S + (s + coin) % S if mimic else s * noise + e)
        action = (rng.random(K * n)[:, None] > habits[agent, s].cumsum(axis=1)[:, :-1]).sum(axis=1)
        s, e = T[s, action], np.where(rng.random(K * n) < 0.8, e, rng.integers(noise, size=K * n))
    code = np.stack(codes, axis=1)
    if shortest is not None:
        code[np.arange(H) >= rng.integers(shortest, H + 1, size=K * n)[:, None]] = -1
    seen = np.unique(code[code >= 0])
    true = tidy(seen // (S if mimic else noise))
    return np.where(code < 0, -1, np.searchsorted(seen, code)), agent, true


def placed(true, seed):
    """Where codes lie: those of one state near each other, as in an embedding that tells agents apart."""
    rng = np.random.default_rng([seed, 1])
    return rng.normal(size=(true.max() + 1, 8))[true] + 0.3 * rng.normal(size=(len(true), 8))


def found(code, agent, places):
    """Refined from halves and quarters of the codes, then climbed; and the evidence for these states."""
    moves = count_moves(code, agent, len(places), places)
    tree = linkage(places, "ward")
    first = refine(moves, [fcluster(tree, B, "maxclust") for B in (2, 4)])
    block, value = climb(moves, first, np.random.default_rng(0), drives=True)
    return tidy(block), value


def same(a, b):
    return len(np.unique(a)) == len(np.unique(b)) == len(np.unique(np.stack([a, b]), axis=1).T)


@pytest.mark.parametrize(
    "world",
    [{}, {"start": False}, {"mimic": True, "start": False}, {"K": 3}, {"shortest": 3}],
    ids=["one start", "no start", "frozen mimic", "three agents", "unequal lengths"],
)
def test_the_true_partition_is_found_in_most_random_worlds(world):
    right = 0
    for seed in range(6):
        code, agent, true = walked(seed, **world)
        block, evidence = found(code, agent, placed(true, seed))
        right += same(block, true)
        assert evidence > ENOUGH
    assert right >= 5


def test_agents_that_do_not_differ_give_no_evidence():
    code, agent, true = walked(0)
    block, _ = found(code, np.random.default_rng(1).permutation(agent), placed(true, 0))
    moves = count_moves(code, np.random.default_rng(1).permutation(agent), len(true))
    gain, cost = score(moves, with_start(block), int(block.max()) + 2).sum(axis=1)
    assert gain - cost < ENOUGH


def test_a_block_of_noise_dissolves_into_the_states_that_it_has_codes_of():
    right = 0
    for seed in range(5):
        code, agent, true = walked(seed, n=1000)
        places, noise = placed(true, seed), np.arange(len(true)) % 3 == 0  # one of three kinds, of all states
        places[noise] += 1
        moves = count_moves(code, agent, len(true), places)
        block, _ = climb(moves, np.where(noise, true.max() + 1, true), np.random.default_rng(0))
        right += same(block, true)
    assert right >= 3


def test_noise_and_fused_states_cost():
    code, agent, true = walked(1)
    moves = count_moves(code, agent, len(true))
    finer, fused = true.copy(), np.where(true == 1, 0, true)
    finer[np.flatnonzero(true == 0)[:1]] = true.max() + 1
    assert worth(moves, true) > worth(moves, tidy(finer))
    assert worth(moves, true) > worth(moves, tidy(fused))


def test_one_block_scores_nothing():
    code, agent, true = walked(2, start=False)
    gain, cost = score(count_moves(code, agent, len(true)), with_start(np.zeros_like(true)), 2).sum(axis=1)
    assert abs(gain - cost) < 1.5 * ENOUGH


def test_a_quotient_of_a_ring_hides_what_is_driven_and_noise_does_not():
    rng = np.random.default_rng(0)
    n, H, S = 2000, 10, 9
    agent, s, e = np.repeat([0, 1], n // 2), rng.integers(S, size=n), rng.integers(2, size=n)
    places, noise = [], []
    for _ in range(H):
        places.append(s)
        noise.append(e)
        right = rng.random(n) < np.where(agent == 0, 0.7, 0.3)
        s, e = (s + np.where(right, 1, -1)) % S, np.where(rng.random(n) < 0.8, e, rng.integers(2, size=n))
    place, noise = np.stack(places, axis=1), np.stack(noise, axis=1)
    third = place % 3
    assert driven(third, np.where(third == 0, place // 3, -1), 3) > ENOUGH
    assert driven(place, np.where(place == 0, noise, -1), S) < 0


def test_moves_from_the_start_can_be_left_out():
    code, agent = np.array([[0, 1], [0, 0], [1, -1]]), np.array([0, 1, 1])
    counted = [count_moves(code, agent, 2, from_start=on).visits[0].sum(axis=0).tolist() for on in (True, False)]
    assert counted == [[2, 0, 3], [2, 0, 0]]


def test_compiled_functions_call_those_of_their_own_file_alone():
    """Numba keeps machine code until the file changes, and does not see changes of other files."""
    root = Path(craftrl.__file__).parent
    files = [path.relative_to(root.parent) for path in root.rglob("*.py") if "import njit" in path.read_text()]
    modules = [import_module(".".join(path.with_suffix("").parts)) for path in files]
    assert len(modules) == 3
    for module in modules:
        compiled = {name: found for name, found in vars(module).items() if isinstance(found, Dispatcher)}
        assert {function.py_func.__module__ for function in compiled.values()} == {module.__name__}
