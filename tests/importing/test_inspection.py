"""What `inspect` says of a store, and that its warnings come where they should and nowhere else."""

import numpy as np
import pytest
from PIL import Image

from craftrl import TrajectoryDataset
from craftrl.cli import main
from craftrl.envs import BitsExBMDP, PixelsExBMDP, collect
from craftrl.importing import import_data, inspect
from recordings import episodes, write_videos


def rows(tau):
    return np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)


def warnings_of(folder, agents):
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
    return [rows(tau)[tau.agent == k] for k in range(2)]


def test_no_warnings_for_good_data(trajectories, tmp_path):
    assert warnings_of(tmp_path, [x[:, :6] for x in trajectories]) == ()


def test_starts_that_vary(trajectories, tmp_path):
    start = np.random.default_rng(0).integers(3, 7, size=len(trajectories[0]))
    clips = [[x[i, s : s + 6] for i, s in enumerate(start)] for x in trajectories]
    assert any("first observation seems to vary" in text for text in warnings_of(tmp_path, clips))


def test_one_agent_in_halves_is_too_alike(trajectories, tmp_path):
    (text,) = (t for t in warnings_of(tmp_path, [trajectories[0][::2], trajectories[0][1::2]]) if "Few" not in t)
    assert text.startswith("These agents look alike: 0 and 1.")


def test_one_agents_data_twice(tmp_path):
    """Half of the second agent's episodes are the first one's."""
    a, b = (episodes(k, lengths=(4,) * 40) for k in (0, 1))
    found = warnings_of(tmp_path, [a, [*a[:20], *b[:20]]])
    assert any("0 and 1 share episodes: 20 of the first 40 are the same" in text for text in found)


def test_episodes_that_were_copied(trajectories, tmp_path):
    """In a world that repeats itself, equal episodes are no copies, and are not equally frequent."""
    halves = [np.concatenate([x[:100, :6], x[:100, :6]]) for x in trajectories]
    found = [text for text in warnings_of(tmp_path, halves) if "copies" in text]
    assert found[0].startswith("0 has episodes several times: 100 of the first 200 are copies of others.")
    assert len(found) == 2
    poor = [np.random.default_rng(k).integers(0, 2, (300, 4, 2)) for k in range(2)]  # 256 different ones
    (tmp_path / "data").unlink()
    assert not any("copies" in text for text in warnings_of(tmp_path, poor))


def test_observations_that_never_change(tmp_path):
    found = warnings_of(tmp_path, [np.ones((40, 3, 4, 4, 1), np.uint8)] * 2)
    assert found[0].startswith("All observations are the same")


def test_agents_recorded_under_different_light(trajectories, tmp_path):
    dark, light = trajectories[0][:, :6].astype(np.int16), trajectories[1][:, :6].astype(np.int16) + 40
    assert any("first observations of these agents differ" in text for text in warnings_of(tmp_path, [dark, light]))


def test_few_episodes(tmp_path):
    found = warnings_of(tmp_path, [episodes(0, (4,), (3,) * 210), episodes(1, (4,), (3,) * 20)])
    assert any(text.startswith("Few episodes: 1 20.") for text in found)


@pytest.fixture
def clips(tmp_path):
    for k, (agent, how) in enumerate({"ann": {}, "ben": {"codec": "libx264", "pixels": "yuv420p"}}.items()):
        write_videos(tmp_path / agent, episodes(k, lengths=(8, 9)), "mkv", **how)
    import_data([tmp_path / "ann", tmp_path / "ben"], tmp_path / "data", clip=4)
    return tmp_path


def test_the_text(clips, capsys):
    """Names, numbers, shapes and every warning, and a picture beside the store."""
    assert main(["inspect", str(clips / "data")]) == 0
    out = capsys.readouterr().out
    assert "2 agents, 8 episodes of up to 4 steps; images of shape (16, 16, 3), uint8" in out
    assert "  ann           4         4       4        4  video" in out
    assert "warning: Episodes are clips of 4 steps" in out
    assert "warning: Lossy compression (ann: none; ben: h264 yuv420p)" in out
    assert "The agents were compressed differently" in out
    assert f"contact sheet: {clips / 'data.sheet.png'}" in out
    assert (clips / "data.sheet.png").is_file()


@pytest.mark.parametrize("shape", [(16, 16, 3), (300, 20, 1), (5,)])
def test_the_contact_sheet_shows_the_frames(shape, tmp_path):
    """The first tile is the first frame; past an episode's end there is none."""
    agents = [episodes(k, shape, (4, 2)) for k in (0, 1)]
    TrajectoryDataset.from_episodes(agents).save(tmp_path / "data")
    inspect(tmp_path / "data", tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    from craftrl.importing.contact_sheet import GAP, LEFT, PAPER, TOP, _Scale

    scale = _Scale(TrajectoryDataset.open(tmp_path / "data"))
    width, height = scale.size
    y = GAP + 2 * TOP
    tile = sheet[y : y + height, LEFT : LEFT + width]
    assert np.array_equal(tile, np.asarray(scale.tile(agents[0][0][0])))
    if shape == (16, 16, 3):
        assert np.array_equal(tile, np.kron(agents[0][0][0], np.ones((6, 6, 1), dtype=np.uint8)))
    ended = sheet[y + height + GAP : y + 2 * height + GAP, LEFT + 2 * scale.pitch : LEFT + 2 * scale.pitch + width]
    assert (ended == PAPER).all()


def test_no_sheet(tmp_path, capsys):
    TrajectoryDataset.from_episodes([episodes(k, (4,)) for k in (0, 1)]).save(tmp_path / "data")
    assert main(["inspect", str(tmp_path / "data"), "--no-sheet"]) == 0
    assert "contact sheet" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
