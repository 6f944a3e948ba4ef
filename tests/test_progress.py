"""What a fit says while it runs: one bar over all phases where somebody watches, nothing where nobody asked."""

import re
import sys
from itertools import groupby

import pytest
from feature_world import feature_data
from tqdm import tqdm

from craftrl import CRAFT, NeuralOracle, Training, progress
from craftrl.progress import AGENTS, COMPILED, COMPILING, STATES, doing, fit_bar, tell, watched


def bars(capsys):
    """What stands before each percentage, and the percentages, of all states of a bar."""
    lines = capsys.readouterr().err.replace("\r", "\n").split("\n")
    form = r"(.*): +(\d+)%\|.*\| [\d:]+ so far, about [\d:?]+ left"
    return [(match[1], int(match[2])) for line in lines if (match := re.fullmatch(form, line.strip()))]


def watch_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "progress_bar", lambda **given: tqdm(mininterval=0, **given))


def test_one_bar_over_all_phases_of_a_network_that_never_goes_back(capsys, monkeypatch):
    watch_on_a_terminal(monkeypatch)
    with fit_bar(5):
        tell("run")
        tell("log-odds")
        for network in (0, 1):
            for minibatch in range(4):
                tell("log-odds", trained=(network + minibatch / 4) / 2)
        for _ in range(12):
            tell("states")
        for h in (4, 1):
            tell("reading", h)
    said = bars(capsys)
    assert [name for name, _ in groupby(name for name, _ in said)] == [STATES, AGENTS, STATES]
    assert [share for _, share in said] == sorted(share for _, share in said)
    assert dict(said)[AGENTS] == 44  # seven eighths of its half
    assert 80 < dict(said)[STATES] < 100


def test_a_finite_class_has_one_phase_and_compiles_once(capsys, monkeypatch):
    watch_on_a_terminal(monkeypatch)
    with fit_bar(5):
        for _ in range(3):
            for what in ("run", COMPILING, COMPILED):
                tell(what)
            for h in range(1, 5):
                tell("separation", h)
    said = bars(capsys)
    assert {name for name, _ in said} == {STATES, COMPILING}
    assert 20 < said[-1][1] < 60


@pytest.mark.parametrize(
    ("wanted", "terminal", "there"),
    [(True, False, True), (False, True, False), (None, False, False), (None, True, True)],
)
def test_a_bar_is_shown_if_it_is_wanted_and_nobody_watches(wanted, terminal, there, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with fit_bar(3, wanted):
        assert watched() == there
    with fit_bar(3):
        watcher = progress._watcher.get()
        with fit_bar(3):
            assert progress._watcher.get() is watcher


@pytest.mark.parametrize("terminal", [True, False])
def test_what_takes_its_time_is_said_on_a_terminal_and_wiped_away(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with doing("checking the states"):
        pass
    said = capsys.readouterr().err
    assert ("checking the states ..." in said) == terminal
    assert said.split("\r")[-1].strip() == ""


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_a_network_says_what_it_trains_where_it_is_asked_to(capsys):
    heard, tau = [], feature_data(60, horizon=3).tau
    model = CRAFT(NeuralOracle(dim=8, networks=1, training=Training(epochs=2, device="cpu")))
    with progress.watched_by(lambda what, h, trained: heard.append((what, trained))):
        model.fit(tau)
    said = [what for what, _ in heard]
    assert said.index("log-odds") < said.index("log-odds-1-of-1") < said.index("states")
    trained = [share for _, share in heard if share is not None]
    assert trained == [t / (len(trained) - 1) for t in range(len(trained))]
    assert len(trained) > 2
    assert capsys.readouterr().err == ""
