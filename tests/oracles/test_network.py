"""NeuralOracle at its border: what it learns, what it refuses, and that the same comes out again."""

import io
import math

import numpy as np
import pytest
import torch
from feature_world import Positions, feature_data
from scipy.spatial import cKDTree

import craftrl
from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.oracle import CheckablePairFunction
from craftrl.envs import PixelsExBMDP, collect
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.network import NeuralOracle, Training, TrainingError
from craftrl.oracles.network import encoder as encoder_of
from craftrl.oracles.network import frames as frames_of
from craftrl.oracles.network import training as loop
from craftrl.oracles.network.encoder import deciding
from craftrl.oracles.network.log_odds import pair_loss
from craftrl.oracles.network.trunks import CODE_SCALE, Decorrelate, VectorTrunk, Whiten

GRID = Grid.from_bounds(1.0, 0.1)
TRAINING = Training(epochs=4, batch=16, device="cpu", progress=False)
WORLD = PixelsExBMDP(horizon=4, size=2, n_walkers=1, seed=0)
POLICIES = WORLD.policies(2, 1.5, 0)


def videos(n, seed=0):
    return collect(WORLD, POLICIES, n, seed=seed)


def prepared(tau, training=TRAINING, **given):
    return NeuralOracle(**{"dim": 32, "networks": 1, "training": training, **given}).prepare(tau)


def log_odds(tau, training=TRAINING, **given):
    return prepared(tau, training, **given).log_odds(GRID, "independent")


def known(z, states):
    """How many observations have the state that most of their five nearest neighbours have, themselves left out."""
    flat, s = z.reshape(-1, z.shape[-1]), states.ravel()
    votes = s[cKDTree(flat).query(flat, 6)[1][:, 1:]]
    return float(np.mean([np.bincount(v).argmax() == own for v, own in zip(votes, s)]))


@pytest.fixture(scope="module")
def learned():
    data = videos(300)
    network = prepared(data.tau, TRAINING.but(epochs=12))
    return data, network, network.log_odds(GRID, "independent")


def cut(tau, rng):
    """The same trajectories, ending at different steps."""
    lengths = rng.integers(2, tau.H + 1, tau.n)
    return TrajectoryDataset.from_episodes(
        [[tau.episode(i)[: lengths[i]] for i in np.flatnonzero(tau.agent == k)] for k in range(tau.K)]
    )


# -- what is learned --------------------------------------------------------------------------------------------------


def test_agents_are_told_apart_and_the_embedding_knows_the_states(learned):
    data, network, f = learned
    assert (f.loss < f.chance - 0.02).all()
    assert (f.p_value < 1e-3).all()
    assert f.bins.shape == (600, 3, 1)
    z = network.embed()
    assert (z.shape, z.dtype) == ((600, 4, 8), np.float64)
    assert np.allclose(z.mean((0, 1)), 0, atol=1e-3)
    assert known(z, data.truth.states) > 0.97


def test_the_encoder_names_states_of_new_videos_as_it_reads_those_it_learned_from(learned):
    data, network, _ = learned
    states, new = data.truth.states, videos(50, seed=1)
    encoder = network.fit_encoder(states, 4).encoder
    assert np.mean(encoder(new.tau.at(3)) == new.truth.states[:, 2]) > 0.97
    assert np.array_equal(network.read(encoder, 3), encoder(data.tau.at(3)))
    assert np.allclose(encoder.embed(data.tau.at(2)), network.embed()[:, 1], atol=1e-3)
    assert encoder(data.tau.at(2)[:0]).shape == (0,)
    some = np.where(np.arange(600)[:, None] % 3 == 0, states, -1)
    assert np.mean(network.fit_encoder(some, 4).encoder(new.tau.at(3)) == new.truth.states[:, 2]) > 0.95
    nothing = network.fit_encoder(np.full((600, 4), -1), 0)
    assert (nothing.encoder(data.tau.at(1)) == 0).all()
    assert nothing.loss == 0
    by_heart = np.random.default_rng(0).integers(2, size=(600, 1)) * np.ones(4, dtype=int)  # a state a trajectory
    assert network.fit_encoder(by_heart, 2).loss > 0.7  # which others do not predict


def test_rare_states_keep_their_prototypes_where_there_are_too_many(learned, monkeypatch):
    _, network, _ = learned
    monkeypatch.setattr(encoder_of, "MAX_PROTOTYPES", 60)
    labels = (np.arange(2400).reshape(600, 4) % 100 == 0).astype(int)  # 24 of 2400 observations
    head = network.fit_encoder(labels, 2).encoder.head
    assert sum(head.counts) == 60
    assert head.counts[1] >= 16


def test_what_decides_lies_where_the_agents_figure_is(learned):
    data, network, _ = learned
    encoder = network.fit_encoder(data.truth.states, 4).encoder
    frames, states = videos(30, seed=1).tau.at(4), videos(30, seed=1).truth.states[:, 3]
    heat = deciding(encoder, frames).reshape(len(frames), -1)
    assert heat.max(axis=1) == pytest.approx(1.0)
    own = WORLD.figure_pixels[0][states]  # the pixels of the cell that the agent's figure is in: 4 of 144
    share = np.take_along_axis(heat, own.reshape(len(own), -1), axis=1).sum(axis=1) / heat.sum(axis=1)
    assert share.mean() > 0.25


def test_log_odds_of_trajectories_are_those_of_the_fit_and_can_be_checked(learned):
    data, _, f = learned
    assert isinstance(f.f, CheckablePairFunction)
    x, unseen = data.tau.rows(np.arange(20)), f.f.unseen
    bins = np.clip(np.rint(f.f(x) / GRID.xi + GRID.n_xi / 2), 0, GRID.n_xi)
    assert (np.abs(bins - f.bins[:20]) <= 1).all()  # rounding
    assert len(unseen) == 60
    assert np.isfinite(f.f.of_unseen(data.tau.rows(unseen[:2]), unseen[:2])).all()
    assert np.isnan(f.f.of_unseen(x[:1], np.setdiff1d(np.arange(600), unseen)[:1])).all()


def test_labels_and_frames_that_say_nothing_claim_nothing():
    tau = videos(250).tau
    shuffled = tau.select(np.arange(500), np.random.default_rng(0).permutation(tau.agent))
    f = log_odds(shuffled, TRAINING.but(epochs=6))
    assert (f.p_value > 0.01 / 3).all()
    assert np.mean(f.loss) > np.mean(f.chance) - 0.03
    flat = np.full((40, 3, 12, 12, 3), 7, dtype=np.uint8)
    f = log_odds(TrajectoryDataset.from_arrays([flat, flat]), TRAINING.but(epochs=1))
    assert np.allclose(f.loss, math.log(2), atol=0.02)
    assert (f.p_value > 0.01).all()


def test_feature_vectors_and_three_agents():
    data = feature_data(200, n_agents=3)
    network = prepared(data.tau, TRAINING.but(epochs=8), networks=None)
    f = network.log_odds(GRID, "independent")
    assert len(network.pairs().f.networks) == 4
    assert f.bins.shape == (600, 3, 2)
    assert (f.loss < f.chance - 0.02).all()
    assert known(network.embed()[::4], data.truth.states[::4]) > 0.8


def test_features_in_units_a_million_times_apart():
    world = Positions(3, 2, 1)
    tau = collect(world, world.policies(2, 1.5), 500, seed=0).tau
    x = np.stack([tau.at(h) for h in (1, 2, 3)], axis=1) * [1e-3, 1e-3, 1e3, 1e3]
    f = log_odds(TrajectoryDataset.from_arrays([x[:500], x[500:]]), TRAINING.but(epochs=10), dim=128)
    assert (f.loss < np.log(2) - 0.04).all()


def test_decorrelated_features_have_unit_deviation_whatever_their_units_and_mixture():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(4000, 5)) @ rng.normal(size=(5, 5)) * [1e-3, 1, 1e3, 1, 1] + [0, 5, 0, -5, 0]
    x = torch.from_numpy(np.column_stack([mixed, np.full(4000, 7.0)])).float()
    layer = Decorrelate(6).eval()
    layer.fit(x)
    z = layer(x).double().numpy()
    assert np.allclose(z.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(np.cov(z[:, :5].T), np.eye(5), atol=0.1)
    assert np.ptp(z[:, 5]) == 0
    layer.fit(x[:20])  # few rows are scaled alone
    assert not (layer.turn - torch.diag(layer.turn.diagonal())).any()
    assert np.allclose(layer(x[:20]).numpy()[:, :5].std(axis=0), 1, atol=1e-3)


def test_whitened_neighbours_are_hardly_correlated_and_faint_noise_stays_faint():
    generator = torch.Generator().manual_seed(0)
    smooth = torch.nn.functional.avg_pool2d(torch.randn(400, 1, 16, 16, generator=generator), 5, stride=1)
    grey = (smooth / smooth.std()).expand(-1, 3, -1, -1)  # of three channels, which differ by noise alone

    def seen():
        return grey + 0.01 * torch.randn(grey.shape, generator=generator)

    def correlation(x, y):
        return float(torch.corrcoef(torch.stack([x.flatten(), y.flatten()]))[0, 1])

    layer = Whiten((3, 12, 12))
    layer.fit(seen())
    one, other = layer(seen()), layer(seen())
    assert one.std(dim=0).mean().item() == pytest.approx(0.9, abs=0.1)
    assert correlation(grey[..., 1:], grey[..., :-1]) > 0.7
    assert correlation(one[..., 1:], one[..., :-1]) < 0.3
    assert correlation(one, other) > 0.95


def test_the_trunk_turns_features_into_codes():
    z = VectorTrunk(3, 40).eval()(torch.randn(7, 3))
    assert z.shape == (7, 40)
    assert torch.allclose(z[:, :20].sum(dim=1), torch.full((7,), CODE_SCALE))
    with pytest.raises(InvalidParameterError, match="dim must be at least 2"):
        VectorTrunk(3, 1)


def test_several_gaps_and_steps_without_meaning():
    tau = videos(150).tau
    tau.aligned = False
    network = prepared(tau, TRAINING.but(epochs=4), gaps=(1, 2))
    f, pairs = network.log_odds(GRID, "independent"), network.pairs()
    assert np.ptp(pairs.f.shift, axis=0).max() == 0
    assert np.ptp(f.p_value) == 0  # one test of all steps
    assert pairs.f.networks[0].mixture.shape[:2] == (2, 1)
    pair = tau.rows([0])[0, 1:3]
    values = f.f(np.concatenate([pair, pair])[None])  # x_2, x_3 at two places
    assert values[0, 0] == pytest.approx(values[0, 2], abs=1e-4)


def test_parts_can_be_switched_off():
    tau, seen = videos(60).tau, []
    plain = prepared(tau, TRAINING.but(epochs=1, calibrate=False, noise=0.0)).pairs()
    assert plain.f.scale == 1
    assert (plain.f.shift == 0).all()
    assert plain.f.networks[0].trunk.noise == 0

    def darker(x):
        seen.append(tuple(x.shape[1:]))
        return x * 0.5

    prepared(tau, TRAINING.but(epochs=1, augment=darker)).pairs()
    assert set(seen) == {(4, 3, *WORLD.obs_shape[:2])}


# -- the same again ---------------------------------------------------------------------------------------------------


def test_one_seed_gives_one_result_and_another_seed_another():
    tau = videos(40).tau
    a, b, c = (prepared(tau, TRAINING.but(seed=seed)).pairs() for seed in (3, 3, 4))
    assert np.array_equal(a.logits, b.logits)
    assert np.array_equal(a.phi, b.phi)
    assert not np.allclose(a.logits, c.logits)


def test_on_disk_prepared_once_or_not_at_all_gives_the_same(tmp_path, monkeypatch):
    tau = cut(videos(40).tau, np.random.default_rng(0))
    tau.save(tmp_path / "data")
    here = prepared(tau).pairs()
    there = prepared(TrajectoryDataset.open(tmp_path / "data")).pairs()
    assert np.array_equal(here.logits, there.logits)
    monkeypatch.setattr(frames_of, "KEPT", 0)
    each_time = prepared(TrajectoryDataset.open(tmp_path / "data")).pairs()
    assert np.allclose(here.logits, each_time.logits, atol=1e-3)


def test_what_lies_behind_the_end_of_a_trajectory_does_not_count():
    short, full = cut(videos(60).tau, np.random.default_rng(0)), videos(60).tau.rows(np.arange(120))
    full[np.arange(4) >= short.lengths[:, None]] = np.random.default_rng(1).integers(0, 255)
    padded = TrajectoryDataset.from_arrays([full[:60], full[60:]], short.lengths)
    found = [prepared(tau) for tau in (short, padded)]
    f, g = (network.log_odds(GRID, "independent") for network in found)
    assert (f.bins[np.arange(1, 4) >= short.lengths[:, None]] == -1).all()
    assert np.array_equal(f.bins, g.bins)
    assert np.array_equal(*(network.embed()[:, :1] for network in found))
    labels = np.where(np.arange(4) < short.lengths[:, None], short.agent[:, None], -1)
    fit = found[0].fit_encoder(labels, 2)
    assert (found[0].read(fit.encoder, 4)[short.lengths < 4] == -1).all()


def test_pairs_behind_the_end_weigh_nothing(learned):
    network = learned[1].pairs().f.networks[0]
    z, agent, lengths = torch.randn(3, 4, network.trunk.dim), torch.tensor([0, 1, 1]), torch.tensor([2, 4, 3])
    with torch.no_grad():
        total, count = pair_loss(network, z, agent, lengths)
        z[0, 2:] = z[2, 3:] = 9.0
        again, _ = pair_loss(network, z, agent, lengths)
    assert count == 2 * (1 + 3 + 2)  # on held-out pairs log-odds and embeddings are judged alike
    assert float(total) == pytest.approx(float(again), rel=1e-5)


def line(held_slope, epochs):
    """A slope learned from lines of slope 2 whose held-out ones have another; its held-out loss, and the rows seen."""
    x, seen = torch.randn(80, 1, generator=torch.Generator().manual_seed(0)), []
    y = torch.where(torch.arange(80)[:, None] < 60, 2.0, held_slope) * x
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)

    def loss(module, batch):
        return (module(x[batch]) - y[batch]).square().sum(), torch.tensor(float(len(batch)))

    def batches(chunks, learned):
        seen.extend(chunks if learned else [])
        return map(torch.from_numpy, chunks)

    rows = np.arange(60), np.arange(60, 80)
    held = loop.train(module, loss, batches, rows, 8, TRAINING.but(lr=0.05, epochs=epochs), "line")
    with torch.no_grad():
        total, count = loss(module, torch.arange(60, 80))
    assert held == pytest.approx(float(total / count), rel=1e-4)
    return module.weight.item(), np.bincount(np.concatenate(seen))


def test_training_sees_every_trajectory_once_an_epoch_and_leaves_the_best_weights(monkeypatch):
    monkeypatch.setattr(loop, "EVALUATE_EVERY", 5)
    slope, times = line(2.0, 40)
    assert slope == pytest.approx(2, abs=0.1)
    assert (times == 40).all()
    slope, times = line(1.0, 400)
    assert slope == pytest.approx(1, abs=0.2)  # where the held-out loss was least, and not where training led
    assert times.max() < 100  # it ends when that no longer falls


class Killed(Exception):
    pass


def test_a_killed_fit_goes_on_where_it_stopped(tmp_path, monkeypatch):
    tau = videos(40).tau
    monkeypatch.setattr(loop, "EVALUATE_EVERY", 5)
    prepared(tau, TRAINING.but(checkpoints=tmp_path / "whole")).pairs()
    save, saved = loop.Checkpoint.save, []

    def stopping(self, state):
        save(self, state)
        saved.append(state["stand"]["t"])
        if len(saved) == 2:
            raise Killed

    here = TRAINING.but(checkpoints=tmp_path / "killed")
    monkeypatch.setattr(loop.Checkpoint, "save", stopping)
    with pytest.raises(Killed):
        prepared(tau, here).pairs()
    monkeypatch.setattr(loop.Checkpoint, "save", save)
    assert saved == [5, 10]
    prepared(tau, here).pairs()
    (file,), (whole,) = ((tmp_path / folder).glob("log-odds*.pt") for folder in ("killed", "whole"))
    ends = [torch.load(io.BytesIO(path.read_bytes()[32:]), weights_only=True) for path in (file, whole)]
    for weights in ("module", "best"):
        assert all(map(torch.equal, *(end[weights].values() for end in ends)))
    with pytest.raises(InvalidDataError, match="belongs to other settings or data"):
        prepared(tau, here.but(lr=1e-3)).pairs()
    one, other = (TRAINING.but(augment=lambda x: x) for _ in range(2))  # as in another process, at another address
    assert one.signature() == other.signature() != TRAINING.signature()
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(InvalidDataError, match=r"cannot be read; .* delete that one file"):
        prepared(tau, here).pairs()


@pytest.mark.parametrize("maps", [True, False])
def test_a_trunk_of_ones_own_is_copied_trained_and_given_again_to_load(maps, tmp_path):
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 6, 6), torch.nn.SiLU()]
    trunk = torch.nn.Sequential(*layers, *([] if maps else [torch.nn.Flatten(), torch.nn.LazyLinear(16)]))
    trunk(torch.zeros(1, 3, *WORLD.obs_shape[:2]))
    before, tau = {name: weight.clone() for name, weight in trunk.state_dict().items()}, videos(60).tau
    oracle = NeuralOracle(trunk=trunk, networks=1, training=TRAINING)
    with pytest.warns(craftrl.AssumptionWarning):
        model = CRAFT(oracle, stationary=True).fit(tau)
    assert all(torch.equal(before[name], weight) for name, weight in trunk.state_dict().items())
    assert trunk.training
    assert model.oracle.trunk is trunk
    model.save(tmp_path / "model")
    with pytest.raises(InvalidParameterError, match="has a trunk of your own, whose code no file holds"):
        craftrl.load(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=oracle)
    assert np.array_equal(again.encode(tau.at(2)), model.encode(tau.at(2)))
    assert np.allclose(again.log_odds(tau), model.log_odds(tau), atol=1e-5)


def test_a_trunk_may_return_maps_of_one_channel():
    found = prepared(videos(10).tau, TRAINING.but(epochs=1), trunk=torch.nn.Conv2d(3, 1, 6, 6)).pairs()
    assert np.isfinite(found.logits).all()


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dim": 0}, "dim must be an integer from 1"),
        ({"embedding": 0}, "embedding must be an integer from 1"),
        ({"networks": 1.5}, "networks must be an integer from 1"),
        ({"gaps": (2,)}, "gaps must be different whole numbers, 1 among them"),
        ({"training": 3}, "training must be a Training or None"),
        ({"trunk": "resnet"}, "trunk must be an nn.Module or None"),
        ({"trunk": torch.nn.Linear(3, 3)}, "A trunk must turn a batch of shape"),
    ],
)
def test_bad_parameters_are_told(given, said):
    with pytest.raises(InvalidParameterError, match=said):
        prepared(videos(10).tau, **given).pairs()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": 0}, "epochs must be an integer from 1"),
        ({"batch": 1}, "batch must be an integer from 2"),
        ({"lr": -1}, "lr must be a positive number"),
        ({"held_out": 1}, "held_out must be a number between 0 and 1"),
        ({"noise": -0.1}, "noise must be a number of at least 0"),
        ({"augment": "flip"}, "augment must be a function"),
        ({"device": "abacus"}, "device must be 'auto', 'cpu' or 'cuda'"),
        ({"checkpoints": ""}, "checkpoints must be a path"),
        ({"seed": -1}, "seed must be an integer from 0"),
    ],
)
def test_bad_settings_are_told(given, said):
    with pytest.raises(InvalidParameterError, match=said):
        Training(**given).to_device()


def test_what_cannot_be_learned_from_is_refused():
    for bad, said in [
        (np.zeros((3, 2, 8, 8)), "add a channel axis"),
        (np.zeros((3, 2, 8, 8, 3), dtype=int), "uint8 or floats"),
    ]:
        with pytest.raises(InvalidDataError, match=said):
            prepared(TrajectoryDataset.from_arrays([bad, bad]))
    with pytest.raises(TrainingError, match=r"no longer finite after \d+ minibatches; lower lr"):
        prepared(videos(30).tau, TRAINING.but(lr=1e9)).pairs()
