"""Networks that learn from files: the same minibatches, read ahead, and the same weights as from memory."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from feature_world import feature_data  # noqa: E402

from craftrl import TrajectoryDataset  # noqa: E402
from craftrl.data import store  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training  # noqa: E402
from craftrl.oracles.network.allowance import allowed_bytes, to_bytes  # noqa: E402
from craftrl.oracles.network.frames import AHEAD, Frames  # noqa: E402
from studies import objectives  # noqa: E402

CPU = torch.device("cpu")
TRAINING = Training(epochs=4, patience=4, batch=128, lr=5e-3, device="cpu", progress=False)


@pytest.fixture(scope="module")
def data():
    return feature_data(200)


@pytest.fixture
def disk(data, tmp_path, monkeypatch):
    """The same trajectories in several files."""
    monkeypatch.setattr(store, "FILE_BYTES", 2**11)
    data.tau.save(tmp_path / "tau")
    assert len(list((tmp_path / "tau").glob("*.npy"))) > 4
    return TrajectoryDataset.open(tmp_path / "tau")


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_minibatches_from_files_are_those_from_memory(data, disk):
    here, there = Frames(data.tau, TRAINING), Frames(disk, TRAINING)
    before = threads()
    orders = [frames.shuffled(np.arange(0, 400, 3), 16, np.random.default_rng(0)) for frames in (here, there)]
    for own, other in zip(*orders, strict=True):
        assert torch.equal(own, other)
        assert torch.equal(here.trajectories(own), there.trajectories(other))
        assert torch.equal(here.trajectories(own[:2]), there.trajectories(own[:2]))  # and rows that were not announced
    assert threads() == before
    for h in (1, 4):
        with here.at(h) as own, there.at(h) as other:
            assert torch.equal(torch.cat(list(own)), torch.cat(list(other)))
    assert torch.equal(here.sample(np.random.default_rng(1)), there.sample(np.random.default_rng(1)))


def test_networks_from_files_are_those_from_memory_to_the_bit(data, disk):
    here, there = (NeuralOracle(dim=16, networks=1, training=TRAINING).prepare(tau) for tau in (data.tau, disk))
    assert np.array_equal(here.pairs().logits, there.pairs().logits)
    n_states = int(data.truth.states.max()) + 1
    own, other = (prepared.share(data.truth.states, n_states, "shared") for prepared in (here, there))
    assert own.loss == other.loss
    model = objectives.PairedFrames([1, 4, 4, 4], training=TRAINING.but(epochs=2)).fit(disk)
    assert model.encode(disk.at(2), 2).shape == (disk.n,)


def test_a_killed_run_continues_to_the_same_weights(disk, tmp_path, monkeypatch):
    def fitted(training):
        return NeuralOracle(dim=16, networks=1, training=training).prepare(disk).pairs().logits

    whole, asked, read = fitted(TRAINING), [], Frames.trajectories

    def stopping(frames, rows):
        asked.append(1)
        if len(asked) > 40:
            raise KeyboardInterrupt
        return read(frames, rows)

    training = TRAINING.but(checkpoints=tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(Frames, "trajectories", stopping)
        with pytest.raises(KeyboardInterrupt):
            fitted(training)
    assert np.array_equal(fitted(training), whole)


def test_an_error_while_reading_ahead_reaches_the_caller_and_leaves_no_thread(disk, monkeypatch):
    read, asked = TrajectoryDataset.rows, []

    def failing(tau, index):
        asked.append(len(index))
        if len(asked) > 5:
            raise InvalidDataError("The disk is on fire.")
        return read(tau, index)

    before = threads()
    monkeypatch.setattr(TrajectoryDataset, "rows", failing)
    with pytest.raises(InvalidDataError, match="on fire"):
        list(Frames(disk, TRAINING).shuffled(np.arange(400), 8, np.random.default_rng(0)))
    assert threads() == before
    assert len(asked) <= 5 + AHEAD


@pytest.mark.parametrize(
    ("given", "n_bytes"),
    [
        (4000, 4000), ("4000", 4000), ("4 kB", 4000), ("1.5GB", 1_500_000_000), ("2GiB", 2**31), ("3 mb", 3_000_000),
        (0, None), (-1, None), ("much", None), ("4 PB", None), (True, None), ([], None), ("0.1", None),
    ],
)  # fmt: skip
def test_sizes_in_words(given, n_bytes):
    assert to_bytes(given) == n_bytes
    if n_bytes is None:
        with pytest.raises(InvalidParameterError, match="memory must be None, a positive number of bytes"):
            Training(memory=given)
    else:
        assert allowed_bytes(given, CPU) == n_bytes


def test_by_default_a_quarter_of_the_machine_or_of_its_container(tmp_path, monkeypatch):
    physical = allowed_bytes(None, CPU)
    assert physical % 2**26 == 0
    assert physical > 2**27
    (tmp_path / "memory.max").write_text(f"{2**28}\n")
    (tmp_path / "none").write_text("max\n")
    monkeypatch.setattr("craftrl.oracles.network.allowance.LIMITS", [tmp_path / "memory.max", tmp_path / "none"])
    assert allowed_bytes(None, CPU) == 2**26
