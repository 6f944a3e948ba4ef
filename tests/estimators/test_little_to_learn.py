"""Videos from which nothing, or little, can be learned: one sentence says so, in Python and on the command line."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from craftrl import CRAFT, AssumptionWarning, InvalidDataError, NeuralOracle, Training, TrajectoryDataset
from craftrl.cli import main
from craftrl.diagnostics import findings
from small_worlds import to_the_right, walked

CELLS, H = 4, 6
ALIKE, DIFFERENT = (0.5, 0.5), (0.2, 0.8)


def videos(n, right=DIFFERENT):
    """Of each agent n videos of a figure that walks on four cells as its agent likes."""
    cell, _ = walked(n, to_the_right(*right, cells=CELLS), H, start=1)
    x = np.random.default_rng(0).integers(0, 8, size=(2 * n, H, 12, 12, 3)).astype(np.uint8)
    figure = np.repeat(cell[..., None] == np.arange(CELLS), 3, axis=-1)
    x[:, :, 3:6] += figure[:, :, None, :, None] * np.array([220, 60, 60], np.uint8)
    return TrajectoryDataset.from_arrays(np.split(x, 2))


def fitted(tau):
    """A model, and what `fit` warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        model = CRAFT(NeuralOracle(training=Training(epochs=8, device="cpu"))).fit(tau)
    assert len(caught) <= 1
    return model, "".join(str(one.message) for one in caught)


@pytest.mark.parametrize(
    ("tau", "sentence"),
    [
        (videos(60, ALIKE), "no better than chance"),
        (videos(1), "The agent with the fewest trajectories has 1"),
        (videos(5), "The agent with the fewest trajectories has 5"),
    ],
    ids=["agents that act alike", "one video of each", "a handful of videos"],
)
def test_fit_warns_once_no_state_is_claimed_in_silence_and_the_command_line_says_the_same(
    tau, sentence, tmp_path, monkeypatch, capsys
):
    model, told = fitted(tau)
    assert sentence in told
    assert "ore trajectories" in told or "Record more" in told
    assert "alpha" not in told  # bounds have no part in a partition
    found = model.diagnose(tau)
    assert found.verdict == "do not trust"
    assert sentence in str(found)
    monkeypatch.chdir(tmp_path)
    tau.save("data")
    assert main(["fit", "data", "--epochs", "2", "--device", "cpu", "--out", "model"]) == 0
    out = capsys.readouterr().out
    assert "Verdict: do not trust." in out
    assert sentence in out
    assert "nan" not in out


def test_frames_of_one_colour_are_refused(tmp_path, monkeypatch, capsys):
    plain = np.full((40, H, 12, 12, 3), 77, np.uint8)
    monkeypatch.chdir(tmp_path)
    TrajectoryDataset.from_arrays([plain, plain]).save("data")
    monkeypatch.setattr("craftrl.oracles.network.oracle.fit_pairs", None)  # nothing is trained before it is said
    with pytest.raises(InvalidDataError, match="Observations must differ"):
        fitted(TrajectoryDataset.open("data"))
    assert main(["fit", "data", "--epochs", "1", "--device", "cpu", "--out", "model"]) == 2
    assert "Observations must differ" in capsys.readouterr().err


def test_agents_that_differ_are_learned_and_trusted_unless_the_embedding_holds_little(monkeypatch):
    tau = videos(200)
    monkeypatch.setattr(findings, "MIN_EMBEDDING_R2", 1.0)  # what the embedding holds is never enough
    model, told = fitted(tau)
    (finding,) = (one for one in model.trace_.findings if one.severity == "warning")
    assert told == str(finding)
    assert "the embedding explains" in told
    assert "NeuralOracle(embedding=16)" in told
    assert model.diagnose(tau).verdict == "check"
    model.trace_ = replace(model.trace_, findings=())
    assert model.n_states_total_ == CELLS
    found = model.diagnose(tau)
    assert found.verdict == "trust", str(found)
    assert "the state is as good as the whole observation" in found.why
    fused = model.states_at(2).diagnose(tau)
    assert fused.verdict == "do not trust"
    assert any(str(finding).startswith("State ") for finding in fused.warnings)
