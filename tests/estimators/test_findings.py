"""Silence means right: what `fit` warns of, and what it does not. Networks are in test_little_to_learn.py."""

import math
from functools import partial

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
from small_worlds import flips, to_the_right, walked
from studies.worlds.policies import HistoryPolicy

WORLD = BitsExBMDP(6, 12, seed=0)
TRUE = [WORLD.controllable_feature(h) for h in range(2, 7)]
BOUNDS = {"alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}
RNG = partial(np.random.default_rng, 0)


def sample(n, policies=None, world=WORLD, seed=0):
    return collect(world, policies or world.paper_policies(), n, seed=seed).tau


def features(model, H=6):
    return [model.encoders_[h].feature for h in range(2, H + 1)]


def kinds(model, severity=("warning", "note")):
    return [finding.kind for finding in model.trace_.findings if finding.severity in severity]


def shuffled(tau):
    """The same, with labels of the agents that say nothing."""
    return tau.select(np.arange(tau.n), RNG().permutation(tau.agent))


def two_agents(x, agent):
    return TrajectoryDataset.from_arrays([x[agent == 0], x[agent == 1]])


def products():
    """A classifier that sees how two observations go together."""
    return ClassifierOracle(
        make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1, max_iter=200))
    )


# -- what is warned of ------------------------------------------------------------------------------------------------


def labels_that_say_nothing(coupling):
    return shuffled(sample(300, world=BitsExBMDP(6, 16, seed=0))), CRAFT(coupling=coupling, **BOUNDS)


def features_whose_labels_say_nothing():
    return shuffled(feature_data(150).tau), CRAFT(products())


def handful(*sizes):
    return sample(sizes), CRAFT()


def noise():
    """Where the pair before says nothing, both encoders of a pair were free: the test must pay for both choices."""
    bits = np.random.default_rng(38).integers(0, 2, (2, 100, 4, 64), dtype=np.uint8)
    return TrajectoryDataset.from_arrays(list(bits)), CRAFT(alpha=1.0, eta=0.2, nu=0.1)


def alike_from_the_middle_on():
    """From h = 4 on the agents do the same, and from h = 5 on nothing of what differed is left: two of six steps."""
    rng = np.random.default_rng(1)
    s, agent = walked(1000, [flips((a, 1 - a), (b, 1 - b)) for a, b in [(0.2, 0.7)] * 3 + [(0.5, 0.5)] * 3], 7, seed=1)
    x = np.concatenate([s[..., None], rng.integers(2, size=(2000, 7, 7))], axis=2)
    return two_agents(x, agent), CRAFT(alpha=1.0, eta=0.1, nu=0.1)


def large_bounds():
    return sample(600), CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1)


def all_alike():
    return two_agents(np.zeros((40, 4, 3), dtype=int), np.repeat([0, 1], 20)), CRAFT(alpha=0.5, eta=0.1, nu=0.05)


def few_of_the_paper():
    world = BitsExBMDP(horizon=10, n_features=32, seed=0)
    return sample(20, world=world), CRAFT.paper(**BOUNDS)


def more_bins_than_trajectories(n_agents):
    """No bin is heavy; with three agents bins lie in a plane."""
    rng = RNG()
    tables = rng.integers(6, size=(4, 36))
    tau = TrajectoryDataset.from_arrays([rng.integers(36, size=(40, 5)) for _ in range(n_agents)])
    oracle = FiniteOracle([lambda x, table=table: table[x] for table in tables], n_values=6)
    return tau, CRAFT.paper(oracle, alpha=0.2, eta=0.01, nu=1.0)


def class_without_the_state():
    """It has the state at h = 2 and 3 only: from then on it offers noise, which the data contradicts."""

    def encoders(h):
        noise = [lambda x, i=i: x[:, i] for i in range(WORLD.M) if h < 4 or i != WORLD.controllable_feature(h)]
        return noise if h < 4 else noise[:3]

    return sample(1500), CRAFT(FiniteOracle(encoders), alpha=1.0, eta=0.2, nu=0.1)


def fused():
    """Three states, of which the last two are told apart by nobody's moves at h = 1: too large an alpha fuses them."""
    first = np.array([[[0.6, 0.2, 0.2]] * 3, [[0.2, 0.45, 0.35]] * 3])
    later = to_the_right(0.2, 0.7, cells=3, ring=True)
    s, agent = walked(3000, [first, later, later], 4)
    x = np.concatenate([s[..., None], RNG().integers(3, size=(6000, 4, 5))], axis=2)
    return two_agents(x, agent), CRAFT(CoordinateOracle(3), alpha=1.0, eta=0.15, nu=0.1)


def long_trajectories():
    """A trajectory that falls between the clusters of one step has no state from then on."""
    world = BitsExBMDP(150, 3, seed=0)
    return sample(400, world=world), CRAFT(alpha=1.0, eta=0.2, nu=0.1, coupling="chain", relabel=False)


def repeats_itself(seed):
    """An agent that repeats the state before the last moves, from every state to every next one, as a random one does:
    after the first steps nothing tells which feature is the state."""

    def chances(history):
        before = history[:, -2] if history.shape[1] > 1 else history[:, -1]
        return np.where(np.arange(2) == before[:, None], 0.75, 0.25)

    world = BitsExBMDP(12, 32, seed=seed)
    return sample(1000, [world.persistence_policy(0.5), HistoryPolicy(chances)], world, seed), CRAFT()


def of_few(n):
    return sample(n, world=BitsExBMDP(8, 16, seed=1)), CRAFT()


CHANCE = "no better than chance at h = 1-{}, by a test at each step.* more trajectories, more different agents, longer"
NOT_READ = "No encoder of the class reads the states found at h = "


def lost_from(first):
    """Whether there is no state from this h on."""
    return lambda model: (
        list(model.n_states_)[first - 1 :] == [0] * (6 - first)
        and model.trace_.outcomes()["no state"] == list(range(first, 6))
        and (model.labels_[:, first - 1 :] == -1).all()
        and model.encoders_[5].index == 0
    )


# What it is called: the data and the model, what is said, and what else must hold.
SITUATIONS = {
    **{
        coupling: (partial(labels_that_say_nothing, coupling), CHANCE.format(5), lambda model: model.trace_.guesses)
        for coupling in ("independent", "chain", "markov")
    },
    "features": (features_whose_labels_say_nothing, CHANCE.format(3), lambda model: model.trace_.guesses),
    **{
        f"{a} and {b}": (partial(handful, a, b), CHANCE.format(5), lambda model: model.trace_.guesses)
        for a, b in ((1000, 5), (1000, 1), (3, 3), (1, 1))
    },
    "noise": (noise, CHANCE.format(3), lambda model: model.trace_.guesses),
    "alike from the middle on": (
        alike_from_the_middle_on,
        f"^{NOT_READ}",
        lambda model: model.trace_.at_chance() == [5, 6] and model.summary().count("log-odds at chance") == 2,
    ),
    "large bounds": (large_bounds, "CRAFT found one state at h = ", lambda model: not model.trace_.guesses),
    "all alike": (all_alike, "one state at h = 2-4", lambda model: set(model.n_states_) == {1}),
    "few of the paper": (
        few_of_the_paper,
        "too many states at h = ",
        lambda model: "coupling='markov'" in model.summary() and "too many states" in model.trace_.outcomes(),
    ),
    "no state of two agents": (partial(more_bins_than_trajectories, 2), "no state at h = 4-5", lost_from(4)),
    "no state of three agents": (partial(more_bins_than_trajectories, 3), "no state at h = 3-5", lost_from(3)),
    "class without the state": (class_without_the_state, NOT_READ, lambda model: min(model.trace_.unreadable()) >= 4),
    "fused": (fused, "The data contradicts the states: observations predict", lambda model: model.n_states_[2] == 2),
    "long": (
        long_trajectories,
        r"At h = \d+-150 trajectories have no state, .* relabel=True",
        lambda model: (model.labels_[:, -1] >= 0).mean() < 0.5,
    ),
    **{
        f"undecided {seed}": (
            partial(repeats_itself, seed),
            r"Other encoders explain h = [\d, -]+-12 as well: .* have (9\d|100)% of the posterior",
            lambda model: not model.trace_.outcomes().get("no state"),
        )
        for seed in range(3)
    },
    "undecided of few": (partial(of_few, 60), "Other encoders explain h = ", lambda model: model.trace_.guesses),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_fit_warns_once_of_all_that_speaks_against_the_states_and_no_such_model_is_trusted(name, tmp_path):
    make, told, holds = SITUATIONS[name]
    tau, model = make()
    with pytest.warns(AssumptionWarning, match=told) as caught:
        model.fit(tau)
    (warning,) = caught
    assert warning.filename == __file__
    against = [finding for finding in model.trace_.findings if finding.severity == "warning"]
    assert str(warning.message) == " ".join(map(str, against))
    assert ("no better than chance" in str(warning.message)) == model.trace_.guesses
    assert holds(model)
    found = model.diagnose(tau, n_resamples=0)
    assert found.verdict in (["do not trust"] if model.trace_.guesses else ["check", "do not trust"])
    said = " ".join(map(str, found.warnings))
    assert (f"the fewest trajectories has {tau.counts.min()}:" in said) == (tau.counts.min() < 20)
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=model.oracle if isinstance(model.oracle, FiniteOracle) else None)
    assert again.summary() == model.summary()
    assert repr(again.trace_) == repr(model.trace_)


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


# -- models that are right: warnings are errors -----------------------------------------------------------------------

STAYS, MOVES = WORLD.persistence_policy(1.0), WORLD.persistence_policy(0.5)


@pytest.mark.parametrize(
    ("sizes", "agents"), [((4000, 200), None), ((200, 4000), None), ((10000, 200), None), (600, [MOVES, STAYS])]
)
def test_agents_that_are_unbalanced_or_never_move_are_no_fault(sizes, agents):
    model = CRAFT().fit(sample(sizes, agents))
    assert features(model) == TRUE
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]


def test_common_moves_are_not_called_rare():
    assert "rare move" not in kinds(CRAFT().fit(sample(400)))


def test_moves_of_all_steps_are_one_where_the_encoder_is():
    """A move that few trajectories make at each step is common, if it means the same at all of them."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 100)
    s = np.cumsum(rng.random((200, 12)) < np.array([0.08, 0.5])[agent][:, None], axis=1) % 2
    x = np.stack([s, rng.integers(0, 2, s.shape)], axis=2)
    by_step, together = (
        fitted(CRAFT(CoordinateOracle(), stationary=one), x, agent).trace_.findings for one in (False, True)
    )
    assert "rare move" in [finding.kind for finding in by_step]
    assert "rare move" not in [finding.kind for finding in together]


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_labels_that_say_something_are_none(coupling):
    assert not CRAFT(coupling=coupling, **BOUNDS).fit(sample(300, world=BitsExBMDP(6, 16, seed=0))).trace_.guesses


def test_log_odds_that_are_learned_are_better_than_chance():
    model = CRAFT(products()).fit(feature_data(150).tau)
    assert model.trace_.at_chance() == []
    assert all(step.f_loss < step.chance == pytest.approx(math.log(2), abs=0.02) for step in model.trace_)
    assert "log-odds at chance" not in model.summary()


def test_more_data_decides():
    tau, model = of_few(2000)
    assert kinds(model.fit(tau), ("warning",)) == []


def test_where_most_steps_are_not_seen_alone_all_of_them_together_are():
    """The control world at 200 trajectories per agent."""
    for seed in range(715, 718):
        world = BitsExBMDP(15, 64, seed=seed, entangled=False)
        model = CRAFT().fit(sample(200, world=world, seed=seed))
        assert features(model, 15) == [world.controllable_feature(h) for h in range(2, 16)]


def test_trajectories_that_are_over_are_not_lost():
    """Most are clips of three steps; what is said of later steps is said of those that are still there."""
    tau = sample(1000)
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 4 > 0, 3, 6))
    found = CRAFT().fit(short).diagnose(short, n_resamples=2)
    assert (found.assigned > 0.99).all()
    assert not any(finding.kind == "unassigned" for finding in found.findings)


def test_labels_last_to_the_end_of_long_trajectories():
    tau, model = long_trajectories()
    model.set_params(relabel="auto").fit(tau)
    assert (model.labels_ >= 0).mean() > 0.99
    assert list(model.n_states_)[1:] == [2] * 149
