"""A fit on shards is the fit on one machine, bit for bit."""

import json
from functools import partial

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.seam import COUPLINGS
from craftrl.data.seals import sealed
from craftrl.distributed import fit_on_shards
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.testing.datasets import shortened, three_agents
from random_worlds import random_problem
from sharding import LOCAL, Elsewhere, assert_same, fitted, write_shards

KNOWN = {"alpha": 1.0, "eta": 0.2, "nu": 0.1}


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=5, n_features=10, seed=0)
    return collect(world, world.paper_policies(), 300, seed=0).tau


@pytest.fixture(scope="module")
def folders(tau, tmp_path_factory):
    """The same trajectories, whole, with some that end early, and of three agents of which one has few."""
    rng = np.random.default_rng(0)
    few = three_agents(shortened(tau)).select(np.sort(rng.permutation(tau.n)[:500]))
    folder = tmp_path_factory.mktemp("shards")
    return {
        "two agents": write_shards(tau, folder / "two", 128),
        "unequal lengths": write_shards(shortened(tau), folder / "short", 75),
        "three agents": write_shards(few, folder / "three", 110),
    }


@pytest.mark.parametrize(
    ("data", "relabel"), [("two agents", False), ("unequal lengths", True), ("three agents", False)]
)
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_every_coupling(folders, data, coupling, relabel):
    given = {**KNOWN, "coupling": coupling, "relabel": relabel}
    whole, warned = fitted(folders[data], **given)
    shards, warned_too = fitted(folders[data], LOCAL, **given)
    assert_same(whole, shards)
    assert warned == warned_too
    assert not hasattr(shards, "labels_")


@pytest.mark.parametrize("data", ["unequal lengths", "three agents"])
def test_all_defaults_on_machines_that_lose_and_repeat_work(folders, data):
    elsewhere = Elsewhere()
    whole, warned = fitted(folders[data])
    shards, warned_too = fitted(folders[data], elsewhere)
    assert_same(whole, shards)
    assert warned == warned_too
    asked = [{use.question: use.asked for use in model.trace_.oracle_use} for model in (whole, shards)]
    assert asked[0] == asked[1]
    # Questions of all steps travel together: far fewer messages than questions.
    assert elsewhere.asked < 100


def table(values, x):
    return values[x]


class Classes:
    """A class of functions for each step, which can be sent elsewhere."""

    def __init__(self, tables):
        self.tables = tables

    def __call__(self, h):
        return [partial(table, values) for values in self.tables[h - 1]]


@pytest.mark.parametrize("seed", range(3))
def test_functions_of_each_step_in_shards_of_any_size(tmp_path, seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n_per_agent=30, n_agents=2 + seed % 2, unequal=seed < 2)
    # Shards of few trajectories, the last of two, and agents that lie in one shard alone.
    folder = write_shards(problem.tau, tmp_path / "shards", size=(7, 17, 30)[seed])
    oracle = FiniteOracle(Classes(problem.tables), problem.N_s)
    given = {"alpha": 0.5, "eta": 0.1, "nu": 0.05, "coupling": ("markov", "chain")[seed % 2]}
    whole, warned = fitted(folder, oracle=oracle, **given)
    shards, warned_too = fitted(folder, Elsewhere(), oracle=oracle, **given)
    assert_same(whole, shards, but=("oracle_", "f_"))  # which hold functions
    assert np.array_equal(whole.f_.values, shards.f_.values)
    assert whole.f_.pairs == shards.f_.pairs
    assert warned == warned_too


def test_labels_that_build_on_labels_of_many_steps_are_kept_with_their_shards(tmp_path):
    world = BitsExBMDP(horizon=12, n_features=6, seed=1)
    folder = write_shards(collect(world, world.paper_policies(), 200, seed=1).tau, tmp_path / "shards", 90)
    given = {**KNOWN, "nu": 0.02, "coupling": "chain", "relabel": False}
    whole, _ = fitted(folder, **given)
    shards, _ = fitted(folder, Elsewhere(), **given)
    assert_same(whole, shards)


def test_the_order_of_shards_within_an_agent_changes_nothing_that_was_learned(tau, tmp_path):
    folder = write_shards(shortened(tau), tmp_path / "shards", 75)
    before, _ = fitted(folder, LOCAL)
    content = json.loads((folder / "manifest.json").read_text())
    del content["checksum"]
    shards = content["shards"]
    content["shards"] = shards[3::-1] + shards[:3:-1]
    assert [shard["agent"] for shard in content["shards"]] == [0] * 4 + [1] * 4
    (folder / "manifest.json").write_text(json.dumps(sealed(content)))
    after, _ = fitted(folder, LOCAL)
    # Which halves the test of one start compares, and which rows are looked at to tell datasets apart, is by order.
    assert_same(before, after, but=("start", "data_"))


def test_a_second_fit_forgets_the_labels_of_the_first(folders):
    model = CRAFT(CoordinateOracle(), **KNOWN).fit(folders["two agents"])
    assert fit_on_shards(model, folders["two agents"], LOCAL) is model
    assert not hasattr(model, "labels_")


def test_starts_that_are_found(tmp_path):
    rng = np.random.default_rng(0)
    s, e = np.empty((2, 2000, 4), dtype=np.uint8)
    s[:, 0], e[:, 0] = rng.integers(0, 2, size=(2, 2000))
    agent = np.repeat([0, 1], 1000)
    for h in range(1, 4):  # one agent mostly moves, the other mostly stays
        s[:, h] = s[:, h - 1] ^ (rng.random(2000) < np.where(agent == 0, 0.8, 0.2))
        e[:, h] = e[:, h - 1] ^ (rng.random(2000) < 0.3)
    x = np.stack([e, s, s ^ e], axis=2)
    folder = write_shards(TrajectoryDataset.from_arrays([x[:1000], x[1000:]]), tmp_path / "shards", 300)
    whole = CRAFT(CoordinateOracle(), **KNOWN).fit(folder, start="find")
    shards = fit_on_shards(CRAFT(CoordinateOracle(), **KNOWN), folder, LOCAL, start="find")
    assert whole.n_states_[1] == 2
    assert_same(whole, shards)
    assert np.array_equal(shards._labels_read(TrajectoryDataset.open(folder)), whole.labels_)
    with pytest.raises(InvalidParameterError, match="start must be None or 'find'"):
        fit_on_shards(CRAFT(), folder, LOCAL, start=[0, 1])


def test_whoever_watches_sees_steps_and_hears_those_who_work(folders, capsys):
    from craftrl.progress import tell, watched_by

    class Telling(type(LOCAL)):
        def total(self, handles):
            tell("adding")
            return super().total(handles)

    heard = []
    with watched_by(lambda what, h: heard.append(what)):
        fit_on_shards(CRAFT(CoordinateOracle(), **KNOWN), folders["two agents"], Telling())
    assert heard.index("run") < heard.index("log-odds") < heard.index("separation")
    # Also those questions that threads ask together.
    assert heard.count("adding") > 2 * heard.count("separation")
    fit_on_shards(CRAFT(CoordinateOracle(), **KNOWN), folders["two agents"], LOCAL, progress=True)
