"""What any world must keep to: the Ex-BMDP of the paper by its tables and by sampling, or episode by episode.

Paper: Section 2.2
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.agents import contrasting_policies
from craftrl.envs.collection import collect, sample_noise_path
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.gymworld import GymWorld
from craftrl.testing.claims import about, check_array, must

N_TRAJECTORIES = 60
SEEDS = (3, 7, 5)


def check_world(world: ExBMDP) -> None:
    """Raise AssertionError at the first thing that a world must keep to and this one does not.

    Checked are the tables of the latent dynamics, that both inverses recover what was emitted, shapes, dtype and range
    of observations, that collecting repeats itself for a seed, and that the noise knows nothing of the
    actions. A small world takes about a second.

    Paper: Equation 1
    """
    must(isinstance(world, ExBMDP), f"A world must be an ExBMDP; {type(world).__name__} is none.")
    with about("The tables of a world"):
        steps = range(1, world.H + 1)
        must(world.H >= 2, f"A world must have at least two steps; it has H = {world.H}.")
        must(world.n_states(1) == 1, f"There must be one state at h = 1; there are {world.n_states(1)}.")
        for h in steps[:-1]:
            T, shape = world.T(h), (world.n_states(h), world.n_actions)
            check_array(f"T({h})", T, shape, np.integer, 0, world.n_states(h + 1) - 1)
            s_h, a_h = np.indices(shape).reshape(2, -1)
            same = np.array_equal(world.step(s_h, a_h, h), T[s_h, a_h])
            must(same, f"step must be what T says; at h = {h} it differs.")
    with about("Observations and their inverses"):
        rng = np.random.default_rng(0)
        for h, e_h in enumerate(sample_noise_path(world, 5 * N_TRAJECTORIES, np.random.default_rng(1)), start=1):
            s_h = rng.integers(world.n_states(h), size=len(e_h))
            x_h, of = world.emit(s_h, e_h, h, rng), f"The observation of h = {h}"
            check_array(of, x_h, (len(e_h), *world.obs_shape), world.obs_dtype, 0, world.obs_high)
            for name, inverse, emitted in (("phi_star", world.phi_star, s_h), ("phi_e", world.phi_e, e_h)):
                same = np.array_equal(inverse(x_h, h), emitted)
                must(same, f"{name} must recover what was emitted from every observation; at h = {h} it does not.")
        image = world.render(x_h[0])
        check_array("What render gives", image, (*image.shape[:2], 3), np.uint8)
    with about("Collected data"):
        policies = contrasting_policies(world, alpha=0.7)
        once, again, other = (collect(world, policies, N_TRAJECTORIES, seed=seed) for seed in (5, 5, 6))
        turned = collect(world, policies[::-1], N_TRAJECTORIES, seed=5)
        same, differ = (all(np.array_equal(once.tau.at(h), of.tau.at(h)) for h in steps) for of in (again, other))
        must(same and not differ, "One seed must give the same data twice, and another one other data; it does not.")
        same = np.array_equal(once.truth.states, turned.truth.states)
        must(not same, "Different policies must lead to different states; they do not: no action changes anything.")
        for h in steps:
            same = np.array_equal(world.phi_e(once.tau.at(h), h), world.phi_e(turned.tau.at(h), h))
            must(same, f"The noise must not depend on states or actions; at h = {h} it does.")


def check_gym_world(world: GymWorld) -> None:
    """Raise AssertionError at the first thing that a `GymWorld` must keep to and this one does not.

    Checked are observations and their space, that true states are in range and the same at every start, that another
    state can be reached, and that an episode is the same again after others were played: what is left over from the
    last episode, on the screen or elsewhere, shows here. Three episodes are played twice.
    """
    must(isinstance(world, GymWorld), f"A world that is stepped must be a GymWorld; {type(world).__name__} is none.")
    with about("The environment that `make` makes"):
        env = world.make()

    def look(x: Any) -> tuple[NDArray[Any], int]:
        """A copy of the observation, since the environment may write the next one into the same array; the state."""
        space, s = env.observation_space, world.true_state(env)
        must(isinstance(x, np.ndarray), f"Observations must be arrays; one is {type(x).__name__}.")
        must(space.contains(x), f"Observations must lie in {space}; one of {x.shape} and dtype {x.dtype} does not.")
        return x.copy(), s

    def play(seed: int) -> list[tuple[NDArray[Any], int]]:
        seen = [look(env.reset(seed=seed)[0])]
        for a in np.random.default_rng(seed).integers(world.n_actions, size=world.H - 1):
            x, _, terminated, truncated, _ = env.step(world.actions[a])
            seen.append(look(x))
            if terminated or truncated:
                break
        return seen

    try:
        with about("Episodes"):
            first, again = [play(seed) for seed in SEEDS], [play(seed) for seed in SEEDS[::-1]][::-1]
    finally:
        env.close()
    starts, reached = {seen[0][1] for seen in first}, {s for seen in first for _, s in seen}
    must(len(starts) == 1, f"Every episode must start in one true state; {len(SEEDS)} episodes start in {starts}.")
    must(len(reached) > 1, "Actions must lead to other states; random ones never left the start.")
    for one, other in zip(first, again):
        same = len(one) == len(other) and all(s == t and np.array_equal(x, y) for (x, s), (y, t) in zip(one, other))
        must(same, "Episodes must depend on seed and actions alone; played again after other episodes, one differs.")
