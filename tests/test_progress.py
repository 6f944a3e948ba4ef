"""What a fit says while it runs: at once what may last, little in a log, nothing where nobody asked."""

import re
import sys
from itertools import groupby
from pathlib import Path

import pytest
from tqdm import tqdm

from craftrl import progress
from craftrl.progress import COMPILED, COMPILING, shown, shown_where, tell, watched

sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))


def lines(capsys):
    return [line.strip() for line in capsys.readouterr().err.replace("\r", "\n").split("\n") if line.strip()]


def watch_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "progress_bar", lambda **given: tqdm(mininterval=0, **given))


def told(capsys):
    """What stands before each percentage, and the percentages, of all states of a bar."""
    found = [re.fullmatch(r"(.*): +(\d+)%\|.*\| [\d:]+ so far, about [\d:?]+ left", line) for line in lines(capsys)]
    return [(match[1], int(match[2])) for match in found if match is not None]


def test_one_bar_over_all_phases_of_a_network_that_never_goes_back(capsys, monkeypatch):
    watch_on_a_terminal(monkeypatch)
    with shown(5):
        tell("run")
        tell("log-odds")
        for network in (1, 2):
            tell(f"training log-odds-{network}-of-2")
            for epoch in (1, 2, 3):
                tell(f"log-odds-{network}-of-2, minibatch {epoch} of at most 4, held-out 0.5")
        for _ in range(12):
            tell("run")
            for h in range(1, 5):
                tell("separation", h)
        for _ in range(6):
            tell("run")
            tell("reading", 3)
    said = told(capsys)
    names = ["finding states", "telling the agents apart", "finding states"]
    assert [name for name, _ in groupby(name for name, _ in said)] == names
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert dict(said)[names[1]] == 44  # seven eighths of its half
    assert 90 < dict(said)[names[2]] < 100


def test_a_finite_class_has_one_phase(capsys, monkeypatch):
    watch_on_a_terminal(monkeypatch)
    with shown(5):
        for _ in range(3):
            tell("run")
            tell(COMPILING)
            tell(COMPILED)
            for h in range(1, 5):
                tell("separation", h)
    said = told(capsys)
    assert {name for name, _ in said} == {"finding states", COMPILING}
    assert 20 < said[-1][1] < 60


def test_a_log_hears_of_each_phase_once(capsys):
    with shown(5):
        for network in range(1, 5):
            for epoch in range(1, 5):
                tell(f"log-odds-{network}-of-4, minibatch {epoch} of at most 4")
        for h in range(1, 5):
            tell("separation", h)
    assert [name for name, _ in told(capsys)] in ([], ["telling the agents apart", "finding states"])


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
    oracle = NeuralOracle(dim=8, networks=1, training=Training(epochs=2, device="cpu"))
    model = CRAFT(oracle, alpha=1.0, eta=0.02, nu=0.01)
    with progress.watched_by(lambda what, h: heard.append(what)):
        model.fit(tau)
    assert heard.index("log-odds") < heard.index("training log-odds-1-of-1") < heard.index("encoding")
    assert any(what.startswith("log-odds-1-of-1, minibatch ") for what in heard)
    assert lines(capsys) == []
    model.set_params(oracle__training=Training(epochs=2, device="cpu", progress=True)).fit(tau)
    assert {line.partition(":")[0] for line in lines(capsys)} <= {
        "telling the agents apart",
        "finding states",
        "learning encoders",
    }
