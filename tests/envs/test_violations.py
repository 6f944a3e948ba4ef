"""Imperfect worlds: size 0 changes nothing, and each violation is what it says and as large as it says."""

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP, LockExBMDP, collect, turn_taking_policies
from craftrl.envs.collection import Collection
from craftrl.envs.pixels import PixelsExBMDP
from craftrl.envs.violations import VIOLATIONS, agree_somewhere, collect_leaky, collect_slippery, corrupt, mislabel
from craftrl.errors import InvalidParameterError

LOCK = LockExBMDP(horizon=6, n_features=6, seed=1)
WORLDS = {
    "bits": (BitsExBMDP(6, 6), BitsExBMDP(6, 6).paper_policies()),
    "lock": (LOCK, LOCK.policies()),
    "pixels": (PixelsExBMDP(4, 3, 2), PixelsExBMDP(4, 3, 2).policies()),
}


def observations(data: Collection) -> np.ndarray:
    return np.stack([data.tau.at(h) for h in range(1, data.tau.H + 1)])


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("violation", VIOLATIONS)
def test_size_zero_is_collect_bit_for_bit(name: str, violation: str) -> None:
    world, policies = WORLDS[name]
    plain, same = collect(world, policies, [30, 40], 5), VIOLATIONS[violation](world, policies, [30, 40], 0.0, 5)
    assert np.array_equal(observations(plain), observations(same))
    assert np.array_equal(plain.tau.agent, same.tau.agent)
    assert np.array_equal(plain.truth.states, same.truth.states)
    assert np.array_equal(plain.truth.actions, same.truth.actions)


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_a_violation_changes_the_data_and_repeats_itself(violation: str) -> None:
    world, policies = WORLDS["lock"]
    plain = collect(world, policies, 200, 5)
    once, again = (VIOLATIONS[violation](world, policies, 200, 0.3, 5) for _ in range(2))
    assert np.array_equal(observations(once), observations(again))
    assert not np.array_equal(observations(plain), observations(once))


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_seed_sequences_serve_as_seeds(violation: str) -> None:
    world, policies = WORLDS["lock"]
    once, again = (VIOLATIONS[violation](world, policies, 20, 0.5, np.random.SeedSequence(9)) for _ in range(2))
    same = VIOLATIONS[violation](world, policies, 20, 0.5, 9)
    assert np.array_equal(observations(once), observations(again))
    assert np.array_equal(observations(once), observations(same))


@pytest.mark.parametrize("violation", VIOLATIONS)
@pytest.mark.parametrize("size", [-0.1, 1.5])
def test_sizes_are_shares(violation: str, size: float) -> None:
    world, policies = WORLDS["bits"]
    with pytest.raises(InvalidParameterError, match=r"must lie in \[0, 1\]"):
        VIOLATIONS[violation](world, policies, 10, size, 0)


def test_slips_leave_the_graph_and_observations_show_where_they_lead() -> None:
    world, policies = WORLDS["lock"]
    data = collect_slippery(world, policies, 4000, 0.2, 0)
    s = data.truth.states
    escaped = (s[:, 1:-1] == 2) & (s[:, 2:] != 2)  # nobody leaves the trap but by a slip
    assert escaped.sum() / (s[:, 1:-1] == 2).sum() == pytest.approx(0.2 * 2 / 3, abs=0.015)
    assert np.array_equal(world.phi_star(data.tau.at(6), 6), s[:, 5])


def test_leaks_tie_actions_to_noise_each_agent_in_its_own_way() -> None:
    world, policies = WORLDS["bits"]
    data = collect_leaky(world, [policies[0]] * 2, 5000, 0.4, 0)
    e = np.stack([world.phi_e(data.tau.at(h), h)[:, 0] for h in range(1, 6)], axis=1)
    follows = (data.truth.actions == e).reshape(2, -1).mean(axis=1)
    assert np.allclose(follows, [0.5 + 0.2, 0.5 - 0.2], atol=0.02)
    assert np.array_equal(data.truth.states[:, 1:], data.truth.actions)


def test_agreement_makes_agents_alike_in_a_share_of_states_that_grows() -> None:
    agents = turn_taking_policies(BitsExBMDP(200, 2))
    shares, before = [], None
    for size in (0.0, 0.3, 0.6, 1.0):
        changed = agree_somewhere(agents, size, seed=1)
        alike = np.concatenate(
            [(changed[0].pi(h) == changed[k].pi(h)).all(axis=1) for k in (1, 2) for h in range(1, 200)]
        )
        assert before is None or (alike >= before).all()
        shares.append(alike.mean())
        before = alike
        assert all(np.array_equal(changed[0].pi(h), agents[0].pi(h)) for h in range(1, 200))
    assert shares[0] < shares[1] < shares[2] < shares[3] == 1.0


def test_mislabelling_moves_whole_trajectories_with_their_truth() -> None:
    world, policies = WORLDS["lock"]
    plain = collect(world, policies, 1000, 3)
    data = mislabel(plain, 0.25, seed=0)
    assert (np.diff(data.tau.agent) >= 0).all()
    for h in range(1, 7):
        assert np.array_equal(world.phi_star(data.tau.at(h), h), data.truth.states[:, h - 1])
    rows = {x.tobytes(): k for x, k in zip(observations(plain).transpose(1, 0, 2), plain.tau.agent)}
    given = [rows[x.tobytes()] for x in observations(data).transpose(1, 0, 2)]
    assert (given != data.tau.agent).mean() == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("how", ["swap", "noise"])
def test_corruption_hits_a_share_of_single_observations(how: str) -> None:
    world, policies = WORLDS["pixels"]
    plain = collect(world, policies, 500, 3)
    data = corrupt(plain, 0.2, seed=0, how=how)
    changed = (observations(plain) != observations(data)).any(axis=(2, 3, 4))
    assert np.allclose(changed.mean(axis=1), 0.2, atol=0.05)
    assert data.truth is plain.truth
    assert data.tau.dtype == plain.tau.dtype


def test_swapped_observations_come_from_the_same_step() -> None:
    world, policies = WORLDS["lock"]
    plain = collect(world, policies, 50, 3)
    swapped = corrupt(plain, 1.0, seed=0)
    for h in range(1, 7):
        known = {x.tobytes() for x in plain.tau.at(h)}
        assert all(x.tobytes() in known for x in swapped.tau.at(h))


def test_noise_fits_the_dtype_of_the_data() -> None:
    from craftrl import TrajectoryDataset

    x = np.random.default_rng(0).random((2, 20, 3, 4)).astype(np.float32)
    plain = collect(*WORLDS["bits"], 20, 0)
    data = corrupt(Collection(TrajectoryDataset.from_arrays(list(x)), plain.truth), 1.0, seed=0, how="noise")
    assert data.tau.dtype == np.float32
    assert 0 <= observations(data).min() < observations(data).max() <= 1


def test_corruption_is_of_two_kinds() -> None:
    with pytest.raises(InvalidParameterError, match="'blur' was given"):
        corrupt(collect(*WORLDS["bits"], 5, 0), 0.1, 0, how="blur")  # type: ignore[arg-type]
