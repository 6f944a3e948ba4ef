"""Datasets larger than the memory allowed: what is read, in which order, and what is learned from it."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from craftrl.oracles.network.order import Layout  # noqa: E402
from feature_world import feature_data  # noqa: E402

from craftrl import TrajectoryDataset  # noqa: E402
from craftrl.data.dataset import ArraySteps  # noqa: E402
from craftrl.errors import InvalidDataError, InvalidParameterError  # noqa: E402
from craftrl.oracles.network import NeuralOracle, Training  # noqa: E402
from craftrl.oracles.network.allowance import allowed_bytes, to_bytes  # noqa: E402
from craftrl.oracles.network.frames import HeldFrames, StreamedFrames, open_frames  # noqa: E402
from studies import objectives  # noqa: E402

CPU = torch.device("cpu")
TRAINING = Training(epochs=16, patience=5, batch=128, lr=5e-3, device="cpu")
AGENTS = np.repeat([0, 1, 2], [3000, 1500, 500])


class Counted:
    """A store that counts what is read of it, and may fail."""

    def __init__(self, array, fail_after=None):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.n_read, self.fail_after = 0, fail_after

    def read(self, step, start, stop):
        self.n_read += stop - start
        if self.fail_after is not None and self.n_read > self.fail_after:
            raise InvalidDataError("The disk is on fire.")
        return self.array[step, start:stop]


@pytest.fixture(scope="module")
def data():
    return feature_data(500)


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("craftrl-frames")]


def streamed(tau, share=10, fail_after=None):
    """The dataset on a store of its own, with a tenth of its size allowed."""
    store = Counted(tau.steps.array, fail_after)
    other = TrajectoryDataset(store, tau.agent, tau.lengths)
    return StreamedFrames(other, CPU, tau.steps.array.astype(np.float32).nbytes // share), store


# -- order ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def layout():
    return Layout.within(100 * 1000 * 8, 1000, 8, AGENTS)  # a hundred of 5000 trajectories


def test_every_row_comes_once_in_minibatches_of_one_size(layout):
    rows = np.random.default_rng(0).permutation(len(AGENTS))[:4000]
    plan = layout.shuffled(rows, 250, np.random.default_rng(1))
    assert np.array_equal(np.sort(np.concatenate(plan.minibatches)), np.sort(rows))
    assert {len(part) for part in plan.minibatches} == {16}
    for blocks in plan.windows:
        assert layout.sizes(blocks).sum() <= layout.window


def test_same_seed_same_order_and_another_seed_another(layout):
    rows = np.arange(len(AGENTS))
    first, again, other = (
        np.concatenate(layout.shuffled(rows, 100, np.random.default_rng(seed)).minibatches) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_minibatches_are_as_mixed_over_agents_as_a_full_shuffle(layout):
    """The file is grouped by agent; the share of each in a minibatch must scatter no more than by chance."""
    rows, n = np.arange(len(AGENTS)), 125
    plan = layout.shuffled(rows, n, np.random.default_rng(0))
    fully = np.array_split(np.random.default_rng(0).permutation(rows), n)
    overall = np.bincount(AGENTS) / len(AGENTS)
    shares, by_chance = (
        np.array([np.bincount(AGENTS[part], minlength=3) / len(part) for part in parts])
        for parts in (plan.minibatches, fully)
    )
    assert np.abs(shares - overall).max() < 0.35  # 40 trajectories each
    assert ((shares - overall) ** 2).mean() < 1.1 * ((by_chance - overall) ** 2).mean()


def test_minibatches_come_from_all_over_the_file(layout):
    plan = layout.shuffled(np.arange(3000), 75, np.random.default_rng(0))  # 40 of the first agent's 3000
    spread = [np.ptp(part) for part in plan.minibatches]
    assert np.mean(spread) > 0.85 * 3000
    tenths = np.array([len(np.unique(part // 300)) for part in plan.minibatches])
    assert tenths.min() >= 6


def test_blocks_are_those_that_are_decoded_together():
    agents = np.array([3000, 4500])  # where the second and third begin
    for room, within_seven in [(400, [0]), (64, [0, 4])]:  # with little room, chunks of seven are read in two parts
        layout = Layout.within(room * 1000 * 8, 1000, 8, AGENTS, together=7)
        assert set(np.setdiff1d(layout.starts[:-1], agents) % 7) == set(within_seven)
        assert np.isin(agents, layout.starts).all()


def test_held_out_rows_are_neighbours_of_every_agent(layout):
    rows_train, rows_held = layout.split(np.arange(len(AGENTS)), 0.1, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate([rows_train, rows_held])), np.arange(len(AGENTS)))
    assert np.array_equal(np.bincount(AGENTS[rows_held]), [300, 150, 50])


def test_reading_in_order_goes_through_the_file_once(layout):
    plan = layout.in_order(np.arange(len(AGENTS))[::-1], 16)
    assert np.array_equal(np.concatenate(plan.minibatches), np.arange(len(AGENTS)))
    assert max(map(len, plan.minibatches)) <= 16
    assert np.array_equal(np.concatenate(plan.windows), np.arange(len(layout.agent)))


@pytest.mark.parametrize("size", [5, 30])
def test_a_window_that_cannot_hold_a_minibatch_is_refused(size):
    layout = Layout.within(20 * 800, 100, 8, AGENTS)
    if size == 5:
        assert len(layout.shuffled(np.arange(5000), 5000 // size, np.random.default_rng(0)).windows) > 500
    else:
        with pytest.raises(InvalidParameterError, match=r"minibatches have .*; raise Training\(memory=...\)"):
            layout.shuffled(np.arange(5000), 5000 // size, np.random.default_rng(0))


def test_less_memory_than_a_few_trajectories_is_refused():
    with pytest.raises(InvalidParameterError, match="memory must allow for some trajectories"):
        Layout.within(1000, 1000, 8, AGENTS)


# -- allowance -----------------------------------------------------------------------------------------------


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


def test_what_fits_is_held_and_what_is_in_memory_stays_there(data, tmp_path):
    np.save(tmp_path / "x.npy", data.tau.steps.array)
    mapped = TrajectoryDataset(ArraySteps(np.load(tmp_path / "x.npy", mmap_mode="r")), data.tau.agent)
    small = TRAINING.but(memory="10kB")
    assert isinstance(open_frames(mapped, TRAINING), HeldFrames)
    assert isinstance(open_frames(mapped, small), StreamedFrames)
    array = data.tau.steps.array.astype(np.float32)
    frames = open_frames(TrajectoryDataset(ArraySteps(array), data.tau.agent), small)
    assert isinstance(frames, HeldFrames)
    assert np.shares_memory(frames.x.numpy(), array)


# -- passes --------------------------------------------------------------------------------------------------


def test_a_pass_gives_the_right_observations_within_the_memory_allowed(data):
    frames, _ = streamed(data.tau)
    whole = HeldFrames(data.tau, CPU)
    with frames.shuffled(np.arange(900), 16, np.random.default_rng(0)) as chunks:
        assert threads() == []
        for rows in chunks:
            assert torch.equal(frames.trajectories(rows), whole.trajectories(rows))
        assert len(threads()) > 0
    assert threads() == []
    with frames.in_order([np.arange(600)]) as chunks:
        assert all(torch.equal(frames.trajectories(rows), whole.trajectories(rows)) for rows in chunks)
    for h in (1, 4):
        with frames.at(h) as parts, whole.at(h) as expected:
            assert torch.equal(torch.cat(list(parts)), torch.cat(list(expected)))
    allowed = data.tau.steps.array.astype(np.float32).nbytes // 10
    assert 0.5 * allowed < frames.stream.peak_bytes <= allowed


def test_every_observation_is_read_once_a_pass(data):
    frames, store = streamed(data.tau)
    n, H = data.tau.n, data.tau.H
    with frames.shuffled(np.arange(n), 16, np.random.default_rng(0)) as chunks:
        list(chunks)
    assert store.n_read == n * H
    with frames.at(2) as parts:
        list(parts)
    assert store.n_read == n * H + n
    _, rows_held = frames.split(np.arange(n), TRAINING, "x")
    before = store.n_read
    with frames.in_order([rows_held]) as chunks:
        list(chunks)
    assert store.n_read - before < 1.5 * len(rows_held) * H


def test_an_error_in_the_background_reaches_the_caller_and_leaves_no_thread(data):
    frames, _ = streamed(data.tau, fail_after=1500)
    model = objectives.SingleFrame([1, 2, 2, 2], training=TRAINING)
    with pytest.raises(InvalidDataError, match="on fire"):
        model._train(frames, np.zeros((data.tau.n, data.tau.H - 1), dtype=np.int64), TRAINING)
    assert threads() == []


def test_an_interrupt_ends_a_pass_and_its_threads(data):
    frames, store = streamed(data.tau)

    def stop_midway():
        with frames.shuffled(np.arange(900), 16, np.random.default_rng(0)) as chunks:
            for i, _ in enumerate(chunks):
                if i == 5:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_midway()
    assert threads() == []
    assert store.n_read < 0.5 * data.tau.n * data.tau.H


# -- learning ------------------------------------------------------------------------------------------------


def on_disk(tau, path, compression=None):
    """The dataset in HDF5, compressed as somebody else may have done it."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        shape = tau.steps.shape
        file.create_dataset("observations", data=tau.steps.array, chunks=(1, 16, *shape[2:]), compression=compression)
        file["agent"], file["lengths"] = tau.agent, tau.lengths
        file.attrs["format"] = "craftrl trajectories 1"
    return TrajectoryDataset.open(path)


def test_a_tenth_of_the_memory_learns_as_well(data, tmp_path):
    """The loss on fresh trajectories, against that of a network that had all in memory."""
    fresh = feature_data(1000, seed=1).tau
    x = HeldFrames(fresh, CPU).trajectories(torch.arange(fresh.n))
    target = torch.from_numpy(fresh.agent).repeat_interleave(fresh.H - 1)
    tau = on_disk(data.tau, tmp_path / "tau.h5")
    less = TRAINING.but(memory=data.tau.steps.array.astype(np.float32).nbytes // 10)
    on_all, on_some = (
        NeuralOracle(dim=32, networks=1, training=t).prepare(d) for t, d in [(TRAINING, data.tau), (less, tau)]
    )
    assert isinstance(on_some.frames, StreamedFrames)
    networks = [prepared.pairs().networks[0] for prepared in (on_all, on_some)]
    with torch.no_grad():
        logits = (network.along(x).flatten(0, 1) for network in networks)
        in_memory, from_disk = (float(torch.nn.functional.cross_entropy(values, target)) for values in logits)
    assert in_memory < np.log(2) - 0.1
    assert from_disk < in_memory + 0.02
    label = np.where(data.truth.states[:, 1] == 0, 0, 1)
    assert (on_some.encode(2, label, 2).encoder(tau.at(2)) == label).mean() > 0.97


def test_compressed_files_are_decoded_on_the_way(data, tmp_path):
    tau = on_disk(data.tau, tmp_path / "tau.h5", "gzip")
    frames, whole = StreamedFrames(tau, CPU, data.tau.steps.array.nbytes // 3), HeldFrames(data.tau, CPU)
    with frames.shuffled(np.arange(tau.n), 16, np.random.default_rng(0)) as chunks:
        assert all(torch.equal(frames.trajectories(rows), whole.trajectories(rows)) for rows in chunks)
    assert set(np.diff(frames.stream.layout.starts)) == {16, 4, 12, 8}  # whole chunks, but where agents begin and end


def test_chunks_that_must_be_decoded_again_and_again_are_warned_of(data, tmp_path):
    tau = on_disk(data.tau, tmp_path / "tau.h5", "gzip")
    with pytest.warns(UserWarning, match=r"decodes 16 trajectories at a time.*decoded 4 times in a pass"):
        StreamedFrames(tau, CPU, 80 * tau.H * 48)


def test_a_killed_run_continues_to_the_same_weights(data, tmp_path):
    whole = streamed_network(data.tau, TRAINING.but(epochs=4))
    training = TRAINING.but(epochs=4, checkpoints=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        streamed_network(data.tau, training, stop_after=100)
    resumed = streamed_network(data.tau, training)
    for a, b in zip(whole.parameters(), resumed.parameters()):
        assert torch.equal(a, b)
    with pytest.raises(InvalidDataError, match="belongs to other settings"):
        streamed_network(data.tau, training, share=12)  # another allowance has another order


def streamed_network(tau, training, stop_after=None, share=10):
    frames, _ = streamed(tau, share)
    model = objectives.SingleFrame([1, 2, 2, 2], training=training)
    asked = []
    of_frames = frames.trajectories

    def counted(rows):
        asked.append(rows)
        if stop_after is not None and len(asked) > stop_after:
            raise KeyboardInterrupt
        return of_frames(rows)

    frames.trajectories = counted
    return model._train(frames, np.zeros((frames.tau.n, frames.tau.H - 1), dtype=np.int64), training)


def test_baselines_and_the_shared_encoder_stream_too(data, tmp_path):
    tau = on_disk(data.tau, tmp_path / "tau.h5")
    training = TRAINING.but(memory=data.tau.steps.array.nbytes // 10, epochs=2)
    model = objectives.PairedFrames([1, 4, 4, 4], training=training).fit(tau)
    assert model.encode(tau.at(2), 2).shape == (tau.n,)
    prepared = NeuralOracle(dim=16, networks=1, training=training).prepare(tau)
    shared = prepared.share(data.truth.states, int(data.truth.states.max()) + 1, "shared")
    assert shared.encoder(tau.at(3)).shape == (tau.n,)
    assert prepared.frames.stream.peak_bytes <= training.memory
