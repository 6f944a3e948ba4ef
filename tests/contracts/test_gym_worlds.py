"""Every world that others made keeps the contract of stepped worlds, and a world with one thing wrong does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from craftrl.envs import WORLDS, BitsExBMDP, GymWorld, make_world
from craftrl.testing import check_gym_world

gymnasium = pytest.importorskip("gymnasium")
PACKAGES = {"freeway": "ale_py", "seaquest": "ale_py", "minigrid": "minigrid", "doom": "vizdoom"}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_world_keeps_the_contract(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    world, _ = make_world(name, horizon=5)
    check_gym_world(world)


def test_every_world_that_others_made_is_in_the_list() -> None:
    assert [name for name, entry in WORLDS.items() if entry.gym_id is None] == list(PACKAGES)


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
