"""Several ranks train one network: the same minibatches, weights, states and checkpoints as one process."""

import numpy as np
import pytest
import rank_runs
import torch
from rank_runs import TRAINING

import craftrl
from craftrl.evaluation import accuracy
from torchrun import torchrun

pytestmark = [pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning"), pytest.mark.slow]


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


def close(a, b):
    """Whether they are the same but for rounding, of which Adam makes steps where a gradient is next to nothing."""
    return np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.99


def test_two_ranks_learn_what_one_process_learns_in_memory_and_from_disk(both, one):
    """Trajectories have different lengths, and minibatches an odd number of them."""
    for run in ("held", "disk"):
        np.testing.assert_allclose(both[0][run]["gradient"], one["gradient"], atol=1e-6)
        for name in ("weights", "logits", "phi"):
            assert close(both[0][run][name], one[name])
            assert np.array_equal(both[0][run][name], both[1][run][name])


def test_a_whole_fit_finds_the_same_states_and_the_first_rank_saves_it(both, folder, tau):
    model, one = rank_runs.craft(tau)
    assert np.array_equal(both[0]["craft"]["labels"], both[1]["craft"]["labels"])
    assert accuracy(both[0]["craft"]["labels"], one["labels"]) > 0.9  # rounding, and other numbers of the same states
    loaded = craftrl.load(folder / "model", oracle=model.oracle)
    assert np.array_equal(loaded.labels_, both[0]["craft"]["labels"])


def test_checkpoints_are_gone_on_with_by_any_number_of_ranks(both, one):
    assert both[0]["stopped"] == {}
    assert np.array_equal(both[0]["resumed"]["weights"], both[0]["held"]["weights"])
    assert close(both[1]["from one"]["weights"], one["weights"])
    assert both[0]["from one"]["rounds"] == one["rounds"] - 2


def test_ranks_that_differ_say_so_on_each_of_them(folder):
    for rank in (0, 1):
        data, settings, norm = (folder / f"rank{rank}.txt").read_text().splitlines()
        assert data.startswith("All ranks must have the same data; rank 1 differs from rank 0; ")
        assert settings.startswith("All ranks must have the same settings of training; rank 1 differs")
        assert "has batch normalisation; use nn.GroupNorm" in norm


def test_ranks_speak_with_one_voice_and_write_one_model(folder):
    said = (folder / "stdout.txt").read_text()
    assert said.count("on the CPU of each of 2 ranks.") == 1
    assert said.count("Written to") == said.count("Verdict: ") == 1
    assert craftrl.load(folder / "fitted").labels_.shape[0] == 200
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]  # nothing is left beside the model
    assert [(folder / f"codes{rank}.txt").read_text() for rank in (0, 1)] == ["[0, 2]", "[0, 2]"]
    assert (folder / "stderr.txt").read_text().count("nowhere") == 1  # an error of all ranks
