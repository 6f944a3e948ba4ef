"""Several ranks train one network: the same minibatches, curves, weights and checkpoints as one process."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rank_runs  # noqa: E402
from rank_runs import SMALL, TRAINING  # noqa: E402

import craftrl  # noqa: E402
from craftrl import TrajectoryDataset  # noqa: E402
from craftrl.data.ranks import ALONE, RankError, Ranks  # noqa: E402
from craftrl.errors import InvalidParameterError  # noqa: E402
from craftrl.oracles.network.minibatches import Feed  # noqa: E402
from torchrun import surroundings, torchrun  # noqa: E402

CPU = torch.device("cpu")
ROUNDING = {"rtol": 1e-4, "atol": 1e-6}


class Rank(Ranks):
    """One of several, as far as nothing is exchanged."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world


@pytest.fixture(scope="module")
def tau():
    return rank_runs.images()


@pytest.fixture(scope="module")
def folder(tau, tmp_path_factory):
    """What two ranks have done, beside a checkpoint that one process has left for them."""
    folder = tmp_path_factory.mktemp("ranks")
    tau.save(folder / "shards")
    rank_runs.pairs(tau, TRAINING.but(checkpoints=folder / "by-one"), stop_after=2)
    done = torchrun(rank_runs.__file__, folder)
    assert done.returncode == 0, done.stderr
    (folder / "stdout.txt").write_text(done.stdout)
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


@pytest.fixture(scope="module")
def both(folder):
    return [torch.load(folder / f"rank{rank}.pt", weights_only=False) for rank in (0, 1)]


@pytest.fixture(scope="module")
def one(tau):
    return rank_runs.pairs(tau)


# -- two ranks and one process ---------------------------------------------------------------------------------


def test_curve_weights_logits_and_features_are_those_of_one_process(both, one):
    """Trajectories have different lengths, and minibatches an odd number of them."""
    for name in ("curve", "weights", "logits", "features"):
        np.testing.assert_allclose(both[0]["held"][name], one[name], **ROUNDING)
        assert np.array_equal(both[0]["held"][name], both[1]["held"][name])
    assert one["curve"][-1] < one["curve"][0] - 0.1  # there was something to learn


def test_from_disk_too_and_each_rank_reads_its_own_share(both, folder):
    one = rank_runs.pairs(TrajectoryDataset.open(folder / "shards"), SMALL)
    first, second = (found["streamed"] for found in both)
    for name in ("curve", "weights", "features"):
        np.testing.assert_allclose(first[name], one[name], **ROUNDING)
        assert np.array_equal(first[name], second[name])
    assert np.array_equal(np.sort(np.concatenate([first["read"], second["read"]])), np.sort(one["read"]))
    assert abs(len(first["read"]) - len(second["read"])) < 0.05 * len(one["read"])


def test_the_shared_encoder_and_baselines_have_the_same_losses(both, tau):
    found = {
        "shared": rank_runs.shared(tau),
        "mean": rank_runs.baseline(tau, "PairedFrames"),
        "contrast": rank_runs.baseline(tau, "TemporalContrastive"),
    }
    for name, one in found.items():
        assert both[0][name]["loss"] == pytest.approx(one["loss"], rel=1e-4)
        assert both[0][name]["loss"] == both[1][name]["loss"]


def test_a_whole_fit_finds_the_same_states_and_the_first_rank_saves_it(both, folder, tau):
    model, one = rank_runs.craft(tau)
    assert np.array_equal(both[0]["craft"]["labels"], both[1]["craft"]["labels"])
    assert np.array_equal(both[0]["craft"]["labels"], one["labels"])
    loaded = craftrl.load(folder / "model", oracle=model.oracle)
    assert np.array_equal(loaded.labels_, both[0]["craft"]["labels"])


# -- checkpoints -------------------------------------------------------------------------------------------------


def test_two_ranks_go_on_where_two_ranks_stopped_to_the_same_bits(both):
    whole, stopped, resumed = (both[0][name] for name in ("held", "stopped", "resumed"))
    assert np.array_equal(np.concatenate([stopped["curve"], resumed["curve"]]), whole["curve"])
    assert np.array_equal(resumed["weights"], whole["weights"])


def test_two_ranks_go_on_where_one_process_stopped(both, one):
    assert len(both[0]["from one"]["curve"]) == 2
    np.testing.assert_allclose(both[0]["from one"]["curve"], one["curve"][-2:], **ROUNDING)
    np.testing.assert_allclose(both[1]["from one"]["weights"], one["weights"], **ROUNDING)


def test_one_process_goes_on_where_two_ranks_stopped(folder, tau, one):
    found = rank_runs.pairs(tau, TRAINING.but(checkpoints=folder / "by-two-for-one"))
    np.testing.assert_allclose(found["curve"], one["curve"][-2:], **ROUNDING)
    np.testing.assert_allclose(found["weights"], one["weights"], **ROUNDING)


# -- ranks that are not of one mind ------------------------------------------------------------------------------


def test_ranks_that_differ_say_so_on_each_of_them(folder):
    for rank in (0, 1):
        data, settings, norm = (folder / f"rank{rank}.txt").read_text().splitlines()
        assert data.startswith("All ranks must have the same data; rank 1 differs from rank 0; ")
        assert settings.startswith("All ranks must have the same settings of training; rank 1 differs")
        assert "has batch normalisation; use nn.GroupNorm" in norm


def test_within_alone_each_rank_fits_data_of_its_own(both):
    for rank, found in enumerate(both):
        one = rank_runs.pairs(rank_runs.images(40 + rank, seed=rank))
        assert np.array_equal(found["alone"]["curve"], one["curve"])


def test_other_versions_and_errors_of_the_first_are_told(monkeypatch):
    from craftrl.oracles.network import process_group

    class Two(Rank):
        def every(self, value):
            return [value, "craftrl 0.0.1, Python 2.7"]

        def of_first(self, value):
            return value

    with pytest.raises(RankError, match=r"same versions; rank 0 has craftrl .*, rank 1 has craftrl 0\.0\.1, Python 2"):
        process_group._check_versions(Two(0, 2))
    monkeypatch.setattr(process_group, "_name", lambda device: "craftrl 0.0.1, Python 2.7")
    with pytest.raises(InvalidParameterError, match="of its own; 2 ranks have 1"):
        process_group._check_devices(Two(0, 2), CPU)
    with pytest.raises(ZeroDivisionError):
        Two(0, 2).from_first(lambda: 1 // 0)
    assert ALONE.from_first(lambda: 3) == 3


# -- the command line --------------------------------------------------------------------------------------------


def test_ranks_speak_with_one_voice_and_write_one_model(folder):
    said = (folder / "stdout.txt").read_text()
    assert said.count("on the CPU of each of 2 ranks; an encoder for each step") == 1
    assert said.count("Written to") == said.count("Verdict: ") == 1
    assert craftrl.load(folder / "fitted").labels_.shape == (300, 3)  # few reach the fourth step
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]  # nothing is left beside the model


def test_an_error_of_all_ranks_is_said_once_and_the_exit_code_is_two(folder):
    assert [(folder / f"codes{rank}.txt").read_text() for rank in (0, 1)] == ["[0, 2]", "[0, 2]"]
    assert (folder / "stderr.txt").read_text().count("nowhere") == 1


@pytest.fixture(scope="module")
def accidents(tau, tmp_path_factory):
    folder = tmp_path_factory.mktemp("accidents")
    tau.save(folder / "shards")
    program = Path(__file__).with_name("rank_accidents.py")
    done = subprocess.run([sys.executable, program, folder], env=surroundings(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(("accident", "ended"), [("error", "exitcode  : 2 "), ("kill", "(SIGKILL)")])
def test_a_rank_that_fails_ends_all_of_them(accidents, accident, ended):
    """It fails by itself, in the middle of training; torchrun's launcher ends the others."""
    printed = (accidents / f"{accident}.txt").read_text()
    assert printed.count("it is on fire; put it out.") == (accident == "error")
    assert ended in printed
    assert not (accidents / accident).exists()


# -- who works on what -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_every_row_of_a_minibatch_belongs_to_one_rank_and_shares_are_even(n):
    parts = []
    for rank in range(3):
        feed = Feed()
        feed.ranks = Rank(rank, 3)
        (rows,) = feed.in_order([np.arange(n)])
        parts.append(rows.numpy())
    assert np.array_equal(np.concatenate(parts), np.arange(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_checkpoint_of_other_settings_is_refused_by_ranks_as_well(folder, tau, tmp_path):
    shutil.copytree(folder / "by-two-for-one", tmp_path / "copy")
    with pytest.raises(craftrl.InvalidDataError, match="belongs to other settings"):
        rank_runs.pairs(tau, TRAINING.but(checkpoints=tmp_path / "copy", lr=1.0))
