"""Single and paired observation, DRAFT and recursive DRAFT."""

import numpy as np
import pytest
from scipy.stats import entropy

from craftrl import CoordinateOracle, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import accuracy_by_step
from craftrl.paper import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation, baselines


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(horizon=6, n_features=10, seed=1)
    return world, collect(world, world.paper_policies(), 800, seed=1)


def information(codes, agent) -> float:
    """I(code; agent) in nats, the long way."""
    joint = np.zeros((codes.max() + 1, agent.max() + 1))
    np.add.at(joint, (codes, agent), 1)
    joint /= joint.sum()
    return entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel())


def test_single_observation_has_the_most_informative_feature(toy):
    _, data = toy
    model = SingleObservation(CoordinateOracle()).fit(data.tau)
    for h in range(2, 7):
        each = [information(data.tau.at(h)[:, i].astype(int), data.tau.agent) for i in range(10)]
        assert model.encoders_[h].feature == int(np.argmax(each))


def test_paired_observation_has_the_most_informative_pair(toy):
    _, data = toy
    model = PairedObservation(CoordinateOracle()).fit(data.tau)
    assert [len(model.candidates_[h]) for h in range(1, 7)] == [1, 2, 2, 2, 2, 1]
    for h in range(2, 6):
        x, x_next = data.tau.at(h).astype(int), data.tau.at(h + 1).astype(int)
        each = [[information(2 * x[:, i] + x_next[:, j], data.tau.agent) for j in range(10)] for i in range(10)]
        i, j = np.unravel_index(np.argmax(each), (10, 10))
        assert (model.candidates_[h][1].feature, model.candidates_[h + 1][0].feature) == (i, j)


def test_draft_is_the_best_classifier_of_the_agent():
    world = BitsExBMDP(horizon=2, n_features=6, seed=0)
    data = collect(world, [world.persistence_policy(0.9), world.persistence_policy(0.3)], 500, seed=0)
    model = DRAFT(CoordinateOracle()).fit(data.tau)
    phi = model.encode(data.tau.at(2), 2)
    loss = phi[data.tau.agent == 0].mean() + (1 - phi[data.tau.agent == 1]).mean()
    x = data.tau.at(2).astype(int)
    both = [np.abs(flip - x[:, i]) for i in range(6) for flip in (0, 1)]
    assert loss == min(y[data.tau.agent == 0].mean() + (1 - y[data.tau.agent == 1]).mean() for y in both)
    assert model.encoders_[2].feature == world.controllable_feature(2)


def test_recursive_draft_finds_the_states_where_data_is_plenty():
    world = BitsExBMDP(horizon=6, n_features=8, seed=2)
    data = collect(world, [world.persistence_policy(0.3), world.persistence_policy(0.8)], 4000, seed=2)
    model = RecursiveDRAFT(CoordinateOracle()).fit(data.tau)
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]
    assert accuracy_by_step(model.labels_, data.truth.states).min() > 0.99


def test_draft_refuses_what_it_cannot_do(toy):
    _, data = toy
    with pytest.raises(InvalidDataError, match="two steps; these have 6; use RecursiveDRAFT or CRAFT"):
        DRAFT(CoordinateOracle()).fit(data.tau)
    with pytest.raises(InvalidParameterError, match="needs encoders with n_values = 2; n_values = 3 was given"):
        RecursiveDRAFT(CoordinateOracle(n_values=3)).fit(data.tau)
    three = TrajectoryDataset.from_arrays([np.zeros((2, 2, 1), dtype=int)] * 3)
    with pytest.raises(InvalidDataError, match="compares exactly two agents; 3 were given; use CRAFT"):
        DRAFT(CoordinateOracle()).fit(three)


def test_a_table_of_pairs_that_is_read_in_parts_gives_the_same(toy, monkeypatch):
    _, data = toy
    whole = PairedObservation(CoordinateOracle()).fit(data.tau)
    monkeypatch.setattr(baselines, "AT_ONCE", 1)
    parts = PairedObservation(CoordinateOracle()).fit(data.tau)
    for ours, theirs in zip(parts.candidates_, whole.candidates_):
        assert [getattr(e, "index", None) for e in ours] == [getattr(e, "index", None) for e in theirs]


@pytest.mark.parametrize("baseline", [SingleObservation, PairedObservation, DRAFT, RecursiveDRAFT])
@pytest.mark.parametrize("oracle", ["auto", None, CoordinateOracle])
def test_an_oracle_that_cannot_count_is_refused(toy, baseline, oracle):
    with pytest.raises(InvalidParameterError, match=f"{baseline.__name__} needs a finite class, CoordinateOracle"):
        baseline(oracle).fit(toy[1].tau)
