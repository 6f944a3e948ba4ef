"""Data in several parts, here and on Ray: every answer is the same, to the last bit, also where a part is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from literal_counting import random_problem

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.engine import ray_parts
from craftrl.engine.packing import Part, Parts
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import ClusterError, InvalidDataError, InvalidParameterError
from craftrl.oracles import finite
from craftrl.oracles.starts import find_starts, one_start_test

GRID = Grid.from_bounds(1.0, 0.2)


class SeveralParts(Parts):
    """Three parts in this process."""

    def __init__(self, tau, pack):
        super().__init__(tau, pack)
        self.packed = [Part(tau, i, 3).pack(pack) for i in range(3)]
        self.rows = [part.rows for part in self.packed]

    def each(self, count, *args, label=None):
        for part, rows in zip(self.packed, self.rows):
            yield count(part, *args, *(() if label is None else (label[rows],)))


def answers(prepared):
    """Whatever a finite oracle can be asked."""
    tau, group = prepared.tau, np.random.default_rng(0).integers(-1, 3, prepared.tau.n)
    for oracle in (prepared, prepared.from_any_start()):
        for coupling in ("independent", "chain", "markov"):
            f = oracle.log_odds(GRID, coupling)
            yield from (f.bins, f.loss, f.p_value, [(model.i, model.j) for model in f.models], f.f.values)
    yield prepared.beyond_losses([-1, *(model.j for model in prepared.log_odds(GRID, "chain").models)], GRID)
    for h in range(1, tau.H):
        yield from (prepared.pair_counts(h), prepared.group_counts(h, group, 3), prepared.values(h, 0))
    test = one_start_test(prepared)
    yield from ([test.p_first, test.p_beyond, test.added], find_starts(prepared))
    if prepared.oracle.same_at_all_steps:
        yield prepared.counter.matched(1)


def same(mine, theirs):
    pairs = list(zip(answers(mine), answers(theirs), strict=True))
    assert len(pairs) > 40
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("K", "N_s", "unequal"), [(2, 2, False), (2, 3, True), (3, 2, True)])
def test_every_answer_is_that_of_one_part(K, N_s, unequal, monkeypatch):
    for seed in range(3):
        problem = random_problem(seed, K, N_s, H=4, unequal=unequal, scale=300)
        oracle = FiniteOracle(problem.functions, N_s)
        whole = oracle.prepare(problem.tau)
        with monkeypatch.context() as patched:
            patched.setattr(finite, "counted_parts", lambda oracle, tau: SeveralParts(tau, oracle.pack))
            assert same(oracle.prepare(problem.tau), whole)


# -- on Ray ------------------------------------------------------------------------------------------------------------

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ray")
    world = BitsExBMDP(5, 12, seed=0)
    tau = collect(world, world.paper_policies(), 700, seed=0).tau
    short = np.random.default_rng(0).integers(2, 6, tau.n)
    tau.save(path / "equal")
    episodes = [[tau.episode(i)[: short[i]] for i in np.flatnonzero(tau.agent == k)] for k in (0, 1)]
    TrajectoryDataset.from_episodes(episodes).save(path / "unequal")
    return path


@pytest.fixture(scope="module")
def cluster(folder):
    yield "local"
    ray.shutdown()


pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.mark.slow
def test_counts_on_ray_are_those_of_one_machine(cluster, folder, monkeypatch):
    monkeypatch.chdir(folder)
    tau = TrajectoryDataset.open(Path("unequal"))  # a relative path
    assert same(CoordinateOracle(ray=cluster).prepare(tau), CoordinateOracle().prepare(tau))


@pytest.mark.slow
def test_a_fit_on_ray_is_the_fit_of_one_machine_and_a_lost_part_is_made_again(cluster, folder):
    tau = TrajectoryDataset.open(folder / "equal").first_steps(4)
    bounds = {"alpha": 1.0, "eta": 0.2, "nu": 0.1}
    here, there = (CRAFT(CoordinateOracle(ray=ray), **bounds).fit(tau) for ray in (None, cluster))
    assert np.array_equal(here.labels_, there.labels_)
    assert repr(here.trace_.steps) == repr(there.trace_.steps)
    assert str(here.diagnose(tau, n_resamples=1)) == str(there.diagnose(tau, n_resamples=1))
    prepared = CoordinateOracle(ray=cluster).prepare(tau)
    expected = CoordinateOracle().prepare(tau).log_odds(GRID, "chain")
    os.kill(next(prepared.counter.parts.each(lambda part: os.getpid())), signal.SIGKILL)
    assert np.array_equal(prepared.log_odds(GRID, "chain").bins, expected.bins)


@pytest.mark.slow
def test_machines_with_other_versions_are_refused(cluster, folder, monkeypatch):
    monkeypatch.setattr(ray_parts, "_versions", lambda part: "numpy 9" if part is None else "numpy 8")
    with pytest.raises(ClusterError, match=r"must have the versions of this one, numpy 9; \{'numpy 8'\} were found"):
        CoordinateOracle(ray=cluster).prepare(TrajectoryDataset.open(folder / "equal"))


def test_an_error_of_a_part_is_raised_as_itself(cluster, folder):
    tau = TrajectoryDataset.open(folder / "equal")
    with pytest.raises(InvalidDataError, match=r"encoder 0 returned 7..7"):
        FiniteOracle([lambda x: np.full(len(x), 7)], ray=cluster).prepare(tau).log_odds(GRID, "chain")


def test_where_no_cluster_answers(folder, tmp_path):
    tau = TrajectoryDataset.open(folder / "equal")
    ray.shutdown()
    with pytest.raises(ClusterError, match=r"must answer at 127.0.0.1:1; none does \(.*refused\)"):
        CoordinateOracle(ray="127.0.0.1:1").prepare(tau)
    for address in ("nowhere", 6379, "a b:1", ""):
        with pytest.raises(InvalidParameterError, match="ray must be HOST:PORT, 'auto', 'local' or None"):
            CoordinateOracle(ray=address).prepare(tau)


def test_a_saved_model_names_no_cluster(folder, tmp_path):
    assert CoordinateOracle(ray="local").saved()["ray"] is None
    x = np.random.default_rng(0).integers(0, 2, (2, 60, 3, 4))
    tau = TrajectoryDataset.from_arrays(x)  # what is in memory is counted here
    assert not ray.is_initialized()
    CoordinateOracle(ray="local").prepare(tau).log_odds(GRID, "chain")
    assert not ray.is_initialized()
