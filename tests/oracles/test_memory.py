"""Oracles that remember: the same results, nothing asked twice, and no more memory than allowed."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from craftrl.core.seam import PreparedOracle
from craftrl.oracles.memory import RememberingOracle

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, FiniteOracle, Mixed
from craftrl.core.craft import Bounds, craft
from craftrl.core.grid import Grid
from craftrl.engine.counting import CountMemory
from craftrl.engine.engine import Engine
from craftrl.estimators import runs as all_runs
from random_worlds import random_problem
from shipped import BOUNDS, ORACLES, data, fitted, rows_of

READING = {"coupling": "independent", "clusterer": CoordinateOracle().suits()[1].value, "relabel": True}
SOME_BOUNDS = [Bounds(alpha, eta, nu) for alpha in (1.0, 0.5) for eta in (0.2, 0.1) for nu in (0.2, 0.1)]


class Counted(PreparedOracle):
    """Writes down every question, by what it depends on, and passes it on."""

    def __init__(self, prepared):
        self.prepared = prepared
        self.N_s, self.seed = prepared.N_s, prepared.seed
        self.asked = Counter()

    def log_odds(self, grid, coupling):
        self.asked["log-odds", grid, coupling] += 1
        return self.prepared.log_odds(grid, coupling)

    def separation(self, h, cluster, n_clusters):
        self.asked["separation", h, cluster.tobytes(), n_clusters] += 1
        return self.prepared.separation(h, cluster, n_clusters)

    def encode(self, h, label, n_states):
        self.asked["encoding", h, label.tobytes(), n_states] += 1
        return self.prepared.encode(h, label, n_states)

    def read(self, encoder, tau, h):
        self.asked["reading", id(encoder), h] += 1
        return self.prepared.read(encoder, tau, h)

    def share(self, labels, n_states, name):
        self.asked["sharing", labels.tobytes(), n_states, name] += 1
        return self.prepared.share(labels, n_states, name)

    def of(self, question):
        return sum(times for key, times in self.asked.items() if key[0] == question)


class CountingCoordinates(CoordinateOracle):
    """Keeps what it prepared, outside of its parameters."""

    prepared: list = []  # noqa: RUF012

    def prepare(self, tau):
        self.prepared.append(Counted(super().prepare(tau)))
        return self.prepared[-1]


@pytest.fixture
def counting():
    CountingCoordinates.prepared.clear()
    return CountingCoordinates


def use(model):
    return {each.question: each for each in model.trace_.oracle_use}


def problems(trained):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, 60, n_agents=2 + seed % 2, unequal=seed > 1)
        yield FiniteOracle(problem.functions, problem.N_s), problem.tau
    for name in ("coordinates", *(("classifier", "network of vectors", "mixed") if trained else ())):
        kind, make = ORACLES[name]
        yield make(), data(kind).tau


@pytest.mark.parametrize("max_bytes", [2**30, 4000, 0])
def test_results_are_the_same_with_and_without_memory(max_bytes):
    for oracle, tau in problems(trained=max_bytes == 4000):
        plain, memory = oracle.prepare(tau), RememberingOracle(oracle.prepare(tau), True, max_bytes)
        for bounds in SOME_BOUNDS if oracle.refits() == 10 else SOME_BOUNDS[:2]:
            expected, result = (craft(each, tau, bounds, **READING) for each in (plain, memory))
            assert np.array_equal(result.labels, expected.labels)
            assert [step.clusters for step in result.trace] == [step.clusters for step in expected.trace]
            assert [step.comparisons for step in result.trace] == [step.comparisons for step in expected.trace]


def test_what_is_kept_stays_within_the_limit():
    tau = data("bits").tau
    for max_bytes in (10_000, 100_000):
        memory = RememberingOracle(CoordinateOracle().prepare(tau), True, max_bytes)
        for bounds in SOME_BOUNDS:
            craft(memory, tau, bounds, **READING)
            assert memory._bytes <= max_bytes
            assert memory._bytes == sum(size for _, size in memory._answers.values())
        assert len(memory._answers) > 1


def test_every_question_is_counted_and_those_of_before_are_reused():
    tau = data("bits").tau
    counted = Counted(CoordinateOracle().prepare(tau))
    memory = RememberingOracle(counted, remember=True)
    for _ in range(3):
        craft(memory, tau, SOME_BOUNDS[0], **READING)
    for each in memory.use:
        once = 1 if each.question == "log-odds" else tau.H - 1
        assert (each.question, each.asked, each.reused) == (each.question, 3 * once, 2 * once)
        assert counted.of(each.question) == once
        assert each.seconds > 0
    assert {each.question for each in memory.use} == {"log-odds", "separation", "encoding", "reading"}


def test_without_memory_every_question_is_asked(counting):
    model = fitted(CRAFT(counting(), **BOUNDS), *rows_of("bits"))
    (asked,) = counting.prepared
    assert {name: (each.asked, each.reused) for name, each in use(model).items()} == {
        "log-odds": (1, 0),
        "separation": (3, 0),
        "encoding": (3, 0),
        "reading": (3, 0),
    }
    assert all(asked.of(name) == each.asked for name, each in use(model).items())


@pytest.mark.parametrize("stationary", [False, True])
def test_auto_asks_nothing_twice_and_prepares_once(counting, stationary):
    x, agent = rows_of("bits")
    model = fitted(CRAFT(counting(), stationary=stationary), x, agent)
    (asked,) = counting.prepared
    assert set(asked.asked.values()) == {1}
    for name, each in use(model).items():
        assert each.asked - each.reused == asked.of(name)
    assert use(model)["log-odds"].reused > 0
    assert use(model)["encoding"].reused > 0


def test_auto_trains_classifiers_once_for_all_grids(monkeypatch):
    from craftrl.oracles.pair_classifiers import PairClassifiers

    times = Counter()
    trained = PairClassifiers._fit

    def counted(self, steps, deal, fold, together):
        times[tuple(steps), deal, fold, together] += 1
        return trained(self, steps, deal, fold, together)

    monkeypatch.setattr(PairClassifiers, "_fit", counted)
    oracle = ORACLES["classifier"][1]()
    model = fitted(CRAFT(oracle, alpha=1.0, nu=0.1), *rows_of("features"))  # eta changes the grid
    assert use(model)["log-odds"].asked > 2
    assert set(times.values()) == {1}


def test_equal_oracles_in_a_mixed_one_are_prepared_once(counting):
    x, agent = rows_of("bits")
    same = counting()
    fitted(CRAFT(Mixed(same, same, same), **BOUNDS), x, agent)
    assert len(counting.prepared) == 1
    fitted(CRAFT(Mixed(counting(), counting(), counting(3)), **BOUNDS), x, agent)
    assert len(counting.prepared) == 3  # two equal ones, and another


def test_equal_networks_in_a_mixed_one_are_trained_once(monkeypatch):
    from craftrl.oracles.network import oracle as module

    times = []
    train = module.fit_pairs
    monkeypatch.setattr(module, "fit_pairs", lambda *given: times.append(1) or train(*given))
    one, two, three = (ORACLES["network of vectors"][1]() for _ in range(3))
    fitted(CRAFT(Mixed(one, two, three), **BOUNDS), *rows_of("features"))
    assert len(times) == 1


def test_a_mixed_oracle_passes_on_that_questions_will_come_again():
    prepared = Mixed(CoordinateOracle(), CoordinateOracle(), CoordinateOracle(3)).prepare(data("bits").tau)
    RememberingOracle(prepared, remember=True)
    assert all(part._counts is not None for part in prepared._parts)


def test_the_winner_is_not_fitted_again(monkeypatch):
    runs = []
    run = all_runs.craft
    monkeypatch.setattr(all_runs, "craft", lambda *given, **more: runs.append(given[2]) or run(*given, **more))
    model = fitted(CRAFT(), *rows_of("bits"))
    assert len(runs) == len(set(runs))
    assert model.bounds_ in runs


def test_empty_labels_are_remembered_too():
    tau = data("bits").tau
    memory = RememberingOracle(CoordinateOracle().prepare(tau), remember=True)
    nothing = np.empty((0,), dtype=np.int64)
    assert memory._answer("test", lambda: 1, nothing) == 1
    assert memory._answer("test", lambda: 2, nothing) == 1
    assert memory._answer("test", lambda: 3, nothing.astype(np.int8)) == 3


# -- counts, kept from one grid to the next ------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize("max_bytes", [2**28, 3000, 0])
def test_losses_are_the_same_with_and_without_kept_counts(n_threads, max_bytes):
    engine = Engine("cpu", n_threads, 2**16)
    for seed in range(3):
        problem = random_problem(np.random.default_rng(seed), 80, n_agents=2 + seed % 2, unequal=seed == 2)
        prepared = FiniteOracle(problem.functions, problem.N_s).prepare(problem.tau)
        steps = [prepared.step(h) for h in range(1, problem.tau.H + 1)]
        memory = CountMemory(max_bytes)
        for bounds in (*SOME_BOUNDS[:3], SOME_BOUNDS[0]):
            grid = Grid.from_bounds(bounds.alpha, bounds.eta)
            assert engine.best_pairs(steps, grid, memory) == engine.best_pairs(steps, grid)
            for kept, plain in zip(engine.all_losses(steps, grid, memory), engine.all_losses(steps, grid)):
                assert np.array_equal(kept, plain)
        assert memory.left >= 0
        assert memory.left == max_bytes - sum(counts.nbytes for counts in memory._kept.values())
        assert bool(memory._kept) == (max_bytes > 3000) or max_bytes == 3000


@pytest.mark.parametrize("coupling", ["independent", "chain", "posterior", "markov", "tied"])
def test_log_odds_are_the_same_after_other_grids(coupling):
    tau = data("bits").tau
    keeping, plain = (CoordinateOracle(tile_bytes=2**16).prepare(tau) for _ in range(2))
    keeping.keep_for_reuse()
    for bounds in (*SOME_BOUNDS, *SOME_BOUNDS):
        grid = Grid.from_bounds(bounds.alpha, bounds.eta)
        kept, fresh = keeping.log_odds(grid, coupling), plain.log_odds(grid, coupling)
        assert np.array_equal(kept.bins, fresh.bins)
        assert np.array_equal(kept.loss, fresh.loss)


def test_a_classifier_given_bare_is_remembered_as_an_oracle():
    model = fitted(CRAFT(ORACLES["classifier"][1]().classifier, **BOUNDS), *rows_of("features"))
    assert isinstance(model.oracle_, ClassifierOracle)
    assert use(model)["log-odds"].seconds > 0


def test_what_a_separation_takes_to_answer_counts_as_time_of_the_oracle(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("craftrl.oracles.memory.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    class Slow(Counted):
        def separation(self, h, cluster, n_clusters):
            clock[0] += 1.0  # to train
            return self

        def loss(self, new, state):
            clock[0] += 0.25  # for each question
            return 1.0

    tau = data("bits").tau
    oracle = RememberingOracle(Slow(CoordinateOracle(2).prepare(tau)), remember=True)
    for _ in range(2):
        assert oracle.merge(2, np.arange(tau.n) % 3, [0, 1, 2])[0] == [[0, 1, 2]]
    (use,) = oracle.use
    assert (use.question, use.asked, use.reused, use.seconds) == ("separation", 2, 1, 1.5)


def test_answers_as_large_as_a_networks_logits_do_not_drive_out_the_rest():
    """A search over bounds comes back to the first steps after many others, whatever their logits took."""

    class Large(Counted):
        def separation(self, h, cluster, n_clusters):
            self.asked["separation", h] += 1
            answer = self.prepared.separation(h, cluster, n_clusters)
            return SimpleNamespace(loss=answer.loss, scores=np.broadcast_to(0.0, (400, 2**20)))  # 3 GiB, if kept

    tau = data("bits").tau
    counted = Large(CoordinateOracle().prepare(tau))
    memory = RememberingOracle(counted, remember=True)
    for _ in range(2):
        craft(memory, tau, SOME_BOUNDS[0], **READING)
    assert [counted.asked["separation", h] for h in range(2, tau.H + 1)] == [1] * (tau.H - 1)
