"""Distractors and small images: wrappers for any Gymnasium environment of images."""

import gymnasium
import numpy as np
import pytest

from craftrl.envs.overlay import MovingFigures
from craftrl.errors import InvalidParameterError
from studies.worlds.images import SmallImages, area_average


class Dark(gymnasium.Env):
    """An image of one colour, the last action's."""

    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, shape=(30, 20, 3), dtype=np.uint8):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(self.observation_space.shape, np.uint8), {}

    def step(self, action):
        return np.full(self.observation_space.shape, action, np.uint8), 0.0, False, False, {}


def masks(env, actions, seed):
    """Where the figures are, from reset on."""
    images = [env.reset(seed=seed)[0], *(env.step(a)[0] for a in actions)]
    return np.stack([(x > 10).reshape(30, 20, -1).any(axis=-1) for x in images])


@pytest.mark.parametrize("shape", [(30, 20), (30, 20, 1), (30, 20, 3)])
def test_figures_move_by_themselves(shape):
    env = MovingFigures(Dark(shape), 3, seed=1)
    seen = masks(env, [0] * 8, seed=4)
    assert (seen == masks(env, [2, 1] * 4, seed=4)).all(), "the actions move them"
    assert (seen != masks(env, [0] * 8, seed=5)).any(), "the seed does not"
    assert seen.any(axis=(1, 2)).all()
    assert (seen[1:] != seen[:-1]).any(axis=(1, 2)).all()
    overlap = (seen[1:] & seen[:-1]).sum() / seen[1:].sum()
    assert overlap > (seen & masks(env, [0] * 8, seed=5)).sum() / seen.sum()  # correlated over time


def test_figures_go_on_behind_a_border_and_do_not_tremble_there():
    env, places = MovingFigures(Dark(), 5, turn=0.0), []
    env.reset(seed=0)
    for _ in range(200):
        env.step(0)
        places.append(env.place)
    way = np.sign(np.diff(places, axis=0))
    assert 0 < (way[1:] != way[:-1]).mean() < 0.2


@pytest.mark.parametrize(("turn", "least", "most"), [(0.0, 0, 0), (0.5, 15, 45), (1.0, 60, 60)])
def test_figures_bounce_and_turn_as_often_as_they_should(turn, least, most):
    for env in (MovingFigures(Dark((300, 200)), 1, turn=turn, speeds=(1, 1)), MovingFigures(Dark(), 5, turn=0.0)):
        env.reset(seed=0)
        turns = 0
        for _ in range(60):
            before = np.abs(env.direction)
            env.step(0)
            turns += not np.allclose(np.abs(env.direction), before)
            assert ((env.place >= 0) & (env.place <= env.borders)).all()
        assert least <= turns <= most or (turns == 0 and env.turn == 0)


def test_an_episode_after_the_seeded_one_differs():
    env = MovingFigures(Dark(), 2)
    env.reset(seed=0)
    second = env.reset()[0]
    env.reset(seed=0)
    assert (env.reset()[0] == second).all()
    assert (env.reset(seed=0)[0] != second).any()


def test_what_is_under_a_figure_shows_through():
    class Lit(Dark):
        """The same with one row alight."""

        def reset(self, **given):
            x, info = super().reset(**given)
            x[15] = 200
            return x, info

    def lit_row(opacity):
        images = [MovingFigures(world(), 60, opacity=opacity, seed=0).reset(seed=0)[0] for world in (Dark, Lit)]
        return images[1][15].astype(int) - images[0][15]

    assert (lit_row(0.7) > 0).all()
    assert (lit_row(1.0) == 0).any()


@pytest.mark.parametrize(
    ("env", "given", "sentence"),
    [
        (Dark((30, 20), np.float32), {}, "draws on images of dtype uint8"),
        (Dark((30,)), {}, "draws on images of dtype uint8"),
        (Dark(), {"turn": 2}, "turn = 2"),
        (Dark(), {"opacity": 0.0}, "opacity = 0"),
    ],
)
def test_figures_need_images_and_sense(env, given, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        MovingFigures(env, **given)


def test_small_images_are_means_over_blocks():
    image = np.arange(24, dtype=np.uint8).reshape(4, 6, 1)
    assert area_average(image, (2, 3))[..., 0].tolist() == [[4, 7], [16, 19]]
    env = SmallImages(Dark((30, 20)), (5, 4), crop=(10, 30, 0, 20))
    x = env.reset(seed=0)[0]
    assert x.shape == env.observation_space.shape == (4, 5, 1)
    with pytest.raises(InvalidParameterError, match="must divide the cropped image of 30 x 20 pixels"):
        SmallImages(Dark((30, 20)), (7, 4))
