"""Windows of long recordings: when they are cut, what they hold, where they may not lie, and what is held out."""

import numpy as np
import pytest

from craftrl.data import TrajectoryDataset, windows
from craftrl.data.windows import cut, cuts_in, pieces


def dataset(*agents):
    """Episodes of these lengths for each agent; an observation is its own number."""
    return TrajectoryDataset.from_episodes(
        [[np.arange(n)[:, None] + 10_000 * i for i, n in enumerate(lengths)] for lengths in agents]
    )


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


def test_a_length_of_ones_own_and_none():
    assert cut(dataset([50] * 300, [50] * 300), 10).tau.counts.tolist() == [1500, 1500]
    assert cut(dataset([3, 5], [4]), 2).tau.lengths.tolist() == [3, 2, 3, 2, 2]  # a frame alone has no neighbour
    assert cut(dataset([3000], [3000]), None) is None


def test_every_frame_is_in_one_window_and_labels_come_back():
    tau = dataset([613, 45], [1000])
    found = cut(tau)
    short = found.tau
    assert (short.H, short.aligned, short.counts.tolist()) == (20, False, [31 + 3, 50])
    assert short.lengths.min() >= 15
    labels = np.full((short.n, short.H), -1)
    for i in range(short.n):
        labels[i, : short.lengths[i]] = short.episode(i)[:, 0]
    back = found.put_back(labels, tau)
    for i in range(tau.n):
        assert np.array_equal(back[i, : tau.lengths[i]], tau.episode(i)[:, 0])
        assert (back[i, tau.lengths[i] :] == -1).all()
    tau.notes, tau.source, tau.start = {"reading": {"stride": 3}}, ["a", "b", "c"], np.array([7, 0, 5])
    placed = cut(tau).tau
    assert placed.start[[0, 1, 34, 35]].tolist() == [7, 7 + 3 * 20, 5, 5 + 3 * 20]  # frames of the file
    assert (placed.source[30], placed.source[34]) == ("a", "c")
    assert cut(short) is None  # windows are not cut again
    assert cut(short, 5) is None


def test_cuts_are_found_and_not_crossed(monkeypatch):
    tau = TrajectoryDataset.from_episodes([[film(800, 1, cut_at=(211, 212, 500))], [film(800, 2)]])
    for size in (windows.READ_BYTES, 7 * tau.frame_bytes):  # also when few frames are read at a time
        monkeypatch.setattr(windows, "READ_BYTES", size)
        assert [cuts_in(tau, i).tolist() for i in (0, 1)] == [[211, 212, 500], []]
    found = cut(tau)
    assert found.n_cuts == 3
    ends = found.begin + found.tau.lengths
    for at in (211, 212, 500):
        assert not ((found.of == 0) & (found.begin < at) & (ends > at)).any()
    labels = np.zeros((found.tau.n, 20), dtype=int)
    assert np.flatnonzero(found.put_back(labels, tau)[0] < 0).tolist() == [211]  # a frame alone makes no window
    assert (found.put_back(labels, tau, lambda x: np.ones(len(x), int)) >= 0).all()


def test_what_jumps_regularly_or_hardly_ever_moves_is_not_cut():
    still = np.zeros((2000, 16, 16, 3), np.uint8)
    for t in range(0, 2000, 150):
        still[t : t + 150, :4, (t // 150 % 4) * 4 :][:, :, :4] = 200
    jumping = [film(900, 1, jump=jump) for jump in (3, 17, 60)]
    tau = TrajectoryDataset.from_episodes([jumping, [still]])
    assert [len(cuts_in(tau, i)) for i in range(4)] == [0, 0, 0, 0]


def test_a_file_is_read_in_small_parts(tmp_path, monkeypatch):
    """Nothing reads a long recording whole: neither the search for cuts, nor what is encoded piece by piece."""
    TrajectoryDataset.from_episodes([[film(900, k)] for k in (1, 2)]).save(tmp_path / "data")
    tau = TrajectoryDataset.open(tmp_path / "data")
    monkeypatch.setattr(windows, "READ_BYTES", 50 * tau.frame_bytes)
    monkeypatch.setattr(windows, "BLOCK_BYTES", 64 * 50 * tau.frame_bytes)
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
    assert set(short.agent[held]) == set(short.agent[learned]) == {0, 1}
    frames = [set(short.episode(i)[:, 0].tolist()) for i in range(short.n)]
    for k in (0, 1):
        mine = [i for i in held if short.agent[i] == k]
        assert len(mine) / short.counts[k] == pytest.approx(0.1, abs=0.03) or len(mine) == 1
        seen = {x for i in learned if short.agent[i] == k for x in frames[i]}
        out = {x for i in mine for x in frames[i]}
        assert not seen & out
        if short.counts[k] > 10:
            assert not seen & {x + d for x in out for d in (-1, 1)}  # no neighbouring frame either
            assert len(seen) > 0.75 * tau.lengths[tau.agent == k].sum()


def test_held_out_stretches_are_spread_over_a_recording_and_copies_held_out_too():
    short = cut(dataset([6000], [6000])).tau
    mine = short.hold_out(0.1, np.random.default_rng(1))[1]
    mine = np.sort(short.first[mine[short.agent[mine] == 0]])
    assert len(mine) == 30
    assert 4 <= (np.diff(mine) > 20).sum() + 1 <= 5
    assert np.histogram(mine, bins=5, range=(0, 6000))[0].min() >= 3
    twice = short.select(np.repeat(np.arange(short.n), 2))
    learned, held = (rows[twice.agent[rows] == 0] for rows in twice.hold_out(0.1, np.random.default_rng(0)))
    assert not set(twice.first[learned]) & set(twice.first[held])
