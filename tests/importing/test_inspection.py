"""What `inspect` says of a store, and that its warnings come where they should and nowhere else."""

import shutil

import numpy as np
import pytest
from PIL import Image

from craftrl import CraftError, TrajectoryDataset
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.importing import import_data, inspect
from recordings import episodes, write_video, write_videos


def warnings_of(folder, agents):
    shutil.rmtree(folder / "data", ignore_errors=True)
    TrajectoryDataset.from_episodes(agents).save(folder / "data")
    return inspect(folder / "data").warnings


@pytest.fixture(scope="module", params=["bits", "pixels"])
def trajectories(request):
    """Long trajectories of two agents that begin in one state: (n, steps, ...) for each."""
    if request.param == "bits":
        world = BitsExBMDP(horizon=12, n_features=16, seed=0)
        tau = collect(world, world.paper_policies(), 700, seed=0).tau
    else:
        world = PixelsExBMDP(12, 3, 2, seed=0)
        tau = collect(world, world.policies(), 300, seed=0).tau
    return [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(2)]


def test_no_warnings_for_good_data(trajectories, tmp_path):
    assert warnings_of(tmp_path, [x[:, :6] for x in trajectories]) == ()


def test_one_agent_in_halves_is_too_alike(trajectories, tmp_path):
    (text,) = (t for t in warnings_of(tmp_path, [trajectories[0][::2], trajectories[0][1::2]]) if "Few" not in t)
    assert text.startswith("These agents look alike: 0 and 1.")


SMALL = np.random.default_rng(0).integers(0, 2, (60, 3, 2))  # of a world that repeats itself
NOISE = [episodes(k, lengths=(4,) * 40) for k in (0, 1)]


@pytest.mark.parametrize(
    ("agents", "begin"),
    [
        ([NOISE[0], [*NOISE[0][:20], *NOISE[1][:20]]], "0 and 1 share episodes: 20 of the first 40 are the same"),
        ([SMALL, SMALL.copy()], "0 and 1 share episodes"),
        ([np.ones((40, 3, 4, 4, 1), np.uint8)] * 2, "All observations are the same"),
        ([episodes(0, (4,), (3,) * 210), episodes(1, (4,), (3,) * 20)], "Few episodes: 1 has 20."),
    ],
)
def test_episodes_that_are_the_same_or_few(tmp_path, agents, begin):
    assert any(text.startswith(begin) for text in warnings_of(tmp_path, agents))


def test_episodes_that_were_copied(trajectories, tmp_path):
    """In a world that repeats itself, equal episodes are no copies, and are not equally frequent."""
    halves = [np.concatenate([x[:100, :6], x[:100, :6]]) for x in trajectories]
    found = [text for text in warnings_of(tmp_path, halves) if "copies" in text]
    assert found[0].startswith("0 has episodes several times: 100 of the first 200 are copies of others.")
    assert len(found) == 2
    poor = [np.random.default_rng(k).integers(0, 2, (300, 4, 2)) for k in range(2)]  # 256 different ones
    assert not any("copies" in text for text in warnings_of(tmp_path, poor))


def test_agents_recorded_under_different_light(trajectories, tmp_path):
    dark, light = trajectories[0][:, :6].astype(np.int16), trajectories[1][:, :6].astype(np.int16) + 40
    (text,) = (
        text for text in warnings_of(tmp_path, [dark, light]) if "first observations of these agents differ" in text
    )
    assert "of the range of values in the mean of an entry: 0 and 1. They begin in different states" in text


def test_starts_that_differ_by_compression_alone(tmp_path):
    """Agents that begin alike and then go different ways; their first frames differ by little, and it is said why."""
    rng = np.random.default_rng(0)
    still = rng.integers(60, 200, (32, 32, 3), dtype=np.uint8)
    for k, agent in enumerate(("ann", "ben")):
        for i in range(30):
            frames = np.repeat(still[None], 6, axis=0)
            for h in range(1, 6):
                frames[h, 4 * h + 4 * k : 4 * h + 4 * k + 8, 4 : 12 + i % 5] = 255 * k
            write_video(tmp_path / agent / f"{i}.mp4", frames, "libx264", "yuv420p", crf="35")
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data")
    (text,) = (
        text for text in inspect(tmp_path / "data").warnings if "first observations of these agents differ" in text
    )
    assert "Where that is little, lossy compression (h264 yuv420p) may be the reason" in text
    size = float(text.split("by up to ")[1].split(" of 255")[0])
    assert 0 < size < 40


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (range(9), []),
        ([0, 1, 2, 3, 7, 8, 9, 10, 11], ["Frames come at unequal intervals (ben 100 to 400 ms), so that steps"]),
        (range(0, 18, 2), ["Frames of these agents come at different intervals (ann 100 ms, ben 200 ms)"]),
    ],
)
def test_intervals_that_vary_or_differ_between_agents(tmp_path, times, said):
    for k, (agent, when) in enumerate({"ann": range(9), "ben": times}.items()):
        write_video(tmp_path / agent / "a.mp4", episodes(k, lengths=(9,))[0], "libx264", times=when)
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data")
    found = [text for text in inspect(tmp_path / "data").warnings if "intervals" in text]
    assert len(found) == len(said)
    assert all(map(str.startswith, found, said))


def test_the_text(tmp_path):
    """Names, numbers, shapes and every warning."""
    for k, (agent, how) in enumerate({"ann": {}, "ben": {"codec": "libx264", "pixels": "yuv420p"}}.items()):
        write_videos(tmp_path / agent, episodes(k, lengths=(8, 9)), "mkv", **how)
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data")
    text = str(inspect(tmp_path / "data"))
    assert "2 agents, 4 episodes of up to 9 steps; images of shape (16, 16, 3), uint8" in text
    assert "  ann           2         8     8.5        9  video" in text
    assert "actions, which no learner reads: none" in text
    assert "warning: Few episodes: ann has 2, ben has 2." in text
    assert "warning: Lossy compression (ann: none; ben: h264 yuv420p)" in text
    assert "The agents were compressed differently" in text
    agents = {name: zip(episodes(k, (4,), (3,) * 210), np.zeros((210, 3))) for k, name in enumerate(("ann", "ben"))}
    import_data(agents, tmp_path / "good")
    text = str(inspect(tmp_path / "good"))
    assert "actions, which no learner reads: beside the observations" in text
    assert "  ann         210         3       3        3  Python" in text


@pytest.mark.parametrize("shape", [(16, 16, 3), (300, 20, 1), (5,)])
def test_the_contact_sheet_shows_the_frames(shape, tmp_path):
    """The first tile is the first frame; past an episode's end there is none."""
    agents = [episodes(k, shape, (4, 2)) for k in (0, 1)]
    TrajectoryDataset.from_episodes(agents).save(tmp_path / "data")
    inspect(tmp_path / "data", tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    paper, left, top, pitch = sheet[-1, -1], 96, 44, 106
    height, width = {(16, 16, 3): (96, 96), (300, 20, 1): (96, 6), (5,): (64, 96)}[shape]
    tiles = [[sheet[y : y + height, x : x + width] for x in (left, left + 2 * pitch)] for y in (top, top + height + 10)]
    assert (tiles[0][0] != paper).any()
    assert (tiles[0][1] != paper).any()
    assert (tiles[1][0] != paper).any()
    assert (tiles[1][1] == paper).all()
    if shape == (16, 16, 3):
        assert np.array_equal(tiles[0][0], np.kron(agents[0][0][0], np.ones((6, 6, 1), dtype=np.uint8)))


def test_a_sheet_is_no_other_file(tmp_path):
    TrajectoryDataset.from_episodes([episodes(k, (4,)) for k in (0, 1)]).save(tmp_path / "data")
    (tmp_path / "there.png").write_bytes(b"mine")
    for name, reason in {"there.png": "is there already", "sheet.txt": "must be named NAME.png"}.items():
        with pytest.raises(CraftError, match=reason):
            inspect(tmp_path / "data", tmp_path / name)
    assert (tmp_path / "there.png").read_bytes() == b"mine"
    inspect(tmp_path / "data", tmp_path / "there.png", overwrite=True)
    assert (tmp_path / "there.png").read_bytes().startswith(b"\x89PNG")
