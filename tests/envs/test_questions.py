"""What a world is asked is checked before it answers, in worlds of ours and in those that others write."""

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP, GymWorld, PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv, NumberedActions, make_env
from craftrl.errors import CraftError
from studies.worlds import violations
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

WORLDS = [BitsExBMDP(4, 6), LockExBMDP(4, 6), MultiMazeExBMDP(4), PixelsExBMDP(4, 2, 1)]
N = 3


def asked(world):
    """A right answer to each question."""
    rng = np.random.default_rng(0)
    s, e = np.zeros(N, int), world.sample_noise(N, rng)
    return {"h": 2, "n": N, "rng": rng, "s_h": s, "a_h": s, "e_h": e, "x_h": world.emit(s, e, 2, rng)}


QUESTIONS = {
    "n_states": ["h"],
    "T": ["h"],
    "sample_noise": ["n", "rng"],
    "step_noise": ["e_h", "h", "rng"],
    "emit": ["s_h", "e_h", "h", "rng"],
    "phi_star": ["x_h", "h"],
    "phi_e": ["x_h", "h"],
    "noise_marginal": ["h"],
    "step": ["s_h", "a_h", "h"],
}
ODD = {
    "h": [0, -1, 5, 1.5, True, None, "2", np.array([2])],
    "n": [-1, 2**62, 1.5, None],
    "rng": [None, 0, np.random],
    "s_h": [np.array([-1, 0, 0]), np.array([99, 0, 0]), np.zeros(N), np.zeros((N, 1), int), 0, None],
    "a_h": [np.array([-1, 0, 0]), np.array([99, 0, 0]), np.zeros(N + 1, int), "x"],
    "e_h": [np.full(N, 1), np.zeros((N, 99), int), None, "x"],
    "x_h": [np.zeros(N), np.zeros((N, 2)), None, "x"],
}


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_every_question_is_checked(world):
    for name, parameters in QUESTIONS.items():
        right = {parameter: asked(world)[parameter] for parameter in parameters}
        getattr(world, name)(**right)
        for parameter in parameters:
            for odd in ODD[parameter]:
                with pytest.raises(CraftError, match=f"{parameter} must|noise of .* must fit|one of {parameter}"):
                    getattr(world, name)(**{**right, parameter: odd})


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_values_that_a_world_does_not_have_are_refused(world):
    given = asked(world)
    noise = given["e_h"].astype(int)
    for e in (-1 - noise, noise + 100, noise + 0.5):
        with pytest.raises(CraftError, match="e_h must be noise of this world"):
            world.emit(given["s_h"], e, 2, given["rng"])
    for x in (given["x_h"] + 0.5, given["x_h"].astype(int) - 300, given["x_h"].astype(int) + 300):
        with pytest.raises(CraftError, match="x_h must be of this world"):
            world.phi_star(x, 2)
        with pytest.raises(CraftError, match="x_h must be of this world"):
            world.render(x[0])
    with pytest.raises(CraftError, match="h must be an integer from 1 to 3"):
        world.T(4)  # from h = 4 nothing leads on


def test_lists_will_do():
    world = BitsExBMDP(4, 6)
    assert world.step([0, 0], [0, 1], 1).tolist() == [0, 1]


def test_a_world_of_somebody_else_is_checked_too():
    class Mine(BitsExBMDP):
        def n_states(self, h):
            return super().n_states(h)

        def twice(self, h):
            return 2 * h

    assert Mine(4, 6).twice(4) == 8
    for method in ("n_states", "twice"):
        with pytest.raises(CraftError, match="h must be an integer from 1 to 4"):
            getattr(Mine(4, 6), method)(5)


def test_a_wrong_call_is_told_as_python_tells_it():
    world = BitsExBMDP(4, 6)
    with pytest.raises(TypeError, match="missing 1 required"):
        world.T()
    with pytest.raises(TypeError, match="3 were given"):
        world.T(1, 2)


BITS = WORLDS[0]
AGENTS = BITS.paper_policies()


@pytest.mark.parametrize(
    "call",
    [
        lambda: BITS.persistence_policy(2),
        lambda: WORLDS[3].policies(n_agents=5),
        lambda: WORLDS[3].policies(style=np.ones(2)),
        lambda: WORLDS[3].policies(seed="x"),
        lambda: WORLDS[3].find_figure(asked(WORLDS[3])["x_h"], 2),
        lambda: violations.collect_slippery(BITS, AGENTS, 5, 1.5, 0),
        lambda: violations.collect_slippery(None, AGENTS, 5, 0.5, 0),
        lambda: violations.collect_leaky(BITS, AGENTS, 5, 0.5, 0, factor=5),
        lambda: violations.collect_scattered(BITS, None, 5, 0.5, 0),
        lambda: violations.collect_held_noise(BITS, [], 5, 0.5, 0),
        lambda: violations.collect_alike(BITS, AGENTS, 5, 0.5, 0, like=2),
        lambda: violations.agree_somewhere(["x"], 0.5, 0),
        lambda: violations.mislabel(None, 0.5, 0),
        lambda: violations.corrupt(None, 0.5, 0),
        lambda: violations.collect_corrupted(BITS, AGENTS, 5, 0.5, None),
        lambda: ExBMDPEnv(None),
        lambda: ExBMDPEnv(BITS, np.ones(2)),
        lambda: ExBMDPEnv(BITS).reset(seed=-1),
        lambda: ExBMDPEnv(BITS).reset(options=3),
        lambda: NumberedActions(None),
        lambda: NumberedActions(GymWorld(dict, lambda env: 0, 2, [0, 1], 3)),
        lambda: make_env("bits"),
        lambda: make_env(None),
    ],
)
def test_odd_values_get_a_sentence(call):
    with pytest.raises(CraftError, match=r"must .* given"):
        call()


def test_actions_are_numbers():
    env = ExBMDPEnv(BITS)
    env.reset(seed=np.int64(3))
    for odd in (True, 2, -1, 1.0, None, np.array([1]), "1"):
        with pytest.raises(CraftError, match="action must be an integer from 0 to 1"):
            env.step(odd)
    assert env.step(np.array(1))[4]["state"] == 1  # as agents of other libraries give it
