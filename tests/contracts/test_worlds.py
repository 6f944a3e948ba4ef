"""Every world that is shipped keeps the contract, and a world with one thing wrong does not; a new one joins a list."""

from typing import Any

import numpy as np
import pytest

from craftrl import envs
from craftrl.envs import BitsExBMDP, ExBMDP, GymWorld, contrasting_policies
from craftrl.paper import population_assumptions
from craftrl.testing import check_gym_world, check_world
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

gymnasium = pytest.importorskip("gymnasium")

WORLDS = {
    "bits": lambda: envs.BitsExBMDP(horizon=5, n_features=12, seed=1),
    "lock": lambda: LockExBMDP(horizon=5, n_features=8, seed=1),
    "maze": lambda: MultiMazeExBMDP(horizon=5, seed=1),
    "pixels": lambda: envs.PixelsExBMDP(horizon=4, size=3, n_walkers=2, seed=1),
}


@pytest.fixture(params=WORLDS, scope="module")
def world(request: pytest.FixtureRequest) -> ExBMDP:
    return WORLDS[request.param]()


def test_the_world_keeps_the_contract(world: ExBMDP) -> None:
    check_world(world)


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


def remember(self: Any, s_h: Any, a_h: Any, h: int) -> Any:
    """The last states that it was asked for are mixed into the noise."""
    self.seen = int(s_h.sum())
    return BitsExBMDP.step(self, s_h, a_h, h)


def rolled(self: Any, n: int, rng: Any) -> Any:
    return np.roll(BitsExBMDP.sample_noise(self, n, rng), getattr(self, "seen", 0), axis=0)


# What is wrong with the world of bits: a method of its own, and what check_world says of it.
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "two starts": ({"n_states": lambda self, h: 2}, "one state at h = 1; there are 2"),
    "leads astray": (
        {"T": lambda self, h: BitsExBMDP.T(self, h) + 1},
        r"T\(1\) must be an array of integer of shape \(1, 2\) in 0\.\.1",
    ),
    "brighter than it says": ({"obs_high": 0.5}, "observation of h = 1 must be an array of .* in 0..0.5"),
    "another inverse": (
        {"phi_star": lambda self, x_h, h: np.zeros(len(x_h), dtype=np.int64)},
        "phi_star must recover",
    ),
    "the noise knows": ({"step": remember, "sample_noise": rolled}, "must not depend on states or actions"),
    "never the same": (
        {"sample_noise": lambda self, n, rng: BitsExBMDP.sample_noise(self, n, np.random.default_rng())},
        "same data twice",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_world_is_caught(name: str) -> None:
    methods, message = BROKEN[name]
    with pytest.raises(AssertionError, match=message):
        check_world(type("Broken", (BitsExBMDP,), methods)(horizon=4, n_features=6, seed=0))


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
        return x.astype(float) if self.fault == "dtype" else x


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("starts", "must start in one true state"),
        ("stuck", "random ones never left the start"),
        ("left over", "played again after other episodes"),
        ("dtype", "and dtype float64 does not"),
    ],
)
def test_an_environment_with_one_fault_is_caught(fault: str, sentence: str) -> None:
    check_gym_world(GymWorld(Steps, lambda env: env.n, 9, (0, 1), 5))
    with pytest.raises(AssertionError, match=sentence):
        check_gym_world(GymWorld(lambda: Steps(fault), lambda env: env.n, 9, (0, 1), 5))


def test_what_is_no_world_is_caught() -> None:
    with pytest.raises(AssertionError, match="must be an ExBMDP; list is none"):
        check_world([])  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="must be a GymWorld; BitsExBMDP is none"):
        check_gym_world(BitsExBMDP(4, 4))  # type: ignore[arg-type]
