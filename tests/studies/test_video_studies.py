"""The studies of videos on a tiny world: pixels, games, ablations; and the rivals that they compare CRAFT with."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from craftrl import CRAFT, NeuralOracle, Partition, Training, TrajectoryDataset
from craftrl.cli import main
from craftrl.cli.reproduce import parsed
from craftrl.envs import PixelsExBMDP, collect, record
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.evaluation import accuracy, state_accuracies
from craftrl.oracles.network.trunks import new_trunk
from studies import objectives, rivals
from studies.ablations.run import PARTS, model_of
from studies.ablations.run import Run as Ablation
from studies.games import data as recordings
from studies.objectives import Shapes
from studies.pixels import run as pixels
from studies.pixels.run import data_of
from studies.rivals import cut
from studies.study import read_rows
from studies.techniques import NAMES
from studies.trained import train_rival
from studies.verdicts.run import faults, planted

TRAINING = Training(epochs=2, batch=32, lr=3e-3, device="cpu")
WORLD = PixelsExBMDP(3, 2, 1, seed=0)
pytestmark = pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")


@pytest.fixture(scope="module")
def data():
    return collect(WORLD, WORLD.policies(), 80, seed=0)


def reproduce(out, line):
    """The rows of a study that is given to the command line."""
    assert main(["reproduce", *line.split(), "--device", "cpu", "--quiet", "--out", str(out)]) == 0
    return read_rows(out / "rows.jsonl")


# -- studies -------------------------------------------------------------------------------------------------------


def test_the_study_of_pixels(tmp_path, monkeypatch, capsys):
    tiny = {"size": 2, "horizon": 3, "walkers": [1], "n": [60]}
    monkeypatch.setitem(pixels.PRESETS, "tiny", tiny)
    monkeypatch.setattr("studies.rivals.training_of", lambda *run: Training(epochs=2, device="cpu"))
    craft, paired = reproduce(tmp_path, "pixels --preset tiny --techniques craft paired --rates 0.001 0.003")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md", "rows.jsonl"]
    for row in (craft, paired):
        assert 0 <= row["accuracy"] <= 1
        assert 0.25 < row["probe"] <= 1
        assert row["n_states_true"] == [1, 3, 4]
        assert row["chance"] == pytest.approx(np.log(2))
    assert craft["seconds_by_phase"].keys() >= {"log-odds", "embedding", "states", "encoding"}
    assert paired["loss"] == min(paired["loss_by_lr"].values()) == paired["loss_by_lr"][f"{paired['lr']:g}"]
    printed = capsys.readouterr().out
    assert f"| {craft['found']} / 4 | " in printed
    assert NAMES["paired"] in printed


def test_the_study_of_games_needs_no_game_where_recordings_are_there(data, tmp_path, monkeypatch, capsys):
    record(WORLD, WORLD.policies(), 80, tmp_path / "freeway", seed=0)
    train, test = recordings.read(str(tmp_path), "freeway", 50)
    for part, rows in ((train, [*range(50), *range(80, 130)]), (test, [*range(60, 80), *range(140, 160)])):
        assert np.array_equal(part.tau.at(2), data.tau.at(2)[rows])
        assert np.array_equal(part.tau.agent, data.tau.agent[rows])
        assert np.array_equal(part.truth.states, data.truth.states[rows])
        assert np.array_equal(part.truth.actions, data.truth.actions[rows])
    with pytest.raises(InvalidDataError, match="n must be at most 60, since 20 of the episodes are held out; 61"):
        recordings.read(str(tmp_path), "freeway", 61)
    monkeypatch.setattr("studies.rivals.training_of", lambda *run: Training(epochs=2, device="cpu"))
    line = f"games --worlds freeway --n 60 --data {tmp_path} --techniques single --rates 0.001"
    (row,) = reproduce(tmp_path / "out", line)
    assert row["lr"] == 0.001
    assert row["table_loss"] < np.log(2) + 0.1
    assert f"| {NAMES['single']} | " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("games --data s3://a/b", "The folder of recordings must be on a disk of this machine; 's3://a/b' was given"),
        ("games --cut clips", "--cut clips is for craft alone; ac-state,"),
        (
            "pixels --cut unequal --techniques craft paired",
            "--cut unequal is for craft alone; paired was given as well",
        ),
        ("planning --worlds rooms", "Without --full the worlds are pixels, multimaze; rooms was given; add --full."),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(line, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *line.split(), "--out", "new"]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_study_of_ablations(tmp_path, monkeypatch, capsys):
    tiny = Ablation("default", "clips", 0, 40, 2, 8, 1, "cpu")
    monkeypatch.setattr("studies.ablations.run.Run", lambda *given, **named: tiny)
    monkeypatch.setattr("studies.ablations.run.Training", lambda **given: Training(epochs=2, **given))
    assert reproduce(tmp_path, "ablations --parts default --cuts clips --seeds 1")[0]["true"] == 4
    report = capsys.readouterr().out
    assert "| default | " in report
    assert "whole" not in report


def test_the_study_of_verdicts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("studies.verdicts.run.DATA_SIZES", {3: (50, 60)})
    monkeypatch.setattr("studies.verdicts.run.CUTS", {3: ("unequal",)})
    monkeypatch.setattr("studies.verdicts.run.BROKEN", {"light": (15,), "alike": (1.0,)})
    monkeypatch.setattr("studies.verdicts.run.training_of", lambda *run: Training(epochs=2, device="cpu"))
    rows = reproduce(tmp_path, "verdicts --seeds 1")
    assert [row["violation"] for row in rows] == ["none", "none", "light", "alike"]
    assert [row["planted"] for row in rows] == [-1, 2, -1, -1]
    report = capsys.readouterr().out
    assert "| wrong | 2 | 0 | " in report
    assert "| 3 | whole | 400 | light | 15 | wrong, data broken | 1 | 0 | " in report


def test_a_fault_is_planted_in_the_steps_that_were_fitted(data):
    """Of unequal lengths, those that enough trajectories reach."""
    lengths = np.where(np.arange(160) % 8 > 0, 2, 3)
    x = data.tau.rows(np.arange(160))
    tau = TrajectoryDataset.from_arrays([x[:80], x[80:]], lengths)
    model = CRAFT(NeuralOracle(training=TRAINING)).fit(tau)
    faulty = planted(model, lambda states, x: 0 * states, tau)
    assert faulty.labels_.shape == model.labels_.shape == (160, 2)
    assert faulty.diagnose(tau, n_resamples=0).verdict != "trust"


def test_every_fault_makes_a_right_model_wrong():
    world = PixelsExBMDP(6, 3, 2, seed=0)
    data = collect(world, world.policies(), 200, seed=0)
    x, states = data.tau.rows(np.arange(data.tau.n)).reshape(-1, *data.tau.obs_shape), data.truth.states.ravel()
    for name, fault in faults(states, world).items():
        assert np.array_equal(fault(states, x), fault(states, x)), name
        assert state_accuracies(fault(states, x), states).min() < 0.95, name


def test_every_part_of_the_ablations_is_one_setting():
    def settings(model):
        parameters = model.get_params(deep=False)
        network = parameters.pop("oracle").get_params(deep=False)
        return {**parameters, **network, **vars(network.pop("training")), **vars(parameters.pop("partition"))}

    plain = settings(CRAFT(NeuralOracle(training=Training(seed=1, device="cpu")), partition=Partition()))
    for part, (_, what) in PARTS.items():
        found = settings(model_of(Ablation(part, "clips", 1, device="cpu")))
        differ = {name for name in plain if found[name] != plain[name] and not hasattr(plain[name], "__dict__")}
        assert differ == set(what)


def test_all_techniques_of_a_dataset_come_together_and_see_the_same_data():
    line = "pixels --walkers 0 1 --n 20 --techniques craft ac-state --rates 1e-3 --device cpu --seeds 1"
    study, args = parsed(line.split())
    runs = study.runs(args)
    assert [(run.walkers, run.technique, run.rates) for run in runs] == [
        (walkers, *of) for walkers in (0, 1) for of in (("craft", ()), ("ac-state", (1e-3,)))
    ]
    assert {run.n for run in runs} == {20}
    assert data_of(runs[0]) is data_of(runs[1])


def test_clips_come_from_anywhere_and_their_states_with_them():
    world = PixelsExBMDP(8, 2, 0, seed=0)
    whole = collect(world, world.policies(), 30, seed=0)
    clips, unequal = cut(whole, "clips", 0), cut(whole, "unequal", 0)
    assert clips.tau.H == 6
    assert set(clips.truth.states[:, 0]) > {0}  # they begin in more than the start
    for h in range(1, 7):
        assert np.array_equal(world.phi_star(clips.tau.at(h), 1), clips.truth.states[:, h - 1])
    assert {3, 8} <= set(unequal.tau.lengths)
    assert np.array_equal(unequal.tau.at(3), whole.tau.at(3))
    assert cut(whole, "whole", 0) is whole
    with pytest.raises(InvalidParameterError, match="Clips of 6 steps need longer trajectories; these have 6 steps"):
        cut(clips, "clips", 0)


# -- rivals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", objectives.CLASSES)
def test_every_rival_trains_and_encodes_to_the_number_of_states_given(name, data):
    rival = train_rival(name, data.tau, data.truth.actions, TRAINING, dim=16)
    for h, k in enumerate([1, 3, 4], start=1):
        encoder = rival.clustered(data.tau.at(h), k, standardise=h == 2)
        assert (encoder.scale == 1).all() == (h != 2)
        assert len(np.unique(encoder(data.tau.at(h)))) == k
        assert encoder(data.tau.at(h)[:0]).shape == (0,)
    assert rival.features(data.tau.at(2)).shape == (160, 16)
    assert np.isfinite([rival.loss, rival.chance]).all()


def test_the_rate_with_the_least_held_out_loss_counts_and_rates_that_fail_do_not(data, monkeypatch):
    def train(technique, tau, actions, training):
        if training.lr > 0.1:
            raise rivals.TrainingError("The loss must stay finite.")
        return rivals.Rival(None, None, abs(training.lr - 0.01), 1.0)

    monkeypatch.setattr(rivals, "train_rival", train)
    split = rivals.Data(data, data, data)
    best, lr, losses = rivals.best_rate("single", split, TRAINING, (0.001, 0.01, 0.5))
    assert (best.loss, lr, losses[0.5]) == (0, 0.01, np.inf)
    with pytest.raises(rivals.TrainingError, match="none of the rates"):
        rivals.best_rate("single", split, TRAINING, (0.5,))


@pytest.mark.parametrize("better", [False, True])
def test_of_raw_and_standardised_features_those_closer_to_the_truth_count(better, data, monkeypatch):
    class Knows:
        loss, chance, features = 0.5, 0.7, None

        def clustered(self, x, k, standardise):
            return lambda x: WORLD.phi_star(x, 2) if standardise == better else np.zeros(len(x), dtype=int)

    monkeypatch.setattr(rivals, "best_rate", lambda *given: (Knows(), 0.1, {0.1: 0.5}))
    fitted = rivals.fit_rival("single", rivals.Data(data, data, data), TRAINING, (0.1,))
    assert fitted.row["standardised"] is better
    assert np.array_equal(fitted.encode(data.tau.at(3), 3), data.truth.states[:, 2])


def test_an_autoencoder_and_latent_actions_are_right_where_nothing_else_moves():
    rng, world = np.random.default_rng(0), PixelsExBMDP(3, 2, 0, seed=0)
    states, steady = rng.integers(4, size=(400, 3)), np.zeros((400, 2), dtype=int)
    frames = np.stack([world.emit(states[:, h], steady, h + 1, rng) for h in range(3)], axis=1)
    tau, actions = recordings.TrajectoryDataset.from_arrays([frames[:200], frames[200:]]), np.zeros((400, 2), int)
    rival = train_rival("autoencoder", tau, actions, TRAINING.but(epochs=12), dim=16)
    assert accuracy(rival.clustered(frames[:, 1], 4, False)(frames[:, 1]), states[:, 1]) > 0.95
    lapo = train_rival("latent-action", tau, actions, TRAINING.but(epochs=30), dim=16)
    codes = lapo.latent_actions(frames, 4)
    assert codes.shape == (400, 2)
    for s in range(4):  # in every state a latent action names the successor
        mine = states[:, :-1] == s
        assert accuracy(codes[mine], states[:, 1:][mine]) > 0.75


def test_the_multi_step_inverse_learns_actions():
    objective = objectives.ACState(torch.nn.Identity(), Shapes(8, (8,), 3, 2, 4))
    action = torch.randint(4, (400, 2), generator=torch.Generator().manual_seed(0))
    x = torch.zeros(400, 3, 8)
    x[:, 1:] = torch.nn.functional.one_hot(action, 8).float()
    optimiser = torch.optim.Adam(objective.parameters(), lr=1e-2)
    for _ in range(100):
        optimiser.zero_grad()
        loss = objective.loss(x, torch.zeros(400, dtype=torch.long), action)
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < 0.6 * objective.chance(np.zeros(400), action.numpy())


def test_latent_actions_pass_gradients_through_the_codes():
    objective = objectives.LatentAction(torch.nn.Linear(8, 8), Shapes(8, (8,), 3, 2, 1))
    objective.loss(torch.rand(5, 3, 8), torch.zeros(5), torch.zeros(5, 2)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in objective.parameters())


@pytest.mark.parametrize("name", ["autoencoder", "forward"])
def test_frames_of_any_range_are_predicted_as_standardised_pixels(name, data):
    frames, actions = data.tau.rows(np.arange(160)), data.truth.actions
    plain, other = (
        train_rival(name, type(data.tau).from_arrays([x[:80], x[80:]]), actions, TRAINING.but(epochs=12), dim=16)
        for x in (frames, 40 * (frames / 255).astype(np.float32) - 7)
    )
    assert plain.chance == pytest.approx(other.chance, abs=1e-3)
    assert plain.loss == pytest.approx(other.loss, abs=0.02)
    assert plain.loss < plain.chance


def test_every_objective_knows_what_chance_is(data):
    agent, action, trunk = data.tau.agent, data.truth.actions, new_trunk(None, (8,), 8).eval()
    of = {name: kind(trunk, Shapes(8, (8,), 3, 2, 4)) for name, kind in objectives.CLASSES.items()}
    chance = {name: network.chance(agent, action) for name, network in of.items()}
    shares = np.bincount(action.ravel()) / action.size
    assert chance["single"] == chance["paired"] == pytest.approx(np.log(2))
    assert chance["autoencoder"] == chance["forward"] == chance["latent-action"] == 1.0
    assert chance["ac-state"] == pytest.approx(-(shares * np.log(shares)).sum())
    loss = of["contrastive"].loss(torch.zeros(6, 3, 8), torch.zeros(6), torch.zeros(6, 2))
    assert float(loss.detach()) == pytest.approx(chance["contrastive"], abs=1e-6)
