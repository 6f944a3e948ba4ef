"""Single and paired observation, DRAFT and recursive DRAFT."""

import numpy as np
import pytest
from scipy.stats import entropy

from craftrl import AssumptionWarning, CoordinateOracle, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import accuracy_by_step
from craftrl.paper import DRAFT, PairedObservation, RecursiveDRAFT, SingleObservation, baselines


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=6, n_features=10, seed=1)
    return collect(world, world.paper_policies(), 800, seed=1).tau


def information(codes, agent):
    """I(code; agent) in nats, the long way."""
    joint = np.zeros((codes.max() + 1, agent.max() + 1))
    np.add.at(joint, (codes, agent), 1)
    joint /= joint.sum()
    return entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel())


def test_single_observation_has_the_most_informative_feature(tau):
    model = SingleObservation(CoordinateOracle()).fit(tau)
    for h in range(2, 7):
        each = [information(tau.at(h)[:, i].astype(int), tau.agent) for i in range(10)]
        assert model.encoders_[h].feature == int(np.argmax(each))


@pytest.mark.parametrize("at_once", [baselines.AT_ONCE, 1])
def test_paired_observation_has_the_most_informative_pair(tau, at_once, monkeypatch):
    monkeypatch.setattr(baselines, "AT_ONCE", at_once)
    model = PairedObservation(CoordinateOracle()).fit(tau)
    assert [len(model.candidates_[h]) for h in range(1, 7)] == [1, 2, 2, 2, 2, 1]
    for h in range(2, 6):
        x, x_next = tau.at(h).astype(int), tau.at(h + 1).astype(int)
        each = [[information(2 * x[:, i] + x_next[:, j], tau.agent) for j in range(10)] for i in range(10)]
        i, j = np.unravel_index(np.argmax(each), (10, 10))
        assert (model.candidates_[h][1].feature, model.candidates_[h + 1][0].feature) == (i, j)
    twice = TrajectoryDataset.from_arrays([np.tile(tau.rows(np.flatnonzero(tau.agent == k)), 2) for k in (0, 1)])
    again = PairedObservation(CoordinateOracle()).fit(twice)  # of equal pairs the first
    assert [[phi.feature for phi in again.candidates_[h]] for h in (3, 4)] == [
        [phi.feature for phi in model.candidates_[h]] for h in (3, 4)
    ]


def test_draft_is_the_best_classifier_of_the_agent():
    world = BitsExBMDP(horizon=2, n_features=6, seed=0)
    tau = collect(world, [world.persistence_policy(0.9), world.persistence_policy(0.3)], 500, seed=0).tau
    model = DRAFT(CoordinateOracle()).fit(tau)
    x, of_A = tau.at(2).astype(int), tau.agent == 0

    def loss(phi):
        return phi[of_A].mean() + (1 - phi[~of_A]).mean()

    assert loss(model.encode(x, 2)) == min(loss(np.abs(flip - x[:, i])) for i in range(6) for flip in (0, 1))
    assert model.encoders_[2].feature == world.controllable_feature(2)


def test_recursive_draft_finds_the_states_where_data_is_plenty():
    world = BitsExBMDP(horizon=6, n_features=8, seed=2)
    data = collect(world, [world.persistence_policy(0.3), world.persistence_policy(0.8)], 4000, seed=2)
    model = RecursiveDRAFT(CoordinateOracle()).fit(data.tau)
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]
    assert accuracy_by_step(model.labels_, data.truth.states).min() > 0.99


def test_recursive_draft_says_where_it_ends():
    """At h = 2 each state is one agent's alone, and none of them can be split."""
    agent = np.repeat([0, 1], 20)
    x = np.stack([0 * agent, agent, np.arange(40) % 2], axis=1)[..., None]
    with pytest.warns(AssumptionWarning, match="found no state from h = 3 on; give it more trajectories"):
        model = RecursiveDRAFT(CoordinateOracle()).fit(x, agent)
    assert list(model.n_states_) == [1, 2, 0]
    assert (model.labels_[:, 2] == -1).all()


def test_what_a_baseline_cannot_do_is_refused(tau):
    with pytest.raises(InvalidDataError, match="two steps; these have 6; use RecursiveDRAFT or CRAFT"):
        DRAFT(CoordinateOracle()).fit(tau)
    with pytest.raises(InvalidParameterError, match="needs encoders with n_values = 2; n_values = 3 was given"):
        RecursiveDRAFT(CoordinateOracle(n_values=3)).fit(tau)
    three = TrajectoryDataset.from_arrays([np.zeros((2, 2, 1), dtype=int)] * 3)
    with pytest.raises(InvalidDataError, match="compares exactly two agents; 3 were given; use CRAFT"):
        DRAFT(CoordinateOracle()).fit(three)
    for baseline in (SingleObservation, PairedObservation, DRAFT, RecursiveDRAFT):
        for oracle in ("auto", None, CoordinateOracle):
            with pytest.raises(InvalidParameterError, match=f"{baseline.__name__} needs a finite class, Coordin"):
                baseline(oracle).fit(tau)
