"""The studies of exact CRAFT, each on its smallest sizes: what a run measures, and that its command works."""

import argparse
import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.special import xlogy

from craftrl import CoordinateOracle
from craftrl.cli import main
from craftrl.core.grid import Grid
from craftrl.diagnostics.tests import run_tests
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.paper import population_assumptions
from craftrl.paper.assumptions import population_visits
from studies.agents import run as agents
from studies.bounds import run as bounds
from studies.collectors import run as collectors
from studies.efficiency import population
from studies.efficiency import run as efficiency
from studies.efficiency.spec import LEARNERS
from studies.error_growth import run as growth
from studies.loud import run as loud
from studies.loud.cases import draw_case
from studies.robustness import run as robustness
from studies.worlds import run as worlds

EVERY = "excess at every h"
pytestmark = pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")  # a result here
TINY = {
    "agents": [agents.Run(kind, k, 300, "chain", 1.0, 0, 4, 4) for kind in agents.KINDS for k in (2, 3)],
    "bounds": [bounds.Run("paper", 200, seed, 4, 6) for seed in (0, 1)],
    "collectors": [collectors.Run("memory", twin, 100, "markov", 0, 4, 6) for twin in (False, True)],
    "efficiency": [efficiency.Run(*of) for of in (("paper", 60, 0, 5, 8), ("lock", 60, 0, 3, 4), (EVERY, 60, 0, 4, 3))],
    "error_growth": [growth.Run(of, by, 0, 100, 6, 6) for of in growth.SCENARIOS for by in growth.LEARNERS],
    "loud": [
        loud.Run("fresh", "coordinates", "chosen", size, seed, 1) for size in ("100", "200:50") for seed in (1, 2)
    ],
    "robustness": [
        robustness.Run("toy", *broken, learner, n, 0, 4, 8, 1)
        for broken in (("none", 0.0), ("leaks", 0.2))
        for n in (100, 1000)
        for learner in robustness.LEARNERS
    ],
    "worlds": [worlds.Run("lock", coupling, 3000, 0, 3) for coupling in ("independent", "chain")],
}


@pytest.mark.parametrize("name", TINY)
def test_the_command_runs_reports_and_draws(name, tmp_path, monkeypatch, capsys):
    spec = import_module(f"studies.{name}.spec")
    monkeypatch.setattr(spec, "STUDY", replace(spec.STUDY, runs=lambda args: TINY[name]))
    assert main(["reproduce", name.replace("_", "-"), "--quiet", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "rows.jsonl").read_text().count("\n") == len(TINY[name])
    report = (tmp_path / "report.md").read_text()
    assert report in capsys.readouterr().out
    tables = [block.splitlines() for block in report.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)
    assert max(map(len, tables)) > 2
    assert all(picture.stat().st_size > 10_000 for picture in tmp_path.glob("*.png"))


@pytest.mark.parametrize("name", TINY)
def test_a_sweep_names_every_run_once(name):
    study = import_module(f"studies.{name}.spec").STUDY
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    for line in (["--seeds", "4"], ["--seeds", "8", *(["--full"] if study.full_seeds else [])]):
        runs = study.runs(parser.parse_args(line))
        assert len(set(runs)) == len(runs) > 0


# -- what runs show ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["extreme", "middle"])
@pytest.mark.parametrize("n_agents", [2, 6])
def test_persistent_agents_have_the_papers_alpha_however_many(kind, n_agents):
    world = BitsExBMDP(6, 4)
    policies = agents.agents_of(kind, world, n_agents)
    assert population_assumptions(world, policies).alpha.value == pytest.approx(math.log(3))


def test_two_agents_that_take_turns_fail_and_three_succeed_on_as_many_trajectories():
    two, three = (agents.run_one(agents.Run("turns", k, 4800, "chain", 1.0, 0, 8, 8)) for k in (2, 3))
    assert two["accuracy"] < 0.95
    assert two["state_worst"] < 0.8
    assert three["accuracy"] == three["state_worst"] == 1.0
    assert two["alpha"] == three["alpha"]


def test_chosen_bounds_mend_a_reference_in_the_middle():
    given, chosen = (agents.run_one(agents.Run("middle", 3, 4800, "chain", of, 7, 8, 8)) for of in (1.0, "auto"))
    assert given["accuracy"] < 0.95
    assert chosen["accuracy"] == 1.0


def test_a_run_of_bounds_tries_the_whole_grid_with_the_truth_in_the_middle():
    names = [bounds.grid_name(factors) for factors in bounds.GRID]
    assert (len(set(names)), names[13], bounds.grid_name((0.5, 1.0, 2.0))) == (27, "true", "alpha x 0.5 nu x 2")
    result = bounds.run_one(bounds.Run("rare", 400, 0, 5, 6))
    for measure in bounds.MEASURES:
        assert result[measure]["chain"].keys() == result[measure]["independent"].keys() == {*names, "auto"}


@pytest.mark.parametrize("kind", collectors.COLLECTORS)
def test_a_twin_makes_the_same_moves_and_remembers_nothing(kind):
    world, make = BitsExBMDP(6, 8, seed=0), collectors.COLLECTORS[kind]
    twin = collectors.markov_twin(world, make(world, 0), 8000, seed=0)
    assert isinstance(twin, MarkovPolicy)
    own, copied = collect(world, [make(world, 0), twin], 8000, seed=1).truth.states.reshape(2, 8000, -1)
    for h in range(1, world.H):
        pairs = [np.bincount(2 * s[:, h - 1] + s[:, h], minlength=4) / len(s) for s in (own, copied)]
        assert np.allclose(*pairs, atol=0.025)


def test_drafts_mistakes_multiply_and_crafts_do_not():
    """Paper: Section 3.1.1"""
    craft, draft = (
        np.array(growth.run_one(growth.Run("corrupted", learner, 0, 5000, 14, 8))["wrong"])
        for learner in ("craft", "draft")
    )
    spoilt = growth.BAD_SHARE["corrupted"]
    assert draft[-1] > 10 * spoilt
    assert draft[-1] / draft[-5] == pytest.approx(growth.GROWTH**4, rel=0.15)
    assert craft.max() < 3 * spoilt


def test_an_adversary_spoils_as_many_trajectories_of_each_agent_in_the_states_that_mislead():
    world, _, data = growth.sample(growth.Run("corrupted", "craft", 0, 1000, 4, 6))
    bad = world.phi_e(data.tau.at(2), 2)[:, 0] == 1
    spoilt = bad & (data.truth.states[:, 1] == 1 - data.tau.agent)
    assert [int(spoilt[data.tau.agent == k].sum()) for k in range(2)] >= [5, 5]
    for h in range(1, 5):
        assert (world.phi_star(data.tau.at(h), h) == data.truth.states[:, h - 1]).all()


def test_random_worlds_keep_to_their_tables_and_one_function_is_the_state():
    for seed in range(12):
        case = draw_case(seed, "about 30")
        data, again = case.data(), draw_case(seed, "about 30").data()
        assert all(np.array_equal(data.tau.at(h), again.tau.at(h)) for h in range(1, data.tau.H + 1))
        if case.kind == "bits" or case.violation != "none":
            continue
        states, actions, functions = data.truth.states, data.truth.actions, case.oracle("functions")
        for h in range(1, data.tau.H):
            assert np.array_equal(states[:, h], case.world.T(h)[states[:, h - 1], actions[:, h - 1]])
            assert np.array_equal(case.world.phi_star(data.tau.at(h + 1), h + 1), states[:, h])
            values = [np.asarray(phi(data.tau.at(h + 1))) for phi in functions.Phi(h + 1)]
            assert any(np.array_equal(value, states[:, h]) for value in values)
    assert set(draw_case(0, "200").sizes) == {200}
    assert draw_case(2, "4000:200").sizes[:: len(draw_case(2, "4000:200").sizes) - 1] == (4000, 200)


def test_models_are_grouped_by_what_is_wrong_with_them():
    row = {"worst_state": 1.0, "worst_named": 1.0, "violation": "none"}
    changes = [{}, {"worst_state": 0.9}, {"worst_named": 0.5}, {"violation": "leaks"}]
    groups = [loud.group_of({**row, **change}) for change in changes]
    assert groups == ["right", "wrong", "too few states", "right, broken"]


def test_hidden_steps_show_a_coin_instead_of_the_state():
    world = robustness.HiddenBitsExBMDP(8, 6, seed=1, hidden=0.5)
    data = collect(world, world.paper_policies(), 2000, 0)
    assert 0 < world.hidden.sum() < 8
    for h in range(1, 9):
        feature, right = world.controllable_feature(h), 0.5 if world.hidden[h - 1] else 1.0
        assert (data.tau.at(h)[:, feature] == data.truth.states[:, h - 1]).mean() == pytest.approx(right, abs=0.05)
        assert world.feature_accuracy(h)[feature] == right
        assert (world.feature_state_accuracy(h)[:, feature] == right).all()


@pytest.mark.parametrize(
    "run",
    [
        robustness.Run("toy", "mislabelled", 0.05, "default", 800, 0, 6, 16, 2),
        robustness.Run("lock", "slips", 0.01, "paper", 2000, 1, 4, 6, 2),
    ],
    ids=lambda run: run.world,
)
def test_small_violations_are_survived_and_the_diagnosis_agrees(run):
    result = robustness.run_one(run)
    assert result["accuracy"] > 0.97
    assert result["verdict"] != "do not trust"
    assert len(result["accuracy_by_step"]) == len(result["trust_by_step"]) == run.horizon
    assert result["state_worst"] > 0.9 > result["chance"]


def test_starts_are_noticed_and_where_agents_are_alike_it_decides_whose_habits_they_share():
    starts = robustness.run_one(robustness.Run("toy", "starts", 0.2, "default", 1000, 0, 6, 16, 0))
    assert starts["accuracy"] > 0.97
    assert "several starts" in starts["told"]
    kinds = ("alike", "alike, sticky")
    random, sticky = (
        robustness.run_one(robustness.Run("control", kind, 0.3, "default", 1000, 1, 8, 16, 0)) for kind in kinds
    )
    assert random["accuracy"] < 0.9 < sticky["accuracy"]


@pytest.mark.parametrize("steps", [range(0), range(2, 16), range(7, 11), range(11, 16)], ids=str)
def test_the_residual_test_sees_codes_that_follow_the_frozen_distractor_at_their_borders(steps):
    """Paper: Section 5 (the adversarial factor)"""
    world = BitsExBMDP(15, 64, 0)
    tau = collect(world, world.paper_policies(), 1500, 0).tau
    features = [world.controllable_feature(h) for h in range(1, 16)]
    for h in steps:
        features[h - 1] = int(np.flatnonzero(world.permutation[h - 1] == 1)[0])
    codes = np.stack([tau.at(h)[:, feature] for h, feature in enumerate(features, start=1)], axis=1).astype(np.int64)
    codes[:, 0] = 0
    failed = np.flatnonzero(run_tests(codes, [2] * 15, CoordinateOracle().prepare(tau)).explained < 1) + 1
    borders = {h for h in range(1, 15) if (h in steps) != (h + 1 in steps)}
    assert bool(borders & set(failed)) == bool(len(failed)) == bool(steps)


@pytest.mark.parametrize("run", [("lock", "independent", 4000, 1, 5), ("multimaze", "independent", 12_000, 1, 4)])
def test_exact_craft_recovers_states_and_graph(run):
    result = worlds.run_one(worlds.Run(*run))
    assert result["accuracy"] == result["state_worst"] == result["steps_with_right_state_count"] == 1.0
    assert result["graph_precision"] == result["graph_recall"] == result["label_graph_recall"] == 1.0
    assert 0 < result["chance"] < 0.7


# -- efficiency: with infinite data, and yardsticks ----------------------------------------------------------------

H = 7
WORLD = BitsExBMDP(H, 2)
CODES = {  # of the state s and of the frozen fair bit e, which no action moves
    "state": [[0, 0], [1, 1]],
    "mimic": [[0, 1], [1, 0]],
    "both": [[0, 1], [2, 3]],
    "noise": [[0, 1], [0, 1]],
}
TRUE = ["state"] * H
ALIASED = ["state", "both", *["mimic"] * (H - 2)]


def expected_losses(agents, codes, conditional=False):
    """H(agent | phi_h, phi_{h+1}) in nats for h = 1..H-1, what the pairwise loss tends to with infinite data.

    `conditional`: the same less H(agent | phi_h), minus the information about the agent that phi_{h+1} adds.
    """

    def uncertainty(shares):
        return float(xlogy(shares.sum(axis=0), shares.sum(axis=0)).sum() - xlogy(shares, shares).sum())

    found = []
    for now, then, visits in zip(codes, codes[1:], population_visits(WORLD, agents).pairs):
        shares = np.zeros((len(agents), 4, 4))
        for (k, s, s_next), share in np.ndenumerate(visits):
            for e in (0, 1):
                shares[k, CODES[now][s][e], CODES[then][s_next][e]] += share / 2
        found.append(uncertainty(shares) - (uncertainty(shares.sum(axis=2)) if conditional else 0))
    return np.array(found)


def test_with_balanced_agents_a_code_that_carries_noise_unlocks_the_mimic():
    balanced, papers = population.balanced_agents(WORLD), WORLD.paper_policies()
    assert np.allclose(expected_losses(balanced, TRUE), expected_losses(balanced, ALIASED), atol=1e-12)
    assert population_assumptions(WORLD, balanced).alpha.value == pytest.approx(np.log(2))
    mimic = expected_losses(balanced, ["state", *["mimic"] * (H - 1)])
    worse = mimic - expected_losses(balanced, TRUE)  # with two values the mimic loses at the start
    assert (worse[:2] > 0.01).all()
    assert np.allclose(worse[2:], 0, atol=1e-12)
    worse = expected_losses(papers, ALIASED) - expected_losses(papers, TRUE)
    assert (worse[2:] > 0).all()
    assert (np.diff(worse[2:]) < 0).all()  # less and less, as both states come to be visited equally often


def test_the_conditional_loss_prefers_a_chain_that_forgets_and_the_pairwise_loss_the_true_one():
    agents = population.sticky_agents(WORLD)
    forgetful = ["state", *("state" if h % 2 == 0 else "noise" for h in range(2, H + 1))]
    for conditional, better, other in ((True, forgetful, TRUE), (False, TRUE, forgetful)):
        low, high = (expected_losses(agents, codes, conditional).sum() for codes in (better, other))
        assert low < high - 0.1


def losses_of(n, entangled=True):
    world = BitsExBMDP(6, 10, 0, entangled=entangled)
    tau = collect(world, world.paper_policies(), n, seed=0).tau
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    return truth, efficiency.PairLosses(tau, Grid.from_bounds(1.0, 0.2))


def test_the_genie_minimises_the_loss_between_its_neighbours():
    truth, losses = losses_of(60)
    for k, feature in enumerate(losses.genie(truth)):
        before = 0 if k == 0 else truth[k - 1]
        total = [
            int(losses.losses[k][before, f]) + (int(losses.losses[k + 1][f, truth[k + 1]]) if k + 1 < len(truth) else 0)
            for f in range(10)
        ]
        assert total[feature] == min(total)


def test_the_hub_needs_entangled_features_and_much_data_gives_the_conditional_chain_the_truth():
    truth, losses = losses_of(2000)
    assert losses.hub() == losses.conditional_chain() == truth
    control, losses = losses_of(200, entangled=False)
    assert losses.hub() != control


def test_a_run_of_efficiency_scores_every_method_and_the_chain_wins():
    result = efficiency.run_one(efficiency.Run("paper", 200, 0, 8, 32))
    accuracy = result["accuracy"]
    assert accuracy.keys() >= {*LEARNERS, "genie", "hub", "chain, raw", "conditional, raw"}
    assert accuracy["chain"] > accuracy["independent"] + 0.03
    assert accuracy["markov, relabelled"] >= accuracy["chain, relabelled"]
    assert result["state_mean"].keys() == result["state_worst"].keys() == accuracy.keys()
    assert result["right_counts"].keys() == result["assigned"].keys() == LEARNERS.keys()


def test_craft_recovers_what_its_aliased_codes_have_lost():
    result = efficiency.run_one(efficiency.Run("excess at h = 2", 8000, 1, 6, 8))
    assert result["accuracy"]["chain"] == 1.0
    runs = [efficiency.Run("excess at h = 2", 2000, seed, 6, 3) for seed in range(4)]
    aliased = [efficiency.run_one(run)["accuracy"]["chain, raw"] for run in runs]
    assert min(aliased) < 0.75 < max(aliased)
