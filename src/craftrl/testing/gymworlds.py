"""What any world that is stepped must keep to: an episode depends on its seed and its actions, and starts in one state.

Paper: Section 2.2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl.envs.gymworld import GymWorld
from craftrl.testing.claims import about, must

__all__ = ["check_gym_world"]

SEEDS = (3, 7, 5)


def check_gym_world(world: GymWorld) -> None:
    """Raise AssertionError at the first thing that a `GymWorld` must keep to and this one does not.

    Checked are observations and their space, that true states are in range and the same at every start, that another
    state can be reached, and that an episode is the same again after others were played: what is left over from the
    last episode, on the screen or elsewhere, shows here. Three episodes are played twice.
    """
    must(isinstance(world, GymWorld), f"A world that is stepped must be a GymWorld; {type(world).__name__} is none.")
    with about("The environment that `make` makes"):
        env = world.make()
    try:
        check_episodes(world, env)
    finally:
        env.close()


@about("Episodes")
def check_episodes(world: GymWorld, env: Any) -> None:
    rng = np.random.default_rng(0)
    actions = {seed: rng.integers(world.n_actions, size=world.H - 1) for seed in SEEDS}
    first = {seed: _play(world, env, seed, actions[seed]) for seed in SEEDS}
    again = {seed: _play(world, env, seed, actions[seed]) for seed in SEEDS[::-1]}
    starts = {states[0] for _, states in first.values()}
    must(len(starts) == 1, f"Every episode must start in one true state; {len(SEEDS)} episodes start in {starts}.")
    reached = {s for _, states in first.values() for s in states}
    must(len(reached) > 1, "Actions must lead to other states; random ones never left the start.")
    for seed in SEEDS:
        must(
            first[seed][1] == again[seed][1],
            "States must depend on the seed and the actions alone; played again after other episodes, they differ.",
        )
        must(
            all(np.array_equal(x, y) for x, y in zip(first[seed][0], again[seed][0])),
            "Observations must depend on the seed and the actions alone; played again after other episodes, they "
            "differ.",
        )


def _play(world: GymWorld, env: Any, seed: int, actions: Any) -> tuple[list[Any], list[int]]:
    """Observations and true states of one episode."""
    x, _ = env.reset(seed=seed)
    seen, states, over = [_checked(env, x)], [_state(world, env)], False
    for a in actions:
        if over:
            break
        x, _, terminated, truncated, _ = env.step(world.actions[a])
        seen.append(_checked(env, x))
        states.append(_state(world, env))
        over = terminated or truncated
    return seen, states


def _checked(env: Any, x: Any) -> Any:
    must(isinstance(x, np.ndarray), f"Observations must be arrays; one is {type(x).__name__}.")
    must(
        env.observation_space.contains(x),
        f"Observations must lie in {env.observation_space}; one of shape {x.shape} and dtype {x.dtype} does not.",
    )
    return x.copy()  # the environment may write the next one into the same array


def _state(world: GymWorld, env: Any) -> int:
    s = world.state(env)
    must(0 <= s < world.n_states, f"True states must be integers in 0..{world.n_states - 1}; {s} was read.")
    return int(s)
