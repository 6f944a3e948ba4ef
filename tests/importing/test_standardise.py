"""Recordings of unequal light, each standardised by itself."""

import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError
from craftrl.importing import import_data, read_episodes
from recordings import episodes, stored, write_videos


@pytest.fixture
def paths(tmp_path):
    """The same scenes for two agents; the second is filmed brighter, flatter and tinted, each time otherwise."""
    plain = [[np.clip(x // 2 + 60, 0, 255) for x in episodes(k, lengths=(40, 30))] for k in (0, 1)]
    light = [((1.0, 1.0), (0, 0)), ((0.8, 0.9), (20, 35))]
    for agent, own, (factor, more) in zip(("ann", "ben"), plain, light):
        films = [x * f * np.array([1.0, 0.95, 1.05] if m else [1, 1, 1]) + m for x, f, m in zip(own, factor, more)]
        write_videos(tmp_path / agent, [x.round().clip(0, 255).astype(np.uint8) for x in films])
    return tmp_path / "ann", tmp_path / "ben"


def light(x):
    return np.concatenate([x.mean(axis=(0, 1, 2)), x.std(axis=(0, 1, 2))])


def test_each_recording_by_itself(paths, tmp_path):
    tau = import_data(paths, tmp_path / "data", standardise="recording")
    found = [light(x) for agent in stored(tmp_path / "data") for x in agent]
    for own in found:
        assert np.allclose(own, np.ravel(tau.notes["reading"]["light"]), atol=0.6)
    import_data(paths, tmp_path / "plain")
    before = [light(x) for agent in stored(tmp_path / "plain") for x in agent]
    assert np.ptp(before, axis=0).max() > 20
    assert np.allclose(np.mean(before, axis=0), np.mean(found, axis=0), atol=0.6)  # the light of all, in the mean


def test_an_agents_recordings_together(paths, tmp_path):
    import_data(paths, tmp_path / "data", standardise="agent")
    ann, ben = (np.concatenate(agent) for agent in stored(tmp_path / "data"))
    assert np.allclose(light(ann), light(ben), atol=0.6)
    first, second = stored(tmp_path / "data")[1]
    assert abs(first.mean() - second.mean()) > 5


def test_new_recordings_are_standardised_alike(paths, tmp_path):
    tau = import_data(paths, tmp_path / "data", standardise="recording", stride=2, resize=8)
    again = [episode.x for episode in read_episodes(paths, **tau.notes["reading"])]
    kept = [x for agent in stored(tmp_path / "data") for x in agent]
    assert all(np.array_equal(x, y) for x, y in zip(kept, again, strict=True))


@pytest.mark.parametrize(
    ("agents", "how", "reason"),
    [
        ("arrays", "recording", "must be pictures of 8 bits"),
        ("own", "recording", "reads recordings twice"),
        ("arrays", True, "standardise must be one of"),
    ],
)
def test_what_cannot_be_standardised(tmp_path, agents, how, reason):
    for k in (0, 1):
        np.save(tmp_path / f"{k}.npy", np.random.default_rng(k).normal(size=(4, 5, 3)))
    given = {"ann": tmp_path / "0.npy", "ben": tmp_path / "1.npy"}
    if agents == "own":
        given = {name: iter(episodes(k)) for k, name in enumerate(given)}
    with pytest.raises((InvalidDataError, InvalidParameterError), match=reason):
        import_data(given, tmp_path / "data", standardise=how)
