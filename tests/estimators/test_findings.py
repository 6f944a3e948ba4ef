"""Silence means right: what `fit` warns of, and what it does not."""

import math

import numpy as np
import pytest
from feature_world import feature_data
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import craftrl
from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from shipped import fitted
from studies.worlds.policies import HistoryPolicy

WORLD = BitsExBMDP(6, 12, seed=0)
TRUE = [WORLD.controllable_feature(h) for h in range(2, 7)]
BOUNDS = {"alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}


def sample(n, policies=None, world=WORLD, seed=0):
    return collect(world, policies or world.paper_policies(), n, seed=seed).tau


def features(model, H=6):
    return [model.encoders_[h].feature for h in range(2, H + 1)]


def kinds(model):
    return [finding.kind for finding in model.trace_.findings]


# -- agents that are not told apart -----------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_labels_that_say_nothing_are_warned_of_and_agents_that_differ_are_not(coupling, tmp_path):
    tau = sample(300, world=BitsExBMDP(6, 16, seed=0))
    shuffled = tau.select(np.arange(600), np.random.default_rng(0).permutation(tau.agent))
    right = CRAFT(CoordinateOracle(), coupling=coupling, **BOUNDS).fit(tau)  # warnings are errors
    assert not right.trace_.guesses
    with pytest.warns(AssumptionWarning, match="no better than chance at h = 1-5, by a test at each step") as caught:
        lost = CRAFT(CoordinateOracle(), coupling=coupling, **BOUNDS).fit(shuffled)
    assert len(caught) == 1
    assert "more trajectories, more different agents, longer training" in str(caught[0].message)
    lost.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert again.summary() == lost.summary()
    assert [step.p_value for step in again.trace_] == [step.p_value for step in lost.trace_]


def products():
    """A classifier that sees how two observations go together."""
    return ClassifierOracle(
        make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1, max_iter=200))
    )


def test_the_same_of_log_odds_that_are_learned():
    """By classifiers; test_little_to_learn.py has networks."""
    tau = feature_data(150).tau
    shuffled = tau.select(np.arange(300), np.random.default_rng(0).permutation(tau.agent))
    right = CRAFT(products()).fit(tau)
    assert right.trace_.at_chance() == []
    assert all(step.f_loss < step.chance == pytest.approx(math.log(2), abs=0.02) for step in right.trace_)
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        lost = CRAFT(products()).fit(shuffled)
    assert lost.diagnose(shuffled, n_resamples=0).verdict == "do not trust"
    assert ("log-odds at chance" in lost.summary(), "log-odds at chance" in right.summary()) == (True, False)


@pytest.mark.parametrize("sizes", [(1000, 5), (1000, 1), (3, 3), (1, 1)])
def test_a_handful_of_trajectories_is_warned_of(sizes):
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        model = CRAFT(CoordinateOracle()).fit(sample(sizes))
    found = model.diagnose(sample(sizes), n_resamples=1)
    assert found.verdict == "do not trust"
    assert any(f"the fewest trajectories has {min(sizes)}:" in str(finding) for finding in found.warnings)


def test_a_few_steps_at_which_agents_act_alike_are_no_failure():
    """From h = 4 on the agents do the same, and from h = 5 on nothing of what differed is left: two of six steps."""
    rng = np.random.default_rng(1)
    agent = np.repeat([0, 1], 1000)
    moves = np.where(np.arange(6) < 3, np.where(agent == 0, 0.2, 0.7)[:, None], 0.5)
    s = np.concatenate([np.zeros((2000, 1)), rng.random((2000, 6)) < moves], axis=1).astype(int)
    x = np.concatenate([s[..., None], rng.integers(2, size=(2000, 7, 7))], axis=2)
    with pytest.warns(AssumptionWarning, match="No encoder of the class reads") as told:  # the states found there
        model = CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, nu=0.1).fit(x, agent)
    assert "chance" not in str(told[0].message)
    assert model.trace_.at_chance() == [5, 6]
    assert model.summary().count("log-odds at chance") == 2


def test_a_chain_that_finds_the_best_of_many_pairs_in_noise_is_not_trusted():
    """Where the pair before says nothing, both encoders of a pair were free: the test must pay for both choices."""
    tau = TrajectoryDataset.from_arrays(list(np.random.default_rng(38).integers(0, 2, (2, 100, 4, 64), dtype=np.uint8)))
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        model = CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    assert model.diagnose(tau, n_resamples=0).verdict == "do not trust"


@pytest.mark.parametrize(("stay", "warned"), [(0.6, 0), (0.5, 6)])
def test_one_encoder_for_all_steps_is_one_choice(stay, warned):
    """Agents that differ a little at every step are told apart by all steps together; agents that act alike are not."""
    told = 0
    for seed in range(6):
        world = BitsExBMDP(8, 32, seed=seed, entangled=False)
        world.permutation[:] = world.permutation[0]
        agents = [world.persistence_policy(0.5), world.persistence_policy(stay)]
        model = fitted(CRAFT(CoordinateOracle(), stationary=True), sample(500, agents, world, seed))
        told += model.trace_.guesses
    assert told == warned


# -- states that are wrong, or may be ---------------------------------------------------------------------------------


def test_one_state_at_most_steps_is_warned_of():
    with pytest.warns(AssumptionWarning, match="CRAFT found one state at h = "):
        CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1).fit(sample(600))
    with pytest.warns(AssumptionWarning, match="one state at h = 2-4"):
        CRAFT(alpha=0.5, eta=0.1, nu=0.05).fit(np.zeros((40, 4, 3), dtype=int), np.repeat([0, 1], 20))


def test_states_that_the_class_cannot_read_are_warned_of_and_the_trace_is_saved(tmp_path):
    """The class has the state at h = 2 and 3 only: from then on it offers noise, which the data contradicts."""

    def encoders(h):
        noise = [lambda x, i=i: x[:, i] for i in range(WORLD.M) if h < 4 or i != WORLD.controllable_feature(h)]
        return noise if h < 4 else noise[:3]

    with pytest.warns(AssumptionWarning, match="No encoder of the class reads the states found at h = "):
        model = CRAFT(FiniteOracle(encoders), alpha=1.0, eta=0.2, nu=0.1).fit(sample(1500))
    assert min(model.trace_.unreadable()) >= 4
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=FiniteOracle(encoders))
    assert [step.p_closure for step in again.trace_] == [step.p_closure for step in model.trace_]


def test_states_that_the_data_contradicts_are_warned_of():
    """Three states, of which the last two are told apart by nobody's moves at h = 1: too large an alpha fuses them."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 3000)
    first = np.array([[0.6, 0.2, 0.2], [0.2, 0.45, 0.35]])
    s = np.zeros((6000, 4), dtype=np.int64)
    s[:, 1] = [rng.choice(3, p=first[a]) for a in agent]
    for h in (2, 3):
        forward = rng.random(6000) < np.where(agent == 0, 0.8, 0.3)
        s[:, h] = (s[:, h - 1] + 1 + forward) % 3
    x = np.concatenate([s[..., None], rng.integers(3, size=(6000, 4, 5))], axis=2)
    with pytest.warns(AssumptionWarning, match="The data contradicts the states: observations foretell"):
        model = CRAFT(CoordinateOracle(3), alpha=1.0, eta=0.15, nu=0.1).fit(x, agent)
    assert model.n_states_[2] == 2
    assert "not closed" in kinds(model)


def test_encoders_between_which_the_data_does_not_decide_are_warned_of():
    """An agent that repeats the state before the last moves, from every state to every next one, as a random one does:
    after the first steps nothing tells which feature is the state."""

    def chances(history):
        before = history[:, -2] if history.shape[1] > 1 else history[:, -1]
        return np.where(np.arange(2) == before[:, None], 0.75, 0.25)

    for seed in range(3):
        world = BitsExBMDP(12, 32, seed=seed)
        agents = [world.persistence_policy(0.5), HistoryPolicy(chances)]
        model = fitted(CRAFT(CoordinateOracle()), sample(1000, agents, world, seed))
        (told,) = [finding for finding in model.trace_.findings if finding.kind == "undecided"]
        assert max(told.steps) == 12
        assert told.numbers["share"] > 0.5


def test_more_data_decides():
    """With few trajectories the model may be wrong and says so; with more it is right, and silent."""
    world = BitsExBMDP(8, 16, seed=1)
    few, many = (fitted(CRAFT(CoordinateOracle()), sample(n, world=world)) for n in (60, 2000))
    assert "undecided" in kinds(few)
    assert not [finding for finding in many.trace_.findings if finding.severity == "warning"]


# -- models that are right --------------------------------------------------------------------------------------------

STAYS, MOVES = WORLD.persistence_policy(1.0), WORLD.persistence_policy(0.5)


@pytest.mark.parametrize(
    ("sizes", "agents"), [((4000, 200), None), ((200, 4000), None), ((10000, 200), None), (600, [MOVES, STAYS])]
)
def test_right_models_are_silent_also_of_agents_that_are_unbalanced_or_never_move(sizes, agents):
    model = CRAFT(CoordinateOracle()).fit(sample(sizes, agents))  # warnings are errors
    assert features(model) == TRUE
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]


def test_common_moves_are_not_called_rare():
    assert "rare move" not in kinds(CRAFT(CoordinateOracle()).fit(sample(400)))


def test_right_models_of_few_trajectories_are_silent_where_most_steps_are_not_seen_alone():
    """The control world at 200 trajectories per agent: single steps may be at chance; all of them together are not."""
    for seed in range(715, 718):
        world = BitsExBMDP(15, 64, seed=seed, entangled=False)
        model = CRAFT(CoordinateOracle()).fit(sample(200, world=world, seed=seed))
        assert features(model, 15) == [world.controllable_feature(h) for h in range(2, 16)]


def test_trajectories_that_are_over_are_not_lost():
    """Most are clips of three steps; what is said of later steps is said of those that are still there."""
    tau = sample(1000)
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 4 > 0, 3, 6))
    found = CRAFT(CoordinateOracle()).fit(short).diagnose(short, n_resamples=2)
    assert (found.assigned > 0.99).all()
    assert not any(finding.kind == "unassigned" for finding in found.findings)
