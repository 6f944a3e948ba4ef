"""The efficiency study: its yardsticks against brute force, its limits exactly, its command on a tiny sweep."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl import CoordinateOracle
from craftrl.cli import main
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.paper import population_assumptions
from craftrl.paper.sweep import seed_of
from studies.efficiency.excess import bits_and_pairs
from studies.efficiency.page import state_rows
from studies.efficiency.population import (
    aliased_chain,
    balanced_agents,
    both,
    conditional_losses,
    forgetful_chain,
    mimic,
    noise,
    pair_losses,
    state,
    sticky_agents,
    true_chain,
)
from studies.efficiency.references import PairLosses
from studies.efficiency.report import chance_of_worlds, curves, curves_json, format_curves, gain_over_independent
from studies.efficiency.run import run_one
from studies.efficiency.spec import EXCESS, FULL_SIZES, LEARNERS, SHAPES, Run, sweep

# A failed assumption is a result here.
pytestmark = pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")

ROOT = Path(__file__).parents[2]
H = 7
WORLD = BitsExBMDP(H, 2)
TINY = {"paper": (6, 8), "control": (6, 8), "lock": (3, 4), "excess at h = 2": (4, 3), "excess at every h": (4, 3)}


def losses_of(n: int, entangled: bool = True, seed: int = 0) -> tuple[BitsExBMDP, PairLosses]:
    world = BitsExBMDP(6, 10, seed, entangled=entangled)
    tau = collect(world, world.paper_policies(), n, seed=seed).tau
    return world, PairLosses(tau, Grid.from_bounds(1.0, 0.2))


# -- with infinite data ------------------------------------------------------------------------------------------


def test_with_balanced_agents_a_code_that_carries_noise_unlocks_the_mimic() -> None:
    agents = balanced_agents(WORLD)
    true, aliased = (pair_losses(WORLD, agents, chain(H)) for chain in (true_chain, aliased_chain))
    assert np.allclose(true, aliased, atol=1e-12)
    assert population_assumptions(WORLD, agents).alpha.value == pytest.approx(np.log(2))


def test_with_two_values_the_mimic_loses_at_the_start() -> None:
    agents = balanced_agents(WORLD)
    worse = pair_losses(WORLD, agents, [state, *[mimic] * (H - 1)]) - pair_losses(WORLD, agents, true_chain(H))
    assert worse[0] > 0.01
    assert worse[1] > 0.01
    assert np.allclose(worse[2:], 0, atol=1e-12)


def test_with_the_papers_agents_the_mimic_is_never_quite_as_good() -> None:
    agents = WORLD.paper_policies()
    worse = pair_losses(WORLD, agents, aliased_chain(H)) - pair_losses(WORLD, agents, true_chain(H))
    assert (worse[2:] > 0).all()
    assert (np.diff(worse[2:]) < 0).all()  # less and less, as both states come to be visited equally often


def test_the_pairwise_loss_is_least_on_the_true_chain() -> None:
    for agents in (sticky_agents(WORLD), balanced_agents(WORLD), WORLD.paper_policies()):
        true = pair_losses(WORLD, agents, true_chain(H))
        for code, following in product((state, mimic, both, noise), repeat=2):
            chain = [state, *[code if h % 2 == 0 else following for h in range(2, H + 1)]]
            assert (pair_losses(WORLD, agents, chain) >= true - 1e-12).all()


def test_the_conditional_loss_prefers_a_chain_that_forgets() -> None:
    agents = sticky_agents(WORLD)
    true, forgetful = (conditional_losses(WORLD, agents, chain(H)).sum() for chain in (true_chain, forgetful_chain))
    assert forgetful < true - 0.1


# -- what is committed --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def committed() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "studies/efficiency/rows.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("seeds", "at_500"), [("", 0.995), (", fresh seeds", 0.994)])
def test_the_markov_chain_finds_the_codes(committed: list[dict[str, Any]], seeds: str, at_500: float) -> None:
    by_name = {(curve.world, curve.method): curve for curve in curves(committed)}

    def codes(world: str, method: str = "markov, raw") -> dict[int, float]:
        curve = by_name[world + seeds, method]
        return {size: of.mean for size, of in zip(curve.sizes, curve.accuracy)}

    assert codes("control")[200] >= 0.99
    assert codes("control")[500] == 1.0
    assert all(codes("paper")[size] >= least for size, least in ((100, 0.915), (200, 0.974), (500, at_500)))
    assert all(codes("sticky")[size] > codes("sticky", "chain, raw")[size] + 0.1 for size in (200, 500))


def test_the_markov_chain_loses_two_points_to_another_coupling_in_one_place_alone(
    committed: list[dict[str, Any]],
) -> None:
    by_name = {(curve.world, curve.method): curve for curve in curves(committed)}
    lost = set()
    for (world, method), curve in by_name.items():
        ours = by_name[world, "markov" if world in EXCESS else "markov, relabelled"]
        if method in LEARNERS:
            pairs = zip(curve.sizes, ours.accuracy, curve.accuracy)
            lost |= {(world, size) for size, a, b in pairs if a.mean < b.mean - 0.02}
    assert lost == {("sticky, fresh seeds", 100)}


def test_a_chain_that_fails_does_so_in_the_middle(committed: list[dict[str, Any]]) -> None:
    failed = [row for row in committed if row["world"] == "control" and row["size"] in (200, 500)]
    failed = [row for row in failed if row["accuracy"]["chain, raw"] < 0.9]
    assert len(failed) == 11
    for row in failed:
        world = BitsExBMDP(row["horizon"], row["n_features"], row["seed"], entangled=False)
        rng = np.random.default_rng(seed_of("table1", world.H, world.M, row["size"], row["seed"]))
        tau = collect(world, world.paper_policies(), row["size"], seed=rng).tau
        f = CoordinateOracle().prepare(tau).log_odds(Grid.from_bounds(np.log(3), 0.2), "chain")
        right = [model.j == world.controllable_feature(h) for h, model in enumerate(f.models, start=2)]
        assert 5 <= 2 + right.index(False) <= 25, "the first wrong step"
        assert not right[-1], "it keeps the mimic"


# -- yardsticks --------------------------------------------------------------------------------------------------


def test_the_genie_minimises_the_loss_between_its_neighbours() -> None:
    world, losses = losses_of(60)
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    found = losses.genie(truth)
    for k, feature in enumerate(found):
        before = 0 if k == 0 else truth[k - 1]

        def total(f: int, k: int = k, before: int = before) -> int:
            after = losses.losses[k + 1][f, truth[k + 1]] if k + 1 < len(truth) else 0
            return int(losses.losses[k][before, f] + after)

        assert total(feature) == min(map(total, range(world.M)))


def test_the_hub_needs_entangled_features_and_no_agents() -> None:
    world, losses = losses_of(200)
    truth = [world.controllable_feature(h) for h in range(2, world.H + 1)]
    assert losses.hub() == truth
    control, losses = losses_of(200, entangled=False)
    assert losses.hub() != [control.controllable_feature(h) for h in range(2, control.H + 1)]


def test_much_data_gives_the_conditional_chain_the_truth() -> None:
    world, losses = losses_of(2000)
    assert losses.conditional_chain() == [world.controllable_feature(h) for h in range(2, world.H + 1)]


# -- runs and sweep ----------------------------------------------------------------------------------------------


def test_a_run_scores_every_method_and_the_chain_wins() -> None:
    result = run_one(Run("paper", 200, 0, 8, 32))
    accuracy = result["accuracy"]
    assert accuracy.keys() >= {*LEARNERS, "genie", "hub", "chain, raw", "conditional, raw"}
    assert accuracy["chain"] > accuracy["independent"] + 0.03
    assert accuracy["markov, relabelled"] >= accuracy["chain, relabelled"]
    assert result["state_mean"].keys() == result["state_worst"].keys() == accuracy.keys()
    assert all(result["state_worst"][name] <= result["state_mean"][name] <= accuracy[name] for name in accuracy)
    assert result["right_counts"].keys() == result["assigned"].keys() == LEARNERS.keys()


def test_craft_recovers_what_its_aliased_codes_have_lost() -> None:
    result = run_one(Run("excess at h = 2", 8000, 1, 6, 8))
    assert result["accuracy"]["chain"] == 1.0
    aliased = [run_one(Run("excess at h = 2", 2000, seed, 6, 3))["accuracy"]["chain, raw"] for seed in range(4)]
    assert min(aliased) < 0.75 < max(aliased)


def test_the_class_of_bits_and_pairs() -> None:
    functions = bits_and_pairs(3)
    x = np.array([[1, 0, 1], [0, 1, 1]], dtype=np.uint8)
    assert len(functions) == 3 + 6
    assert [f(x).tolist() for f in functions[:4]] == [[1, 0], [0, 1], [1, 1], [2, 1]]


def row(seed: int, independent: float, chain: float) -> dict[str, Any]:
    accuracy = {"independent": independent, "chain": chain}
    return {"world": "paper", "size": 50, "seed": seed, "accuracy": accuracy, "right_counts": {}, "assigned": {}}


def test_gains_are_paired_by_seed() -> None:
    found = curves([row(0, 0.6, 0.7), row(1, 0.8, 0.9)])
    (gain,) = gain_over_independent(found, "chain")
    assert gain.mean == pytest.approx(0.1)
    assert gain.deviation == pytest.approx(0)
    assert [curve.method for curve in found] == ["independent", "chain"]


def test_a_sweep_names_every_run_once() -> None:
    runs = sweep(FULL_SIZES, 3, SHAPES)
    assert len(set(runs)) == len(runs) == 3 * sum(map(len, FULL_SIZES.values()))


def test_the_command_writes_curves_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.efficiency import spec

    monkeypatch.setattr(spec, "SIZES", dict.fromkeys(TINY, (60, 120)))
    monkeypatch.setattr(spec, "SHAPES", TINY)
    main(["reproduce", "efficiency", "--seeds", "2", "--quiet", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "chain, relabelled" in printed
    assert "forgetting, conditional loss   -0.3297" in printed
    written = json.loads((tmp_path / "curves.json").read_text())
    assert {curve["world"] for curve in written["curves"]} == set(TINY)
    assert (tmp_path / "efficiency.png").stat().st_size > 10_000
    assert (tmp_path / "excess.png").stat().st_size > 10_000
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert format_curves(curves(rows), chance_of_worlds(rows)) in printed
    assert "lock: markov, relabelled" in printed
    assert state_rows(curves(rows))[0].startswith("| paper | 60 | ")
    assert written["chance"].keys() == set(TINY)
    assert all("state_worst" in curve for curve in written["curves"])


def test_chance_follows_from_the_settings() -> None:
    one = {"horizon": 6, "n_features": 10, "size": 50}
    rows = [{**one, "world": world, "seed": seed} for world in ("control", "lock") for seed in (0, 1)]
    chance = chance_of_worlds(rows)
    assert chance["control"] == pytest.approx((1 + 5 * 0.55) / 6)
    assert 1 / 3 < chance["lock"] < 0.7  # the commonest of three states, and h = 1


def test_rows_without_single_states_make_no_table_of_them() -> None:
    found = curves([row(0, 0.6, 0.7), row(1, 0.8, 0.9)])
    assert state_rows(found) == []
    assert "state_mean" not in curves_json(found)[0]
