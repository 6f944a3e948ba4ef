"""Every world that is shipped keeps the contract; a new one joins WORLDS."""

import inspect

import numpy as np
import pytest

from craftrl import envs
from craftrl.envs import ExBMDP, contrasting_policies
from craftrl.paper import population_assumptions
from craftrl.testing import check_world

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
    pytest.importorskip("gymnasium")
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
