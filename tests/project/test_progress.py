"""What a fit says while it runs: at once what may last, little in a log, nothing where nobody asked."""

import sys
from pathlib import Path

import pytest

from craftrl import progress
from craftrl.progress import COMPILED, COMPILING, shown, shown_where, tell, watched

sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))


def lines(capsys):
    return [line.strip() for line in capsys.readouterr().err.replace("\r", "\n").split("\n") if line.strip()]


def test_a_log_hears_at_once_of_what_may_last_and_of_the_rest_twice_a_minute(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with shown(30):
        tell("run")
        for what in ("log-odds", COMPILING, COMPILED, COMPILING, COMPILED):
            tell(what)
        (first,) = lines(capsys)
        assert first.startswith(f"run 1, {COMPILING}")
        tell("training log-odds-1-of-1")
        for epoch in range(100):
            now[0] += 1
            tell(f"epoch {epoch}")
        told = lines(capsys)
    assert [line.split(":")[0] for line in told] == [
        "run 1, training log-odds-1-of-1", "run 1, epoch 29", "run 1, epoch 59", "run 1, epoch 89",
    ]  # fmt: skip


def test_a_bar_is_shown_if_it_is_wanted_and_nobody_watches(monkeypatch):
    for wanted, terminal, there in (
        (True, False, True),
        (False, True, False),
        (None, False, False),
        (None, True, True),
    ):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with shown_where(wanted, 3):
            assert watched() == there
    with shown(3):
        watcher = progress._watcher.get()
        with shown_where(True, 3):
            assert progress._watcher.get() is watcher


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_a_network_says_what_it_trains_where_it_is_asked_to(capsys):
    pytest.importorskip("torch")
    from feature_world import feature_data

    from craftrl import CRAFT, NeuralOracle, Training

    heard, tau = [], feature_data(60, horizon=3).tau
    oracle = NeuralOracle(dim=8, networks=1, training=Training(epochs=2, device="cpu"), heads=Training(epochs=1))
    model = CRAFT(oracle, alpha=1.0, eta=0.02, nu=0.01)
    with progress.watched_by(lambda what, h: heard.append(what)):
        model.fit(tau)
    assert heard.index("log-odds") < heard.index("training log-odds-1-of-1") < heard.index("encoding")
    assert any(what.startswith("log-odds-1-of-1, epoch 2 of at most") for what in heard)
    assert lines(capsys) == []
    model.set_params(oracle__training=Training(epochs=2, device="cpu", progress=True)).fit(tau)
    assert any(line.startswith("run 1, training log-odds-1-of-1") for line in lines(capsys))
