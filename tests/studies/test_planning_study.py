"""The study of planning on tiny worlds: goals, labels, rows, tables and the picture; learners from rewards."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from craftrl.cli import main
from craftrl.cli.reproduce import parsed
from craftrl.envs import GymWorld, PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.oracles.network import Training
from craftrl.planning import Grounding
from examples.goals import ReachState, steps_to
from studies.planning import opponents, policies, trials
from studies.planning.arenas import Watched, arena_of
from studies.planning.encoders import TRUE, accuracy_of
from studies.planning.report import report
from studies.planning.run import run_one
from studies.planning.spec import DEFAULT, EXACT, SMALL
from studies.study import STUDIES, read_rows

TINY = replace(SMALL["pixels"], n=60, labels=(0, 30), horizon=4, size=2, walkers=1)


def runs(line):
    """What the command line makes of a line, on the CPU."""
    study, args = parsed(f"planning --device cpu --seeds 1 {line}".split())
    return study.runs(args)


@pytest.fixture(scope="module")
def arena():
    return arena_of(replace(TINY, technique="true", goals=10))


def test_a_committed_row_comes_out_again():
    """Of the labels drawn from the videos, which are among the more."""
    rows = read_rows(STUDIES / "planning/rows.jsonl")
    row = next(r for r in rows if (r["world"], r["technique"], r["seed"]) == ("pixels", "true", 0))
    (run,) = runs("--worlds pixels --techniques true --labels 0 20 100")
    again = run_one(run)
    for kind in ("offline", "offline_latent"):
        assert again[kind] == [row[kind][row["labels"].index(k)] for k in run.labels]
    same = ("accuracy", "chance", "n_states", "n_moves_found", "n_latent", "agreement", "n_moves", "n_states_true")
    assert {name: again[name] for name in same} == {name: row[name] for name in same}


def test_a_committed_curve_of_a_q_table_comes_out_again():
    rows = read_rows(STUDIES / "planning/policies.jsonl")
    row = next(row for row in rows if (row["learner"], row["seed"]) == ("Q-table on states", 0))
    assert policies.q_table(row["goal"], 0, steps=100) == list(zip(row["steps"], row["success"]))[:4]
    for row in rows:
        assert steps_to(0.95, list(zip(row["steps"], row["success"]))) == row["steps_to_95"]


# -- arenas and trials ---------------------------------------------------------------------------------------------


def test_goals_are_reachable_states_with_an_observation_of_each(arena):
    goals = arena.goals(40, 0)
    states, seen, _ = map(np.array, zip(*goals))
    assert set(states) == {1, 2, 3}  # every cell but the start
    assert np.array_equal(arena.world.phi_star(seen, 1), states)
    assert np.array_equal([goal.observation for goal in arena.goals(40, 0)], seen)
    assert {goal.observation[0] for goal in arena.of_true_states().goals(40, 0)} == {1, 2, 3}


def test_an_environment_is_cut_off_at_the_horizon_and_remembers_where_it_was(arena):
    env = arena.make()
    env.reset(seed=0)
    ends = [env.step(action)[2:4] for action in (3, 1, 0)]
    assert ends == [(False, False), (False, False), (False, True)]
    table = arena.world.T(2)
    assert env.visited == [0, table[0, 3], table[table[0, 3], 1], table[table[table[0, 3], 1], 0]]
    longer = GymWorld(lambda: ExBMDPEnv(PixelsExBMDP(9, 2, 1)), lambda env: env.unwrapped.state, 4, [3, 2, 1, 0], H=4)
    env = Watched(longer)
    env.reset(seed=0)
    assert [env.step(action)[3] for action in (0, 2, 3)] == [False, False, True]
    assert env.visited == [0, table[0, 3], table[table[0, 3], 1], table[table[table[0, 3], 1], 0]]


def test_states_of_the_maze_have_one_name_at_all_steps_and_networks_see_it_as_a_picture():
    arena = arena_of(replace(SMALL["multimaze"], n=60, horizon=3))
    first, later = arena.data.train.truth.states[:, 1], arena.data.train.truth.states[:, 2]
    assert set(first) == {0, 1, 8}  # eight cells in a row: the corner, right of it and below it
    assert set(later) >= set(first)
    env = arena.make()
    env.reset(seed=0)
    assert {env.step(action)[0].shape for action in (0, 1)} == {(27, 27)}
    assert set(env.visited) <= set(later)
    drawn = arena.drawn()
    x, _ = drawn.make().reset(seed=0)
    assert x.shape == drawn.data.train.tau.obs_shape == (27, 27, 1)
    assert set(np.unique(x)) == {0, 255}
    assert np.array_equal(drawn.data.train.tau.at(2)[..., 0], 255 * arena.data.train.tau.at(2))
    assert drawn.drawn() is drawn


def test_more_labels_hold_the_fewer_and_come_from_the_videos(arena):
    rows, steps = trials.drawn_labels(arena, 20, seed=3)
    assert [a.tolist() for a in trials.drawn_labels(arena, 5, seed=3)] == [rows[:5].tolist(), steps[:5].tolist()]
    assert len(set(zip(rows, steps))) == 20
    assert steps.max() <= arena.world.H - 2


def test_true_states_reach_every_goal_once_all_moves_are_labelled_and_an_episode_teaches_the_next_nothing(arena):
    true = arena.of_true_states()
    assert accuracy_of(TRUE, true) == 1
    graph, at = trials.moves_of(TRUE, true)
    assert len(graph.edges) == 12  # in each of four corners: stay, and two ways out
    found = trials.curves(TRUE, true, lambda: Grounding(graph, 4), at, true.goals(10, 0), (0, 100), seed=0)
    assert found["offline"]["success"][1] == found["online"]["success"][1] == 1
    assert found["offline"]["labels"] == [0, 100]
    assert found["online"]["labels"][1] <= 100  # exploring ends once nothing is left to try
    trials.score(TRUE, true.make(), grounding := Grounding(graph, 4), true.goals(5, 0))
    assert grounding.n_labels == 0


# -- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_writes_rows_tables_and_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(SMALL, "multimaze")
    monkeypatch.setitem(SMALL, "pixels", TINY)
    monkeypatch.setattr("studies.planning.encoders.training_of", lambda run: Training(epochs=1, device="cpu"))
    monkeypatch.setattr("studies.planning.cloning.UPDATES", 5)
    line = f"planning --device cpu --quiet --seeds 1 --goals 6 --techniques true paired cloning --out {tmp_path}"
    assert main(["reproduce", *line.split()]) == 0
    rows = read_rows(tmp_path / "rows.jsonl")
    assert [row["technique"] for row in rows] == ["true", "paired", "cloning"]
    assert all(row["n_moves"] == 12 and row["n_states_true"] == 4 for row in rows)
    assert len({row["chance"] for row in rows}) == 1
    for row in rows:
        for kind in {"offline", "online", "offline_latent"} & row.keys():
            assert len(row[kind]) == 2
            assert 0 <= min(row[kind]) <= max(row[kind]) <= 1
    assert rows[0]["offline"][1] == 1
    assert 0.5 < rows[0]["agreement"]["by_group"] <= rows[0]["agreement"]["ceiling"]
    assert rows[1]["n_states"] == 4
    printed = capsys.readouterr().out
    assert report(rows) in printed
    assert "true states, latent actions" in printed
    assert (tmp_path / "planning.png").stat().st_size > 10_000


def test_tables_say_what_95_percent_takes():
    row = {"world": "pixels", "walkers": 2, "size": 3, "labels": [0, 10], "seed": 0, "chance": 0.4}
    craft = {**row, "technique": "craft", "offline": [0.4, 1.0], "online": [0.5, 0.9]}
    ppo = {**row, "technique": "ppo", "steps_needed": 4000, "steps_tried": [500, 6500], "goal_distance": 3}
    text = report([craft, ppo, {**ppo, "steps_needed": None}])
    for line in (
        "| CRAFT | 40.0 | 100.0 |",
        "| random actions | 40.0 | 40.0 |",
        "| pixels, 2 walkers: random labels | 10 |",
        "| pixels, 2 walkers: explored steps | never |",
        "| PPO from pixels, one goal | pixels | 4,000, more than 6,500; 3, 3 |",
    ):
        assert line in text.splitlines()


def test_worlds_and_techniques_of_the_default():
    found = runs("")
    assert [run.technique for run in found if run.world == "pixels"] == list(DEFAULT)
    assert [run.technique for run in found if run.world == "multimaze"] == list(EXACT)
    assert {run.rates for run in found if run.technique in ("craft", "cloning")} == {()}
    assert {run.steps for run in found} == {0}
    more = runs("--techniques ppo ac-state --walkers 0 4 --steps 9")
    assert {(run.walkers, run.steps, run.rates) for run in more if run.world == "pixels"} == {
        *((walkers, *of) for walkers in (0, 4) for of in ((9, ()), (0, (1e-3,))))
    }
    assert {run.walkers for run in more if run.world == "multimaze"} == {8}


# -- learners from rewards -----------------------------------------------------------------------------------------

WORLD = PixelsExBMDP(horizon=4, size=2, n_walkers=1)
OPPOSITE = 3  # the cell that is two moves from the start


def images():
    return ReachState(ExBMDPEnv(WORLD), lambda env: env.unwrapped.state == OPPOSITE)


class Cells(gymnasium.ObservationWrapper):
    """The true cell, in place of the image."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Discrete(4)

    def observation(self, x):
        return self.unwrapped.state


class Knows:
    """A policy that goes the right way from the first `right` cells, and otherwise stays where it is."""

    def __init__(self, right):
        moves = WORLD.plan.moves
        away = np.array([0 if s == OPPOSITE else 1 if OPPOSITE in moves[s] else 2 for s in range(4)])
        self.best = away[moves].argmin(axis=1)
        self.stay = np.array([moves[s].tolist().index(s) for s in range(4)])
        self.right = right

    def predict(self, x, deterministic):
        assert deterministic
        return np.where(x < self.right, self.best[x], self.stay[x]), None


def test_training_ends_once_success_stays():
    evaluations = opponents.Evaluations(lambda: Cells(images()), 10)
    evaluations.model, evaluations.num_timesteps = Knows(0), 0
    assert evaluations.success() == 0.0
    evaluations.model, goes_on = Knows(4), []
    for step in range(1, 10 * opponents.STAYS + 1):
        evaluations.num_timesteps = step
        goes_on.append(evaluations._on_step())
    assert goes_on == [True] * (10 * opponents.STAYS - 1) + [False]
    assert evaluations.rows == [(10 * (i + 1), 1.0) for i in range(opponents.STAYS)]
    evaluations.rows = [(10, 1.0), (20, 1.0), (30, 0.9), (40, 1.0), (50, 1.0), (60, 1.0), (70, 1.0)]
    assert evaluations._on_step()  # one failure starts the count again


def test_learners_from_rewards_are_scored_on_the_first_goal():
    row = run_one(replace(TINY, technique="ppo", steps=600, device="cpu"))
    assert row["goal_distance"] in (1, 2)
    assert 0 <= row["success"][0] <= 1
    assert row["steps_needed"] is None or row["steps_needed"] >= row["steps_tried"][0]


@pytest.mark.slow
def test_ppo_learns_where_it_sees_the_state():
    assert steps_to(0.95, opponents.learn("ppo", lambda: Cells(images()), 4000, seed=0, every=256)) is not None


@pytest.mark.parametrize(("kind", "settings"), [("ppo", {"n_steps": 8}), ("dqn", {"learning_starts": 64})])
def test_images_are_taken_as_they_come_and_a_seed_decides(kind, settings):
    one, two = (opponents.learn(kind, images, 128, seed=0, every=32, **settings) for _ in range(2))
    assert [steps for steps, _ in one] == [32, 64, 96, 128]
    assert one == two
    assert all(0 <= score <= 1 for _, score in one)
