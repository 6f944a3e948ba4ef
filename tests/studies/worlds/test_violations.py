"""Imperfect worlds: size 0 changes nothing, and each violation is what it says and as large as it says."""

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP, collect
from craftrl.envs.pixels import PixelsExBMDP
from studies.worlds.lock import LockExBMDP
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy
from studies.worlds.turn_taking import turn_taking_policies
from studies.worlds.violations import (
    VIOLATIONS,
    agree_at_steps,
    agree_somewhere,
    collect_held_noise,
    collect_leaky,
    collect_scattered,
    collect_slippery,
    corrupt,
    mislabel,
)

LOCK = LockExBMDP(horizon=6, n_features=6, seed=1)
WORLDS = {
    "bits": (BitsExBMDP(6, 6), BitsExBMDP(6, 6).paper_policies()),
    "lock": (LOCK, LOCK.policies()),
    "pixels": (PixelsExBMDP(4, 3, 2), PixelsExBMDP(4, 3, 2).policies()),
}


def frames(data):
    return np.stack([data.tau.at(h) for h in range(1, data.tau.H + 1)])


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_size_zero_is_collect_bit_for_bit_and_any_other_changes_the_data_and_repeats_itself(violation):
    for world, policies in WORLDS.values():
        plain, same = collect(world, policies, [30, 40], 5), VIOLATIONS[violation](world, policies, [30, 40], 0.0, 5)
        assert np.array_equal(frames(plain), frames(same))
        assert np.array_equal(plain.tau.agent, same.tau.agent)
        assert np.array_equal(plain.truth.states, same.truth.states)
        assert np.array_equal(plain.truth.actions, same.truth.actions)
    world, policies = WORLDS["lock"]
    once, again = (VIOLATIONS[violation](world, policies, 200, 0.3, s) for s in (5, np.random.SeedSequence(5)))
    assert np.array_equal(frames(once), frames(again))
    assert not np.array_equal(frames(collect(world, policies, 200, 5)), frames(once))


def test_slips_leave_the_graph_and_observations_show_where_they_lead():
    world, policies = WORLDS["lock"]
    data = collect_slippery(world, policies, 4000, 0.2, 0)
    s = data.truth.states
    escaped = (s[:, 1:-1] == 2) & (s[:, 2:] != 2)  # nobody leaves the trap but by a slip
    assert escaped.sum() / (s[:, 1:-1] == 2).sum() == pytest.approx(0.2 * 2 / 3, abs=0.015)
    assert np.array_equal(world.phi_star(data.tau.at(6), 6), s[:, 5])


def test_leaks_tie_actions_to_noise_each_agent_in_its_own_way():
    world, policies = WORLDS["bits"]
    data = collect_leaky(world, [policies[0]] * 2, 5000, 0.4, 0)
    e = np.stack([world.phi_e(data.tau.at(h), h)[:, 0] for h in range(1, 6)], axis=1)
    follows = (data.truth.actions == e).reshape(2, -1).mean(axis=1)
    assert np.allclose(follows, [0.5 + 0.2, 0.5 - 0.2], atol=0.02)
    assert np.array_equal(data.truth.states[:, 1:], data.truth.actions)


def test_agreement_makes_agents_alike_in_a_share_of_states_that_grows():
    agents, before = turn_taking_policies(BitsExBMDP(200, 2)), -1.0
    for size in (0.0, 0.3, 0.6, 1.0):
        changed = agree_somewhere(agents, size, seed=1)
        pairs = [(changed[0].pi(h), changed[k].pi(h)) for k in (1, 2) for h in range(1, 200)]
        alike = np.concatenate([(a == b).all(axis=1) for a, b in pairs])
        assert (alike >= before).all()
        assert alike.mean() > np.mean(before)
        before = alike
        assert all(np.array_equal(changed[0].pi(h), agents[0].pi(h)) for h in range(1, 200))
    assert before.all()


@pytest.mark.parametrize("like", [0, 2])
def test_agents_are_alike_at_a_share_of_the_steps_that_grows(like):
    agents, before = turn_taking_policies(BitsExBMDP(200, 2)), np.zeros(199, dtype=bool)
    for size in (0.0, 0.3, 1.0):
        changed = agree_at_steps(agents, size, 1, like)
        alike = np.array([all(p.pi(h) is agents[like].pi(h) for p in changed) for h in range(1, 200)])
        own = np.array([all(p.pi(h) is q.pi(h) for p, q in zip(changed, agents)) for h in range(1, 200)])
        assert (alike | own).all()
        assert (alike >= before).all()
        assert alike.mean() == pytest.approx(size, abs=0.1)
        before = alike


def test_mislabelling_moves_whole_trajectories_with_their_truth():
    world, policies = WORLDS["lock"]
    plain = collect(world, policies, 1000, 3)
    data = mislabel(plain, 0.25, seed=0)
    assert (np.diff(data.tau.agent) >= 0).all()
    assert all(np.array_equal(world.phi_star(data.tau.at(h), h), data.truth.states[:, h - 1]) for h in range(1, 7))
    rows = {x.tobytes(): k for x, k in zip(frames(plain).transpose(1, 0, 2), plain.tau.agent)}
    given = [rows[x.tobytes()] for x in frames(data).transpose(1, 0, 2)]
    assert (given != data.tau.agent).mean() == pytest.approx(0.25, abs=0.05)


def test_corruption_swaps_a_share_of_single_observations_with_others_of_the_same_step():
    world, policies = WORLDS["pixels"]
    plain = collect(world, policies, 500, 3)
    data = corrupt(plain, 0.2, seed=0)
    changed = (frames(plain) != frames(data)).any(axis=(2, 3, 4))
    assert np.allclose(changed.mean(axis=1), 0.2, atol=0.05)
    assert data.truth is plain.truth
    swapped = corrupt(plain, 1.0, seed=0)
    for h in range(1, world.H + 1):
        known = {x.tobytes() for x in plain.tau.at(h)}
        assert all(x.tobytes() in known for x in swapped.tau.at(h))


@pytest.mark.parametrize("name", WORLDS)
def test_other_starts_are_shown_and_left_as_states_of_the_next_step_are(name):
    world, policies = WORLDS[name]
    data = collect_scattered(world, policies, 3000, 0.4, 0)
    s = data.truth.states
    assert (s[:, 0] > 0).mean() == pytest.approx(0.4, abs=0.03)
    assert set(s[:, 0]) == set(range(world.n_states(2)))
    assert np.array_equal(world.phi_star(data.tau.at(1), 1), s[:, 0])
    for k, policy in enumerate(policies):
        mine = (data.tau.agent == k) & (s[:, 0] == 1)
        moves = np.bincount(world.T(2)[1], policy.pi(2)[1], world.n_states(2))
        seen = np.bincount(s[mine, 1], minlength=world.n_states(2)) / mine.sum()
        assert np.allclose(seen, moves, atol=0.07)


def test_other_starts_are_remembered_by_agents_with_memory_and_counted_by_those_that_adapt():
    back = HistoryPolicy(lambda history: np.eye(2)[history[:, 0]])  # always to where it began
    adaptive = AdaptivePolicy(lambda past: back, batch=7)
    data = collect_scattered(WORLDS["bits"][0], [back, adaptive], 50, 0.5, 0)
    assert (data.truth.states == data.truth.states[:, :1]).all()
    assert 0 < data.truth.states.mean() < 1


def test_noise_is_held_for_all_agents_but_the_first():
    world, policies = WORLDS["pixels"]
    plain, data = collect(world, policies, 400, 3), collect_held_noise(world, policies, 400, 0.5, 3)
    first = data.tau.agent == 0
    assert np.array_equal(plain.truth.states, data.truth.states)
    assert np.array_equal(frames(data)[:, first], frames(plain)[:, first])
    assert np.array_equal(plain.tau.at(1), data.tau.at(1))
    held = collect_held_noise(*WORLDS["lock"], 4000, 0.5, 3)
    moved = LOCK.phi_e(held.tau.at(1), 1) != LOCK.phi_e(held.tau.at(2), 2)
    assert np.allclose(moved.mean(axis=1).reshape(2, -1).mean(axis=1), [0.1, 0.05], atol=0.01)
