"""Which action makes which move: own labels, labels of the same latent action, and what is excluded."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError
from craftrl.envs import PixelsExBMDP, collect, contrasting_policies
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, Planner, StateGraph
from craftrl.planning.beliefs import covering
from craftrl.planning.files import save_grounding
from exact_models import ExactModel, TrueLatentActions, random_goals, success, watched
from studies.worlds.lock import LockExBMDP

STAR = StateGraph.from_states(
    np.repeat([[0, 1], [0, 2], [0, 3]], 50, axis=0), np.zeros(150, int), sizes=(4,), shared=True
)


def grounding(n_actions=3, **options):
    return Grounding(STAR, n_actions, **options)


@pytest.mark.parametrize(("unknown", "left", "options"), [(1, 1, 3), (2, 1, 3), (3, 2, 4), (2, 2, 2), (4, 3, 5)])
def test_what_is_left_over_is_counted_as_by_hand(unknown, left, options):
    """Of all ways to give actions an option each, those that cover options 0..left-1."""
    ways = [way for way in product(range(options), repeat=unknown) if set(range(left)) <= set(way)]
    p, q = covering(unknown, left, options)
    assert p == pytest.approx(np.mean([way[0] == 0 for way in ways]))
    if left < options:
        assert q == pytest.approx(np.mean([way[0] == options - 1 for way in ways]))


def test_many_actions_neither_overflow_nor_cancel():
    p, q = covering(1000, 30, 60.0)
    assert 30 * p + 30 * q == pytest.approx(1)
    assert p == pytest.approx(1 / 60, rel=1e-3)  # so many actions cover everything by themselves
    p, q = covering(60, 60, 60.0)
    assert p == pytest.approx(1 / 60)
    g = grounding(n_actions=1000)
    g.add(0, 4, 2)
    assert np.isfinite(g.action_of(g.graph.edges)).all()


def test_nothing_is_known_without_labels():
    g = grounding()
    assert g.n_labels == 0
    assert np.isnan(g.action_of(g.graph.edges)).all()
    assert not g.grounded.any()
    assert len(g.missing()) == 3
    assert len(g.reliability(0, 1)[0]) == 0


def test_a_label_grounds_its_move():
    g = grounding(n_actions=5)
    g.add(0, 4, 2)
    assert g.grounded.tolist() == [False, True, False]
    assert g.action_of([[0, 2]])[0].argmax() == 4
    assert g.reliability(0, 4)[0][0] == 2
    assert g.counts.toarray()[0].tolist() == [0, 0, 0, 0, 1]
    assert g.missing() == [(0, 1), (0, 3)]
    more = g.reliability(0, 4)[1][0]
    g.add(0, 4, 2)
    assert 0.5 < more < g.reliability(0, 4)[1][0] < 1


def test_the_last_action_makes_the_last_move():
    g = grounding()
    g.add(0, 0, 3)
    assert not g.grounded.all()
    g.add(0, 2, 1)
    assert g.grounded.all()
    assert g.action_of([[0, 2]])[0].argmax() == 1
    assert g.action_of([[0, 2]])[0, 1] > 0.9
    assert g.n_labels == 2


def test_an_action_that_leads_elsewhere_does_not_make_a_move():
    g = grounding()
    for _ in range(3):
        g.add(0, 0, 3)
    assert g.action_of([[0, 1], [0, 2]])[:, 0].max() < 0.01
    assert g.next_trial(0) != 0


def test_two_actions_may_make_one_move():
    """Four actions, three moves: with two tried, either of the others may make what is left, or both."""
    g = grounding(n_actions=4)
    g.add(0, 0, 3)
    g.add(0, 1, 3)
    assert not g.grounded[:2].any()
    g.add(0, 2, 1)
    assert g.grounded.all()
    assert (g.action_of([[0, 3]])[0, :2] > 0.5).all()


def test_a_label_that_the_videos_never_show_adds_a_move():
    g = grounding()
    g.add(1, 0, 0)  # nothing is seen to follow 1
    assert (g.known_moves().s.tolist(), g.known_moves().t.tolist()) == ([1], [0])
    g.add(0, 0, 0)
    g.add(0, 0, 0)
    assert (0, 0) in zip(g.known_moves().s.tolist(), g.known_moves().t.tolist())


def test_a_stray_label_is_outvoted():
    g = grounding()
    for successor in (2, 1, 1):
        g.add(0, 0, successor)
    assert g.reliability(0, 0)[0][0] == 1
    assert g.violations == ()


def test_where_actions_slip_a_distribution_is_kept():
    g = grounding(deterministic=False)
    for successor, times in ((1, 16), (2, 3), (3, 1)):
        for _ in range(times):
            g.add(0, 0, successor)
    successors, chance = g.reliability(0, 0)
    assert successors.tolist() == [1, 2, 3]
    assert chance == pytest.approx([0.8, 0.15, 0.05], abs=0.03)
    assert g.grounded.tolist() == [True, False, False]  # what happens by slipping is not done on purpose
    assert g.violations == ()


def test_contradicting_labels_are_named_where_the_world_is_said_to_be_deterministic():
    g = grounding()
    for successor in [1] * 12 + [2] * 8:
        g.add(0, 0, successor)
    (sentence,) = g.violations
    assert "action 0 led from state 0 to state 1 and to state 2" in sentence
    assert "deterministic=False" in sentence
    assert g.reliability(0, 0)[0][0] == 1  # the most frequent one is planned with


@pytest.mark.parametrize("shared", [True, False])
def test_true_latent_actions_ground_all_moves_with_a_label_for_each_action(shared):
    world = PixelsExBMDP(horizon=6, layout="rooms", size=5)
    model = ExactModel(world, shared)
    moves = watched(world, model)
    latent = TrueLatentActions.of(world, moves, names=[2, 0, 3, 1])
    alone, together = Grounding(moves, 4), Grounding(moves, 4, latent)
    inside = max(range(moves.n), key=lambda node: moves.out_degree[node])
    h, state = moves.name(inside)
    for a in range(3):  # the fourth is what is left
        after = moves.node(int(world.T(world.H - 1 if h is None else h)[state, a]), h and h + 1)
        alone.add(inside, a, after)
        together.add(inside, a, after)
    assert alone.grounded.sum() < 10
    assert together.grounded.all()
    goals = random_goals(world, 40)
    assert success(Planner(model, together, learn=False), ExBMDPEnv(world), goals) == 1


def test_own_labels_overrule_wrong_latent_actions():
    latent = SimpleNamespace(n=3, edges=STAR.edges, share=np.eye(3), consistent=np.zeros(4, dtype=int))
    g = Grounding(STAR, 3, latent)
    g.add(0, 0, 1)
    latent.share = np.eye(3)[[1, 0, 2]]
    wrong = Grounding(STAR, 3, latent)
    for _ in range(3):
        wrong.add(0, 0, 1)
    assert g.reliability(0, 0)[0][0] == wrong.reliability(0, 0)[0][0] == 1


def test_a_latent_action_of_which_nothing_is_known_here_is_not_ruled_out_by_a_label_here():
    """In state 0 it is known what latent action 0 does, and not what 1 does; in state 3 both are known."""
    states = np.repeat([[0, 1], [0, 2], [3, 4], [3, 5]], 50, axis=0)
    moves = StateGraph.from_states(states, np.zeros(200, int), sizes=(6,), shared=True)
    share = np.array([[1.0, 0], [0, 0], [1, 0], [0, 1]])
    g = Grounding(moves, 2, SimpleNamespace(n=2, edges=moves.edges, share=share, consistent=np.zeros(6, dtype=int)))
    g.add(0, 1, 2)  # not latent action 0, so it is latent action 1
    assert g.action_of([[3, 5]])[0, 1] > 0.5
    assert g.action_of([[3, 4]])[0, 0] > 0.5


def test_groups_with_names_of_their_own_learn_alone():
    states = np.repeat([[0, 1], [0, 2], [3, 4], [3, 5]], 50, axis=0)
    moves = StateGraph.from_states(states, np.zeros(200, int), sizes=(6,), shared=True)
    share = np.tile(np.eye(2), (2, 1))
    for groups, known in (([0] * 6, 4), ([0, 0, 0, 1, 1, 1], 2), ([0, 0, 0, -1, -1, -1], 2)):
        latent = SimpleNamespace(n=2, edges=moves.edges, share=share, consistent=np.array(groups))
        g = Grounding(moves, 2, latent)
        g.add(0, 1, 1)
        assert g.grounded.sum() == known
    assert (np.nan_to_num(g.action_of([[3, 4]])) == 0).all()


def test_labels_come_from_observations():
    world = LockExBMDP()
    model = ExactModel(world)
    data = collect(world, contrasting_policies(world, alpha=0.7), 200, seed=1)
    x = np.stack([data.tau.at(h) for h in range(1, world.H + 1)], axis=1)
    g = Grounding(watched(world, model), world.n_actions)
    actions = data.truth.actions.copy()
    actions[:, 2] = -1
    assert g.add_labels(model, x, actions) == actions.shape[0] * (actions.shape[1] - 1)
    at = {h: g.counts.toarray()[[g.graph.node(s, h) for s in range(world.n_states(h))]].sum() for h in (2, 3)}
    assert at == {2: len(x), 3: 0}
    for (s, t), chances in zip(g.graph.edges, g.action_of(g.graph.edges)):
        h, state = g.graph.name(int(s))
        makes = world.T(h)[state] == g.graph.name(int(t))[1]
        tried = g.counts.toarray()[s] > 2
        assert np.array_equal(chances[tried] > 0.5, makes[tried])
    pairs = Grounding(g.graph, world.n_actions)
    assert pairs.add_labels(model, x[:, 2:4], data.truth.actions[:, 2], h=3) == len(x)


def test_labels_that_cannot_be_are_refused():
    world = PixelsExBMDP(horizon=3, size=2)
    model = ExactModel(world)
    g = Grounding(watched(world, model), 4)
    x = np.zeros((2, 3, *world.obs_shape), dtype=np.uint8)
    with pytest.raises(InvalidDataError, match=r"Actions must lie in 0..3, or be -1 where unknown; 4 was given"):
        g.add_labels(model, x, [[0, 4], [0, 0]])
    with pytest.raises(InvalidDataError, match="the action between each two of them"):
        g.add_labels(model, x, [[0, 1, 2], [0, 0, 0]])
    with pytest.raises(InvalidParameterError, match=r"action must be an integer from 0 to 3; 4 was given"):
        g.add(0, 4, 1)
    with pytest.raises(InvalidParameterError, match="successor must be"):
        g.add(0, 0, 99)
    with pytest.raises(InvalidDataError, match="next step; state 0 at h = 1 and state 0 at h = 3 were given"):
        g.add(0, 0, g.graph.node(0, 3))
    with pytest.raises(InvalidParameterError, match="moves must be a StateGraph"):
        Grounding(None, 4)
    with pytest.raises(InvalidParameterError, match="it has no edges"):
        Grounding(g.graph, 4, SimpleNamespace(n=4))
    latent = SimpleNamespace(n=1, edges=np.zeros((0, 2)), share=np.zeros((0, 1)), consistent=np.zeros(3))
    with pytest.raises(InvalidParameterError, match="of the same 9 states"):
        Grounding(g.graph, 4, latent)


def test_a_grounding_replaces_nothing_but_a_grounding(tmp_path):
    (tmp_path / "data.h5").write_text("data")
    with pytest.raises(InvalidDataError, match="must be a grounding that craftrl plan wrote"):
        save_grounding(tmp_path / "data.h5", Grounding(STAR, 2), "model")
    assert (tmp_path / "data.h5").read_text() == "data"
