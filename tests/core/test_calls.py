"""The one place that asks oracles: the same results with and without memory, and nothing asked twice."""

from collections import Counter

import numpy as np
import pytest

from craftrl import CRAFT, FiniteOracle
from craftrl.core.craft import Bounds, craft
from craftrl.core.oracle import OracleCalls
from random_worlds import random_problem
from shipped import BOUNDS, ORACLES, data, fitted, rows_of

SOME_BOUNDS = [Bounds(alpha, eta, nu) for alpha in (1.0, 0.5) for eta in (0.2, 0.1) for nu in (0.2, 0.1)]


def problems():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, 60, n_agents=2 + seed % 2, unequal=seed > 1)
        yield FiniteOracle(problem.functions, problem.N_s), problem.tau, SOME_BOUNDS
    for name in ("classifier", "network of vectors"):
        kind, make = ORACLES[name]
        yield make(), data(kind).tau, SOME_BOUNDS[:2]


@pytest.mark.parametrize("max_bytes", [2**30, 4000])
def test_results_are_the_same_with_and_without_memory(max_bytes):
    for oracle, tau, some in problems():
        prepared, ask = oracle.prepare(tau), OracleCalls(True, max_bytes)
        for bounds in some:
            expected, result = craft(prepared, bounds, relabel=True), craft(prepared, bounds, relabel=True, ask=ask)
            assert np.array_equal(result.labels, expected.labels)
            assert [step.clusters for step in result.trace] == [step.clusters for step in expected.trace]
            assert [step.comparisons for step in result.trace] == [step.comparisons for step in expected.trace]
        assert ask._bytes <= max_bytes or len(ask._answers) == 1


def test_every_question_is_counted_and_those_of_before_are_reused():
    tau = data("bits").tau
    prepared, ask = ORACLES["coordinates"][1]().prepare(tau), OracleCalls(remember=True)
    for _ in range(3):
        craft(prepared, SOME_BOUNDS[0], relabel=True, ask=ask)
    for each in ask.use:
        once = 1 if each.question == "log-odds" else tau.H - 1
        assert (each.asked, each.reused) == (3 * once, 2 * once)
        assert each.seconds > 0
    assert {each.question for each in ask.use} == {"log-odds", "separation", "encoding", "reading"}


def test_arguments_of_other_content_are_other_questions():
    ask, asked = OracleCalls(remember=True), Counter()

    def answer(h, label):
        asked[h, label.tobytes()] += 1
        return label + h

    for h, label in ((1, np.arange(3)), (1, np.arange(3)), (2, np.arange(3)), (1, np.zeros(3, dtype=int))):
        assert np.array_equal(ask("encoding", answer, h, label), label + h)
    assert set(asked.values()) == {1}
    assert len(asked) == 3


def test_a_search_trains_classifiers_once_for_all_grids():
    times = Counter()
    kind, make = ORACLES["classifier"]

    class Watched(type(make())):
        def prepare(self, tau):
            prepared = super().prepare(tau)
            encode = prepared.encode
            prepared.encode = lambda h, label, n: times.update([(h, label.tobytes(), n)]) or encode(h, label, n)
            return prepared

    model = fitted(CRAFT(Watched(**make().get_params(deep=False)), alpha=1.0, nu=0.1), *rows_of(kind))
    use = {each.question: each for each in model.trace_.oracle_use}
    assert use["log-odds"].asked > 2  # eta changes the grid
    assert use["encoding"].asked - use["encoding"].reused == times.total()
    assert set(times.values()) == {1}


def test_a_fit_says_what_it_asked():
    model = fitted(CRAFT(ORACLES["coordinates"][1](), **BOUNDS), *rows_of("bits"))
    asked = {use.question: use.asked for use in model.trace_.oracle_use}
    assert asked["log-odds"] == 1
    assert asked["separation"] == asked["encoding"] == model.labels_.shape[1] - 1
