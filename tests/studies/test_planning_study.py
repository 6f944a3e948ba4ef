"""The study of planning on a tiny world: goals, labels, rows, tables and the picture."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("gymnasium")

from craftrl.cli import main
from craftrl.oracles.network import Training
from craftrl.planning import Grounding
from studies.planning import trials
from studies.planning.arenas import arena_of
from studies.planning.encoders import OneEncoder, TrueStates, accuracy_of
from studies.planning.report import format_report, label, needed
from studies.planning.run import run_one
from studies.planning.spec import DEFAULT, EXACT, WORLDS, World, sweep

TINY = {
    "pixels": World(n=60, labels=(0, 30), horizon=4, size=2, walkers=1),
    "multimaze": World(n=60, labels=(0, 30), horizon=3, walkers=8),
}
TRUE = sweep(TINY, ["true"], goals=10, device="cpu")


@pytest.fixture(scope="module")
def arena():
    return arena_of(TRUE[0])


def test_goals_are_reachable_states_with_an_observation_of_each(arena):
    goals = arena.goals(40, 0)
    assert set(goals.states) == {1, 2, 3}  # every cell but the start
    assert np.array_equal(arena.world.phi_star(goals.observations, 1), goals.states)
    assert sum(len(part) for part in goals.parts(7)) == 40
    assert np.array_equal(arena.goals(40, 0).observations, goals.observations)
    assert set(arena.told().goals(40, 0).observations[:, 0]) == {1, 2, 3}


def test_an_environment_is_cut_off_at_the_horizon_and_remembers_where_it_was(arena):
    env = arena.make()
    env.reset(seed=0)
    ends = [env.step(action)[2:4] for action in (3, 1, 0)]
    assert ends == [(False, False), (False, False), (False, True)]
    table = arena.world.T(2)
    assert env.visited == [0, table[0, 3], table[table[0, 3], 1], table[table[table[0, 3], 1], 0]]


def test_states_of_the_maze_have_one_name_at_all_steps():
    arena = arena_of(TRUE[1])
    first, later = arena.data.train.truth.states[:, 1], arena.data.train.truth.states[:, 2]
    assert set(first) == {0, 1, 8}  # eight cells in a row: the corner, right of it and below it
    assert set(later) >= set(first)
    env = arena.make()
    env.reset(seed=0)
    assert {env.step(action)[0].shape for action in (0, 1)} == {(27, 27)}
    assert set(env.visited) <= set(later)


def test_more_labels_hold_the_fewer_and_come_from_the_videos(arena):
    rows, steps = trials.drawn_labels(arena, 20, seed=3)
    assert [a.tolist() for a in trials.drawn_labels(arena, 5, seed=3)] == [rows[:5].tolist(), steps[:5].tolist()]
    assert len(set(zip(rows, steps))) == 20
    assert steps.max() <= arena.H - 2


def test_true_states_reach_every_goal_once_all_moves_are_labelled(arena):
    told, model = arena.told(), OneEncoder(TrueStates(), (1,))
    assert accuracy_of(model, told) == 1
    moves, at = trials.moves_of(model, told)
    assert len(moves.edges) == 12  # in each of four corners: stay, and two ways out
    found = trials.curves(model, told, lambda: Grounding(moves, 4), at, told.goals(10, 0), (0, 100), seed=0)
    assert found["offline"]["success"][1] == found["online"]["success"][1] == 1
    assert found["offline"]["labels"] == [0, 100]
    assert found["online"]["labels"][1] <= 100  # exploring ends once nothing is left to try


def test_an_episode_teaches_the_next_one_nothing(arena):
    told, model = arena.told(), OneEncoder(TrueStates(), (1,))
    moves, _ = trials.moves_of(model, told)
    grounding = Grounding(moves, 4)
    trials.score(model, told.make(), grounding, told.goals(5, 0))
    assert grounding.n_labels == 0


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_writes_rows_tables_and_a_picture(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(WORLDS, "small", {"pixels": TINY["pixels"]})
    monkeypatch.setattr("studies.planning.encoders.training_of", lambda run: Training(epochs=2, device="cpu"))
    monkeypatch.setattr("studies.planning.cloning.UPDATES", 5)
    argv = ["reproduce", "planning", "--device", "cpu", "--quiet", "--seeds", "1", "--goals", "6"]
    argv += ["--techniques", "craft", "true", "paired", "cloning", "--out", str(tmp_path)]
    assert main(argv) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["technique"] for row in rows] == ["craft", "true", "paired", "cloning"]
    assert all(row["n_moves"] == 12 and row["n_states_true"] == 4 for row in rows)
    assert len({row["chance"] for row in rows}) == 1
    for row in rows:
        for kind in {"offline", "online", "offline_latent"} & row.keys():
            assert len(row[kind]) == 2
            assert 0 <= min(row[kind]) <= max(row[kind]) <= 1
    assert rows[1]["offline"][1] == 1
    assert 0.5 < rows[1]["agreement"]["by_group"] <= rows[1]["agreement"]["ceiling"]
    assert rows[2]["n_states"] == 4
    printed = capsys.readouterr().out
    assert format_report(rows) in printed
    assert label("true", "offline_latent") in printed
    assert (tmp_path / "planning.png").stat().st_size > 10_000


def test_learners_from_rewards_are_scored_on_the_first_goal(monkeypatch):
    pytest.importorskip("stable_baselines3")
    run = replace(TRUE[0], technique="ppo", steps=600)
    row = run_one(run)
    assert row["goal_distance"] in (1, 2)
    assert row["steps_tried"]
    assert 0 <= row["success"][0] <= 1
    assert row["steps_needed"] is None or row["steps_needed"] >= row["steps_tried"][0]


def test_the_number_of_labels_needed_is_the_one_from_which_on_success_stays():
    assert needed((0, 1, 2, 5), (0.2, 0.96, 0.9, 0.97)) == 5
    assert needed((0, 1), (0.95, 1.0)) == 0
    assert needed((0, 1), (0.95, 0.9)) is None


def test_steps_of_ppo_are_set_beside_those_of_the_planner():
    row = {"world": "pixels", "walkers": 2, "size": 3, "labels": [0, 10], "n_moves": 32, "n_states_true": 9}
    row |= {"chance": 0.4, "seed": 0}
    craft = {**row, "technique": "craft", "offline": [0.4, 1.0], "online": [0.5, 0.96], "n_states": 9, "accuracy": 1.0}
    ppo = {**row, "technique": "ppo", "steps_needed": 4000, "steps_tried": [500, 6500], "goal_distance": 3}
    text = format_report([craft, ppo])
    assert "| CRAFT | 40 | 100 | 10 |" in text
    assert "| PPO from pixels, one goal | one | 4,000 | the goal is so many moves away: 3 |" in text
    assert "PPO from pixels, one goal takes 400 times as many" in text
    assert "more than" in format_report([craft, {**ppo, "steps_needed": None}])


def test_worlds_and_techniques_of_the_default():
    runs = sweep(WORLDS["small"], seeds=2)
    assert [run.technique for run in runs if run.world == "pixels" and run.seed == 1] == list(DEFAULT)
    assert [run.technique for run in runs if run.world == "multimaze" and run.seed == 0] == list(EXACT)
    assert {run.rates for run in runs if run.technique == "craft"} == {()}
    assert {run.walkers for run in sweep(WORLDS["small"], ["craft"], walkers=[0, 4]) if run.world == "pixels"} == {0, 4}


def test_networks_see_bits_as_pictures():
    arena = arena_of(sweep({"multimaze": WORLDS["small"]["multimaze"]}, n=20)[0])
    drawn = arena.drawn()
    x, _ = drawn.make().reset(seed=0)
    assert x.shape == drawn.data.train.tau.obs_shape == (27, 27, 1)
    assert set(np.unique(x)) == {0, 255}
    assert np.array_equal(drawn.data.train.tau.at(2)[..., 0], 255 * arena.data.train.tau.at(2))
    assert drawn.drawn() is drawn
