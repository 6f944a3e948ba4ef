"""The studies of exact CRAFT, each on its smallest sizes: what a run measures, and that its command works."""

import argparse
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.special import xlogy

from craftrl import CoordinateOracle
from craftrl.cli import main
from craftrl.diagnostics.state_tests import run_tests
from craftrl.envs import BitsExBMDP, collect
from craftrl.paper import population_assumptions
from craftrl.paper.assumptions import population_visits
from studies.agents import run as agents
from studies.bounds import run as bounds
from studies.collectors import run as collectors
from studies.efficiency import population
from studies.efficiency import run as efficiency
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
    study = import_module(f"studies.{name}.run")
    monkeypatch.setattr(study, "STUDY", replace(study.STUDY, runs=lambda args: TINY[name]))
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
    study = import_module(f"studies.{name}.run").STUDY
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    for line in (["--seeds", "4"], ["--seeds", "8", *(["--full"] if study.full_seeds else [])]):
        runs = study.runs(parser.parse_args(line))
        assert len(set(runs)) == len(runs) > 0


# -- worlds, tests and groups -----------------------------------------------------------------------------------------


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


# -- couplings with infinite data -------------------------------------------------------------------------------------

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
