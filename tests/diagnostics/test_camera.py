"""Whether single frames give the agents away: other cameras do; agents that act otherwise, and fused states, do not."""

import numpy as np
import pytest

from craftrl import CRAFT, AssumptionWarning, NeuralOracle, Training, TrajectoryDataset
from craftrl.diagnostics.camera import camera, camera_of
from craftrl.envs import PixelsExBMDP, collect


@pytest.fixture(scope="module")
def pixels():
    """Frames (n, H, ...) of the pixel world, agents and true states."""
    world = PixelsExBMDP(horizon=6, size=3, n_walkers=2, seed=0)
    found = collect(world, world.policies(2, 0.6, 0), 200, seed=0)
    return found.tau.rows(np.arange(found.tau.n)), found.tau.agent, np.asarray(found.truth.states)


def filmed(x, agent, how):
    """The second agent's frames by another camera."""
    other = x[agent == 1].astype(np.float64)
    other = {
        "alike": lambda: other,
        "brighter": lambda: other + 15,
        "darker in the corner": lambda: other - 12 * (np.indices(x.shape[2:4]).sum(axis=0) < 8)[..., None],
        "flatter": lambda: 128 + 0.8 * (other - 128),
        "tinted": lambda: other * [1.08, 1.0, 0.92],
        "moved": lambda: np.roll(other, 2, axis=3),
    }[how]()
    return TrajectoryDataset.from_arrays([x[agent == 0], other.round().clip(0, 255).astype(np.uint8)])


@pytest.mark.parametrize("how", ["brighter", "darker in the corner", "flatter", "tinted", "moved"])
def test_cameras_that_differ_are_noticed(pixels, how):
    x, agent, states = pixels
    found = camera_of(filmed(x, agent, how), states)
    assert found.within > 0.95
    said, where = map(str, found.findings())
    assert "A single frame gives the agent away: of two frames of one state, one of each agent, " in said
    rows, columns = x.shape[2:4]
    assert found.heat.shape == (rows, columns)
    if how == "darker in the corner":
        corner = np.indices(found.heat.shape).sum(axis=0) < 8
        assert np.median(found.heat[corner]) > 3 * np.median(found.heat[~corner])
        assert "in rows 0 to 6 and columns 0 to 6, in 10% of the pixels" in where
    elif how == "brighter":
        assert f"in rows 0 to {rows - 1} and columns 0 to {columns - 1}, " in where


def test_agents_that_differ_and_states_that_are_fused_are_not(pixels):
    x, agent, states = pixels
    alike = filmed(x, agent, "alike")
    assert camera_of(alike, states).within == pytest.approx(0.5, abs=0.06)
    for seen in (states, np.where(states < 3, 0, states), states // 2):
        assert camera_of(alike, seen).findings() == ()


def test_where_one_state_was_found_first_frames_are_compared():
    """Later ones are of other places for agents with other habits, by the same camera."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 200)
    place = np.cumsum(np.where(rng.random((400, 6)) < np.array([0.2, 0.8])[agent][:, None], 1, -1), axis=1)
    x = rng.normal(size=(400, 6, 4))
    x[:, 1:, 0] += place[:, :-1]
    one_state = np.zeros((400, 6), dtype=int)
    assert camera_of(TrajectoryDataset.from_arrays([x[:200], x[200:]]), one_state).findings() == ()
    assert camera_of(TrajectoryDataset.from_arrays([x[:200], x[200:] + 3]), one_state).within > 0.95


def test_the_camera_as_a_state(pixels):
    """Where states are the camera, no state has frames of two agents; a few misread ones change nothing."""
    x, agent, states = pixels
    labels = np.repeat(agent[:, None], states.shape[1], axis=1)
    labels[::40, 0] = 1 - labels[::40, 0]
    found = camera_of(filmed(x, agent, "brighter"), labels)
    assert found.apart > 0.97
    said, where = map(str, found.findings())
    assert "Agents hardly share a state: 99% of the visits of one would have to change" in said
    assert f"in rows 0 to {x.shape[2] - 1} and columns 0 to {x.shape[3] - 1}, " in where  # although no state is shared


def test_the_camera_as_a_part_of_the_states():
    """States that each agent has nearly to itself, with a few frames of the other; and one agent of three by itself."""
    rng = np.random.default_rng(0)
    agent, group = np.repeat([0, 1], 1000), np.arange(2000) // 5
    labels = np.where(rng.random(2000) < 0.1, 1 - agent, agent) * 2 + rng.integers(0, 2, 2000)
    x = rng.normal(size=(2000, 6))
    assert [finding.kind for finding in camera(x, agent, labels, group).findings()] == ["agents apart"]
    agent, labels = np.repeat([0, 1, 2], 700), rng.integers(0, 3, 2100)
    x, group = rng.normal(size=(2100, 6)), np.arange(2100) // 5
    labels[agent == 2] += 3
    assert [finding.kind for finding in camera(x, agent, labels, group).findings()] == ["agents apart"]


def test_three_agents_and_features():
    """One agent of three whose features are shifted; trajectories are the groups."""
    rng = np.random.default_rng(0)
    agent, labels = rng.integers(0, 3, 1500), rng.integers(0, 4, 1500)
    x, group = rng.normal(size=(1500, 6)) + labels[:, None], rng.integers(0, 120, 1500) * 3 + agent
    assert camera(x, agent, labels, group).findings() == ()
    x[agent == 2, 4] += 3
    found = camera(x, agent, labels, group)
    assert [finding.kind for finding in found.findings()] == ["camera differs"]
    assert found.heat.shape == (6,)
    assert found.heat[4] > max(1.5, 3 * np.delete(found.heat, 4).max())  # of that agent, beside all others


@pytest.mark.slow
def test_fit_says_so(pixels):
    x, agent, _ = pixels
    tau = filmed(x, agent, "brighter")
    model = CRAFT(NeuralOracle(training=Training(epochs=4)))
    with pytest.warns(AssumptionWarning, match="A single frame gives the agent away: .* Standardise each recording"):
        model.fit(tau)
    found = model.diagnose(tau)
    assert found.camera.heat.shape == x.shape[2:4]
    assert found.verdict != "trust"


def test_too_few_trajectories_say_nothing(pixels):
    x, agent, states = pixels
    few = np.concatenate([np.arange(5), 200 + np.arange(5)])
    assert camera_of(filmed(x[few], agent[few], "brighter"), states[few]) is None
