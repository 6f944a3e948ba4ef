"""Exploring: what to try next, and how much it saves."""

import numpy as np
import pytest

from craftrl import InvalidParameterError
from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, explore
from exact_models import ExactModel, Slipping, TrueLatentActions, watched
from studies.worlds.lock import LockExBMDP

PIXELS = PixelsExBMDP(horizon=6, size=3)


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


@pytest.mark.parametrize(("world", "shared"), [(PIXELS, True), (PIXELS, False), (LockExBMDP(horizon=5), False)])
def test_exploring_grounds_every_move_in_fewer_steps_than_chance(world, shared):
    model, env = ExactModel(world, shared), ExBMDPEnv(world)
    moves = watched(world, model)
    for seed in range(3):
        grounding = Grounding(moves, world.n_actions)
        exploration = explore(env, model, grounding, steps=4000, seed=seed)
        assert exploration.finished
        assert exploration.missing == ()
        assert grounding.n_labels == exploration.steps
        assert exploration.steps < 0.7 * steps_at_random(env, model, Grounding(moves, world.n_actions), seed)
        right = [
            world.T(world.H - 1 if h is None else h)[state, a] == moves.name(t)[1]
            for s, t, a in zip(*(part.tolist() for part in _moves(grounding)))
            for h, state in [moves.name(s)]
        ]
        assert all(right)


def _moves(grounding):
    known = grounding.known_moves()
    return known.s, known.t, known.action


def test_latent_actions_leave_little_to_try():
    model, env = ExactModel(PIXELS), ExBMDPEnv(PIXELS)
    moves = watched(PIXELS, model)
    latent = TrueLatentActions.of(PIXELS, moves, names=[1, 3, 0, 2])
    with_latent = explore(env, model, Grounding(moves, 4, latent), steps=4000)
    without = explore(env, model, Grounding(moves, 4), steps=4000)
    assert with_latent.missing == without.missing == ()
    assert with_latent.steps <= 5
    assert without.steps > 100


def test_each_action_is_tried_a_few_times_at_most_on_its_own_account():
    """Passing through a state tries an action again, but exploring never ends up going in circles."""
    model, env = ExactModel(PIXELS, shared=True), ExBMDPEnv(PIXELS)
    grounding = Grounding(watched(PIXELS, model), 4)
    explore(env, model, grounding, steps=4000)
    assert grounding.n_labels < 2 * grounding.graph.n * 4
    assert (tried(grounding) == 0).any()  # what the videos do not ask for is not tried
    explore(env, model, grounding, steps=4000, every_action=True)
    assert (tried(grounding) > 0).all()


def test_a_budget_is_kept_and_what_is_left_is_said():
    model, env = ExactModel(PIXELS), ExBMDPEnv(PIXELS)
    moves = watched(PIXELS, model)
    few = explore(env, model, Grounding(moves, 4), steps=7)
    assert (few.steps, few.episodes, few.finished) == (7, 2, False)
    assert len(few.missing) > len(moves.edges) - 10
    assert set(few.missing) <= set(map(tuple, moves.edges.tolist()))
    two = explore(env, model, Grounding(moves, 4), episodes=2)
    assert (two.steps, two.episodes) == (2 * (PIXELS.H - 1), 2)
    assert explore(env, model, Grounding(moves, 4), steps=0).steps == 0


def test_the_same_seed_explores_the_same_way():
    moves = watched(PIXELS, ExactModel(PIXELS, error=0.05))
    runs = []
    for _ in range(2):
        model, grounding = ExactModel(PIXELS, error=0.05, seed=4), Grounding(moves, 4)
        explored = explore(ExBMDPEnv(PIXELS), model, grounding, steps=200, seed=9)
        runs.append((explored, tried(grounding).tolist()))
    assert runs[0] == runs[1]


def test_where_actions_slip_each_is_tried_several_times():
    model = ExactModel(PIXELS, shared=True)
    grounding = Grounding(watched(PIXELS, model), 4, deterministic=False)
    exploration = explore(Slipping(PIXELS, 0.2), model, grounding, steps=4000)
    assert exploration.finished
    assert tried(grounding).min() >= 5


def test_a_budget_must_be_given():
    model = ExactModel(PIXELS)
    grounding = Grounding(watched(PIXELS, model), 4)
    with pytest.raises(InvalidParameterError, match="must have a budget; none was given"):
        explore(ExBMDPEnv(PIXELS), model, grounding)
    with pytest.raises(InvalidParameterError, match="steps must be an integer of at least 0"):
        explore(ExBMDPEnv(PIXELS), model, grounding, steps=-1)
    with pytest.raises(InvalidParameterError, match="grounding must be a Grounding"):
        explore(ExBMDPEnv(PIXELS), model, None, steps=1)
