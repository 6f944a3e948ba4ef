"""NeuralOracle at its border: what it learns, what it refuses, and that the same comes out again."""

import math

import numpy as np
import pytest
from feature_world import feature_data

torch = pytest.importorskip("torch")

from scipy.spatial import cKDTree  # noqa: E402

import craftrl  # noqa: E402
from craftrl import CRAFT, TrajectoryDataset  # noqa: E402
from craftrl.core.grid import Grid  # noqa: E402
from craftrl.core.oracle import CheckablePairFunction  # noqa: E402
from craftrl.envs import PixelsExBMDP, collect  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training, TrainingError  # noqa: E402
from craftrl.oracles.network import frames as frames_of  # noqa: E402

GRID = Grid.from_bounds(1.0, 0.1)
TRAINING = Training(epochs=4, batch=16, device="cpu", progress=False)
WORLD = PixelsExBMDP(horizon=4, size=2, n_walkers=1, seed=0)
POLICIES = WORLD.policies(2, 1.5, 0)


def videos(n, seed=0):
    return collect(WORLD, POLICIES, n, seed=seed)


def oracle(**given):
    return NeuralOracle(**{"dim": 32, "networks": 1, "training": TRAINING, **given})


def known(z, states):
    """How many observations have the state that most of their five nearest neighbours have, themselves left out."""
    flat, s = z.reshape(-1, z.shape[-1]), states.ravel()
    votes = s[cKDTree(flat).query(flat, 6)[1][:, 1:]]
    return float(np.mean([np.bincount(v).argmax() == own for v, own in zip(votes, s)]))


@pytest.fixture(scope="module")
def learned():
    data = videos(300)
    prepared = oracle(training=TRAINING.but(epochs=12)).prepare(data.tau)
    return data, prepared, prepared.log_odds(GRID, "independent")


def cut(tau, rng):
    """The same trajectories, ending at different steps, behind whose ends there is rubbish."""
    lengths = rng.integers(2, tau.H + 1, tau.n)
    return TrajectoryDataset.from_episodes(
        [[tau.episode(i)[: lengths[i]] for i in np.flatnonzero(tau.agent == k)] for k in range(tau.K)]
    )


# -- what is learned -----------------------------------------------------------------------------------------------


def test_agents_are_told_apart_and_the_embedding_knows_the_states(learned):
    data, prepared, f = learned
    assert (f.loss < f.chance - 0.02).all()
    assert (f.p_value < 1e-3).all()
    z = prepared.embed()
    assert z.shape == (600, 4, 8)
    assert z.dtype == np.float64
    assert np.allclose(z.mean((0, 1)), 0, atol=1e-3)
    assert known(z, data.truth.states) > 0.97
    assert f.bins.shape == (600, 3, 1)


def test_the_encoder_names_states_of_new_videos_as_it_reads_those_it_learned_from(learned):
    data, prepared, _ = learned
    fit = prepared.fit_encoder(data.truth.states, 4)
    new = videos(50, seed=1)
    assert np.mean(fit.encoder(new.tau.at(3)) == new.truth.states[:, 2]) > 0.97
    assert np.array_equal(prepared.read(fit.encoder, 3), fit.encoder(data.tau.at(3)))
    assert np.allclose(fit.encoder.embed(data.tau.at(2)), prepared.embed()[:, 1], atol=1e-3)
    assert fit.encoder(data.tau.at(2)[:0]).shape == (0,)
    some = np.where(np.arange(600)[:, None] % 3 == 0, data.truth.states, -1)
    assert np.mean(prepared.fit_encoder(some, 4).encoder(new.tau.at(3)) == new.truth.states[:, 2]) > 0.95
    nothing = prepared.fit_encoder(np.full((600, 4), -1), 0)
    assert (nothing.encoder(data.tau.at(1)) == 0).all()
    assert nothing.loss == 0


def test_log_odds_of_trajectories_are_those_of_the_fit_and_can_be_checked(learned):
    data, _, f = learned
    assert isinstance(f.f, CheckablePairFunction)
    x = data.tau.rows(np.arange(20))
    values = f.f(x)
    bins = np.clip(np.rint(values / GRID.xi + GRID.n_xi / 2), 0, GRID.n_xi)
    assert (np.abs(bins - f.bins[:20]) <= 1).all()  # rounding
    assert len(f.f.unseen) == 60
    said = f.f.of_unseen(data.tau.rows(f.f.unseen[:2]), f.f.unseen[:2])
    assert np.isfinite(said).all()
    assert np.isnan(f.f.of_unseen(x[:1], np.setdiff1d(np.arange(600), f.f.unseen)[:1])).all()


def test_labels_that_say_nothing_claim_nothing():
    data = videos(250)
    agent = np.random.default_rng(0).permutation(data.tau.agent)
    f = (
        oracle(training=TRAINING.but(epochs=6))
        .prepare(data.tau.select(np.arange(500), agent))
        .log_odds(GRID, "independent")
    )
    assert (f.p_value > 0.01 / 3).all()
    assert np.mean(f.loss) > np.mean(f.chance) - 0.03


def test_feature_vectors_and_three_agents():
    data = feature_data(400, n_agents=3)
    prepared = NeuralOracle(dim=32, training=TRAINING.but(epochs=8)).prepare(data.tau)
    f = prepared.log_odds(GRID, "independent")
    assert len(prepared.pairs().networks) == 4
    assert f.bins.shape == (1200, 3, 2)
    assert (f.loss < f.chance - 0.02).all()
    assert known(prepared.embed()[::4], data.truth.states[::4]) > 0.9


def test_several_gaps_and_steps_without_meaning():
    data = videos(150)
    tau = data.tau.select(np.arange(data.tau.n))
    tau.aligned = False
    prepared = oracle(gaps=(1, 2), training=TRAINING.but(epochs=8)).prepare(tau)
    f = prepared.log_odds(GRID, "independent")
    pairs = prepared.pairs()
    assert np.ptp(pairs.shift, axis=0).max() == 0
    assert pairs.networks[0].mixture.shape[:2] == (2, 1)
    x = np.repeat(data.tau.rows([0])[:, 1:3], 2, axis=0).reshape(1, 4, *tau.obs_shape)  # x_2, x_3 at two places
    x[0, 1::2], x[0, ::2] = data.tau.rows([0])[0, 2], data.tau.rows([0])[0, 1]
    values = f.f(x)
    assert values[0, 0] == pytest.approx(values[0, 2], abs=1e-4)


def test_parts_can_be_switched_off():
    data = videos(60)
    plain = oracle(training=TRAINING.but(epochs=1, calibrate=False, noise=0.0)).prepare(data.tau).pairs()
    assert plain.scale == 1
    assert (plain.shift == 0).all()
    assert plain.networks[0].trunk.noise == 0
    seen = []

    def darker(x):
        seen.append(tuple(x.shape[1:]))
        return x * 0.5

    oracle(training=TRAINING.but(epochs=1, augment=darker)).prepare(data.tau).pairs()
    assert set(seen) == {(4, 3, *WORLD.obs_shape[:2])}


# -- the same again ------------------------------------------------------------------------------------------------


def test_one_seed_gives_one_result_and_another_seed_another():
    tau = videos(40).tau
    a, b, c = (oracle(training=TRAINING.but(seed=seed)).prepare(tau).pairs() for seed in (3, 3, 4))
    assert np.array_equal(a.logits, b.logits)
    assert np.array_equal(a.phi, b.phi)
    assert not np.allclose(a.logits, c.logits)


def test_on_disk_prepared_once_or_not_at_all_gives_the_same(tmp_path, monkeypatch):
    tau = cut(videos(40).tau, np.random.default_rng(0))
    tau.save(tmp_path / "data")
    here = oracle().prepare(tau).pairs()
    there = oracle().prepare(TrajectoryDataset.open(tmp_path / "data")).pairs()
    assert np.array_equal(here.logits, there.logits)
    monkeypatch.setattr(frames_of, "KEPT", 0)
    each_time = oracle().prepare(TrajectoryDataset.open(tmp_path / "data")).pairs()
    assert np.allclose(here.logits, each_time.logits, atol=1e-3)


def test_what_lies_behind_the_end_of_a_trajectory_does_not_count():
    short = cut(videos(60).tau, np.random.default_rng(0))
    full = videos(60).tau.rows(np.arange(120))
    full[np.arange(4) >= short.lengths[:, None]] = np.random.default_rng(1).integers(0, 255)
    padded = TrajectoryDataset.from_arrays([full[:60], full[60:]], short.lengths)
    found = [oracle().prepare(tau) for tau in (short, padded)]
    f, g = (prepared.log_odds(GRID, "independent") for prepared in found)
    there = np.arange(1, 4) < short.lengths[:, None]
    assert (f.bins[~there] == -1).all()
    assert np.array_equal(f.bins, g.bins)
    assert np.array_equal(*(p.embed()[:, :1] for p in found))
    labels = np.where(np.arange(4) < short.lengths[:, None], 0, -1)
    labels[:60][labels[:60] == 0] = 1
    fit = found[0].fit_encoder(labels, 2)
    assert (found[0].read(fit.encoder, 4)[short.lengths < 4] == -1).all()


class Killed(Exception):
    pass


def test_a_killed_fit_goes_on_where_it_stopped(tmp_path, monkeypatch):
    from craftrl.oracles.network import training as loop

    tau = videos(40).tau
    monkeypatch.setattr(loop, "EVERY", 5)
    whole = oracle().prepare(tau).pairs()
    save, saved = loop.Checkpoint.save, []

    def stopping(self, state):
        save(self, state)
        saved.append(state["stand"]["t"])
        if len(saved) == 2:
            raise Killed

    here = TRAINING.but(checkpoints=tmp_path)
    monkeypatch.setattr(loop.Checkpoint, "save", stopping)
    with pytest.raises(Killed):
        oracle(training=here).prepare(tau).pairs()
    monkeypatch.setattr(loop.Checkpoint, "save", save)
    assert saved == [5, 10]
    again = oracle(training=here).prepare(tau).pairs()
    assert np.array_equal(again.logits, whole.logits)
    with pytest.raises(InvalidDataError, match="belongs to other settings or data"):
        oracle(training=here.but(lr=1e-3)).prepare(tau).pairs()
    (file,) = tmp_path.glob("log-odds*.pt")
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(InvalidDataError, match=r"cannot be read; .* delete that one file"):
        oracle(training=here).prepare(tau).pairs()


# -- trunks and files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maps", [True, False])
def test_a_trunk_of_ones_own_is_copied_trained_and_given_again_to_load(maps, tmp_path):
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 6, 6), torch.nn.SiLU()]
    trunk = torch.nn.Sequential(*layers, *([] if maps else [torch.nn.Flatten(), torch.nn.LazyLinear(16)]))
    trunk(torch.zeros(1, 3, *WORLD.obs_shape[:2]))
    before = trunk[0].weight.clone()
    tau = videos(60).tau
    with pytest.warns(craftrl.AssumptionWarning):
        model = CRAFT(oracle(trunk=trunk), stationary=True).fit(tau)
    assert torch.equal(trunk[0].weight, before)
    model.save(tmp_path / "model")
    with pytest.raises(InvalidParameterError, match="has a trunk of your own, whose code no file holds"):
        craftrl.load(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=oracle(trunk=trunk))
    assert np.array_equal(again.encode(tau.at(2)), model.encode(tau.at(2)))
    assert np.allclose(again.log_odds(tau), model.log_odds(tau), atol=1e-5)


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
        oracle(**given).prepare(videos(10).tau).pairs()


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


def test_observations_that_are_neither_images_nor_vectors_are_refused():
    for bad, said in [
        (np.zeros((3, 2, 8, 8)), "add a channel axis"),
        (np.zeros((3, 2, 8, 8, 3), dtype=int), "uint8 or floats"),
    ]:
        with pytest.raises(InvalidDataError, match=said):
            oracle().prepare(TrajectoryDataset.from_arrays([bad, bad]))


def test_a_loss_that_is_no_longer_finite_ends_training():
    with pytest.raises(TrainingError, match=r"no longer finite after \d+ minibatches; lower lr"):
        oracle(training=TRAINING.but(lr=1e9)).prepare(videos(30).tau).pairs()


def test_frames_of_one_colour_are_chance():
    flat = np.full((40, 3, 12, 12, 3), 7, dtype=np.uint8)
    f = (
        oracle(training=TRAINING.but(epochs=1))
        .prepare(TrajectoryDataset.from_arrays([flat, flat]))
        .log_odds(GRID, "independent")
    )
    assert np.allclose(f.loss, math.log(2), atol=0.02)
    assert (f.p_value > 0.01).all()
