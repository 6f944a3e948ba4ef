"""Windows of long recordings: when they are cut, what they hold, where they may not lie, and what is held out."""

import numpy as np
import pytest

from craftrl.data import TrajectoryDataset
from craftrl.data.windows import cut, cuts_in, pieces


def dataset(*agents):
    """Episodes of these lengths for each agent; an observation is its own number."""
    return TrajectoryDataset.from_episodes(
        [[np.arange(n)[:, None] + 10_000 * i for i, n in enumerate(lengths)] for lengths in agents]
    )


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        (([3000], [3000]), True),
        (([600] * 5, [600] * 5), True),
        (([200] * 40, [200] * 40), True),
        (([50] * 300, [50] * 300), False),
        (([30], [30]), False),  # not even two windows
        (([1000], [20] * 500), True),  # one agent is enough
        (([10] * 100, [12] * 100), False),
    ],
)
def test_the_data_decides(agents, expected):
    assert (cut(dataset(*agents)) is not None) == expected


def test_every_frame_is_in_one_window_and_labels_come_back():
    tau = dataset([613, 45], [1000])
    windows = cut(tau)
    short = windows.tau
    assert short.H == 20
    assert not short.aligned
    assert short.lengths.min() >= 15
    assert short.counts.tolist() == [31 + 3, 50]
    labels = np.full((short.n, short.H), -1)
    for i in range(short.n):
        labels[i, : short.lengths[i]] = short.episode(i)[:, 0]
        assert (np.diff(short.episode(i)[:, 0]) == 1).all()
    back = windows.put_back(labels, tau)
    for i in range(tau.n):
        assert np.array_equal(back[i, : tau.lengths[i]], tau.episode(i)[:, 0])
        assert (back[i, tau.lengths[i] :] == -1).all()
    assert cut(short) is None  # windows are not cut again
    assert cut(short, 5) is None


def test_a_length_of_ones_own_and_none():
    assert cut(dataset([50] * 300, [50] * 300), 10).tau.counts.tolist() == [1500, 1500]
    assert cut(dataset([3000], [3000]), None) is None


def film(n, seed, jump=None, cut_at=()):
    """A figure that walks before a background; `jump`: every so many frames the background is another one."""
    rng = np.random.default_rng(seed)
    x, at, ground = np.zeros((n, 16, 16, 3), np.uint8), 8, 60
    for t in range(n):
        ground = (ground + 90) % 200 if t in cut_at or (jump and t % jump == 0) else ground
        at = int(np.clip(at + rng.integers(-1, 2), 2, 13))
        x[t] = ground + rng.integers(0, 4, (16, 16, 3))
        x[t, 4:8, at - 2 : at + 2] = 240
    return x


def test_cuts_are_found_and_not_crossed():
    tau = TrajectoryDataset.from_episodes([[film(800, 1, cut_at=(211, 212, 500))], [film(800, 2)]])
    assert cuts_in(tau, 0).tolist() == [211, 212, 500]
    assert cuts_in(tau, 1).tolist() == []
    windows = cut(tau)
    assert windows.n_cuts == 3
    ends = windows.begin + windows.tau.lengths
    for at in (211, 212, 500):
        assert not ((windows.of == 0) & (windows.begin < at) & (ends > at)).any()
    labels = windows.put_back(np.zeros((windows.tau.n, 20), dtype=int), tau)
    assert np.flatnonzero(labels[0] < 0).tolist() == [211]  # one frame between two cuts makes no window
    assert (windows.put_back(np.zeros((windows.tau.n, 20), dtype=int), tau, lambda x: np.ones(len(x), int)) >= 0).all()


@pytest.mark.parametrize("jump", [3, 17, 60])
def test_what_jumps_regularly_is_no_cut(jump):
    tau = TrajectoryDataset.from_episodes([[film(900, 1, jump=jump)], [film(900, 2)]])
    assert len(cuts_in(tau, 0)) == 0


def test_somebody_who_hardly_ever_moves_is_not_cut_up():
    x = np.zeros((2000, 16, 16, 3), np.uint8)
    for t in range(0, 2000, 150):
        x[t : t + 150, :4, (t // 150 % 4) * 4 :][:, :, :4] = 200
    tau = TrajectoryDataset.from_episodes([[x], [film(900, 2)]])
    assert len(cuts_in(tau, 0)) == 0


def test_cuts_are_the_same_block_by_block(monkeypatch):
    tau = TrajectoryDataset.from_episodes([[film(400, 1, cut_at=(100,))], [film(400, 2)]])
    expected = cuts_in(tau, 0)
    monkeypatch.setattr("craftrl.data.windows.READ_BYTES", 7 * tau.frame_bytes)
    assert np.array_equal(cuts_in(tau, 0), expected)


def test_a_file_is_read_in_small_parts(tmp_path, monkeypatch):
    """Nothing reads a long recording whole: neither the search for cuts, nor what is encoded piece by piece."""
    TrajectoryDataset.from_episodes([[film(900, k)] for k in (1, 2)]).save(tmp_path / "data")
    tau = TrajectoryDataset.open(tmp_path / "data")
    monkeypatch.setattr("craftrl.data.windows.READ_BYTES", 50 * tau.frame_bytes)
    monkeypatch.setattr("craftrl.data.windows.BLOCK_BYTES", 64 * 50 * tau.frame_bytes)
    part, lengths = tau.frames.part, []
    monkeypatch.setattr(tau.frames, "part", lambda *given: (lengths.append(given[2]), part(*given))[1])
    assert cut(tau).tau.n == 90
    assert max(lengths) == 51
    short = pieces(tau)
    assert short.tau.H == 50
    labels = short.tau.first[:, None] + np.arange(50)
    assert np.array_equal(short.put_back(labels, tau), tau.first[:, None] + np.arange(900))


@pytest.mark.parametrize("agents", [([3000], [2000]), ([150] * 8, [700, 900]), ([60], [80])])
def test_held_out_windows_are_stretches_of_time_with_a_gap(agents):
    tau = dataset(*agents)
    short = cut(tau).tau
    learned, held = short.hold_out(0.1, np.random.default_rng(0))
    assert not set(learned) & set(held)
    assert set(short.agent[held]) == set(short.agent[learned]) == {0, 1}
    frames = [set(short.episode(i)[:, 0].tolist()) for i in range(short.n)]
    for k in (0, 1):
        mine = [i for i in held if short.agent[i] == k]
        share = len(mine) / short.counts[k]
        assert share == pytest.approx(0.1, abs=0.03) or len(mine) == 1
        seen = {x for i in learned if short.agent[i] == k for x in frames[i]}
        out = {x for i in mine for x in frames[i]}
        assert not seen & out
        if short.counts[k] > 10:
            assert not seen & {x + d for x in out for d in (-1, 1)}  # no neighbouring frame either
            assert len(seen) > 0.75 * tau.lengths[tau.agent == k].sum()


def test_held_out_stretches_are_spread_over_a_recording():
    short = cut(dataset([6000], [6000])).tau
    _, held = short.hold_out(0.1, np.random.default_rng(1))
    mine = np.sort(short.first[held[short.agent[held] == 0]])
    assert len(mine) == 30
    runs = np.split(mine, np.flatnonzero(np.diff(mine) > 20) + 1)
    assert 4 <= len(runs) <= 5
    assert np.histogram(mine, bins=5, range=(0, 6000))[0].min() >= 3


def test_copies_of_a_held_out_window_are_not_learned_from():
    short = cut(dataset([2000], [2000])).tau
    twice = short.select(np.repeat(np.arange(short.n), 2))
    learned, held = twice.hold_out(0.1, np.random.default_rng(0))
    assert not set(twice.first[learned[twice.agent[learned] == 0]]) & set(twice.first[held[twice.agent[held] == 0]])
