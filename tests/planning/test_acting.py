"""Acting in closed loop, with exact states, reading errors, states that are fused, fitted models, actions that slip."""

from copy import deepcopy
from functools import cache

import gymnasium
import numpy as np
import pytest

from craftrl import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.envs import BitsExBMDP, PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, Planner, StateGraph, explore, plan_path
from craftrl.planning.acting import Filter
from exact_models import ExactModel, Slipping, random_goals, success, watched
from planning.line_world import Line, Reads, grounded
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

BITS = BitsExBMDP(horizon=5, n_features=6, seed=0)
WORLDS = {
    "bits": BITS,
    "lock": LockExBMDP(),
    "maze": MultiMazeExBMDP(horizon=6),
    "pixels": PixelsExBMDP(horizon=6, size=3),
}


@cache
def explored(world, shared, error):
    model = ExactModel(world, shared, error)
    grounding = Grounding(watched(world, model), world.n_actions)
    explore(ExBMDPEnv(world), model, grounding, steps=1500)
    return Planner(model, grounding)


def prepared(world, shared=False, error=0.0):
    """A planner whose grounding was explored, and its environment."""
    return deepcopy(explored(world, shared, error), {id(world): world}), ExBMDPEnv(world)


# -- a goal counts as reached if it is read, and what was read and done before agrees -----------------------------


def test_a_plan_that_should_have_arrived_is_no_arrival():
    """The door before the goal is shut: the encoder reads cell 1, where the thing is, although the plan ends in 0."""
    planner, env = Planner(Reads(range(5)), grounded(range(5), start=3), learn=False), Line(5, 3, shut={(1, 0)})
    for seed in range(4):
        episode = planner.run(env, {0}, seed=seed, max_steps=3)
        assert (episode.nodes, episode.believed, env.cell) == ((3, 2, 1, 1), (3, 2, 1, 0), 1)
        assert (episode.reached, episode.stopped, episode.surprises) == (False, "not confirmed", (4,))
        assert "at the end state 1 was read where state 0 is the likeliest" in episode.message
    assert not planner.run(env, {0}, seed=0).reached  # nor does it claim to, however long it goes on


def test_a_single_frame_is_no_arrival():
    """The goal's frame is read three cells away from it: one such frame is rather read wrongly."""

    class SeesTheGoalOnce(Reads):
        def encode(self, x, h=None):
            self.read = getattr(self, "read", 0) + 1
            return np.array([7]) if self.read == 2 else super().encode(x)

    planner, env = Planner(SeesTheGoalOnce(range(8)), grounded(range(8), start=3), learn=False), Line(8, 3)
    short = planner.run(Line(8, 3, limit=1), {7}, seed=0)
    assert (short.nodes, short.believed, short.stopped) == ((3, 7), (3, 4), "not confirmed")
    planner.model.read, planner.learn = 0, True
    episode = planner.run(env, {7}, seed=0)
    assert episode.nodes == (3, 7, 5, 6, 7)
    assert (episode.reached, env.cell) == (True, 7)
    assert (7, 5) not in {(s, t) for s, _, t, _ in planner.grounding.labels}  # nothing is learned of what is in doubt


@pytest.mark.parametrize(("error", "most"), [(0.0, 0.0), (0.02, 0.01), (0.1, 0.02)])
def test_claims_are_true_where_moves_fail_and_frames_are_read_wrongly(error, most):
    """Every tenth move fails. Who trusts the plan, or the likeliest state, claims a tenth of the goals wrongly."""
    grounding, env = grounded(range(8), start=3), Line(8, 3, stuck=0.1)
    claimed, wrong = 0, 0
    for i in range(200):
        goal = (0, 5, 6, 7)[i % 4]
        episode = Planner(Reads(range(8), error, seed=i), grounding, learn=False).run(env, {goal}, seed=i)
        claimed += episode.reached
        wrong += episode.reached and env.cell != goal
        assert not episode.reached or episode.nodes[-1] in {goal}
    assert claimed >= 0.98 * 200
    assert wrong <= most * 200


FUSED = (0, 1, 2, 3, 4, 1, 5, 6)  # cells 1 and 5 are one state, whose left leads to 0 and to 4


@pytest.mark.parametrize(("error", "most"), [(0.0, 0.0), (0.05, 0.03)])
def test_claims_are_true_where_two_cells_are_one_state(error, most):
    """By its labels the way to 0 leads over cell 5, from where it never gets there, however often it should have."""
    grounding, env = grounded(FUSED, start=3), Line(8, 3)
    claimed, wrong = dict.fromkeys((0, 2, 4, 5, 6), 0), 0
    for i in range(100):
        goal = list(claimed)[i % 5]
        planner = Planner(Reads(FUSED, error, seed=i), grounding, learn=False)
        episode = planner.run(env, {goal}, seed=i, max_steps=24)
        claimed[goal] += episode.reached
        wrong += episode.reached and FUSED[env.cell] != goal
    assert min(claimed[2], claimed[4]) >= 18
    assert claimed[0] <= 4
    assert wrong <= most * 100


def test_two_cells_in_one_state_show_in_what_actions_do_and_in_contradicting_labels():
    grounding, exact = grounded(FUSED, start=3, labels=400), grounded(range(8), start=3, labels=400)
    assert grounding.outcomes(1).chance.max() < 0.7
    assert min(exact.outcomes(s).chance.max(axis=1).min() for s in range(8)) > 0.99
    assert "one successor in each state" in grounding.contradiction
    assert "from state 1 to state" in grounding.contradiction
    assert exact.contradiction == ""


@pytest.mark.parametrize(
    ("env", "max_steps", "stopped"),
    [
        (Line(5, 3, shut={(1, 0)}, limit=3), None, "not confirmed"),
        (Line(5, 3, limit=2), None, "episode ended"),
        (Line(5, 3), 2, "time is up"),
    ],
)
def test_an_episode_says_why_it_stopped(env, max_steps, stopped):
    planner = Planner(Reads(range(5)), grounded(range(5), start=3), learn=False)
    assert planner.run(env, {0}, seed=0, max_steps=max_steps).stopped == stopped


# -- which state it is ---------------------------------------------------------------------------------------------

WAYS = np.repeat([[0, 1, 2, 3], [0, 4, 5, 6]], 100, axis=0)  # two ways from 0, by action 0 and by action 1


def filtered(labels, deterministic=True):
    """After so many labels of each move."""
    graph = StateGraph.from_states(WAYS, np.zeros(len(WAYS), int), sizes=(7,), shared=True)
    grounding = Grounding(graph, 2, deterministic=deterministic)
    for s, a, t in [(0, 0, 1), (0, 1, 4), *((s, a, s + 1) for s in (1, 2, 4, 5) for a in (0, 1))]:
        for _ in range(labels):
            grounding.add(s, a, t)
    found = Filter(grounding)
    found.start(0)
    return found


@pytest.mark.parametrize(
    ("labels", "seen", "node"),
    [
        (4, [(0, 6)], 1),  # nothing leads from 0 to 6: a reading error, against well-tested moves
        (4, [(0, 6), (0, 2)], 2),
        (4, [(0, 4), (0, 5)], 5),  # a move that went another way is believed once the next frame agrees
        (1, [(0, 4)], 4),  # what was hardly tested is doubted at once
        (4, [(1, -1)], 4),  # frames that name no state leave what is expected
    ],
)
def test_what_is_believed_after_actions_and_readings(labels, seen, node):
    found = filtered(labels)
    for action, reading in seen:
        found.update(action, reading)
    assert found.node == node
    if len(seen) == 2:
        assert found.belief[node] > 0.99


def test_where_actions_slip_a_slip_is_believed_and_until_then_both_ways_are_likely():
    found = filtered(labels=4)
    found.update(0, 4)  # action 0 has always led to 1
    assert set(found.likely()) == {1, 4}
    found = filtered(labels=8, deterministic=False)
    for _ in range(2):
        found.grounding.add(0, 0, 4)
    found.start(0)
    found.update(0, 4)
    assert found.node == 4


def test_where_no_start_was_read_the_first_frame_that_names_a_state_decides():
    found = filtered(labels=4)
    found.start(-1)
    assert (found.node, found.likely()) == (-1, [])
    found.update(0, -1)
    assert found.node == -1
    found.update(0, 3)
    assert found.node == 3


def test_being_pushed_back_again_and_again_is_believed():
    """Up and down a ladder: a well-tested step up that ends one rung lower is a push, as in a collision."""
    rng = np.random.default_rng(0)
    rungs = np.clip(np.cumsum(np.pad(rng.choice([-1, 0, 1], (400, 11)), ((0, 0), (1, 0))), axis=1), 0, 10)
    grounding = Grounding(StateGraph.from_states(rungs, np.zeros(400, int), sizes=(11,), shared=True), 3)
    for rung in range(6):
        for _ in range(6):
            grounding.add(rung, 1, rung + 1)
    found = Filter(grounding)
    for seen, node in (((1, 0), 0), ((9,), 3)):  # nothing leads to 9: a reading error
        found.start(2)
        for reading in seen:
            found.update(1, reading)
        assert found.node == node


# -- worlds --------------------------------------------------------------------------------------------------------


ROOMS = PixelsExBMDP(horizon=12, size=5, layout="rooms")
EXACT = [*((world, False, 5) for world in WORLDS.values()), (ROOMS, True, 3)]


@pytest.mark.parametrize(("world", "shared", "labels"), EXACT)
def test_every_goal_is_reached_with_exact_states_and_few_labels(world, shared, labels):
    planner, env = prepared(world, shared)
    assert planner.grounding.n_labels <= labels * len(planner.grounding.graph.edges)
    assert success(planner, env, random_goals(world, 30)) == 1


@pytest.mark.parametrize(("name", "error", "least"), [("lock", 0.01, 0.97), ("maze", 0.05, 0.85), ("bits", 0.05, 0.85)])
def test_reading_errors_do_little_harm(name, error, least):
    """Judged by the true state. The goal is read wrongly as often, and an encoder for each step reads it once."""
    planner, env = prepared(WORLDS[name], error=error)
    assert success(planner, env, random_goals(WORLDS[name], 40)) >= least
    assert planner.grounding.contradiction == ""


def test_an_episode_says_what_happened():
    planner, env = prepared(WORLDS["pixels"])
    episode = planner.run(env, "6:5", seed=3, keep=True)
    assert (episode.reached, episode.stopped, episode.message) == (True, "reached", "")
    assert len(episode.nodes) == len(episode.actions) + 1 == len(episode.observations) == 6
    assert episode.nodes == episode.believed == episode.plans[0].nodes
    assert episode.surprises == ()
    fixed = Planner(planner.model, planner.grounding, learn=False)
    assert fixed.run(env, "6:5", seed=3) == fixed.run(env, "6:5", seed=3)
    assert fixed.run(env, "6:5", seed=3).observations == ()


def test_a_wrong_label_is_a_surprise_and_is_planned_around():
    world = PixelsExBMDP(horizon=20, size=3)
    model, env = ExactModel(world, shared=True), ExBMDPEnv(world)
    grounding = Grounding(watched(world, model), 4)
    explore(env, model, grounding, steps=300)
    start, goal = 0, 8
    plan = plan_path(grounding, start, {goal})
    swapped = Grounding(grounding.graph, 4)
    for s, a, t, times in grounding.labels:
        for _ in range(times):
            swapped.add(s, a if s != start else (a + 1) % 4, t)
    episode = Planner(model, swapped).run(env, goal, seed=0)
    assert episode.surprises[0] == 2
    assert episode.reached
    assert episode.plans[1].nodes[0] == episode.believed[1]  # the first plan is left at once
    assert len(episode.actions) > len(plan)


def test_without_labels_it_tries_and_learns():
    world = PixelsExBMDP(horizon=40, size=3, n_walkers=1)
    model, env = ExactModel(world, shared=True), ExBMDPEnv(world)
    grounding = Grounding(watched(world, model, n=100), 4)
    planner = Planner(model, grounding)
    first = planner.run(env, 8, seed=0)
    assert (first.reached, first.surprises) == (True, ())  # where nothing was planned, nothing surprises
    assert grounding.n_labels == len(first.actions) > 4
    again = [planner.run(env, 8, seed=i) for i in range(5)]
    assert all(episode.reached and len(episode.actions) <= 5 for episode in again[1:])
    forgetful = Planner(model, Grounding(grounding.graph, 4), learn=False).run(env, 8, seed=0, max_steps=10)
    assert forgetful.stopped == "time is up"
    assert "in the" in forgetful.message


def test_a_goal_that_the_videos_never_lead_to_is_given_up_with_a_sentence():
    planner, env = prepared(WORLDS["pixels"])
    far = planner.run(env, "2:8", seed=0)  # the far corner, one step after the start
    assert (far.reached, far.stopped, far.actions) == (False, "not reachable", ())
    assert "none leads from state 0 at h = 1 to state 8 at h = 2" in far.message
    short = planner.run(env, "6:5", seed=0, max_steps=2)
    assert (short.stopped, short.actions) == ("time is up", ())
    assert "in the 2 moves left" in short.message


def test_slipping_actions_are_planned_with_and_otherwise_named():
    world = PixelsExBMDP(horizon=20, size=4)
    model = ExactModel(world, shared=True)
    graph, goals = watched(world, model), random_goals(world, 30)
    chance = Grounding(graph, 4, deterministic=False)
    explore(Slipping(world, 0.2), model, chance, steps=800)
    assert success(Planner(model, chance), Slipping(world, 0.2, seed=1), goals) >= 0.95
    strict = Grounding(graph, 4)
    explore(Slipping(world, 0.2), model, strict, steps=90)
    planner = Planner(model, strict)
    with pytest.warns(AssumptionWarning, match="than reading errors explain; .* From now on several are exp") as caught:
        reached = success(planner, Slipping(world, 0.2, seed=1), goals)
    assert len(caught) == 1  # it is said once
    assert strict.slips
    assert reached >= 0.95


# -- bad input -----------------------------------------------------------------------------------------------------


def test_goals_are_states_texts_observations_or_nodes():
    planner, env = prepared(WORLDS["pixels"])
    graph = planner.grounding.graph
    assert planner.goal_nodes("3:2") == {graph.node(2, 3)}
    assert planner.goal_nodes(8) == planner.goal_nodes("8") == {graph.node(8, h) for h in range(2, 7)}
    assert planner.goal_nodes({3, 4}) == {3, 4}
    assert Planner(Reads(range(5)), grounded(range(5), start=3)).goal_nodes("4:3") == {3}  # one state for all steps
    env.reset(seed=0)
    x = env.step(0)[0]
    assert planner.goal_nodes((2, x)) == {graph.node(int(env._s[0]), 2)}


OTHER = r"observations of shape \(18, 18, 3\); uint8 of shape \(12, 12, 3\) was given"
DISCRETE = "The environment must have discrete actions, numbered from 0"


@pytest.mark.parametrize(
    ("env", "given", "sentence"),
    [
        (ExBMDPEnv(PixelsExBMDP(horizon=6, size=2)), {}, OTHER),
        (ExBMDPEnv(BITS), {}, "must have the 4 actions"),
        (gymnasium.spaces.Box(0, 1, (2,)), {}, DISCRETE),
        (gymnasium.spaces.MultiBinary(4), {}, DISCRETE),
        (gymnasium.spaces.Discrete(4, start=1), {}, DISCRETE),
        ("env", {}, "env must be a Gymnasium environment"),
        (None, {"max_steps": -1}, "max_steps must be"),
        (None, {"goal": 9}, r"one of the states 0..8 of the model; 9 is none"),
        (None, {"goal": "9:0"}, "at a step from 1 to 6; '9:0' is none"),
        (None, {"goal": "2:99"}, "at a step from 1 to 6; '2:99' is none"),
        (None, {"goal": "a"}, 'a state at a step "h:state" as "4:3"'),
        (None, {"goal": 2.5}, "A goal must be a state as 3"),
        (None, {"goal": frozenset({999})}, "Goals must be one or more states"),
        (None, {"goal": np.zeros((18, 18, 3), np.uint8)}, r"must come with its step, \(h, observation\)"),
    ],
)
def test_environments_and_goals_that_do_not_fit_are_refused(env, given, sentence):
    """In place of an environment its actions may stand."""
    planner, own = prepared(WORLDS["pixels"])
    if isinstance(env, gymnasium.Space):
        own.action_space, env = env, None
    with pytest.raises((InvalidDataError, InvalidParameterError), match=sentence):
        planner.run(own if env is None else env, **{"goal": 1, **given})


def test_models_of_other_data_and_groundings_that_are_none_are_refused():
    planner, env = prepared(WORLDS["pixels"])
    with pytest.raises(InvalidParameterError, match="grounding must be a Grounding"):
        Planner(planner.model, None)
    planner.model.encode = lambda x, h=None: np.array([-1])
    with pytest.raises(InvalidDataError, match="a state that the videos show; the model names none for this one"):
        planner.goal_nodes((2, env.reset(seed=0)[0]))
    planner.model.data_ = {"dtype": "float32"}
    with pytest.raises(InvalidDataError, match=r"fitted to, float32 observations .* uint8 of shape \(18, 18, 3\)"):
        planner.run(env, 1)
