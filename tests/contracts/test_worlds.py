"""Every world that is shipped keeps the contract, and a world with one thing wrong does not; a new one joins a list."""

import inspect
from typing import Any

import numpy as np
import pytest

from craftrl import envs
from craftrl.envs import WORLDS as NAMED
from craftrl.envs import BitsExBMDP, ExBMDP, GymWorld, contrasting_policies, make_world
from craftrl.paper import population_assumptions
from craftrl.testing import check_gym_world, check_world

gymnasium = pytest.importorskip("gymnasium")

WORLDS = {
    "bits": lambda: envs.BitsExBMDP(horizon=5, n_features=12, seed=1),
    "lock": lambda: envs.LockExBMDP(horizon=5, n_features=8, seed=1),
    "maze": lambda: envs.MultiMazeExBMDP(horizon=5, seed=1),
    "pixels": lambda: envs.PixelsExBMDP(horizon=4, size=3, n_walkers=2, seed=1),
}


@pytest.fixture(params=WORLDS, scope="module")
def world(request: pytest.FixtureRequest) -> ExBMDP:
    return WORLDS[request.param]()


def test_the_world_keeps_the_contract(world: ExBMDP) -> None:
    check_world(world)


def test_every_world_of_the_package_is_in_the_list() -> None:
    known = {cls for _, cls in inspect.getmembers(envs, inspect.isclass) if issubclass(cls, ExBMDP)} - {ExBMDP}
    assert known == {type(make()) for make in WORLDS.values()}


def test_contrasting_policies_differ_by_alpha_in_every_state(world: ExBMDP) -> None:
    found = population_assumptions(world, contrasting_policies(world, alpha=0.7))
    assert found.alpha.value >= 0.7 - 1e-9
    assert found.eta.value > 0.05
    assert found.nu.value > 0.005


def test_the_gymnasium_shell_passes_gymnasiums_own_check(world: ExBMDP) -> None:
    from gymnasium.utils.env_checker import check_env

    from craftrl.envs.gym import ExBMDPEnv

    check_env(ExBMDPEnv(world, render_mode="rgb_array"), skip_render_check=True)
    env = ExBMDPEnv(world, render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()
    assert image is not None
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[-1] == 3


class TwoStarts(BitsExBMDP):
    def n_states(self, h):
        return 2


class LeadsAstray(BitsExBMDP):
    def T(self, h):
        return super().T(h) + 1


class WrongInverse(BitsExBMDP):
    def phi_star(self, x_h, h):
        return np.zeros(len(x_h), dtype=np.int64)


class ForgetsNoise(BitsExBMDP):
    def phi_e(self, x_h, h):
        return 1 - super().phi_e(x_h, h)


class NoiseKnows(BitsExBMDP):
    """Remembers the last states that it was asked for, and mixes them into the noise."""

    seen = 0

    def step(self, s_h, a_h, h):
        self.seen = int(s_h.sum())
        return super().step(s_h, a_h, h)

    def sample_noise(self, n, rng):
        return np.roll(super().sample_noise(n, rng), self.seen, axis=0)


class BoastsOfNoise(BitsExBMDP):
    def noise_marginal(self, h):
        return np.clip(super().noise_marginal(h) + 0.2, 0, 1)


class NeverTheSame(BitsExBMDP):
    def sample_noise(self, n, rng):
        return super().sample_noise(n, np.random.default_rng())


class Fails(BitsExBMDP):
    def phi_star(self, x_h, h):
        raise IndexError("no such entry")


MUTANTS = [
    (Fails, "inverses must come without an error; IndexError was raised: no such entry"),
    (TwoStarts, "one state at h = 1; there are 2"),
    (LeadsAstray, r"T\(1\) must be an array of integer of shape \(1, 2\) in 0\.\.1"),
    (WrongInverse, "phi_star must recover"),
    (ForgetsNoise, "phi_e must recover"),
    (NoiseKnows, "must not depend on states or actions"),
    (BoastsOfNoise, r"marginals that noise_marginal\(1\) claims"),
    (NeverTheSame, "same data twice"),
]


@pytest.mark.parametrize(("mutant", "message"), MUTANTS)
def test_a_broken_world_is_caught(mutant, message):
    with pytest.raises(AssertionError, match=message):
        check_world(mutant(horizon=4, n_features=6, seed=0))


def test_the_world_that_the_broken_ones_are_made_of_is_right():
    check_world(BitsExBMDP(horizon=4, n_features=6, seed=0))


def test_what_is_no_world_is_caught():
    with pytest.raises(AssertionError, match="must be an ExBMDP; list is none"):
        check_world([])


PACKAGES = {"freeway": "ale_py", "seaquest": "ale_py", "minigrid": "minigrid", "doom": "vizdoom"}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_world_of_others_keeps_the_contract(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    world, _ = make_world(name, horizon=5)
    check_gym_world(world)


def test_every_world_that_others_made_is_in_the_list() -> None:
    assert [name for name, entry in NAMED.items() if entry.gym_id is None] == list(PACKAGES)


class Steps(gymnasium.Env):
    """Counts its steps of action 1; what is wrong with it is its `fault`."""

    observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)
    episodes = 0

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episodes += 1
        self.n = int(self.np_random.integers(4)) if self.fault == "starts" else 0
        return self._see(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.n += 0 if self.fault == "stuck" else action
        return self._see(), 0.0, False, False, {}

    def _see(self) -> Any:
        left_over = self.episodes if self.fault == "left over" else 0
        x = np.array([self.n, left_over], np.uint8)
        return {"list": [self.n, 0], "dtype": x.astype(float)}.get(self.fault, x)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("starts", "must start in one true state"),
        ("stuck", "random ones never left the start"),
        ("left over", "played again after other episodes"),
        ("list", "must be arrays; one is list"),
        ("dtype", "and dtype float64 does not"),
    ],
)
def test_what_is_wrong_is_told(fault: str, told: str) -> None:
    check_gym_world(GymWorld(Steps, lambda env: env.n, 9, (0, 1), 5))
    with pytest.raises(AssertionError, match=told):
        check_gym_world(GymWorld(lambda: Steps(fault), lambda env: env.n, 9, (0, 1), 5))


def test_states_out_of_range_and_other_things() -> None:
    with pytest.raises(AssertionError, match=r"integers in 0\.\.1; 2 was read"):
        check_gym_world(GymWorld(Steps, lambda env: env.n + 2, 2, (0, 1), 5))
    with pytest.raises(AssertionError, match="must be a GymWorld; BitsExBMDP is none"):
        check_gym_world(BitsExBMDP(4, 4))  # type: ignore[arg-type]
