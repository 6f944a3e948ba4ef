"""Silence means right: what `fit` warns of, and what it does not."""

import warnings

import numpy as np
import pytest

import craftrl
from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.encoders import named_states
from craftrl.diagnostics.tests import run_tests
from craftrl.envs import BitsExBMDP, collect
from studies.worlds.policies import HistoryPolicy

WORLD = BitsExBMDP(6, 12, seed=0)


def features(model: CRAFT) -> list[int]:
    return [model.encoders_[h].feature for h in range(2, WORLD.H + 1)]


def true_features() -> list[int]:
    return [WORLD.controllable_feature(h) for h in range(2, WORLD.H + 1)]


@pytest.mark.parametrize("sizes", [(4000, 200), (200, 4000), (10000, 200)])
def test_unbalanced_agents_are_right_and_silent(sizes: tuple[int, int]) -> None:
    model = CRAFT(CoordinateOracle()).fit(collect(WORLD, WORLD.paper_policies(), sizes, seed=0).tau)
    assert features(model) == true_features()
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]


def test_an_agent_that_never_moves_is_right_and_silent() -> None:
    agents = [WORLD.persistence_policy(0.5), WORLD.persistence_policy(1.0)]
    model = CRAFT(CoordinateOracle()).fit(collect(WORLD, agents, 600, seed=0).tau)
    assert features(model) == true_features()


@pytest.mark.parametrize("sizes", [(1000, 5), (1000, 1), (3, 3), (1, 1)])
def test_a_handful_of_trajectories_is_warned_of(sizes: tuple[int, int]) -> None:
    tau = collect(WORLD, WORLD.paper_policies(), sizes, seed=0).tau
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        model = CRAFT(CoordinateOracle()).fit(tau)
    assert model.diagnose(tau, n_resamples=1).verdict == "do not trust"


def test_one_state_at_most_steps_is_warned_of() -> None:
    tau = collect(WORLD, WORLD.paper_policies(), 600, seed=0).tau
    with pytest.warns(AssumptionWarning, match="CRAFT found one state at h = "):
        CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1).fit(tau)


def test_states_that_the_class_cannot_read_are_warned_of_and_the_trace_is_saved(tmp_path) -> None:
    """The class has the state at h = 2 and 3 only: from then on it offers noise, which the data contradicts."""

    def encoders(h: int) -> list:
        noise = [lambda x, i=i: x[:, i] for i in range(WORLD.M) if h < 4 or i != WORLD.controllable_feature(h)]
        return noise if h < 4 else noise[:3]

    tau = collect(WORLD, WORLD.paper_policies(), 1500, seed=0).tau
    with pytest.warns(AssumptionWarning, match="No encoder of the class reads the states found at h = "):
        model = CRAFT(FiniteOracle(encoders), alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    assert min(model.trace_.misread()) >= 4
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=FiniteOracle(encoders))
    assert [step.p_closure for step in again.trace_] == [step.p_closure for step in model.trace_]


def test_states_that_the_data_contradicts_are_warned_of() -> None:
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
    assert "not closed" in [finding.kind for finding in model.trace_.findings]


def test_codes_that_stand_for_no_state_are_read_as_the_commonest() -> None:
    codes = np.array([[0, 2], [0, 1], [1, 1], [-1, -1]])
    assert named_states(codes, [1, 2]).tolist() == [[0, 1], [0, 1], [0, 1], [-1, -1]]


@pytest.mark.parametrize("sizes", [(4000, 200), (10000, 200)])
def test_right_models_of_unbalanced_agents_are_silent(sizes: tuple[int, int]) -> None:
    """Many rare cells, of which the rarer agent shows some once: Pearson's statistic is no chi-square there."""
    alarms = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        tables = rng.dirichlet(np.full(5, 0.4), size=(2, 5))
        agent = np.repeat([0, 1], sizes)
        s = np.zeros((len(agent), 4), dtype=np.int64)
        for h in range(1, 4):
            s[:, h] = (
                (rng.random(len(agent))[:, None] > tables[agent, s[:, h - 1]].cumsum(axis=1)).sum(axis=1).clip(0, 4)
            )
        noise = rng.choice(5, p=[0.6, 0.3, 0.09, 0.009, 0.001], size=(*s.shape, 6))
        tau = TrajectoryDataset.from_arrays([np.concatenate([s[..., None], noise], axis=2)[agent == k] for k in (0, 1)])
        tests = run_tests(s, [1, 5, 5, 5], CoordinateOracle(5).prepare(tau))
        alarms.append(min(tests.p_residual.min(), tests.p_closure.min()) * 3 < 1e-3)
    assert not any(alarms)


def test_right_models_of_few_trajectories_are_silent_where_most_steps_are_not_seen_alone() -> None:
    """The control world at 200 trajectories per agent: single steps may be at chance; all of them together are not."""
    warned = 0
    for seed in range(6):
        world = BitsExBMDP(15, 64, seed=715 + seed, entangled=False)
        tau = collect(world, world.paper_policies(), 200, seed=715 + seed).tau
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = CRAFT(CoordinateOracle()).fit(tau)
        assert [model.encoders_[h].feature for h in range(2, 16)] == [
            world.controllable_feature(h) for h in range(2, 16)
        ]
        warned += bool(caught)
    assert warned == 0


@pytest.mark.parametrize(("stay", "warned"), [(0.6, 0), (0.5, 6)])
def test_one_encoder_for_all_steps_is_one_choice(stay: float, warned: int) -> None:
    """Agents that differ a little at every step are told apart by all steps together; agents that act alike are not."""
    told = 0
    for seed in range(6):
        world = BitsExBMDP(8, 32, seed=seed, entangled=False)
        world.permutation[:] = world.permutation[0]
        agents = [world.persistence_policy(0.5), world.persistence_policy(stay)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            model = CRAFT(CoordinateOracle(), stationary=True).fit(collect(world, agents, 500, seed=seed).tau)
        told += model.trace_.guesses
    assert told == warned


def test_trajectories_that_are_over_are_not_lost() -> None:
    """Most are clips of three steps; what is said of later steps is said of those that are still there."""
    tau = collect(WORLD, WORLD.paper_policies(), 1000, seed=0).tau
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 4 > 0, 3, 6))
    model = CRAFT(CoordinateOracle()).fit(short)
    found = model.diagnose(short, n_resamples=2)
    assert (found.assigned > 0.99).all()
    assert not any(finding.kind == "unassigned" for finding in found.findings)
    assert not any("fell between the clusters" in text for text in map(str, found.findings))


def test_advice_is_given_where_it_matters() -> None:
    """Moves that half of the trajectories make are not called rare."""
    tau = collect(WORLD, WORLD.paper_policies(), 400, seed=0).tau
    assert not [f for f in CRAFT(CoordinateOracle()).fit(tau).trace_.findings if f.kind == "rare move"]


def test_encoders_between_which_the_data_does_not_decide_are_warned_of() -> None:
    """An agent that repeats the state before the last moves, from every state to every next one, as a random one does:
    after the first steps nothing tells which feature is the state."""

    def chances(history: np.ndarray) -> np.ndarray:
        before = history[:, -2] if history.shape[1] > 1 else history[:, -1]
        return np.where(np.arange(2) == before[:, None], 0.75, 0.25)

    warned = []
    for seed in range(6):
        world = BitsExBMDP(12, 32, seed=seed)
        agents = [world.persistence_policy(0.5), HistoryPolicy(chances)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            model = CRAFT(CoordinateOracle()).fit(collect(world, agents, 1000, seed=seed).tau)
        told = [finding for finding in model.trace_.findings if finding.kind == "undecided"]
        warned.append(bool(told) and max(told[0].steps) == 12 and told[0].numbers["share"] > 0.5)
    assert all(warned)


def test_more_data_decides() -> None:
    """With few trajectories the model may be wrong and says so; with more it is right, and silent."""
    world = BitsExBMDP(8, 16, seed=1)
    told = {}
    for n in (60, 2000):
        tau = collect(world, world.paper_policies(), n, seed=0).tau
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            told[n] = CRAFT(CoordinateOracle()).fit(tau).trace_.findings
    assert "undecided" in [finding.kind for finding in told[60]]
    assert not [finding for finding in told[2000] if finding.severity == "warning"]


def test_a_state_that_noise_splits_is_warned_of_where_the_class_reads_it_as_one() -> None:
    """A class in which the state stands beside the state with a coin: bounds that are too small take the coin along."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 1500)
    stay = np.array([[0.7, 0.4, 0.3], [0.4, 0.2, 0.6]])
    s = np.zeros((3000, 4), dtype=np.int64)
    for h in range(1, 4):
        moves = rng.random(3000) > stay[agent, s[:, h - 1]]
        s[:, h] = (s[:, h - 1] + moves * rng.integers(1, 3, 3000)) % 3
    x = np.stack([s, rng.integers(2, size=s.shape)], axis=2)
    prepared = FiniteOracle([lambda x: x[:, 0], lambda x: 2 * x[:, 0] + x[:, 1]], 6).prepare(
        TrajectoryDataset.from_arrays([x[agent == k] for k in (0, 1)])
    )
    codes = s.copy()
    assert np.isinf(run_tests(codes, [1, 3, 3, 3], prepared).split).all()
    codes[:, 2] = 2 * s[:, 2] + x[:, 2, 1]
    split = run_tests(codes, [1, 3, 6, 3], prepared).split
    assert split[2] < np.log(1e-3)
    assert np.isinf(split[[0, 1, 3]]).all()


def test_values_of_an_encoder_that_stand_for_no_state_are_warned_of() -> None:
    codes = np.stack([np.zeros(400, dtype=int), np.arange(400) % 3, np.arange(400) // 2 % 3], axis=1)
    x = np.stack([codes, codes], axis=2)
    tau = TrajectoryDataset.from_arrays([x[:200], x[200:]])
    tests = run_tests(codes, [1, 2, 3], CoordinateOracle(3).prepare(tau))
    assert tests.unnamed == pytest.approx([0, 1 / 3, 0], abs=0.01)
