"""What every world must keep to: add yours to WORLDS and run it through."""

import numpy as np
import pytest

from craftrl.envs import (
    BitsExBMDP,
    ExBMDP,
    LockExBMDP,
    MarkovPolicy,
    MultiMazeExBMDP,
    collect,
    contrasting_policies,
)
from craftrl.envs.collection import sample_noise_path
from craftrl.envs.exbmdp import reachable_states
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.theory import population_assumptions

Pair = tuple[MarkovPolicy, MarkovPolicy]

N = 4000
WORLDS = {
    "bits": lambda: BitsExBMDP(horizon=5, n_features=12, seed=1),
    "lock": lambda: LockExBMDP(horizon=5, n_features=8, seed=1),
    "maze": lambda: MultiMazeExBMDP(horizon=5, seed=1),
    "pixels": lambda: PixelsExBMDP(horizon=4, size=3, n_walkers=2, seed=1),
}


@pytest.fixture(params=WORLDS, scope="module")
def world(request: pytest.FixtureRequest) -> ExBMDP:
    return WORLDS[request.param]()


@pytest.fixture(scope="module")
def policies(world: ExBMDP) -> Pair:
    return contrasting_policies(world, alpha=0.7)


def noise_path(world: ExBMDP, n: int, seed: int) -> list[np.ndarray]:
    return list(sample_noise_path(world, n, np.random.default_rng(seed)))


def test_latent_dynamics_are_tables_from_one_start(world: ExBMDP) -> None:
    assert world.n_states(1) == 1
    for h in range(1, world.H):
        T = world.T(h)
        assert T.shape == (world.n_states(h), world.n_actions)
        assert T.min() >= 0
        assert T.max() < world.n_states(h + 1)
    assert [r.shape for r in reachable_states(world)] == [(world.n_states(h),) for h in range(1, world.H + 1)]


def test_block_assumption_both_inverses_recover_what_was_emitted(world: ExBMDP) -> None:
    rng = np.random.default_rng(0)
    for h, e_h in enumerate(noise_path(world, 300, seed=1), start=1):
        s_h = rng.integers(world.n_states(h), size=300)
        x_h = world.emit(s_h, e_h, h, rng)
        assert np.array_equal(world.phi_star(x_h, h), s_h)
        assert np.array_equal(world.phi_e(x_h, h), e_h)


def test_observations_have_the_promised_shape_dtype_and_range(world: ExBMDP, policies: Pair) -> None:
    tau = collect(world, policies, 50, seed=0).tau
    assert (tau.H, tau.n, tau.obs_shape, tau.dtype) == (world.H, 100, world.obs_shape, world.obs_dtype)
    x = np.stack([tau.at(h) for h in range(1, world.H + 1)])
    assert x.min() >= 0
    assert x.max() <= world.obs_high


def test_collection_follows_T_and_repeats_itself_for_a_seed(world: ExBMDP, policies: Pair) -> None:
    once, again, other = (collect(world, policies, 40, seed=seed) for seed in (3, 3, 4))
    s, a = once.truth.states, once.truth.actions
    for h in range(1, world.H):
        assert np.array_equal(s[:, h], world.T(h)[s[:, h - 1], a[:, h - 1]])
        assert np.array_equal(world.phi_star(once.tau.at(h + 1), h + 1), s[:, h])
        assert np.array_equal(once.tau.at(h), again.tau.at(h))
    assert np.array_equal(a, again.truth.actions)
    assert not np.array_equal(a, other.truth.actions)


def test_noise_does_not_know_the_policies(world: ExBMDP, policies: Pair) -> None:
    one, two = policies
    first = collect(world, (one, two), 60, seed=5)
    second = collect(world, (two, one), 60, seed=5)
    assert not np.array_equal(first.truth.states, second.truth.states)
    for h in range(1, world.H + 1):
        assert np.array_equal(world.phi_e(first.tau.at(h), h), world.phi_e(second.tau.at(h), h))


def test_noise_has_the_marginals_it_claims(world: ExBMDP) -> None:
    for h, e_h in enumerate(noise_path(world, N, seed=2), start=1):
        claimed = world.noise_marginal(h)
        if claimed.ndim == e_h.ndim - 1:
            seen = e_h.mean(axis=0)
        else:
            seen = (e_h[:, : len(claimed), None] == np.arange(claimed.shape[-1])).mean(axis=0)
        assert seen.shape == claimed.shape
        error = np.sqrt(claimed * (1 - claimed) / N)
        assert (np.abs(seen - claimed) <= 5 * error + 1e-9).all()


def test_contrasting_policies_differ_by_alpha_in_every_state(world: ExBMDP, policies: Pair) -> None:
    found = population_assumptions(world, policies)
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
