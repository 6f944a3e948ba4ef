"""The studies of videos on a tiny world: pixels, games, ablations; and the rivals that they compare CRAFT with."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl import CRAFT, NeuralOracle, Partition, Training  # noqa: E402
from craftrl.cli import main  # noqa: E402
from craftrl.envs import PixelsExBMDP, collect, record  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError  # noqa: E402
from craftrl.evaluation import accuracy  # noqa: E402
from craftrl.testing import check_learner  # noqa: E402
from studies import objectives, rivals  # noqa: E402
from studies.ablations.run import model_of  # noqa: E402
from studies.ablations.spec import PARTS  # noqa: E402
from studies.ablations.spec import Run as Ablation  # noqa: E402
from studies.games import data as recordings  # noqa: E402
from studies.objectives import Shapes  # noqa: E402
from studies.pixels import spec as pixels  # noqa: E402
from studies.pixels.run import data_of  # noqa: E402
from studies.rivals import cut  # noqa: E402
from studies.techniques import NAMES  # noqa: E402
from studies.trained import TrainedBaseline  # noqa: E402

TRAINING = Training(epochs=2, batch=32, lr=3e-3, device="cpu")
WORLD = PixelsExBMDP(3, 2, 1, seed=0)


@pytest.fixture(scope="module")
def data():
    return collect(WORLD, WORLD.policies(), 80, seed=0)


def still(n):
    """Frames and states where nothing but the agent moves and the light is steady."""
    rng, world = np.random.default_rng(0), PixelsExBMDP(3, 2, 0, seed=0)
    states, noise = rng.integers(4, size=(n, 3)), np.zeros((n, 2), dtype=int)
    return np.stack([world.emit(states[:, h], noise, h + 1, rng) for h in range(3)], axis=1), states


def rows_in(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


# -- studies -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_of_pixels(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(pixels.PRESETS, "tiny", pixels.Preset(size=2, horizon=3, walkers=(1,), n=(60,)))
    monkeypatch.setattr("studies.rivals.training_of", lambda *run: Training(epochs=2, device="cpu"))
    argv = ["reproduce", "pixels", "--preset", "tiny", "--device", "cpu", "--quiet", "--out", str(tmp_path)]
    argv += ["--techniques", "craft", "paired", "--rates", "0.001", "0.003"]
    assert main(argv) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pixels.png", "report.md", "rows.jsonl"]
    craft, paired = rows_in(tmp_path)
    for row in (craft, paired):
        assert 0 <= row["accuracy"] <= 1
        assert 0.25 < row["probe"] <= 1
        assert row["n_states_true"] == [1, 3, 4]
        assert row["chance"] == pytest.approx(np.log(2))
    assert craft["seconds_by_phase"].keys() >= {"log-odds", "embedding", "states", "encoding"}
    assert paired["loss"] == min(paired["loss_by_lr"].values()) == paired["loss_by_lr"][f"{paired['lr']:g}"]
    printed = capsys.readouterr().out
    assert f"{craft['found']} of 4 states" in printed
    assert NAMES["paired"] in printed


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
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
    argv = ["reproduce", "games", "--worlds", "freeway", "--n", "60", "--data", str(tmp_path), "--quiet"]
    assert main([*argv, "--techniques", "single", "--rates", "0.001", "--out", str(tmp_path / "out")]) == 0
    (row,) = rows_in(tmp_path / "out")
    assert row["lr"] == 0.001
    assert row["table_loss"] < np.log(2) + 0.1
    assert f"| {NAMES['single']} | " in capsys.readouterr().out


def test_recordings_must_be_on_a_disk_and_rivals_do_not_learn_from_cuts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "games", "--data", "s3://bucket/name", "--out", "new"]) == 2
    said = capsys.readouterr().err
    assert "The folder of recordings must be on a disk of this machine; 's3://bucket/name' was given" in said
    for study in ("pixels", "games"):
        assert main(["reproduce", study, "--cut", "clips", "--out", "new"]) == 2
        assert "--cut clips is for craft alone; ac-state," in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_of_ablations(tmp_path, monkeypatch, capsys):
    tiny = [Ablation("default", "clips", 0, 40, 2, 8, 1, "cpu")]
    monkeypatch.setattr("studies.ablations.spec.sweep", lambda *given: tiny)
    monkeypatch.setattr("studies.ablations.run.Training", lambda **given: Training(epochs=2, **given))
    assert main(["reproduce", "ablations", "--quiet", "--out", str(tmp_path)]) == 0
    assert rows_in(tmp_path)[0]["true"] == 4
    report = capsys.readouterr().out
    assert "| as it comes | " in report
    assert "whole" not in report


def test_every_part_of_the_ablations_is_one_setting():
    def settings(model):
        parameters = model.get_params(deep=False)
        network = parameters.pop("oracle").get_params(deep=False)
        return {**parameters, **network, **vars(network.pop("training")), **vars(parameters.pop("partition"))}

    plain = settings(CRAFT(NeuralOracle(training=Training(seed=1, device="cpu")), partition=Partition()))
    for part, (_, _, what) in PARTS.items():
        found = settings(model_of(Ablation(part, "clips", 1, device="cpu")))
        differ = {name for name in plain if found[name] != plain[name] and not hasattr(plain[name], "__dict__")}
        assert differ == set(what)


def test_all_techniques_of_a_dataset_come_together_and_see_the_same_data():
    tiny = pixels.Preset(size=2, horizon=3, walkers=(1,), n=(20,))
    runs = pixels.sweep(tiny, ["craft", "ac-state"], walkers=[0, 1], rates=[1e-3], device="cpu")
    assert [(run.walkers, run.technique, run.rates) for run in runs] == [
        (walkers, *of) for walkers in (0, 1) for of in (("craft", ()), ("ac-state", (1e-3,)))
    ]
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
def test_every_rival_fits_and_encodes_to_the_number_of_states_given(name, data):
    model = TrainedBaseline(name, [1, 3, 4], dim=16, training=TRAINING)
    with pytest.raises(NotFittedError, match="must be fitted"):
        model.encode(data.tau.at(1), 1)
    with pytest.raises(NotFittedError, match="must be trained"):
        model.cluster(data.tau)
    model.fit(data.tau, actions=data.truth.actions)
    for h, k in enumerate([1, 3, 4], start=1):
        assert len(np.unique(model.encode(data.tau.at(h), h))) == k
    assert model.features(data.tau.at(2)).shape == (160, 16)


def test_a_rival_keeps_the_contract_of_learners_and_refuses_what_it_cannot_learn_from(data):
    x = np.stack([data.tau.at(h) for h in (1, 2, 3)], axis=1)
    check_learner(TrainedBaseline("autoencoder", [1, 2, 3], dim=8, training=TRAINING), x, data.tau.agent)
    with pytest.raises(InvalidParameterError, match=r"ac-state learns from actions; give fit\(x, agent, actions=...\)"):
        TrainedBaseline("ac-state", [1, 3, 4]).fit(data.tau)
    uneven = type(data.tau).from_episodes([[x[0, :2], x[0]], [x[1, :2]]])
    with pytest.raises(InvalidDataError, match="equal length"):
        TrainedBaseline("single", [1, 3, 4]).fit(uneven)


def test_the_rate_with_the_least_held_out_loss_counts_and_rates_that_fail_do_not(data, monkeypatch):
    def train(self, tau, actions):
        if self.training.lr > 0.1:
            raise rivals.TrainingError("The loss must stay finite.")
        self.held_out_loss_ = abs(self.training.lr - 0.01)
        return self

    monkeypatch.setattr(TrainedBaseline, "train", train)
    split = rivals.Data(data, data, data)
    best, lr, losses = rivals.best_rate("single", split, TRAINING, (0.001, 0.01, 0.5))
    assert (best.training.lr, lr, losses[0.5]) == (0.01, 0.01, np.inf)
    with pytest.raises(rivals.TrainingError, match="none of the rates"):
        rivals.best_rate("single", split, TRAINING, (0.5,))


def test_an_autoencoder_and_latent_actions_are_right_where_nothing_else_moves():
    frames, states = still(400)
    model = TrainedBaseline("autoencoder", [4, 4, 4], dim=16, training=TRAINING.but(epochs=12))
    model.fit([frames[:150], frames[150:300]])
    assert accuracy(model.encode(frames[:300, 1], 2), states[:300, 1]) > 0.95
    lapo = TrainedBaseline("latent-action", [4, 4, 4], dim=16, training=TRAINING.but(epochs=30))
    with pytest.raises(NotFittedError, match="Latent actions need the inverse model"):
        lapo.latents(frames)
    codes = lapo.fit([frames[:200], frames[200:]]).latent_actions(frames, 4)
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


@pytest.mark.parametrize("rival", ["autoencoder", "forward"])
def test_frames_of_any_range_are_predicted_as_standardised_pixels(rival, data):
    frames, agent = np.stack([data.tau.at(h) for h in (1, 2, 3)], axis=1), data.tau.agent
    plain, other = (
        TrainedBaseline(rival, [1, 3, 4], dim=16, training=TRAINING.but(epochs=12)).train(
            type(data.tau).from_arrays([x[agent == 0], x[agent == 1]])
        )
        for x in (frames, 40 * (frames / 255).astype(np.float32) - 7)
    )
    assert plain.chance_ == pytest.approx(other.chance_, abs=1e-3)
    assert plain.held_out_loss_ == pytest.approx(other.held_out_loss_, abs=0.02)
    assert plain.held_out_loss_ < plain.chance_


def test_every_objective_knows_what_chance_is(data):
    agent, action, shapes = data.tau.agent, data.truth.actions, Shapes(8, (8,), 3, 2, 4)
    of = {kind: kind(torch.nn.Linear(8, 8), shapes) for kind in (
        objectives.SingleFrame, objectives.ACState, objectives.TemporalContrastive, objectives.Autoencoder
    )}  # fmt: skip
    frame, inverse, contrastive, reconstruction = (network.chance(agent, action) for network in of.values())
    shares = np.bincount(action.ravel()) / action.size
    assert (frame, reconstruction) == (pytest.approx(np.log(2)), 1.0)
    assert inverse == pytest.approx(-(shares * np.log(shares)).sum())
    loss = of[objectives.TemporalContrastive].loss(torch.zeros(6, 3, 8), torch.zeros(6), torch.zeros(6, 2))
    assert float(loss.detach()) == pytest.approx(contrastive, abs=1e-6)
