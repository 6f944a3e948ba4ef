"""Which action makes which move: own labels, labels of the same latent action, and what is excluded."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError
from craftrl.envs import PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Grounding, Planner, StateGraph
from craftrl.planning.grounding import assign
from exact_models import ExactModel, TrueLatentActions, random_goals, success, watched
from planning.line_world import LEFT, RIGHT, Reads

STAR = StateGraph.from_states(
    np.repeat([[0, 1], [0, 2], [0, 3]], 50, axis=0), np.zeros(150, int), sizes=(4,), shared=True
)


def grounding(*labels, n_actions=3, **options):
    """Of the star, from labels (state, action, successor)."""
    found = Grounding(STAR, n_actions, **options)
    for label in labels:
        found.add(*label)
    return found


def makes(g, s, t):
    """Pr(t | s, action) of every action."""
    here = g.outcomes(s)
    return here.chance[:, here.successors == t][:, 0]


@pytest.mark.parametrize(("unknown", "left", "options"), [(1, 1, 3), (2, 1, 3), (3, 2, 4), (2, 2, 2), (4, 3, 5)])
def test_what_is_left_over_is_counted_as_by_hand(unknown, left, options):
    """Of all ways to give actions an option each, those that cover options 0..left-1."""
    ways = [way for way in product(range(options), repeat=unknown) if set(range(left)) <= set(way)]
    belief = assign(np.zeros((unknown, options)), np.ones((unknown, options)), np.arange(options) < left)
    np.testing.assert_allclose(belief[0], [np.mean([way[0] == o for way in ways]) for o in range(options)])


def test_many_actions_neither_overflow_nor_cancel():
    belief = assign(np.zeros((1000, 60)), np.ones((1000, 60)), np.arange(60) < 30)
    np.testing.assert_allclose(belief, 1 / 60, rtol=1e-3)  # so many actions cover everything by themselves
    assert np.isfinite(grounding((0, 4, 2), n_actions=1000).outcomes(0).chance).all()


# labels of the star, how many actions there are, which of its three moves are grounded then, and by which action
KNOWN = {
    "nothing without labels": ([], 3, [False, False, False], {}),
    "a label grounds its move": ([(0, 4, 2)], 5, [False, True, False], {2: 4}),
    "an action that leads elsewhere makes no other move": ([(0, 0, 3)] * 3, 3, [False, False, True], {3: 0}),
    "the last action makes the last move": ([(0, 0, 3), (0, 2, 1)], 3, [True] * 3, {3: 0, 1: 2, 2: 1}),
    "two actions may make one move": ([(0, 0, 3), (0, 1, 3)], 4, [False, False, True], {3: 0}),
    "and the others are known when the third is": ([(0, 0, 3), (0, 1, 3), (0, 2, 1)], 4, [True] * 3, {1: 2, 2: 3}),
    "a stray label is outvoted": ([(0, 0, 2), (0, 0, 1), (0, 0, 1)], 3, [True, False, False], {1: 0}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_labels_ground(name):
    labels, n_actions, grounded, made_by = KNOWN[name]
    g = grounding(*labels, n_actions=n_actions)
    assert g.n_labels == len(labels)
    assert g.grounded.tolist() == grounded
    assert g.missing() == [(0, t) for t, known in zip((1, 2, 3), grounded) if not known]
    assert {t: int(makes(g, 0, t).argmax()) for t in made_by} == made_by
    assert g.outcomes(0).tried.tolist() == [sum(a == one for _, one, _ in labels) for a in range(n_actions)]
    assert g.contradiction == ""


def test_each_label_leaves_less_doubt():
    g, sure = grounding(), []
    assert not g.outcomes(0).known.any()
    for _ in range(3):
        g.add(0, 0, 2)
        sure.append(g.outcomes(0).chance[0].max())
    assert sure[0] > 0.5
    assert sure == sorted(set(sure))
    assert max(makes(g, 0, 1)[0], makes(g, 0, 3)[0]) < 0.01  # nor does it make another move
    assert g.outcomes(0).next_trial != 0


def test_a_label_that_the_videos_never_show_adds_a_move():
    g = grounding((1, 0, 0))  # nothing is seen to follow 1
    assert (g.known_moves().s.tolist(), g.known_moves().t.tolist()) == ([1], [0])
    g.add(0, 0, 0)
    g.add(0, 0, 0)
    assert (0, 0) in zip(g.known_moves().s.tolist(), g.known_moves().t.tolist())


def test_labels_that_disagree_leave_both_moves_and_no_third():
    g = grounding((0, 0, 1), (0, 0, 2))
    assert makes(g, 0, 1)[0] == pytest.approx(makes(g, 0, 2)[0])
    assert makes(g, 0, 3)[0] < 0.05
    assert 0.4 < g.outcomes(0).chance[0].max() <= 0.5


def test_where_actions_slip_a_distribution_is_kept():
    g = grounding(*[(0, 0, successor) for successor in [1] * 16 + [2] * 3 + [3]], deterministic=False)
    assert g.outcomes(0).successors.tolist() == [1, 2, 3]
    np.testing.assert_allclose(g.outcomes(0).chance[0], [0.8, 0.15, 0.05], atol=0.03)
    assert g.grounded.tolist() == [True, False, False]  # what happens by slipping is not done on purpose
    either = grounding(*[(0, 0, successor) for successor in [1, 2] * 10], deterministic=False)
    assert either.grounded.tolist() == [True, True, False]
    assert g.contradiction == ""


def test_contradicting_labels_are_named_where_the_world_is_said_to_be_deterministic():
    g = grounding(*[(0, 0, successor) for successor in [1] * 12 + [2] * 8])
    assert "8 of 20 labels say otherwise (action 0 led from state 0 to state 1 and to state 2)" in g.contradiction
    assert "deterministic=False" in g.contradiction
    assert g.slips  # what acts goes on with a distribution
    assert g.outcomes(0).chance[0].argmax() == 0  # the most frequent one is planned with


def test_contradicting_labels_of_ones_own_are_refused():
    graph = StateGraph.from_states([[0, 1], [0, 2]] * 50, np.zeros(100, int), sizes=(3,), shared=True)
    x = np.array([[[0], [1]]] * 10 + [[[0], [2]]] * 10)
    with pytest.raises(InvalidDataError, match="one action must have one successor in each state; 10 of 20 labels"):
        Grounding(graph, 2).add_labels(Reads(range(3)), x, [0] * 20)
    assert Grounding(graph, 2, deterministic=False).add_labels(Reads(range(3)), x, [0] * 20) == 20
    assert Grounding(graph, 2).add_labels(Reads(range(3)), x, [0] * 10 + [1] * 10) == 20


@pytest.mark.parametrize("shared", [True, False])
def test_true_latent_actions_ground_all_moves_with_a_label_for_each_action(shared):
    world = PixelsExBMDP(horizon=6, layout="rooms", size=5)
    model = ExactModel(world, shared)
    graph = watched(world, model)
    alone, together = (
        Grounding(graph, 4, latent) for latent in (None, TrueLatentActions.of(world, graph, names=[2, 0, 3, 1]))
    )
    inside = max(range(graph.n), key=lambda node: graph.out_degree[node])
    h, state = graph.name(inside)
    for a in range(3):  # the fourth is what is left
        after = graph.node(int(world.T(world.H - 1 if h is None else h)[state, a]), h and h + 1)
        alone.add(inside, a, after)
        together.add(inside, a, after)
    assert alone.grounded.sum() < 10
    assert together.grounded.all()
    assert success(Planner(model, together, learn=False), ExBMDPEnv(world), random_goals(world, 20)) == 1


def latent_actions(graph, share, group=None):
    group = np.zeros(graph.n, dtype=int) if group is None else np.array(group)
    return SimpleNamespace(n=share.shape[1], edges=graph.edges, share=share, group=group)


def test_own_labels_overrule_wrong_latent_actions():
    for names in (np.eye(3), np.eye(3)[[1, 0, 2]]):
        g = grounding(*[(0, 0, 1)] * 3, latent=latent_actions(STAR, names))
        assert g.outcomes(0).chance[0].argmax() == 0


TWO = StateGraph.from_states(
    np.repeat([[0, 1], [0, 2], [3, 4], [3, 5]], 50, axis=0), np.zeros(200, int), sizes=(6,), shared=True
)


def test_a_latent_action_of_which_nothing_is_known_here_is_not_ruled_out_by_a_label_here():
    """In state 0 it is known what latent action 0 does, and not what 1 does; in state 3 both are known."""
    g = Grounding(TWO, 2, latent_actions(TWO, np.array([[1.0, 0], [0, 0], [1, 0], [0, 1]])))
    g.add(0, 1, 2)  # not latent action 0, so it is latent action 1
    assert makes(g, 3, 5)[1] > 0.5
    assert makes(g, 3, 4)[0] > 0.5


def test_a_label_of_a_move_that_the_videos_never_show_says_nothing_elsewhere():
    g = Grounding(TWO, 2, latent_actions(TWO, np.tile(np.eye(2), (2, 1))))
    g.add(0, 1, 3)
    assert not g.outcomes(3).known.any()
    g.add(0, 1, 1)
    assert makes(g, 3, 4)[1] > 0.5
    for _ in range(3):
        g.add(0, 1, 2)
    assert makes(g, 3, 5)[1] > 0.5  # what labels say elsewhere changes as more come


@pytest.mark.parametrize(("groups", "known"), [([0] * 6, 4), ([0, 0, 0, 1, 1, 1], 2)])
def test_groups_with_names_of_their_own_learn_alone(groups, known):
    g = Grounding(TWO, 2, latent_actions(TWO, np.tile(np.eye(2), (2, 1)), groups))
    g.add(0, 1, 1)
    assert g.grounded.sum() == known
    assert g.outcomes(3).known.any() == (known == 4)


def test_labels_come_from_observations():
    world = PixelsExBMDP(horizon=4, size=2)
    model = ExactModel(world)
    data = collect(world, world.policies(), 100, seed=1)
    x = np.stack([data.tau.at(h) for h in range(1, world.H + 1)], axis=1)
    g = Grounding(watched(world, model), world.n_actions)
    actions = data.truth.actions.copy()
    actions[:, 2] = -1
    assert g.add_labels(model, x, actions) == actions.shape[0] * (actions.shape[1] - 1)
    assert {g.graph.step(s) for s, *_ in g.labels} == {1, 2}
    for s, a, t, _ in g.labels:
        h, state = g.graph.name(s)
        assert world.T(h)[state][a] == g.graph.name(t)[1]
    pairs = Grounding(g.graph, world.n_actions)
    assert pairs.add_labels(model, x[:, 2:4], data.truth.actions[:, 2], h=3) == len(x)
    assert {g.graph.step(s) for s, *_ in pairs.labels} == {3}


def test_frames_that_name_no_state_make_no_label():
    graph = StateGraph.from_states([[0, 1]], [0], sizes=(2,), shared=True, min_share=0)
    g = Grounding(graph, 2)
    assert g.add_labels(Reads((0, 1, -1)), np.array([[[0], [1]], [[0], [2]]]), [LEFT, RIGHT]) == 1
    assert g.labels == [(0, LEFT, 1, 1)]


SMALL = PixelsExBMDP(horizon=3, size=2)
GRAPH = watched(SMALL, ExactModel(SMALL))
X = np.zeros((2, 3, *SMALL.obs_shape), dtype=np.uint8)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda g: g.add_labels(ExactModel(SMALL), X, [[0, 4], [0, 0]]),
            r"Actions must lie in 0..3, or be -1 .*; 4",
        ),
        (lambda g: g.add_labels(ExactModel(SMALL), X, [[0, 1, 2], [0, 0, 0]]), "the action between each two of them"),
        (lambda g: g.add_labels(ExactModel(SMALL), X[:, :, :5], [[0, 1], [0, 0]]), "Labels must show what the model"),
        (lambda g: g.add(0, 4, 1), r"action must be an integer from 0 to 3; 4 was given"),
        (lambda g: g.add(0, 0, 99), "successor must be"),
        (lambda g: g.add(0, 0, GRAPH.node(0, 3)), "next step; state 0 at h = 1 and state 0 at h = 3 were given"),
        (lambda g: Grounding(None, 4), "graph must be a StateGraph"),
        (
            lambda g: Grounding(GRAPH, 4, latent_actions(TWO, np.zeros((4, 1)))),
            "latent must be latent actions of the 12 moves of this graph",
        ),
    ],
)
def test_labels_that_cannot_be_are_refused(call, sentence):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=sentence):
        call(Grounding(GRAPH, 4))
