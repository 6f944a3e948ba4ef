"""The neural oracle behind the seam, on a small world of feature vectors and on tiny images."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data  # noqa: E402

import craftrl  # noqa: E402
from craftrl import CRAFT, TrajectoryDataset  # noqa: E402
from craftrl.core.grid import Grid  # noqa: E402
from craftrl.envs import collect  # noqa: E402
from craftrl.envs.pixels import PixelsExBMDP  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError  # noqa: E402
from craftrl.estimators.base import ByStep  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training  # noqa: E402
from craftrl.oracles.network.frames import Frames  # noqa: E402
from craftrl.oracles.network.pairs import calibrated  # noqa: E402
from craftrl.oracles.network.probe import linear_probe  # noqa: E402
from craftrl.oracles.network.trunks import new_trunk  # noqa: E402
from craftrl.states.accuracy import accuracy_by_step  # noqa: E402

GRID = Grid.from_bounds(1.0, 0.02)
TRAINING = Training(epochs=16, patience=5, batch=128, lr=5e-3, device="cpu")
HEADS = TRAINING.but(epochs=8)
ORACLE = NeuralOracle(dim=32, networks=1, training=TRAINING, heads=HEADS)


@pytest.fixture(scope="module")
def data():
    return feature_data(500)


@pytest.fixture(scope="module")
def prepared(data):
    return ORACLE.prepare(data.tau)


@pytest.fixture(scope="module")
def craft(data):
    model = CRAFT(ORACLE, alpha=1.0, eta=0.02, nu=0.01, relabel=True)
    return model.fit(data.tau)


def test_log_odds_are_a_bin_for_every_pair_and_better_than_chance(prepared, data):
    f = prepared.log_odds(GRID, "independent")
    assert f.bins.shape == (data.tau.n, 3, 1)
    assert f.bins.dtype == np.int16
    assert f.bins.min() >= 0
    assert f.bins.max() < GRID.size
    assert (f.loss < f.chance - 0.02).all()


def test_log_odds_do_not_depend_on_noise_much(prepared, data):
    bins = prepared.log_odds(GRID, "independent").bins[:, 1, 0]
    pair = data.truth.states[:, 1] * 4 + data.truth.states[:, 2]
    within = sum(bins[pair == p].var() * (pair == p).mean() for p in np.unique(pair))
    assert within < 0.15 * bins.var()


@pytest.mark.parametrize("sizes", [(150, 150), (270, 30)])
def test_what_is_held_out_has_every_agents_share(sizes):
    """A test on thirty trajectories sees little enough: it should not be nearly all of them one agent's."""
    tau = TrajectoryDataset.from_arrays([np.zeros((n, 2, 3)) for n in sizes])
    for seed in range(5):
        rows, held = Frames(tau, TRAINING).split(np.arange(tau.n), Training(seed=seed), "log-odds")
        assert np.bincount(tau.agent[held]).tolist() == [n // 10 for n in sizes]
        assert sorted(np.concatenate([rows, held])) == list(range(tau.n))


def test_features_of_a_step_are_computed_once(data, prepared, monkeypatch):
    """Separation, encoding and relabelling of a step read them from memory."""
    prepared.features(3)
    prepared.scale()
    monkeypatch.setattr(prepared.frames, "_at", lambda *_: pytest.fail("the trunk ran again"))
    label = np.arange(data.tau.n) % 2
    prepared.separation(3, label, 2)
    encoder = prepared.encode(3, label, 2).encoder
    prepared.read(encoder, 3)


def test_separation_knows_equal_from_different(prepared, data):
    s = data.truth.states[:, 3] % 2
    separation = prepared.separation(4, 2 * s + np.arange(data.tau.n) % 2, 4)
    assert separation(0, [1]) > 0.5
    assert separation(3, [2]) > 0.5
    assert separation(0, [2, 3]) < 0.5


def test_encoding_learns_the_labels_it_is_given(prepared, data):
    s = data.truth.states[:, 3]
    fit = prepared.encode(4, np.where(np.arange(data.tau.n) % 5 == 0, -1, s), 4)
    assert (fit.encoder(data.tau.at(4)) == s).mean() > 0.97
    assert fit.loss < 0.2


def test_wrong_labels_are_not_learned_by_heart(prepared, data):
    """One label in four is wrong: read by heads that never saw them, they are corrected."""
    s = data.truth.states[:, 3]
    rng = np.random.default_rng(0)
    told = np.where(rng.random(len(s)) < 0.25, rng.integers(0, 4, len(s)), s)
    told[::7] = -1
    fit = prepared.encode(4, told, 4)
    assert (fit.unseen[::7] == -1).all()
    wrong = (told >= 0) & (told != s)
    assert (fit.unseen == s)[wrong].mean() > 0.9
    assert (fit.unseen == s)[wrong].mean() >= (fit.encoder(data.tau.at(4)) == s)[wrong].mean()


def test_no_state_and_one_cluster_are_answered(prepared, data):
    none = np.full(data.tau.n, -1)
    assert prepared.encode(2, none, 0).encoder(data.tau.at(2)).shape == (data.tau.n,)
    assert prepared.separation(2, np.zeros(data.tau.n, dtype=int), 1).sizes.tolist() == [data.tau.n]


def test_craft_recovers_the_states(craft, data):
    assert (accuracy_by_step(craft.labels_, data.truth.states) > 0.95).all()
    assert list(craft.n_states_)[:3] == [1, 3, 4]


def test_log_odds_beside_references_are_those_of_spliced_trajectories(craft, data):
    x = np.stack([data.tau.at(h)[::100] for h in range(1, 5)], axis=1)
    references, f = x[[3, 7]], craft.f_
    found = f.beside(x, references).reshape(len(x), 4, 2, 2)  # (n, H, way, reference)
    shift = f.shift[:, 0] - f.shift[:, 1]
    assert (found[:, 0, 1] == 0).all()
    assert (found[:, 3, 0] == 0).all()
    for r in range(2):
        for h in range(3):  # counted from 0
            ahead, back = x.copy(), x.copy()
            ahead[:, h + 1], back[:, h] = references[r, h + 1], references[r, h]
            np.testing.assert_allclose(found[:, h, 0, r], f(ahead)[:, h, 0] - shift[h], atol=1e-4)
            np.testing.assert_allclose(found[:, h + 1, 1, r], f(back)[:, h, 0] - shift[h], atol=1e-4)


def test_log_odds_of_unseen_trajectories_come_from_networks_that_did_not_learn_from_them(craft, data):
    x = np.stack([data.tau.at(h) for h in range(1, 5)], axis=1)
    held = craft.f_.unseen
    assert len(held) == 100  # a tenth
    np.testing.assert_allclose(craft.f_.of_unseen(x[held], held), craft.f_(x[held]))
    assert np.isnan(craft.f_.of_unseen(x[:200], np.setdiff1d(np.arange(1000), held)[:200])).all()

    oracle = NeuralOracle(dim=8, folds=2, training=TRAINING.but(epochs=1))
    prepared = oracle.prepare(data.tau)
    f = prepared.log_odds(GRID, "independent").f
    assert np.array_equal(f.unseen, np.arange(1000))
    first, second = f.not_learned
    only = np.setdiff1d(first, second)
    alone = type(f)(f.networks[:1], f.scale, f.shift, f.device)
    np.testing.assert_allclose(f.of_unseen(x[only], only), alone(x[only]))


def test_a_network_is_diagnosed_by_its_own_log_odds(craft, data, tmp_path):
    found = craft.diagnose(data.tau)
    assert found.stability is None
    assert found.sufficiency.n_unseen == 100
    assert found.score > 0.9
    assert found.verdict in ("trust", "check")
    assert "of what the log-odds tell of the agents of 100 trajectories that were not learned from" in str(found)

    craft.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert str(again.diagnose(data.tau)) == str(found)
    again.f_.not_learned = ()  # as in a model of an older version
    assert again.diagnose(data.tau).verdict == "not checked"


def test_networks_with_shuffled_states_are_not_trusted(craft, data):
    """The states of the last step but one, given to other trajectories."""
    wrong = copy.copy(craft)
    wrong.encoders_ = ByStep([*list(craft.encoders_)[:2], Shuffled(craft.encoders_[3]), craft.encoders_[4]])
    found = wrong.diagnose(data.tau)
    assert found.verdict == "do not trust"
    assert found.sufficiency.captured < 0.8
    assert found.sufficiency.read[2] < 0.5


class Shuffled:
    def __init__(self, encoder):
        self.encoder = encoder

    def __call__(self, x):
        return np.random.default_rng(0).permutation(self.encoder(x))


def test_cross_fitting_answers_each_trajectory_by_a_network_that_never_saw_it():
    data = feature_data(150)
    rng = np.random.default_rng(0)
    shuffled = data.tau.select(np.arange(data.tau.n), rng.permutation(data.tau.agent))  # nothing to learn
    oracle = NeuralOracle(dim=32, folds=2, training=TRAINING.but(epochs=12, patience=12))
    logits = oracle.prepare(shuffled).pairs().logits
    right = (logits.argmax(axis=2) == shuffled.agent[:, None]).mean()
    assert 0.4 < right < 0.6


def test_three_agents_have_two_log_odds():
    tau = feature_data(150, n_agents=3).tau
    f = NeuralOracle(dim=32, networks=1, training=TRAINING.but(epochs=4)).prepare(tau).log_odds(GRID, "independent")
    assert f.bins.shape == (450, 3, 2)


def test_same_seed_same_result_on_a_cpu_and_another_seed_another():
    tau = feature_data(100).tau
    short = TRAINING.but(epochs=2)
    a, b, c = (
        NeuralOracle(dim=16, networks=1, training=short.but(seed=seed)).prepare(tau).pairs().logits
        for seed in (0, 0, 1)
    )
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_trajectories_of_unequal_length_have_no_bin_after_their_end():
    x = feature_data(60).tau
    whole = [[x.episode(i) for i in np.flatnonzero(x.agent == k)] for k in range(2)]
    tau = TrajectoryDataset.from_episodes([[e[: 2 + i % 3] for i, e in enumerate(own)] for own in whole])
    bins = (
        NeuralOracle(dim=16, networks=1, training=TRAINING.but(epochs=2))
        .prepare(tau)
        .log_odds(GRID, "independent")
        .bins
    )
    ended = tau.lengths[:, None] <= np.arange(1, 4)
    assert (bins[ended] == -1).all()
    assert (bins[~ended] >= 0).all()


def test_calibration_mends_overconfidence():
    rng = np.random.default_rng(0)
    f = rng.normal(0, 1.5, 4000)
    target = (rng.random(4000) > 1 / (1 + np.exp(-f))).astype(int)[:, None]
    loud = np.stack([4 * f, np.zeros(4000)], axis=1)[:, None, :]
    mended = calibrated(loud, target, np.ones(4000, dtype=bool))
    assert np.polyfit(f, mended[:, 0, 0] - mended[:, 0, 1], 1)[0] == pytest.approx(1.0, abs=0.1)


def test_images_and_a_trunk_of_ones_own():
    world = PixelsExBMDP(3, 2, 1, seed=0)
    tau = collect(world, world.policies(), 100, seed=0).tau
    own = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 12 * 12, 24), torch.nn.ReLU())
    prepared = NeuralOracle(trunk=own, training=TRAINING.but(epochs=2)).prepare(tau)
    assert prepared.features(2).shape == (200, 24)
    assert prepared.encode(2, tau.agent, 2).encoder(tau.at(2)).shape == (200,)


class Returning(torch.nn.Module):
    """A trunk that returns what a function makes of the batch."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


@pytest.mark.parametrize(
    ("trunk", "problem"),
    [
        (torch.nn.Flatten(2), r"it returned shape \(2, 3, 144\)"),
        (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(10, 4)), "mat1 and mat2"),
        (Returning(lambda x: None), "it returned NoneType, not a tensor of floats"),
        (Returning(lambda x: (x, x)), "it returned tuple, not a tensor of floats"),
        (Returning(lambda x: x.flatten(1).long()), r"it returned torch.int64, not a tensor of floats"),
        (Returning(lambda x: x.flatten(1)[:, :0]), r"it returned shape \(2, 0\)"),
    ],
)
def test_a_trunk_with_the_wrong_shape_is_refused(trunk, problem):
    world = PixelsExBMDP(3, 2, 1)
    tau = collect(world, world.policies(), 10, seed=0).tau
    with pytest.raises(InvalidParameterError, match=problem):
        NeuralOracle(trunk=trunk, training=TRAINING).prepare(tau).pairs()


def test_images_that_are_no_images_are_refused():
    image = np.zeros((4, 3, 8, 8, 3))
    for bad, message in [
        (image.astype(np.int32), "uint8 or floats"),
        (image[..., 0], "add a channel axis"),
    ]:
        with pytest.raises(InvalidDataError, match=message):
            NeuralOracle(training=TRAINING).prepare(TrajectoryDataset.from_arrays([bad, bad]))


def test_images_of_any_range_give_the_same_log_odds():
    world = PixelsExBMDP(3, 2, 1)
    tau = collect(world, world.policies(), 60, seed=0).tau
    floats = TrajectoryDataset.from_arrays(
        [tau.rows(np.flatnonzero(tau.agent == k)) * np.float32(40) - 7000 for k in (0, 1)]
    )
    oracle = NeuralOracle(dim=32, networks=1, training=TRAINING.but(epochs=1))
    of_bytes, of_floats = (oracle.prepare(data).pairs().logits for data in (tau, floats))
    np.testing.assert_allclose(of_bytes, of_floats, atol=0.02)


def test_a_trunk_of_the_users_own_may_give_maps():
    world = PixelsExBMDP(3, 2, 1)
    tau = collect(world, world.policies(), 60, seed=0).tau
    prepared = NeuralOracle(trunk=torch.nn.Conv2d(3, 8, 4, 4), training=TRAINING.but(epochs=1)).prepare(tau)
    assert prepared.trunk.map_shape == (8, 3, 3)
    assert prepared.features(2).shape == (120, 72)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 13, 3), (30, 40, 3), (210, 160, 3)])
def test_any_size_of_image_becomes_a_small_map(shape):
    trunk = new_trunk(None, shape, 32)
    rows, columns = trunk.map_shape[1:]
    assert min(rows, columns) >= 4
    assert max(rows, columns) <= 20
    x = torch.rand(2, shape[2], *shape[:2])
    assert trunk(x).shape == (2, trunk.dim)


def test_log_odds_given_the_states_before_scatter_less(prepared, data):
    """Averaged over other observations of the same state, which is the true one here."""
    f = prepared.log_odds(GRID, "independent")
    s, s_next = data.truth.states[:, 1], data.truth.states[:, 2]

    def scatter(bins):
        return np.mean([bins[(s == a) & (s_next == b)].var() for a, b in set(zip(s, s_next))])

    given = prepared.log_odds_given(2, s, f, GRID)
    assert given.shape == (data.tau.n, 1)
    assert scatter(given[:, 0]) < 0.9 * scatter(f.bins[:, 1, 0])


def test_networks_are_averaged_where_data_is_short(data):
    short = TRAINING.but(epochs=1)
    for asked, got in [(None, 4), (2, 2)]:
        prepared = NeuralOracle(dim=8, networks=asked, training=short).prepare(data.tau)
        assert len(prepared.pairs().networks) == got


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"networks": 0}, "networks must be an integer from 1 to 1000; 0 was given; or None"),
        ({"folds": 0}, "folds must be an integer from 1 to 1000; 0 was given"),
        ({"dim": "wide"}, "dim must be an integer from 1 to 65536; 'wide' was given"),
        ({"training": {"epochs": 3}}, "training must be a Training or None"),
        ({"trunk": len}, "trunk must be an nn.Module or None"),
    ],
)
def test_settings_without_sense_are_refused(data, given, message):
    with pytest.raises(InvalidParameterError, match=message):
        NeuralOracle(**given).prepare(data.tau)


@pytest.mark.parametrize("coupling", ["chain", "markov"])
def test_a_coupling_that_would_change_nothing_is_refused(coupling, data):
    model = CRAFT(ORACLE, alpha=1.0, eta=0.02, nu=0.01, coupling=coupling)
    with pytest.raises(InvalidParameterError, match=f"'independent' for NeuralOracle; '{coupling}' was given; a trunk"):
        model.fit(data.tau)


def test_linear_probe_reads_what_is_linear_and_not_what_is_not():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(800, 2))
    linear, xor = (z[:, 0] > 0).astype(int), ((z[:, 0] > 0) ^ (z[:, 1] > 0)).astype(int)
    assert linear_probe(z[:600], linear[:600], z[600:], linear[600:]) > 0.97
    assert linear_probe(z[:600], xor[:600], z[600:], xor[600:]) < 0.65


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")  # it learns next to nothing
def test_a_fit_runs_its_networks_on_its_own_number_of_threads():
    """Then one seed gives one result, whatever number of threads torch has outside."""
    found, before = set(), torch.get_num_threads()
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: found.add(torch.get_num_threads()))
    torch.set_num_threads(before + 1)
    try:
        oracle = NeuralOracle(dim=8, networks=1, training=Training(epochs=1, device="cpu"))
        CRAFT(oracle, alpha=1.0, eta=0.02, nu=0.01, stationary=True).fit(feature_data(60, horizon=3).tau)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
        hook.remove()
    assert found == {1}
