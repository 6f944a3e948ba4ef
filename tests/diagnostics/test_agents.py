"""Which agents to compare: what is said of agents that differ, act alike, part, learn, or were hardly recorded."""

from dataclasses import replace

import numpy as np
import pytest

from craftrl.diagnostics import compare_agents
from craftrl.diagnostics.agents import AgentPair, AgentPairs, as_points, least_visible
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.errors import InvalidDataError, InvalidParameterError
from small_worlds import to_the_right, walked
from studies.worlds.policies import SwitchingPolicy


def bits(stay, n, seed=0, horizon=8, features=16):
    world = BitsExBMDP(horizon, features, seed=seed)
    return collect(world, [world.persistence_policy(p) for p in stay], n, seed=seed).tau


def walk(n, right, seed, cells=3, steps=3, noise=0.1):
    """A walk on cells in a row beside a distraction, as feature vectors or as whole numbers."""
    rng = np.random.default_rng(seed)
    cell, _ = walked(n, to_the_right(right, cells=cells), steps, cells // 2, seed)
    x = np.stack([cell, rng.integers(3, size=cell.shape)], axis=-1)
    return x + noise * rng.normal(size=x.shape) if noise else x


def test_agents_of_different_quality():
    """Random, improving, good, nearly as good, and an expert of whom there is little."""
    world = BitsExBMDP(8, 16, seed=0)
    random, good, nearly, expert = (world.persistence_policy(p) for p in (0.5, 0.8, 0.81, 0.9))
    improving = SwitchingPolicy([random, expert], [0] * 200 + [1] * 200)
    tau = collect(world, [random, improving, good, nearly, expert], [400, 400, 400, 400, 30], seed=0).tau
    found = compare_agents(tau, names=["random", "improving", "good", "nearly", "expert"])
    said = {frozenset(pair.names): pair.verdict for pair in found.pairs}
    assert said[frozenset({"random", "good"})] == said[frozenset({"random", "nearly"})] == "compare"
    assert said[frozenset({"good", "nearly"})] == "alike"
    assert said[frozenset({"random", "expert"})] == "data short"
    assert said[frozenset({"good", "expert"})] == "too little"
    assert [drift.names[0] for drift in found.drifts if drift.told_apart] == ["improving"]
    assert found.advice[0].startswith("Compare random with ")
    for sentence in (
        "good and nearly act alike",
        "Record more of expert (30 trajectories): random and expert differ",
        "Record more of expert (30 trajectories): a difference below about",
        "improving changed over its recordings",
    ):
        assert sentence in str(found)


def test_an_agent_has_changed_only_where_its_moves_have():
    drift = AgentPair((0, 0), ("a", "a"), (50, 50), p_value=0.01, p_moves=0.5, n_steps=5)
    assert AgentPairs(("a", "b"), (), (drift,), True).advice[-1].startswith("Not compared in pairs")
    moved = AgentPairs(("a", "b"), (), (replace(drift, p_moves=0.01),), True).advice
    assert any(sentence.startswith("a changed over its recordings") for sentence in moved)


def test_pairs_are_ranked_by_what_tells_them_apart():
    found = compare_agents(bits((0.5, 0.7, 0.9), 400))
    assert found.pairs[0].agents == (0, 2)
    evidence = [pair.evidence for pair in found.pairs]
    assert evidence == sorted(evidence, reverse=True)
    assert found.pairs[0].points == pytest.approx(0.4, abs=0.08)


@pytest.mark.parametrize("noise", [0, pytest.param(0.1, marks=pytest.mark.slow)], ids=["whole numbers", "features"])
def test_names_that_say_nothing_are_called_different_one_time_in_twenty(noise):
    """40 divisions of one agent's trajectories in two; more than six alarms in 40 have a chance of 1%."""
    x = walk(120, 0.6, 0, noise=noise)
    alarms = 0
    for seed in range(40):
        dealt = np.random.default_rng(seed).permutation(x)
        alarms += compare_agents([dealt[:60], dealt[60:]], seed=seed).pairs[0].p_value < 0.05
    assert alarms <= 6


def test_long_recordings_are_compared_in_windows():
    """One of each agent, walking on; what is alike is told by neighbours in time, which are held out together."""
    x, alike = (
        [walk(1, right, k, steps=3000)[0] for k, right in enumerate(agents)] for agents in ((0.3, 0.7), (0.5,) * 2)
    )
    found = compare_agents([[one] for one in x], names=["a", "b"])
    assert found.pairs[0].verdict == "compare"
    assert "150 + 150" in str(found)
    assert "     windows  moves differ" in str(found)
    assert compare_agents([[one] for one in alike]).pairs[0].verdict == "alike"
    assert "changed over its recordings" not in str(found)


# -- pairs of agents, and the verdict on each -------------------------------------------------------------------------


def that_part(noise):
    return [walk(150, right, k, cells=13, steps=6, noise=noise) for k, right in enumerate((0.02, 0.98))]


def that_begin_apart():
    """And then do the same: what x_{h+1} adds to x_h is nothing."""
    rng = np.random.default_rng(0)
    start = np.repeat([0.1, 0.9], 200)[:, None] > rng.random((400, 1))
    x = (start ^ (np.cumsum(rng.random((400, 5)) < 0.1, axis=1) % 2).astype(bool)).astype(np.uint8)
    return np.split(np.stack([x, rng.integers(2, size=x.shape)], axis=-1), 2)


def in_pixels():
    world = PixelsExBMDP(horizon=4, size=2, n_walkers=1)
    return collect(world, world.policies(), 300, seed=0).tau


def in_long_images():
    """With a corner that is bright in one of two states."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, size=(600, 60, 14, 13, 1)).astype(np.uint8)
    stays = rng.random((600, 60)) < np.repeat([0.2, 0.8], 300)[:, None]
    x[:, :, :4, :4, 0] += (120 * ((~stays).cumsum(axis=1) % 2)).astype(np.uint8)[..., None, None]
    return np.split(x, 2)


def in_other_entries_at_each_step():
    """Entry 2 then 0 then 1 carries the difference, which no single observation shows."""
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(800, 3, 4)).astype(np.uint8)
    for h, (here, after) in enumerate([(2, 0), (0, 1)], start=1):
        stays = rng.random(800) < np.repeat([0.15, 0.85], 400)
        x[:, h, after] = x[:, h - 1, here] ^ ~stays
    return np.split(x, 2)


def cut_at_random():
    """The same habits, and lengths that alone tell nothing."""
    x = [walk(120, 0.5, k, steps=6, noise=0) for k in (0, 1)]
    cut = np.random.default_rng(0).integers(1, 7, size=120)
    return [list(x[0]), [episode[:length] for episode, length in zip(x[1], cut)]]


@pytest.mark.parametrize(
    ("agents", "verdict", "holds"),
    [
        # Both begin in the middle, and are apart at the other four of five steps.
        (lambda: that_part(0), "other places", lambda pair: round(pair.apart, 6) == 0.8 and pair.shared < 0.3),
        (lambda: that_part(0.1), "other places", lambda pair: round(pair.apart, 6) == 0.8 and pair.shared < 0.3),
        (that_begin_apart, "other places", lambda pair: pair.shared < 0.7 and pair.points < 0.1),
        (in_pixels, "compare", lambda pair: pair.p_moves < 0.05),
        (in_long_images, "compare", lambda pair: pair.n_steps == 30 and pair.shared > 0.8),
        (in_other_entries_at_each_step, "compare", lambda pair: 0.6 < pair.points < 0.8 and pair.shared > 0.9),
        (cut_at_random, "alike", lambda pair: pair.p_value > 0.05),
        (lambda: [np.zeros((3, 4, 2)), np.zeros((300, 4, 2))], "too little", lambda pair: pair.n_steps == 0),
        (lambda: [np.zeros((50, 4, 2))] * 2, "too little", lambda pair: pair.p_value == 1),
    ],
)
def test_the_verdict_on_two_agents(agents, verdict, holds):
    found = compare_agents(agents())
    (pair,) = found.pairs
    assert pair.verdict == verdict
    assert holds(pair)
    assert (found.advice[0] == "No pair of these agents is worth comparing yet.") == (verdict != "compare")


def test_three_agents_of_features_two_of_which_act_alike():
    found = compare_agents([walk(150, right, k) for k, right in enumerate((0.2, 0.8, 0.2))])
    assert [pair.verdict for pair in found.pairs[:2]] == ["compare", "compare"]
    assert found.pairs[-1].agents == (0, 2)
    assert found.pairs[-1].p_value > 0.05
    assert not found.counted


def test_the_same_seed_says_the_same():
    tau = bits((0.5, 0.6), 100)
    assert str(compare_agents(tau, seed=3)) == str(compare_agents(tau, seed=3)) != str(compare_agents(tau, seed=4))


def test_many_agents_are_screened():
    """Of ten agents eight are compared in pairs, among them the one that differs from all others."""
    found = compare_agents(bits((0.6,) * 6 + (0.95,) + (0.6,) * 3, 60, horizon=5, features=6))
    assert len(found.pairs) == 28
    assert 6 in found.pairs[0].agents
    assert "Not compared in pairs" in str(found)


def test_points_are_differences_of_chances():
    p = np.array([[0.35, 0.65], [0.65, 0.35]])
    nats = np.log(2) + (p * np.log(p)).sum(axis=1).mean()
    assert as_points(nats) == pytest.approx(0.3, abs=1e-3)
    assert (as_points(0), as_points(np.log(2))) == (0, 1)
    assert least_visible(400, 32, 9) == pytest.approx(least_visible(100, 32, 9) / 2, rel=0.02)


def test_bad_input():
    tau = bits((0.5, 0.7), 20)
    for given, more, error, told in (
        ([np.zeros((5, 3, 2))], {}, InvalidDataError, "at least two agents"),
        ([np.zeros((5, 1, 2))] * 2, {}, InvalidDataError, "at least two steps"),
        *((tau, {"names": names}, InvalidParameterError, "names must be a list of 2 different texts")
          for names in (["a", "a"], ["a"], "ab", 5, [0, 1])),
        (tau, {"seed": -1}, InvalidParameterError, "seed must be an integer"),
    ):  # fmt: skip
        with pytest.raises(error, match=told):
            compare_agents(given, **more)
