"""Videos from which nothing, or little, can be learned: one sentence says so, in Python and on the command line."""

import warnings

import numpy as np
import pytest

from craftrl import CRAFT, AssumptionWarning, InvalidDataError, NeuralOracle, Training, TrajectoryDataset
from craftrl.cli import main
from craftrl.diagnostics import findings

CELLS, H = 4, 6
ALIKE, DIFFERENT = (0.5, 0.5), (0.2, 0.8)


def videos(n, to_the_right=DIFFERENT, steps=H):
    """Of each agent n videos of a figure that walks on four cells as its agent likes."""
    rng = np.random.default_rng(0)
    agent, cell = np.repeat([0, 1], n), np.ones(2 * n, dtype=int)
    x = rng.integers(0, 8, size=(2 * n, steps, 12, 12, 3)).astype(np.uint8)
    for h in range(steps):
        for i, c in enumerate(cell):
            x[i, h, 3:6, 3 * c : 3 * c + 3] += np.array([220, 60, 60], np.uint8)
        cell = np.clip(cell + np.where(rng.random(2 * n) < np.array(to_the_right)[agent], 1, -1), 0, CELLS - 1)
    return x, agent


def fitted(x, agent):
    """A model, and what `fit` warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = CRAFT(NeuralOracle(training=Training(epochs=8, device="cpu"))).fit(x, agent)
    assert len(caught) <= 1
    return model, "".join(str(one.message) for one in caught)


PLAIN = np.full((80, H, 12, 12, 3), 77, np.uint8), np.repeat([0, 1], 40)
CASES = {
    "agents that act alike": (videos(60, ALIKE), "no better than chance"),
    "one video of each": (videos(1), "The agent with the fewest trajectories has 1"),
    "a handful of videos": (videos(5), "The agent with the fewest trajectories has 5"),
}


@pytest.mark.parametrize("case", CASES)
def test_fit_warns_once_and_no_state_is_claimed_in_silence(case):
    (x, agent), sentence = CASES[case]
    model, told = fitted(x, agent)
    assert sentence in told
    assert "more trajectories" in told or "Record more" in told
    assert "alpha" not in told  # bounds have no part in a partition
    found = model.diagnose(x, agent)
    assert found.verdict == "do not trust"
    assert sentence in str(found)


@pytest.mark.parametrize("case", CASES)
def test_the_command_line_says_the_same_and_goes_on(case, tmp_path, monkeypatch, capsys):
    (x, agent), sentence = CASES[case]
    monkeypatch.chdir(tmp_path)
    TrajectoryDataset.from_arrays([x[agent == 0], x[agent == 1]]).save("data")
    assert main(["fit", "data", "--epochs", "8", "--device", "cpu", "--out", "model"]) == 0
    out = capsys.readouterr().out
    assert "Verdict: do not trust." in out
    assert f"Warning: {sentence}" in out or f"Warning: The log-odds are {sentence}" in out


def test_frames_of_one_colour_are_refused(tmp_path, monkeypatch, capsys):
    x, agent = PLAIN
    with pytest.raises(InvalidDataError, match="Observations must differ"):
        fitted(x, agent)
    monkeypatch.chdir(tmp_path)
    TrajectoryDataset.from_arrays([x[agent == 0], x[agent == 1]]).save("data")
    assert main(["fit", "data", "--epochs", "2", "--device", "cpu", "--out", "model"]) == 2
    assert "Observations must differ" in capsys.readouterr().err


def test_an_embedding_that_holds_too_little_of_the_log_odds_is_told_of(monkeypatch):
    x, agent = videos(200)
    model, told = fitted(x, agent)
    assert "embedding" not in told
    assert model.n_states_total_ == CELLS
    monkeypatch.setattr(findings, "LEAST_TAUGHT", 1.0)
    told = fitted(x, agent)[1]
    assert "The embedding explains" in told
    assert "NeuralOracle(embedding=16)" in told


def test_agents_that_differ_are_learned_and_trusted():
    x, agent = videos(200)
    model, told = fitted(x, agent)
    assert told == ""
    found = model.diagnose(x, agent)
    assert found.verdict == "trust", str(found)
    assert "the state is as good as the whole observation" in found.why
    fused = model.states_at(2).diagnose(x, agent)
    assert fused.verdict == "do not trust"
    assert any(str(finding).startswith("State ") for finding in fused.warnings)
