"""The Gymnasium shell: the same dynamics as `collect`, ground truth in `info`, ids that can be made."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from craftrl.envs import BitsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.errors import InvalidParameterError
from studies.worlds.lock import LockExBMDP


@pytest.mark.parametrize("world_id", ["craftrl/Bits-v0", "craftrl/PixelGrid-v0"])
def test_registered_ids_make_worlds(world_id):
    env = gymnasium.make(f"craftrl.envs:{world_id}", horizon=4, seed=2)
    assert env.unwrapped.world.H == 4
    env.close()


@pytest.mark.parametrize("world", [BitsExBMDP(6, 8, seed=1), LockExBMDP(6, 8, seed=1)])
def test_an_episode_is_the_worlds_own(world):
    env, rng = ExBMDPEnv(world), np.random.default_rng(0)
    for episode in range(20):
        x, info = env.reset(seed=episode)
        s = 0
        for h in range(1, world.H + 1):
            assert info["h"] == h
            assert info["state"] == s == world.phi_star(x[None], h)[0]
            assert np.array_equal(info["noise"], world.phi_e(x[None], h)[0])
            if h < world.H:
                a = int(rng.integers(world.n_actions))
                s = world.T(h)[s, a]
                x, reward, terminated, truncated, info = env.step(a)
                assert (reward, terminated, truncated) == (0.0, h + 1 == world.H, False)


def test_one_seed_gives_one_noise_whatever_the_actions():
    env, noises = ExBMDPEnv(BitsExBMDP(6, 8)), []
    for action in (0, 1):
        env.reset(seed=7)
        noises.append([env.step(action)[-1]["noise"] for _ in range(5)])
    assert np.array_equal(*noises)
    assert len(np.unique(noises[0], axis=0)) > 1


def test_stepping_past_the_end_asks_for_a_reset():
    env = ExBMDPEnv(BitsExBMDP(2, 4))
    with pytest.raises(gymnasium.error.ResetNeeded, match="no state before the first episode"):
        _ = env.state
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(InvalidParameterError, match="action must be an integer from 0 to 1; 2 was given"):
        env.step(2)
    assert env.step(1)[2]
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    with pytest.raises(InvalidParameterError, match="'human' was given"):
        ExBMDPEnv(BitsExBMDP(2, 4), render_mode="human")


def test_worlds_work_without_gymnasium():
    code = (
        "import sys; sys.modules['gymnasium'] = None; import craftrl.envs\n"
        "try:\n    import craftrl.envs.gym\n"
        "except ImportError as error:\n    assert 'craftrl[envs]' in str(error)\n"
        "else:\n    raise SystemExit('the shell came up without gymnasium')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
