"""A store that is slow, busy, cut off or closed: tried again a bounded number of times, then one sentence."""

import itertools
import re
import time

import fsspec.config
import numpy as np
import pytest
from craftrl.data.attempts import attempted
from craftrl.data.places import place

import craftrl
from craftrl import CRAFT, CoordinateOracle, InvalidDataError, TrajectoryDataset
from craftrl.cli import main
from craftrl.data import attempts, filesystems, storage
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import RemoteError
from s3_server import keys, running

s3 = pytest.fixture(scope="module")(running)


@pytest.fixture(autouse=True)
def soon_again(monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(storage, "BLOCK_BYTES", 8000)


@pytest.fixture(scope="module")
def tau():
    world = BitsExBMDP(horizon=5, n_features=9, seed=0)
    return collect(world, world.paper_policies(), [300, 170], seed=1).tau


@pytest.fixture
def data(s3, tau):
    """Shards and an HDF5 file, written once."""
    if not keys(s3, "data/"):
        tau.save("s3://bucket/data/shards")
        tau.save("s3://bucket/data/tau.h5")
    return s3


def same_steps(where, tau):
    opened = TrajectoryDataset.open(where)
    return all(np.array_equal(opened.at(h), tau.at(h)) for h in range(1, tau.H + 1))


@pytest.mark.parametrize(("name", "kind"), [("shards", 500), ("shards", "cut"), ("tau.h5", 503), ("tau.h5", "cut")])
def test_what_passes_by_is_not_noticed(data, tau, kind, name, caplog):
    with (
        data.failing("GET", f"data/{name}/shard_" if name == "shards" else name, kind, 3),
        data.failing("HEAD", name, 503, 2),
    ):
        assert same_steps(f"s3://bucket/data/{name}", tau)
    said = [record.getMessage() for record in caplog.records if record.name == "craftrl"]
    assert any(re.search(r"could not be read \(.+\); try 2 of 6", line) for line in said)


def test_what_is_written_is_tried_again(s3, tau):
    where = "s3://bucket/written"
    with (
        s3.failing("PUT", "written", 503, 2),
        s3.failing("PUT", "written", 500, 2),
        s3.failing("GET", "written", 500, 2),
    ):
        tau.save(where)
    assert same_steps(where, tau)


def test_an_answer_that_is_lost_does_not_make_a_stranger_of_us(s3):
    """The manifest is there, but nobody said so: the next try finds it, and that it is ours."""
    at = place("s3://bucket/lost.json")
    write, asked = at.write_bytes, []
    filesystem, _ = filesystems.filesystem(at.url)
    pipe = filesystem.pipe_file

    def lost(*args, **kwargs):
        pipe(*args, **kwargs)
        asked.append(1)
        if len(asked) == 1:
            raise ConnectionResetError("on purpose")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filesystem, "pipe_file", lost)
        at.write_new(b"ours")
    assert at.read_bytes() == b"ours"
    write(b"theirs")
    with pytest.raises(FileExistsError):
        at.write_new(b"ours")


def test_of_two_manifests_at_one_moment_the_store_takes_one(s3):
    at = place("s3://bucket/moment.json")
    at.write_bytes(b"first")
    filesystem, _ = filesystems.filesystem(at.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filesystem, "exists", lambda path: False)  # it came after we had looked
        with pytest.raises(FileExistsError):
            at.write_new(b"second")
    assert at.read_bytes() == b"first"


@pytest.mark.parametrize("name", ["shards", "tau.h5"])
def test_a_store_that_stays_busy_is_given_up_in_one_sentence(data, name):
    with data.failing("GET", name, 503) as fault, pytest.raises(RemoteError, match="in 6 tries") as told:
        TrajectoryDataset.open(f"s3://bucket/data/{name}")
    assert "s3://bucket/data" in str(told.value)
    assert 10**9 - fault.times == 6


def test_a_store_that_becomes_busy_is_given_up_in_one_sentence(data):
    opened = TrajectoryDataset.open("s3://bucket/data/shards")
    with data.failing("GET", "shard", 503), pytest.raises(RemoteError, match="in 6 tries"):
        opened.at(5)


@pytest.mark.parametrize(("method", "act"), [("GET", "read"), ("PUT", "written")])
def test_a_silent_server_is_not_waited_for_without_end(s3, method, act, monkeypatch):
    place("s3://bucket/silent").write_bytes(bytes(100))
    monkeypatch.setattr(filesystems, "PATIENCE", 0.2)
    monkeypatch.setattr(attempts, "TRIES", 2)
    with s3.failing(method, "silent", "hang") as fault:
        at = place("s3://bucket/silent")
        with pytest.raises(RemoteError, match=f"could not be {act} in 2 tries"):
            at.read_range(0, 50) if act == "read" else at.write_bytes(b"x")
        assert fault.times == 10**9 - 2


def test_no_access_is_told_at_once(data, capsys):
    with data.failing("GET", "shards", 403) as fault, data.failing("HEAD", "shards", 403):
        assert main(["inspect", "s3://bucket/data/shards", "--no-sheet"]) == 2
        assert fault.times >= 10**9 - 1
    told = capsys.readouterr().err
    assert re.fullmatch(r"The store must let you in; s3://bucket/data/shards cannot be found \(.+\)[^.]+\.\n", told)


def test_no_bucket_and_no_key(s3, tau, capsys):
    for missing in ("s3://no-such-bucket/data", "s3://bucket/no-such-key"):
        assert main(["inspect", missing, "--no-sheet"]) == 2
        assert f"There must be a dataset at {missing}; nothing is there" in capsys.readouterr().err
    with pytest.raises(RemoteError, match="nothing can be written to s3://no-such-bucket/x "):
        tau.save("s3://no-such-bucket/x")
    assert "no-such-bucket" not in [bucket["Name"] for bucket in s3.client.list_buckets()["Buckets"]]


def test_a_wrong_endpoint_is_told(s3, monkeypatch, capsys):
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": "http://127.0.0.1:9"})
    assert main(["inspect", "s3://bucket/data", "--no-sheet"]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "s3://bucket/data could not be found in 6 tries (Could not connect to the endpoint URL" in told


def test_no_credentials_is_told(s3, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": s3.url})
    with pytest.raises(RemoteError, match=r"The store must let you in; .* \(Unable to locate credentials\)"):
        craftrl.load("s3://bucket/model")


def test_an_upload_in_parts_that_breaks_off_leaves_nothing(s3, tmp_path, monkeypatch):
    file = tmp_path / "large"
    file.write_bytes(bytes(11 * 2**20))
    monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda size, chunksize=None: 5 * 2**20)
    monkeypatch.setattr(attempts, "TRIES", 2)
    at = place("s3://bucket/in-parts")
    with s3.failing("PUT", "partNumber=2", 500), pytest.raises(RemoteError, match="could not be written in 2 tries"):
        at.upload(file)
    assert not at.exists()
    assert "Uploads" not in s3.client.list_multipart_uploads(Bucket="bucket")
    at.upload(file)
    assert at.length() == 11 * 2**20


def test_a_failing_writer_leaves_nothing_behind(s3, tau, tmp_path, monkeypatch):
    monkeypatch.setattr(attempts, "TRIES", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = CRAFT(CoordinateOracle(2), alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    for last, save in (("manifest.json", tau.save), ("shard_00002", tau.save), ("failing", model.save)):
        with s3.failing("PUT", last, 500), pytest.raises(RemoteError, match="could not be written in 2 tries"):
            save("s3://bucket/failing")
        assert not keys(s3, "failing")
    assert not list(tmp_path.iterdir())


def test_damage_in_an_hdf5_file_is_no_fault_of_the_store(s3, data):
    content = place("s3://bucket/data/tau.h5").read_bytes()
    place("s3://bucket/cut.h5").write_bytes(content[:-3000])
    with pytest.raises(InvalidDataError, match=r"s3://bucket/cut\.h5 must be a dataset written by craftrl"):
        TrajectoryDataset.open("s3://bucket/cut.h5")


def test_waits_grow_and_are_bounded(monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_WAIT", 0.25)
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)

    def busy():
        raise TimeoutError("busy")

    with pytest.raises(RemoteError, match=r"s3://x/y could not be read in 6 tries \(busy\)"):
        attempted("s3://x/y", "read", busy)
    assert len(waits) == 5
    assert all(later > earlier for earlier, later in itertools.pairwise(waits))
    assert sum(waits) < 10
