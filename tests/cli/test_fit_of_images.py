"""`craftrl fit` of images by a network: what it says, and how it goes on after an interruption."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

import craftrl
from craftrl.cli import main


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("frames") / "x.h5"
    world = ["--world", "pixels", "--size", "2", "--walkers", "0", "--horizon", "3"]
    assert main(["collect", *world, "--n", "200", "--out", str(path)]) == 0
    return path


def fit_of_frames(frames: Path, out: Path) -> list[str]:
    bounds = ["--alpha", "1", "--eta", "0.1", "--nu", "0.05"]
    return ["fit", str(frames), *bounds, "--epochs", "1", "--device", "cpu", "--seed", "3", "--out", str(out)]


@dataclass(frozen=True)
class Fit:
    """A fit that nothing interrupted: its folder, what it said, and how many minibatches it took."""

    model: Path
    said: str
    minibatches: int


@contextmanager
def counted_minibatches() -> Iterator[list[int]]:
    """One entry for each minibatch that networks are trained on in here."""
    from craftrl.oracles.network import training

    counted: list[int] = []
    parts = training._Passes._parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training._Passes, "_parts", lambda *given: counted.append(1) or parts(*given))
        yield counted


@pytest.fixture(scope="module")
def whole(frames: Path, tmp_path_factory: pytest.TempPathFactory) -> Fit:
    model = tmp_path_factory.mktemp("whole") / "model"
    with counted_minibatches() as minibatches, redirect_stdout(io.StringIO()) as said:
        assert main(fit_of_frames(frames, model)) == 0
    return Fit(model, said.getvalue(), len(minibatches))


def test_fit_learns_from_images_that_collect_wrote(frames: Path, whole: Fit) -> None:
    learner = "Learner: a network, since observations are images of shape (12, 12, 3), on the CPU; one encoder"
    assert learner in whole.said
    assert "One encoder for all steps tells" in whole.said
    assert re.search(r"\nVerdict: (trust|check|do not trust)\. CRAFT found", whole.said)  # networks are checked too
    assert main(["evaluate", str(whole.model), str(frames)]) == 0
    assert craftrl.load(whole.model).oracle.training.seed == 3


def test_an_interrupted_fit_goes_on_and_ends_with_the_same_model(
    frames: Path, whole: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from craftrl.oracles.network import oracle

    share = oracle.PreparedNetwork.share
    with monkeypatch.context() as patch:
        patch.setattr(oracle.PreparedNetwork, "share", _interrupted)
        assert main(fit_of_frames(frames, tmp_path / "model")) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
    assert oracle.PreparedNetwork.share is share
    with counted_minibatches() as minibatches:
        assert main(fit_of_frames(frames, tmp_path / "model")) == 0
    assert 0 < len(minibatches) < whole.minibatches  # the log-odds were not learned again
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # nothing is left beside the model
    assert (craftrl.load(whole.model).labels_ == craftrl.load(tmp_path / "model").labels_).all()


def _interrupted(*given: object) -> None:
    raise KeyboardInterrupt
