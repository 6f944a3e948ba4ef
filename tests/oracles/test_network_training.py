"""The training loop: early stopping, checkpoints, and what it says when something goes wrong."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from craftrl.errors import InvalidDataError, InvalidParameterError  # noqa: E402
from craftrl.oracles.network import Training, TrainingError  # noqa: E402
from craftrl.oracles.network.settings import seeded  # noqa: E402
from craftrl.oracles.network.training import train  # noqa: E402

TRAINING = Training(epochs=6, patience=6, batch=16, lr=1e-2, device="cpu")
X = torch.linspace(-1, 1, 200)[:, None]


def line(training):
    with seeded(training, "line"):
        return torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def fit(training, module=None, stop_after=None, chance=None):
    module = module or line(training)
    calls = []

    def loss(rows):
        calls.append(len(rows))
        if stop_after is not None and len(calls) > stop_after:
            raise KeyboardInterrupt
        return torch.nn.functional.mse_loss(module(X[rows]), X[rows].sin())

    best = train(module, loss, training.split(200, "rows"), training, "line", chance=chance)
    return module, best


def test_it_learns_and_leaves_the_best_weights():
    module, best = fit(TRAINING)
    held = TRAINING.split(200, "rows")[1]
    assert best < 0.05
    with torch.no_grad():
        assert float(torch.nn.functional.mse_loss(module(X[held]), X[held].sin())) == pytest.approx(best, rel=1e-4)


def test_a_killed_run_continues_and_ends_with_the_same_weights(tmp_path):
    training = TRAINING.but(checkpoints=tmp_path)
    whole, _ = fit(TRAINING)
    with pytest.raises(KeyboardInterrupt):
        fit(training, stop_after=40)
    assert [p.name for p in tmp_path.iterdir()] == ["line.pt"]
    resumed, _ = fit(training)
    for a, b in zip(whole.parameters(), resumed.parameters()):
        assert torch.equal(a, b)


def test_a_finished_run_is_read_from_its_checkpoint(tmp_path):
    training = TRAINING.but(checkpoints=tmp_path)
    _, best = fit(training)
    _, again = fit(training, stop_after=0)  # any training step would raise
    assert again == best


def test_a_damaged_checkpoint_and_one_of_other_settings_are_named(tmp_path):
    fit(TRAINING.but(checkpoints=tmp_path))
    with pytest.raises(InvalidDataError, match="belongs to other settings"):
        fit(TRAINING.but(checkpoints=tmp_path, lr=0.5))
    whole = (tmp_path / "line.pt").read_bytes()
    (tmp_path / "line.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidDataError, match=r"cannot be read.*delete that one file"):
        fit(TRAINING.but(checkpoints=tmp_path))


def test_a_loss_that_is_no_number_says_what_to_lower():
    with pytest.raises(TrainingError, match="no longer finite after epoch 1; lower lr"):
        train(
            line(TRAINING), lambda rows: (X[rows] * torch.nan).mean().requires_grad_(), TRAINING.split(200, "r"),
            TRAINING, "nan",
        )  # fmt: skip


def test_no_memory_says_what_to_lower():
    def loss(rows):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TrainingError, match=r"ran out of memory; lower Training\(batch=...\)"):
        train(line(TRAINING), loss, TRAINING.split(200, "r"), TRAINING, "memory")


@pytest.mark.parametrize(("plateau", "found"), [(10, 0.1), (3, 0.7)])
def test_patience_and_rate_are_not_lost_on_the_plateau_at_chance(plateau, found):
    """A loss that stays at chance for seven epochs, then falls, is given up on only where a plateau may not last."""
    module = torch.nn.Linear(1, 1)
    training = TRAINING.but(epochs=4, patience=2, batch=180, plateau=plateau)
    epochs = []

    def loss(rows):
        if module.training:
            epochs.append(len(rows))
        return module(X[rows]).sum() * 0 + (0.7 if len(epochs) < 8 else 0.1)

    assert train(module, loss, training.split(200, "r"), training, "x", chance=0.693) == pytest.approx(found)


def test_the_bar_shows_the_held_out_loss_beside_chance(capsys):
    fit(TRAINING.but(progress=True, epochs=2), chance=0.6931)
    assert "held-out" in (shown := capsys.readouterr().err)
    assert "chance 0.6931" in shown


@pytest.mark.parametrize(
    "given",
    [
        {"lr": 0}, {"lr": "fast"}, {"epochs": 1.5}, {"epochs": "a"}, {"seed": -1}, {"seed": "x"}, {"batch": 1},
        {"threads": 0}, {"held_out": 1.0}, {"device": 3}, {"checkpoints": 3}, {"weight_decay": -1}, {"patience": True},
    ],
    ids=str,
)  # fmt: skip
def test_settings_without_sense_are_refused(given):
    (name,) = given
    with pytest.raises(InvalidParameterError, match=f"{name} must be .* was given"):
        Training(**given)


def test_devices_that_are_not_there_are_refused():
    with pytest.raises(InvalidParameterError, match="'tpu' was given, which torch does not know here"):
        Training(device="tpu").to_device()
    if not torch.cuda.is_available():
        with pytest.raises(InvalidParameterError, match="none is available; use device='cpu'"):
            Training(device="cuda").to_device()


def test_splits_hold_out_the_share_asked_for():
    rows, held = Training(held_out=0.25).split(100, "x")
    assert len(held) == 25
    assert sorted(np.concatenate([rows, held])) == list(range(100))


def test_heads_whose_weights_are_no_numbers_are_trained_without_mixed_precision_or_refused(monkeypatch):
    from craftrl.oracles.network import heads
    from craftrl.oracles.network.trunks import Standardise

    logits, tried = heads._logits, []

    def broken_by_mixed_precision(weights, x):
        tried.append(torch.is_autocast_enabled("cpu"))
        return logits(weights, x) * (float("nan") if tried[-1] else 1.0)

    monkeypatch.setattr(heads, "_logits", broken_by_mixed_precision)
    monkeypatch.setattr(
        Training, "precision", lambda self, device: torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.amp)
    )
    z, label = torch.randn(200, 8), np.arange(200) % 2
    z[:, 0] = torch.from_numpy(8.0 * label)
    training = Training(device="cpu", epochs=30, lr=0.03)
    head, _ = heads.Heads(training, Standardise((8,))).fit(z, label, 2, "odd")
    assert tried[0]
    assert not tried[-1]
    assert (heads.head_logits(head, z).argmax(1) == label).all()
    with pytest.raises(TrainingError, match="weights of 'odd' are no longer finite; lower lr"):
        heads.Heads(training, Standardise((8,))).fit(z * float("nan"), label, 2, "odd")
