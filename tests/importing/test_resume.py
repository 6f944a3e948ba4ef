"""An import that was stopped, by whatever means, goes on; what is in the dataset is not read again."""

import numpy as np
import pytest

from craftrl import CraftError, InvalidParameterError
from craftrl.data import store
from craftrl.importing import import_data, recordings
from recordings import assert_same, episodes, stored, write_table, write_videos

LENGTHS = (5, 3, 4, 6)
SMALL = 4 * 16 * 16 * 3  # bytes of four frames: so small a file is written after every episode or two
CUTS = [(0, 2, "cat"), (1, 4, "dog"), (3, 5, "cat")]


@pytest.fixture
def agents(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FILE_BYTES", SMALL)
    monkeypatch.chdir(tmp_path)
    given = [episodes(k, lengths=LENGTHS) for k in (0, 1)]
    for agent, x in zip(("ann", "ben"), given):
        write_videos(tmp_path / agent, x)
    return tmp_path, given


@pytest.fixture
def decoded(monkeypatch):
    """The names of the files that frames are taken from; after so many frames, the import is interrupted."""
    found, pixels, limit = [], recordings._pixels, [10**9]

    def counted(frame, path):
        found.append(path.name)
        if len(found) > limit[0]:
            raise KeyboardInterrupt
        return pixels(frame, path)

    monkeypatch.setattr(recordings, "_pixels", counted)
    return found, limit


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"boundaries": "cuts.csv"}])
def test_interrupted_and_given_again(agents, decoded, options):
    """The same bytes, and no more is decoded again than what had not been written yet."""
    folder, _ = agents
    found, limit = decoded
    rows = [f"{agent}/episode{i}.mkv,{a},{b},{to}" for agent in ("ann", "ben") for i in (0, 3) for a, b, to in CUTS]
    (folder / "cuts.csv").write_text("\n".join(["file,start,stop,agent", *rows]))
    import_data(["ann", "ben"], "alone", **options)
    all_frames = len(found)
    for frames in (3, 13, 20, 35):
        found.clear()
        limit[0] = min(frames, all_frames - 1)
        with pytest.raises(KeyboardInterrupt):
            import_data(["ann", "ben"], f"data{frames}", **options)
        limit[0] = 10**9
        import_data(["ann", "ben"], f"data{frames}", **options)
        assert contents(folder / f"data{frames}") == contents(folder / "alone")
        assert len(found) <= all_frames + 3 + 2 * (3 + max(LENGTHS))  # two first frames; two unwritten episodes


@pytest.mark.parametrize("light", [None, "agent"])
def test_a_finished_import_returns_at_once_and_another_is_refused(agents, decoded, light):
    found, _ = decoded
    import_data(["ann", "ben"], "data", standardise=light)
    found.clear()
    assert import_data(["ann", "ben"], "data", standardise=light).K == 2
    assert found == []
    with pytest.raises(InvalidParameterError, match="data exists already; remove it, or choose another name"):
        import_data(["ann", "ben"], "data", stride=2)
    write_videos(agents[0] / "ben", episodes(2)[:1])
    with pytest.raises(InvalidParameterError, match=r"Recordings have changed|data exists already"):
        import_data(["ann", "ben"], "data", standardise=light)


@pytest.mark.parametrize("mend", ["copied again", "moved away", "another replaced", "another added"])
def test_after_a_broken_video_the_import_goes_on_unless_others_have_changed(agents, decoded, mend):
    folder, (ann, ben) = agents
    found, _ = decoded
    broken = folder / "ben/episode2.mkv"
    good = broken.read_bytes()
    broken.write_bytes(b"")
    with pytest.raises(CraftError, match=r"ben/episode2.mkv must be a video"):
        import_data(["ann", "ben"], "data")
    found.clear()
    if mend.startswith("another"):
        new = write_videos(folder / "new", episodes(2)[:1]) / "episode0.mkv"
        new.rename(folder / ("ann/episode1.mkv" if mend == "another replaced" else "ann/a.mkv"))
        with pytest.raises(InvalidParameterError, match="Recordings have changed since data was written; remove it"):
            import_data(["ann", "ben"], "data")
        return
    broken.unlink()
    if mend == "copied again":
        broken.write_bytes(good)
    import_data(["ann", "ben"], "data")
    assert_same(stored("data"), [ann, ben if mend == "copied again" else [*ben[:2], ben[3]]])
    assert len(found) < sum(LENGTHS)  # ann's are not decoded again, but for the last and the first frame


def test_other_options_start_over(agents, decoded):
    """As after frames of unequal size, which a crop makes equal."""
    _, given = agents
    _, limit = decoded
    limit[0] = 25
    with pytest.raises(KeyboardInterrupt):
        import_data(["ann", "ben"], "data")
    limit[0] = 10**9
    import_data(["ann", "ben"], "data", crop=(0, 0, 8, 8))
    assert_same(stored("data"), [[x[:, :8, :8] for x in agent] for agent in given])


def test_episodes_from_python_start_over(agents):
    """Nobody knows whether a generator gives the same again."""

    def broken(x):
        yield from x[:3]
        raise ZeroDivisionError

    _, (ann, ben) = agents
    with pytest.raises(ZeroDivisionError):
        import_data({"ann": ann, "ben": broken(ben)}, "data")
    import_data({"ann": ann, "ben": iter(ben[::-1])}, "data")
    assert_same(stored("data"), [ann, ben[::-1]])
    with pytest.raises(InvalidParameterError, match="data exists already"):
        import_data({"ann": ann, "ben": ben}, "data")


def test_a_table_of_several_agents_goes_on(tmp_path, monkeypatch):
    """Episodes of the agents take turns in the file."""
    given = episodes(0, (4,), (3,) * 40)
    path = write_table(tmp_path / "steps.csv", given, agent=["ann", "ben"] * 20)
    appended, append = [], store.DatasetWriter.append

    def until(self, *given, **named):
        appended.append(named["source"])
        if len(appended) == 30:
            raise KeyboardInterrupt
        append(self, *given, **named)

    monkeypatch.setattr(store, "FILE_BYTES", 200)
    import_data([path], tmp_path / "alone")
    with monkeypatch.context() as patch:
        patch.setattr(store.DatasetWriter, "append", until)
        with pytest.raises(KeyboardInterrupt):
            import_data([path], tmp_path / "data")
    import_data([path], tmp_path / "data")
    assert contents(tmp_path / "data") == contents(tmp_path / "alone")
    assert np.array_equal(stored(tmp_path / "data")[0][0].astype(np.float32), given[0])
