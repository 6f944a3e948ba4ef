"""Data, models and results in stores that have a URL: the same as on a disk, and whole or not there at all."""

import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import craftrl
from craftrl import CRAFT, CoordinateOracle, InvalidDataError, InvalidParameterError, TrajectoryDataset
from craftrl.cli import main
from craftrl.data import places, ranges, storage
from craftrl.data.attempts import attempted
from craftrl.data.files import write_json
from craftrl.data.hdf5 import read_notes
from craftrl.data.places import place, source, target
from craftrl.data.publishing import Publication
from craftrl.data.raw import Reader
from craftrl.data.remote import Remote
from craftrl.data.shards import Shard, ShardSteps, ShardWriter, read_lengths, read_manifest
from craftrl.data.truth import read_true_states, truth_path
from craftrl.envs import BitsExBMDP, collect, record
from craftrl.errors import RemoteError
from craftrl.reproduce.runner import run_sweep
from s3_server import keys, running

s3 = pytest.fixture(scope="module")(running)
H, M = 5, 9


@pytest.fixture(scope="module")
def world():
    return BitsExBMDP(horizon=H, n_features=M, seed=0)


@pytest.fixture(scope="module")
def tau(world):
    return collect(world, world.paper_policies(), [300, 170], seed=1).tau


@pytest.fixture(params=["disk", "file", "memory", "renaming", "s3"])
def base(request, tmp_path, monkeypatch):
    """A folder in each kind of place, as a user would name it."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://bucket/{request.node.name}"
    if request.param == "renaming":  # as with a file server: it has folders, and files get other names
        pytest.importorskip("fsspec")
        monkeypatch.setattr(places, "DISKS", ())
        return f"local://{tmp_path}"
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return f"memory://{request.node.name}"
    return f"file://{tmp_path}" if request.param == "file" else str(tmp_path)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK_BYTES", 8000)  # three shards


def same(a, b):
    assert (a.H, a.n, a.K, a.obs_shape, a.dtype) == (b.H, b.n, b.K, b.obs_shape, b.dtype)
    assert np.array_equal(a.agent, b.agent)
    assert np.array_equal(a.lengths, b.lengths)
    for h in range(1, a.H + 1):
        assert np.array_equal(a.at(h), b.at(h))


def read_all(where):
    opened = TrajectoryDataset.open(where)
    return [opened.at(h) for h in range(1, opened.H + 1)]


def fitted(x):
    return CRAFT(CoordinateOracle(2), alpha=1.0, eta=0.2, nu=0.1).fit(x)


# -- names -------------------------------------------------------------------------------------------------------


def test_what_is_a_url_and_what_is_a_file_with_an_odd_name(tmp_path):
    assert isinstance(place("s3://bucket/x"), Remote)
    for name in ("C:/data.h5", "C://data.h5", "12:30.h5", "a:b/c", "s3:/bucket/x"):
        assert isinstance(place(name), Path)
    assert place(f"file://{tmp_path}/x") == tmp_path / "x"
    with pytest.raises(InvalidParameterError, match="takes one away"):
        source("The dataset", Path("s3://bucket/x"))
    with pytest.raises(InvalidParameterError, match=r"must have a name in a bucket, such as s3://bucket/name"):
        target("The model", "s3://bucket/")
    for odd in ("s3://", "s3://bucket/../x"):
        with pytest.raises(InvalidParameterError, match="must be a path or a URL"):
            source("The dataset", odd)


def test_a_remote_name_is_taken_apart_as_a_path_is():
    at = place("s3://bucket/folder/data.h5/")
    assert (at.name, at.stem, at.suffix, str(at.parent)) == ("data.h5", "data", ".h5", "s3://bucket/folder")
    assert str(at.with_name("x") / "y") == "s3://bucket/folder/x/y"
    assert truth_path(at) == Remote("s3://bucket/folder/data.truth.npz")
    assert pickle.loads(pickle.dumps(at)) == at


def test_what_must_be_local_says_so(tmp_path, capsys):
    assert main(["import", str(tmp_path), "--out", "s3://bucket/data.h5"]) == 2
    told = capsys.readouterr().err
    assert "The store must be on a disk of this machine; 's3://bucket/data.h5' was given; use a local file" in told
    with pytest.raises(RemoteError, match="must be of a kind that fsspec knows; nosuch:// was given"):
        craftrl.load("nosuch://x/y")


# -- the same everywhere -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tau.h5", "shards"])
def test_a_dataset_round_trip(tau, base, name, small_blocks):
    where = f"{base}/{name}"
    tau.save(where)
    opened = TrajectoryDataset.open(where)
    same(opened, tau)
    assert np.array_equal(fitted(where).labels_, fitted(tau).labels_)
    with pytest.raises(InvalidParameterError, match="exists already"):
        tau.save(where)
    same(pickle.loads(pickle.dumps(opened)), tau)
    reader = Reader(opened.steps)
    assert reader.raw is not None
    for step, start, stop in ((0, 0, 470), (3, 17, 18), (4, 290, 320)):
        x = np.empty((stop - start, M), np.uint8)
        reader.read_into(step, start, x)
        assert np.array_equal(x, tau.steps.read(step, start, stop))


def test_episodes_of_unequal_length_and_names_of_agents(base):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 7, size=(3, 20))
    uneven = TrajectoryDataset.from_episodes([[rng.random((m, 2, 3)) for m in agent] for agent in lengths])
    uneven.save(f"{base}/shards")
    same(TrajectoryDataset.open(f"{base}/shards"), uneven)
    named = TrajectoryDataset(uneven.steps, uneven.agent, uneven.lengths, names=["ann", "bob", "cy"])
    named.save(f"{base}/tau.h5")
    assert TrajectoryDataset.open(f"{base}/tau.h5").names == ("ann", "bob", "cy")
    assert read_notes(f"{base}/tau.h5")["agents"] == ["ann", "bob", "cy"]


def test_a_model_round_trip(tau, base):
    model, other = fitted(tau), CRAFT(CoordinateOracle(2), alpha=0.9, eta=0.2, nu=0.1).fit(tau)
    where = f"{base}/model"
    model.save(where)
    assert np.array_equal(craftrl.load(where).transform(tau), model.transform(tau))
    with pytest.raises(InvalidParameterError, match="holds a model already"):
        other.save(where)
    other.save(where, overwrite=True)
    assert craftrl.load(where).alpha == 0.9
    tau.save(f"{base}/data")
    with pytest.raises(InvalidParameterError, match="exists and is no model of ours"):
        model.save(f"{base}/data", overwrite=True)
    with pytest.raises(InvalidDataError, match=r"has no config\.json of one"):
        craftrl.load(f"{base}/none")


def test_a_world_is_recorded_with_its_truth(world, base):
    collection = record(world, world.paper_policies(), 40, f"{base}/data", seed=3)
    opened = TrajectoryDataset.open(f"{base}/data")
    same(opened, collection.tau)
    assert np.array_equal(read_true_states(truth_path(f"{base}/data"), opened), collection.truth.states)


@dataclass(frozen=True)
class Settings:
    n: int


def test_a_sweep_goes_on_where_it_stopped(base, monkeypatch):
    ran = []

    def square(settings):
        ran.append(settings.n)
        return {"square": settings.n**2}

    runs = [Settings(n) for n in range(3)]
    rows = run_sweep("squares", runs[:3], square, base, progress=False)
    assert [row["square"] for row in rows] == [0, 1, 4]
    (at,) = [file for file in _rows(base) if json.loads(file.read_text())["n"] == 1]
    at.unlink()
    (place(base) / "rows.jsonl").unlink()
    assert run_sweep("squares", runs, square, base, progress=False) == rows
    assert ran == [0, 1, 2, 1]
    with pytest.raises(InvalidParameterError, match="A results folder holds one sweep"):
        run_sweep("squares", runs[:2], square, base, progress=False)


def _rows(base):
    folder = place(base) / "rows"
    return list(folder.iterdir() if isinstance(folder, Path) else folder.files().values())


# -- whole or not at all -----------------------------------------------------------------------------------------


def test_equal_data_makes_equal_folders_and_the_manifest_says_what_is_whole(s3, tau, small_blocks):
    for name in ("a", "b"):
        tau.save(f"s3://bucket/equal/{name}")
    first, second = (sorted(key.rpartition("/")[2] for key in keys(s3, f"equal/{name}/")) for name in "ab")
    assert first == second
    content = json.loads(place("s3://bucket/equal/a/manifest.json").read_text())
    for shard in content["shards"]:
        data = place(f"s3://bucket/equal/a/{shard['file']}").read_bytes()
        assert shard["bytes"] == len(data)
        assert shard["sha256"][:12] in shard["file"]


@pytest.mark.parametrize("harm", ["missing", "short", "long", "flipped", "manifest"])
def test_damage_is_refused_in_one_sentence(s3, tau, harm, small_blocks):
    folder = place(f"s3://bucket/damage-{harm}")
    tau.save(folder)
    shard = read_manifest(folder).shards[1].file
    data = shard.read_bytes()
    if harm == "missing":
        shard.unlink()
    elif harm == "manifest":
        (folder / "manifest.json").write_bytes((folder / "manifest.json").read_bytes()[:-40])
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        shard.write_bytes({"short": data[:-100], "long": data + b"x", "flipped": flipped}[harm])
    with pytest.raises(InvalidDataError, match="write or copy it again") as told:
        read_all(folder)
    assert str(told.value).count(". ") == 0


def test_a_shard_that_changes_after_it_was_opened_is_noticed(s3, tau, small_blocks):
    folder = place("s3://bucket/changing")
    tau.save(folder)
    opened = TrajectoryDataset.open(folder)
    first = opened.steps.files[0]
    data = first.read_bytes()
    middle = len(data) // 2
    first.write_bytes(data[:middle] + bytes(100) + data[middle + 100 :])
    with pytest.raises(InvalidDataError, match="Every shard must be whole"):
        list(map(opened.at, range(1, H + 1)))
    first.unlink()
    with pytest.raises(InvalidDataError, match="missing"):
        pickle.loads(pickle.dumps(opened)).at(1)  # what a worker gets: nothing is kept


def test_a_killed_writer_leaves_nothing_that_is_read_and_the_same_again_cleans_up(s3, tmp_path, capsys):
    """The process is killed while its second shard is on the way."""
    command = ["collect", "--world", "bits", "--horizon", "4", "--features", "8", "--n", "50", "--out"]
    where = "s3://bucket/killed/data"
    with s3.failing("PUT", "killed/data/shard_00001", "hang") as fault:
        process = subprocess.Popen([sys.executable, "-m", "craftrl", *command, where], stderr=subprocess.PIPE)
        try:
            assert fault.met.wait(60)
        finally:
            process.kill()
            process.communicate()
    (left,) = [key for key in keys(s3, "killed/") if "shard" in key]
    assert left.startswith("killed/data/shard_00000.")
    with pytest.raises(InvalidDataError, match=r"has no whole manifest\.json"):
        TrajectoryDataset.open(where)
    abandoned = place("s3://bucket/killed/data/shard_00000.0123456789ab.npz")
    abandoned.write_bytes(b"of another try")
    assert main([*command, where]) == 0
    assert TrajectoryDataset.open(where).n == 100
    assert not abandoned.exists()
    assert len(keys(s3, "killed/data/")) == 3


def test_of_two_writers_at_once_the_second_is_refused_and_the_first_is_whole(s3, tau, small_blocks):
    where = "s3://bucket/two/data"
    other = collect(BitsExBMDP(horizon=H, n_features=M, seed=5), [*_policies()], [60, 60], seed=2).tau
    first = ShardWriter(where, H, (M,), np.uint8).__enter__()
    second = ShardWriter(where, H, (M,), np.uint8).__enter__()
    for writer, data in ((first, tau), (second, other)):
        for k in (0, 1):
            rows = data.agent_slice(k)
            x = np.stack([data.steps.read(step, rows.start, rows.stop) for step in range(H)], axis=1)
            writer.append(k, x)
    first.__exit__(None, None, None)
    with pytest.raises(InvalidParameterError, match="finished by somebody else meanwhile"):
        second.__exit__(None, None, None)
    same(TrajectoryDataset.open(where), tau)
    named = {shard.file.name for shard in read_manifest(where).shards}
    assert {key.rpartition("/")[2] for key in keys(s3, "two/data/")} == named | {"manifest.json"}


def _policies():
    return BitsExBMDP(horizon=H, n_features=M, seed=5).paper_policies()


def test_a_model_whose_save_was_killed_is_none_and_an_old_one_stays(s3, tau, tmp_path):
    where = place("s3://bucket/half/model")
    (tmp_path / "arrays.safetensors").write_bytes(b"parts of a model")
    Publication(where, tmp_path).send("arrays.safetensors")
    with pytest.raises(InvalidDataError, match=r"has no config\.json of one"):
        craftrl.load(where)
    model = fitted(tau)
    model.save(where)
    (tmp_path / "arrays.safetensors").write_bytes(b"parts of another")
    Publication(where, tmp_path).send("arrays.safetensors")
    assert np.array_equal(craftrl.load(where).labels_, model.labels_)
    assert len(keys(s3, "half/model/")) == 3
    arrays = place(f"s3://bucket/{keys(s3, 'half/model/arrays')[0]}")
    for part in keys(s3, "half/model/arrays"):
        place(f"s3://bucket/{part}").write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(InvalidDataError, match="its checksum does not fit"):
        craftrl.load(where)


def test_a_model_copied_from_a_store_is_read_on_disk(s3, tau, tmp_path):
    model = fitted(tau)
    model.save("s3://bucket/copied/model")
    for name, file in place("s3://bucket/copied/model").files().items():
        (tmp_path / name).write_bytes(file.read_bytes())
    assert np.array_equal(craftrl.load(tmp_path).transform(tau), model.transform(tau))


def test_a_folder_of_shards_copied_to_a_store_is_read_there(s3, tau, tmp_path, small_blocks):
    tau.save(tmp_path / "shards")
    for file in (tmp_path / "shards").iterdir():
        place(f"s3://bucket/shards-copied/{file.name}").upload(file)
    same(TrajectoryDataset.open("s3://bucket/shards-copied"), tau)


# -- what is read, and by whom -----------------------------------------------------------------------------------


def test_only_the_arrays_that_are_needed_are_read(s3):
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 256, size=(2000, 6, 100), dtype=np.uint8) for _ in range(2)]
    TrajectoryDataset.from_arrays(x).save("s3://bucket/large")
    with s3.counting() as opening:
        opened = TrajectoryDataset.open("s3://bucket/large")
    assert sum(n for method, _, n in opening if method == "GET") < 2 * 2**16 + 2 * 20_000 + 10_000
    with s3.counting() as reading:
        x_3 = opened.at(3)
    assert np.array_equal(x_3, np.concatenate([own[:, 2] for own in x]))
    assert len(reading) == 2  # one request for each of the two shards
    assert x_3.nbytes <= sum(n for _, _, n in reading) < 1.01 * x_3.nbytes


def read_and_write(steps, to):
    write_json(to, {"written by": "a worker"})
    return steps.read(1, 0, 3)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_shards_can_be_sent_to_another_process(s3, tau):
    tau.save("s3://bucket/sent")
    manifest = read_manifest("s3://bucket/sent")
    shard = manifest.shards[1]
    assert isinstance(shard, Shard)
    assert np.array_equal(read_lengths(pickle.loads(pickle.dumps(shard))), tau.lengths[300:])
    steps = ShardSteps([shard.file], [0, shard.n], manifest.H, manifest.obs_shape, manifest.dtype)
    with multiprocessing.get_context("fork").Pool(1) as pool:  # while this process has connections of its own
        found = pool.apply(read_and_write, (steps, place("s3://bucket/row.json")))
    assert json.loads(place("s3://bucket/row.json").read_text()) == {"written by": "a worker"}
    assert np.array_equal(found, tau.steps.read(1, 300, 303))


def test_an_hdf5_file_is_read_with_the_garbage_collector_off(tau, monkeypatch):
    """It may run in any thread; in fsspec's, it would wait for h5py's lock, which the waiting reader holds."""
    pytest.importorskip("fsspec")
    tau.save("memory://collector.h5")
    seen = []

    def noted(url, doing, function):
        seen.append(gc.isenabled())
        return attempted(url, doing, function)

    monkeypatch.setattr(ranges, "attempted", noted)
    same(TrajectoryDataset.open("memory://collector.h5"), tau)
    assert seen
    assert not any(seen)
    assert gc.isenabled()


# -- the command line --------------------------------------------------------------------------------------------


def test_commands_take_urls(s3, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    at = "s3://bucket/commands"
    collected = ["collect", "--world", "bits", "--horizon", "4", "--features", "8", "--n", "400", "--out", f"{at}/data"]
    assert main(collected) == 0
    fit = ["fit", f"{at}/data", "--alpha", "1", "--eta", "1/5", "--nu", "1/10", "--out", f"{at}/model"]
    assert main(fit) == 0
    assert main(["evaluate", f"{at}/model", f"{at}/data", "--truth", f"{at}/data.truth.npz"]) == 0
    assert "mean over h = 1..4: 100.00%" in capsys.readouterr().out
    assert main(["encode", f"{at}/model", f"{at}/data", "--out", f"{at}/states.npz"]) == 0
    assert main(["report", f"{at}/model", "--out", f"{at}/report.html"]) == 0
    assert main(["inspect", f"{at}/data", "--no-sheet"]) == 0
    assert f"{at}/data: 2 agents" in capsys.readouterr().out
    found = {key.rpartition("/")[2] for key in keys(s3, "commands/")}
    assert {"report.html", "states.npz", "config.json", "manifest.json"} <= found
    for again in (collected, fit, ["encode", f"{at}/model", f"{at}/data", "--out", f"{at}/states.npz"]):
        assert main(again) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all("already" in line for line in told)
    assert not list(tmp_path.iterdir())


def test_a_results_folder_in_a_store_holds_one_study(s3, capsys):
    command = ["reproduce", "error-growth", "--seeds", "1", "--quiet", "--out", "s3://bucket/study"]
    write_json(place("s3://bucket/study/settings.json"), {"study": "another", "craftrl": "0"})
    assert main(command) == 2
    assert "s3://bucket/study has study = another" in capsys.readouterr().err
