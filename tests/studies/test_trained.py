"""The baselines: same `fit` and `encode`, each trained on its own objective."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl.envs import collect  # noqa: E402
from craftrl.envs.pixels import PixelsExBMDP  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError  # noqa: E402
from craftrl.evaluation import accuracy  # noqa: E402
from craftrl.oracles.network import Training  # noqa: E402
from craftrl.planning.latent import accuracy_by_group  # noqa: E402
from studies import latent_action, objectives  # noqa: E402
from studies.latent_action import _LatentActions  # noqa: E402
from studies.objectives import _MultiStepInverse  # noqa: E402
from studies.trained import Shapes  # noqa: E402

TRAINING = Training(epochs=2, batch=32, lr=3e-3, device="cpu")
BASELINES = [objectives.ACState, objectives.Autoencoder, objectives.ForwardPrediction, latent_action.LatentAction,
          objectives.PairedFrames, objectives.SingleFrame, objectives.TemporalContrastive]  # fmt: skip
WORLD = PixelsExBMDP(3, 2, 1, seed=0)


@pytest.fixture(scope="module")
def data():
    return collect(WORLD, WORLD.policies(), 80, seed=0)


@pytest.mark.parametrize("baseline", BASELINES)
def test_every_baseline_fits_and_encodes_to_the_number_of_states_given(baseline, data):
    model = baseline([1, 3, 4], dim=16, training=TRAINING).fit(data.tau, actions=data.truth.actions)
    for h, k in enumerate([1, 3, 4], start=1):
        states = model.encode(data.tau.at(h), h)
        assert states.shape == (160,)
        assert len(np.unique(states)) == k
    assert model.features(data.tau.at(2)).shape == (160, 16)


def test_an_autoencoder_without_walkers_finds_the_agent():
    """Where nothing else moves and the light is steady, reconstruction is about the agent alone."""
    rng = np.random.default_rng(0)
    world = PixelsExBMDP(3, 2, 0, seed=0)
    tau = collect(world, world.policies(), 10, seed=0).tau
    states = rng.integers(4, size=(300, 3))
    e = np.zeros((300, 2), dtype=int)
    frames = np.stack([world.emit(states[:, h], e, h + 1, rng) for h in range(3)], axis=1)
    tau = type(tau).from_arrays([frames[:150], frames[150:]])
    model = objectives.Autoencoder([4, 4, 4], dim=16, training=TRAINING.but(epochs=12)).fit(tau)
    assert accuracy(model.encode(tau.at(2), 2), states[:, 1]) > 0.95


def test_latent_actions_name_the_successor_where_nothing_else_moves():
    rng = np.random.default_rng(0)
    world = PixelsExBMDP(3, 2, 0, seed=0)
    states = rng.integers(4, size=(400, 3))
    e = np.zeros((400, 2), dtype=int)
    frames = np.stack([world.emit(states[:, h], e, h + 1, rng) for h in range(3)], axis=1)
    model = latent_action.LatentAction([4, 4, 4], dim=16, training=TRAINING.but(epochs=30))
    with pytest.raises(NotFittedError, match="Latent actions need the inverse model"):
        model.latents(frames)
    model.fit([frames[:200], frames[200:]])
    codes = model.latent_actions(frames, 4)
    assert codes.shape == (400, 2)
    assert accuracy_by_group(codes.ravel(), states[:, 1:].ravel(), states[:, :-1].ravel()) > 0.8
    assert (model.latent_actions(frames, 4) == codes).all()


def test_the_multi_step_inverse_learns_actions_and_needs_them(data):
    with pytest.raises(InvalidParameterError, match=r"ACState learns from actions; give fit\(x, agent, actions=...\)"):
        objectives.ACState([1, 3, 4]).fit(data.tau)
    shapes = Shapes(dim=8, obs_shape=(8,), H=3, n_agents=2, n_actions=4)
    objective = _MultiStepInverse(torch.nn.Identity(), shapes)
    action = torch.randint(4, (400, 2), generator=torch.Generator().manual_seed(0))
    x = torch.zeros(400, 3, 8)
    x[:, 1:] = torch.nn.functional.one_hot(action, 8).float()
    optimiser = torch.optim.Adam(objective.parameters(), lr=1e-2)
    for _ in range(150):
        optimiser.zero_grad()
        loss = objective.loss(x, torch.zeros(400, dtype=torch.long), action)
        loss.backward()
        optimiser.step()
    one_step = objective.head(
        torch.cat([x[:, 0], x[:, 1], x[:, 0] * x[:, 1], objective.gap(torch.ones(400).long())], 1)
    )
    assert (one_step.argmax(1) == action[:, 0]).float().mean() > 0.95


def test_latent_actions_pass_gradients_through_the_codes():
    shapes = Shapes(dim=8, obs_shape=(8,), H=3, n_agents=2, n_actions=1)
    objective = _LatentActions(torch.nn.Linear(8, 8), shapes)
    objective.loss(torch.rand(5, 3, 8), torch.zeros(5), torch.zeros(5, 2)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in objective.parameters())


@pytest.mark.parametrize("baseline", [objectives.Autoencoder, objectives.ForwardPrediction, latent_action.LatentAction])
def test_frames_of_any_range_are_predicted_as_standardised_pixels(baseline, data):
    """So the scale of the frames does not matter, nor does an offset."""
    frames = np.stack([data.tau.at(h) for h in (1, 2, 3)], axis=1)
    agent, epochs = data.tau.agent, 2 if baseline is latent_action.LatentAction else 12
    plain, other = (
        baseline([1, 3, 4], dim=16, training=TRAINING.but(epochs=epochs)).train(
            type(data.tau).from_arrays([x[agent == 0], x[agent == 1]])
        )
        for x in (frames, 40 * (frames / 255).astype(np.float32) - 7)
    )
    assert plain.chance_ == pytest.approx(other.chance_, abs=1e-3)
    assert plain.held_out_loss_ == pytest.approx(other.held_out_loss_, abs=0.02)
    if baseline is not latent_action.LatentAction:  # whose loss has a part for its codes beside that of the frame
        assert plain.held_out_loss_ < plain.chance_


def test_every_objective_knows_what_chance_is(data):
    agent, action = data.tau.agent, data.truth.actions
    shapes = Shapes(dim=8, obs_shape=(8,), H=3, n_agents=2, n_actions=4)
    networks = {b: b.objective(torch.nn.Linear(8, 8), shapes) for b in BASELINES if b is not objectives.PairedFrames}
    chance = {b: network.chance(agent, action) for b, network in networks.items()}
    assert chance[objectives.SingleFrame] == pytest.approx(np.log(2))
    shares = np.bincount(action.ravel()) / action.size
    assert chance[objectives.ACState] == pytest.approx(-(shares * np.log(shares)).sum())
    loss = networks[objectives.TemporalContrastive].loss(torch.zeros(6, 3, 8), torch.zeros(6), torch.zeros(6, 2))
    assert float(loss.detach()) == pytest.approx(chance[objectives.TemporalContrastive], abs=1e-6)


def test_bad_input_is_refused(data):
    with pytest.raises(NotFittedError, match="must be fitted"):
        objectives.SingleFrame([1, 3, 4]).encode(data.tau.at(1), 1)
    x = data.tau.at(1)
    uneven = type(data.tau).from_episodes([[x[:2], x[:3]], [x[:2]]])
    with pytest.raises(InvalidDataError, match="equal length"):
        objectives.SingleFrame([1, 3, 4]).fit(uneven)


def test_states_need_a_network_that_was_trained(data):
    model = objectives.SingleFrame([1, 3, 4], dim=8, training=TRAINING)
    with pytest.raises(NotFittedError, match="must be trained"):
        model.cluster(data.tau)


def test_a_rival_keeps_the_contract_of_learners(data):
    from craftrl.testing import check_learner

    x = np.stack([data.tau.at(h) for h in (1, 2, 3)], axis=1)
    check_learner(objectives.Autoencoder([1, 2, 3], dim=8, training=TRAINING), x, data.tau.agent)
