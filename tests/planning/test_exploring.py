"""Exploring: what to try next, and how much it saves."""

import numpy as np
import pytest

from craftrl import InvalidParameterError
from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, Planner, StateGraph, explore
from exact_models import ExactModel, Slipping, TrueLatentActions, watched
from planning.line_world import Line, Reads, walks
from studies.worlds.lock import LockExBMDP

PIXELS, LOCK = PixelsExBMDP(horizon=6, size=3), LockExBMDP(horizon=5)
GRAPHS = {
    (world, shared): watched(world, ExactModel(world, shared), n=300)
    for world, shared in ((PIXELS, False), (PIXELS, True), (LOCK, False))
}


def tried(grounding):
    """How often each action was tried in each state, (n, n_actions)."""
    return np.stack([grounding.outcomes(node).tried for node in range(grounding.graph.n)])


def steps_at_random(env, model, grounding, seed, most=4000):
    """Actions drawn at random until every move is grounded."""
    rng, steps, number = np.random.default_rng(seed), 0, grounding.graph.node
    while steps < most and not grounding.grounded.all():
        x, over, h = env.reset(seed=int(rng.integers(2**31)))[0], False, 1
        here = number(int(model.encode(x[None], 1)[0]), 1)
        while not over:
            action = int(rng.integers(grounding.n_actions))
            x, _, over, _, _ = env.step(action)
            h, steps = h + 1, steps + 1
            after = number(int(model.encode(x[None], h)[0]), h)
            grounding.add(here, action, after)
            here = after
    return steps


@pytest.mark.parametrize(("world", "shared"), [(PIXELS, True), (LOCK, False)])
def test_exploring_grounds_every_move_in_fewer_steps_than_chance(world, shared):
    model, env, graph = ExactModel(world, shared), ExBMDPEnv(world), GRAPHS[world, shared]
    grounding = Grounding(graph, world.n_actions)
    exploration = explore(env, model, grounding, steps=4000)
    assert (exploration.finished, exploration.missing) == (True, ())
    assert grounding.n_labels == exploration.steps
    assert exploration.steps < 0.7 * steps_at_random(env, model, Grounding(graph, world.n_actions), 0)
    for s, t, a, _ in zip(*(column.tolist() for column in grounding.known_moves())):
        h, state = graph.name(s)
        assert world.T(world.H - 1 if h is None else h)[state, a] == graph.name(t)[1]


def test_latent_actions_leave_little_to_try():
    model, env, graph = ExactModel(PIXELS), ExBMDPEnv(PIXELS), GRAPHS[PIXELS, False]
    latent = TrueLatentActions.of(PIXELS, graph, names=[1, 3, 0, 2])
    with_latent = explore(env, model, Grounding(graph, 4, latent), steps=4000)
    without = explore(env, model, Grounding(graph, 4), steps=4000)
    assert with_latent.missing == without.missing == ()
    assert with_latent.steps <= 5
    assert without.steps > 100


def test_each_action_is_tried_a_few_times_at_most_on_its_own_account():
    """Passing through a state tries an action again, but exploring never ends up going in circles."""
    model, env = ExactModel(PIXELS, shared=True), ExBMDPEnv(PIXELS)
    grounding = Grounding(GRAPHS[PIXELS, True], 4)
    explore(env, model, grounding, steps=4000)
    assert grounding.n_labels < 2 * grounding.graph.n * 4
    assert (tried(grounding) == 0).any()  # what the videos do not ask for is not tried


def test_where_actions_slip_each_is_tried_several_times():
    grounding = Grounding(GRAPHS[PIXELS, True], 4, deterministic=False)
    assert explore(Slipping(PIXELS, 0.2), ExactModel(PIXELS, shared=True), grounding, steps=4000).finished
    assert tried(grounding).min() >= 5


def test_where_the_model_names_no_state_all_actions_are_tried_until_it_does():
    """The first cell has no name, and no way leads back to it."""
    states, _ = walks(3, start=0)
    graph = StateGraph.from_states(states, np.zeros(len(states), int), shared=True)
    model, grounding, env = Reads((-1, 0, 1, 2)), Grounding(graph, 2), Line(4, start=0, shut={(1, 0)})
    assert explore(env, model, grounding, steps=60).missing == ()
    episode = Planner(model, grounding).run(env, 2, seed=0)
    assert (episode.reached, episode.nodes[0]) == (True, -1)


def test_a_budget_is_kept_and_what_is_left_is_said():
    model, env, graph = ExactModel(PIXELS), ExBMDPEnv(PIXELS), GRAPHS[PIXELS, False]
    few = explore(env, model, Grounding(graph, 4), steps=7)
    assert (few.steps, few.episodes, few.finished) == (7, 2, False)
    assert len(few.missing) > len(graph.edges) - 10
    assert set(few.missing) <= set(map(tuple, graph.edges.tolist()))
    two = explore(env, model, Grounding(graph, 4), episodes=2)
    assert (two.steps, two.episodes) == (2 * (PIXELS.H - 1), 2)
    assert explore(env, model, Grounding(graph, 4), steps=0).steps == 0


@pytest.mark.parametrize(
    ("known", "given", "sentence"),
    [
        (True, {}, "must have a budget; none was given"),
        (True, {"steps": -1}, "steps must be an integer of at least 0"),
        (False, {"steps": 1}, "grounding must be a Grounding"),
    ],
)
def test_a_budget_must_be_given(known, given, sentence):
    grounding = Grounding(GRAPHS[PIXELS, False], 4) if known else None
    with pytest.raises(InvalidParameterError, match=sentence):
        explore(ExBMDPEnv(PIXELS), ExactModel(PIXELS), grounding, **given)
